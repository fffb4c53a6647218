#include "sim/threads/thread_pool.h"

#include <exception>

namespace ballast::sim {

namespace {

thread_local bool inside_a_piece = false;

/// Leaves the processor's other half, if there is one, the time.
void pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

/// Waits without sleeping, since to be woken takes longer than many pieces do; but not for long, and others may have the
/// processor in between.
template <class Condition>
void wait_briefly(Condition condition) {
  constexpr int tries = 4000, tries_in_a_row = 100;
  for (int i = 1; i <= tries && !condition(); ++i) {
    if (i % tries_in_a_row == 0) std::this_thread::yield();
    else pause();
  }
}

}  // namespace

/// One call of for_each. It lives on the caller's stack, and the caller leaves only when no worker is in it.
struct ThreadPool::Job {
  /// Neighbouring pieces that one thread begins with. The same ones in every call of as many pieces: what a thread
  /// has written it finds in its own cache the next time.
  struct alignas(64) Share {
    std::atomic<std::size_t> next = 0;
    std::size_t end = 0;
  };

  const std::function<void(std::size_t)>& task;
  std::vector<Share> shares;
  std::atomic<std::size_t> workers_inside = 0;  ///< changes under the pool's mutex
  std::mutex error_mutex;
  std::exception_ptr error;               ///< of the lowest piece that failed,
  std::atomic<std::size_t> failed_piece;  ///< and its number; behind it none needs to run
  std::condition_variable left;

  Job(const std::function<void(std::size_t)>& task_, std::size_t count, std::size_t threads)
      : task(task_), shares(threads), failed_piece(count) {
    for (std::size_t thread = 0; thread < threads; ++thread) {
      shares[thread].next = count * thread / threads;
      shares[thread].end = count * (thread + 1) / threads;
    }
  }

  /// Takes the pieces of its own share and then those that others leave.
  void run(std::size_t thread) {
    inside_a_piece = true;
    for (std::size_t i = 0; i < shares.size(); ++i) take(shares[(thread + i) % shares.size()]);
    inside_a_piece = false;
  }

  void take(Share& share) {
    for (std::size_t piece; (piece = share.next.fetch_add(1, std::memory_order_relaxed)) < share.end;) {
      if (piece >= failed_piece.load(std::memory_order_relaxed)) return;
      try {
        task(piece);
      } catch (...) {
        const std::lock_guard lock(error_mutex);
        if (piece >= failed_piece) return;
        failed_piece = piece;
        error = std::current_exception();
      }
    }
  }
};

ThreadPool::ThreadPool(std::size_t threads) {
  workers_.reserve(threads - 1);
  try {
    for (std::size_t i = 1; i < threads; ++i) workers_.emplace_back([this, i] { work(i); });
  } catch (const std::exception&) {
    // The machine gives no more of them; as no result depends on their number, those there are will do.
  }
}

ThreadPool::~ThreadPool() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
    ++jobs_;
  }
  wake_.notify_all();
  for (auto& worker : workers_) worker.join();
}

void ThreadPool::work(std::size_t thread) {
  std::uint64_t seen = 0;
  for (;;) {
    wait_briefly([&] { return jobs_.load(std::memory_order_relaxed) != seen; });
    std::unique_lock lock(mutex_);
    wake_.wait(lock, [&] { return stop_ || jobs_ != seen; });
    if (stop_) return;
    seen = jobs_;
    if (job_ == nullptr) continue;
    Job& job = *job_;
    ++job.workers_inside;
    lock.unlock();
    job.run(thread);
    lock.lock();
    if (--job.workers_inside == 0) job.left.notify_one();
  }
}

void ThreadPool::for_each(std::size_t count, const std::function<void(std::size_t)>& task) const {
  if (workers_.empty() || inside_a_piece || count <= 1) {
    serial_executor().for_each(count, task);
    return;
  }
  Job job(task, count, size());
  {
    const std::lock_guard lock(mutex_);
    job_ = &job;
    ++jobs_;
  }
  wake_.notify_all();
  job.run(0);
  std::unique_lock lock(mutex_);
  job_ = nullptr;
  lock.unlock();
  wait_briefly([&] { return job.workers_inside == 0; });
  lock.lock();
  job.left.wait(lock, [&] { return job.workers_inside == 0; });
  lock.unlock();
  if (job.error) std::rethrow_exception(job.error);
}

}  // namespace ballast::sim
