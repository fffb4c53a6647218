#pragma once

#include <signal.h>

#include <array>

namespace ballast::sim {

/// While one of these lives, SIGINT, SIGTERM and SIGHUP wait; the last one that came takes effect
/// at its end. For work that must not stop half way. One at a time in a process.
class DeferredSignals {
 public:
  DeferredSignals();
  ~DeferredSignals();
  DeferredSignals(const DeferredSignals&) = delete;
  DeferredSignals& operator=(const DeferredSignals&) = delete;

 private:
  static constexpr std::array<int, 3> deferred = {SIGINT, SIGTERM, SIGHUP};
  std::array<struct sigaction, deferred.size()> before_;
};

}  // namespace ballast::sim
