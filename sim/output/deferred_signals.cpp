#include "sim/output/deferred_signals.h"

#include <atomic>

namespace ballast::sim {

namespace {

std::atomic<int> arrived = 0;  // a handler may run on any thread
static_assert(std::atomic<int>::is_always_lock_free);

void remember(int signal) {
  arrived = signal;
}

}  // namespace

DeferredSignals::DeferredSignals() {
  arrived = 0;
  for (std::size_t i = 0; i < deferred.size(); ++i) {
    sigaction(deferred[i], nullptr, &before_[i]);
    if (before_[i].sa_handler == SIG_IGN)
      continue;  // nohup: it shall not end the process later either
    struct sigaction waiting = {};
    waiting.sa_handler = remember;
    waiting.sa_flags = SA_RESTART;
    sigemptyset(&waiting.sa_mask);
    sigaction(deferred[i], &waiting, nullptr);
  }
}

DeferredSignals::~DeferredSignals() {
  for (std::size_t i = 0; i < deferred.size(); ++i) sigaction(deferred[i], &before_[i], nullptr);
  if (const int signal = arrived.exchange(0)) raise(signal);
}

}  // namespace ballast::sim
