#pragma once

#include <cstddef>
#include <functional>

namespace ballast {

/// Runs independent pieces of work. `core` owns no threads: callers that have some pass an Executor of
/// their own, and no result may depend on which one it is, since pieces never share an output.
class Executor {
 public:
  virtual ~Executor() = default;

  /// Calls `task(i)` once for every i in [0, count), in any order and possibly at the same time, and
  /// returns when all have ended. An exception of a task is thrown again here (one of them, if several).
  virtual void for_each(std::size_t count, const std::function<void(std::size_t)>& task) const = 0;
};

/// The executor that runs every piece on the calling thread, in order.
const Executor& serial_executor();

}  // namespace ballast
