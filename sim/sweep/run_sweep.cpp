#include "sim/sweep/run_sweep.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <new>
#include <system_error>
#include <thread>
#include <vector>

#include "sim/input_error.h"
#include "sim/simulation/side_by_side.h"

namespace ballast::sim {
namespace {

class Crew {
 public:
  Crew(const Sweep& sweep, std::span<const std::size_t> runs,
       const std::function<void(const RunResult&)>& done)
      : sweep_(sweep), runs_(runs), done_(done) {}

  /// What one worker does until nothing is left.
  void work(std::size_t threads) {
    for (std::size_t i = next_++; i < runs_.size() && !stopped_; i = next_++) {
      const RunResult result = guarded(runs_[i], threads);
      if (!stopped_) hand_over(result);
    }
  }

  void rethrow() const {
    if (thrown_) std::rethrow_exception(thrown_);
  }

 private:
  RunResult guarded(std::size_t run, std::size_t threads) const {
    try {
      return made(run, threads);
    } catch (const std::bad_alloc&) {
      return {.run = run, .error = "out of memory; use fewer jobs", .digest = {}};
    } catch (const InputError& error) {
      return {.run = run, .error = error.what(), .digest = {}};
    } catch (const std::exception& error) {
      return {.run = run, .error = std::string("internal error: ") + error.what(), .digest = {}};
    }
  }

  RunResult made(std::size_t run, std::size_t threads) const {
    const auto& planned = sweep_.scenarios[sweep_.point_of(run)];
    if (const auto* impossible = std::get_if<Impossible>(&planned)) {
      return {.run = run, .error = impossible->reason, .digest = {}};
    }
    Scenario scenario = std::get<Scenario>(planned);
    scenario.seed = sweep_.seed_of(run);
    SideBySide alone({&scenario, 1}, threads);
    for (std::size_t step = 1; step <= alone.steps(); ++step) {
      if (stopped_) return {.run = run, .error = "given up", .digest = {}};
      alone.advance_to(step);
    }
    return result_of(run, *alone.runs().front());
  }

  void hand_over(const RunResult& result) {
    const std::lock_guard lock(mutex_);
    if (thrown_) return;
    try {
      done_(result);
    } catch (...) {
      thrown_ = std::current_exception();
      stopped_ = true;
    }
  }

  const Sweep& sweep_;
  std::span<const std::size_t> runs_;
  const std::function<void(const RunResult&)>& done_;
  std::atomic<std::size_t> next_ = 0;
  std::atomic<bool> stopped_ = false;
  std::mutex mutex_;
  std::exception_ptr thrown_;
};

}  // namespace

void run_sweep(const Sweep& sweep, std::span<const std::size_t> runs, Workers workers,
               const std::function<void(const RunResult&)>& done) {
  Crew crew(sweep, runs, done);
  {
    std::vector<std::jthread> others;
    try {
      for (std::size_t i = 1; i < std::min(workers.jobs, runs.size()); ++i) {
        others.emplace_back([&] { crew.work(workers.threads); });
      }
    } catch (const std::system_error&) {
      // The machine gives no more threads; no result depends on their number.
    }
    crew.work(workers.threads);
  }
  crew.rethrow();
}

}  // namespace ballast::sim
