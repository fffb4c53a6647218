#include "sim/threads/thread_pool.h"

#include <exception>

namespace ballast::sim {

namespace {
thread_local bool inside_a_piece = false;
}  // namespace

/// One call of for_each. It lives on the caller's stack, and the caller leaves only when no worker is in it.
struct ThreadPool::Job {
  const std::function<void(std::size_t)>& task;
  std::size_t count;
  std::size_t next = 0;
  std::size_t workers_inside = 0;
  std::exception_ptr error;
  std::condition_variable left;

  /// Takes pieces until none is left. `lock` is held between pieces, never during one.
  void run(std::unique_lock<std::mutex>& lock) {
    while (next < count) {
      const std::size_t piece = next++;
      lock.unlock();
      std::exception_ptr thrown;
      inside_a_piece = true;
      try {
        task(piece);
      } catch (...) {
        thrown = std::current_exception();
      }
      inside_a_piece = false;
      lock.lock();
      if (thrown) {
        error = thrown;
        next = count;
      }
    }
  }
};

ThreadPool::ThreadPool(std::size_t threads) {
  workers_.reserve(threads - 1);
  try {
    for (std::size_t i = 1; i < threads; ++i) workers_.emplace_back([this] { work(); });
  } catch (const std::exception&) {
    // The machine gives no more of them; as no result depends on their number, those there are will do.
  }
}

ThreadPool::~ThreadPool() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  wake_.notify_all();
  for (auto& worker : workers_) worker.join();
}

void ThreadPool::work() {
  std::unique_lock lock(mutex_);
  for (;;) {
    wake_.wait(lock, [&] { return stop_ || (job_ != nullptr && job_->next < job_->count); });
    if (stop_) return;
    Job& job = *job_;
    ++job.workers_inside;
    job.run(lock);
    if (--job.workers_inside == 0) job.left.notify_one();
  }
}

void ThreadPool::for_each(std::size_t count, const std::function<void(std::size_t)>& task) const {
  if (workers_.empty() || inside_a_piece || count <= 1) {
    serial_executor().for_each(count, task);
    return;
  }
  Job job{.task = task, .count = count, .error = nullptr, .left = {}};
  std::unique_lock lock(mutex_);
  job_ = &job;
  wake_.notify_all();
  job.run(lock);
  job_ = nullptr;
  job.left.wait(lock, [&] { return job.workers_inside == 0; });
  lock.unlock();
  if (job.error) std::rethrow_exception(job.error);
}

}  // namespace ballast::sim
