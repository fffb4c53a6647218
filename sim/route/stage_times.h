#pragma once

#include <chrono>

namespace ballast::sim {

/// Seconds that the stages of routing a batch took, by the clock on the wall.
struct StageTimes {
  double read = 0.0;     ///< getting logits: reading, widening, the product with the gate
  double route = 0.0;    ///< logits to scores, indices, weights, cutoffs and counts
  double balance = 0.0;  ///< observing required biases, and moving the biases
  double write = 0.0;    ///< putting results into files

  double sum() const { return read + route + balance + write; }
  StageTimes& operator+=(const StageTimes& other) {
    read += other.read;
    route += other.route;
    balance += other.balance;
    write += other.write;
    return *this;
  }
  /// The same shares of another whole: what threads spent together, as time on the wall.
  StageTimes scaled_to(double whole) const {
    const double factor = sum() > 0.0 ? whole / sum() : 0.0;
    return {read * factor, route * factor, balance * factor, write * factor};
  }
};

/// Gives the time from its construction, or from the last lap, to each stage in turn.
class StageClock {
 public:
  void lap(double& stage) {
    const auto now = Clock::now();
    stage += std::chrono::duration<double>(now - last_).count();
    last_ = now;
  }

 private:
  using Clock = std::chrono::steady_clock;
  Clock::time_point last_ = Clock::now();
};

}  // namespace ballast::sim
