#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "core/executor.h"

namespace ballast::sim {

/// An executor of `threads` threads, the caller's among them. Pieces are handed out one by one; which thread
/// takes which is left open, and no result depends on it. A call from inside a piece runs on the thread that
/// makes it, so nesting neither blocks nor oversubscribes.
class ThreadPool final : public Executor {
 public:
  /// threads >= 1; fewer when the system gives no more.
  explicit ThreadPool(std::size_t threads);
  ~ThreadPool() override;
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  std::size_t size() const { return workers_.size() + 1; }
  void for_each(std::size_t count, const std::function<void(std::size_t)>& task) const override;

 private:
  struct Job;
  void work(std::size_t thread);

  mutable std::mutex mutex_;
  mutable std::condition_variable wake_;
  mutable Job* job_ = nullptr;
  mutable std::atomic<std::uint64_t> jobs_ = 0;  ///< so far; changes under the mutex
  bool stop_ = false;
  std::vector<std::thread> workers_;
};

}  // namespace ballast::sim
