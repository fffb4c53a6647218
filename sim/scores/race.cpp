#include "sim/scores/race.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "core/arithmetic/functions.h"

namespace ballast::sim {
namespace {

constexpr std::size_t moments = 96;  ///< at which the course of the race is looked at
constexpr double last_moment = 1.5;
constexpr int rounds = 8;             ///< the error falls to some thousandths
constexpr double least_rate = 1e-12;  ///< so that every logit is finite

double moment(std::size_t i) {
  return last_moment * static_cast<double>(i) / static_cast<double>(moments - 1);
}

/// Expected number of arrivals, and rate of arrivals still to come, at each moment.
struct Course {
  std::array<double, moments> arrived{};
  std::array<double, moments> rate{};

  explicit Course(const std::vector<double>& rates) {
    for (std::size_t i = 0; i < moments; ++i) {
      for (const double w : rates) {
        const double absent = arithmetic::exp(-w * moment(i));
        arrived[i] += 1.0 - absent;
        rate[i] += w * absent;
      }
    }
  }
};

/// When the k-th arrival is to be expected, or the last moment if that comes first.
double kth_arrival(const Course& course, std::size_t top_k) {
  const auto k = static_cast<double>(top_k);
  for (std::size_t m = 1; m < moments; ++m) {
    if (course.arrived[m] < k) continue;
    const double step = course.arrived[m] - course.arrived[m - 1];
    return moment(m) - (course.arrived[m] - k) / step * (moment(m) - moment(m - 1));
  }
  return last_moment;
}

/// One Newton step to the w with sum_i ln(1 + w / R_i) = -ln(1 - p).
double improved(double w, double inclusion, std::size_t top_k, const Course& course) {
  double value = 0.0, slope = 0.0;
  std::size_t i = 0;
  double before_arrived = 0.0, before_rate = 0.0;
  for (std::size_t m = 0; m < moments && i < top_k; ++m) {
    const double absent = arithmetic::exp(-w * moment(m));
    const double arrived = course.arrived[m] - (1.0 - absent);
    const double rate = course.rate[m] - w * absent;
    for (; i < top_k && arrived >= static_cast<double>(i); ++i) {
      const double step = arrived - before_arrived;
      const double part = step > 0.0 ? (static_cast<double>(i) - before_arrived) / step : 1.0;
      const double others =
          std::max(m == 0 ? rate : before_rate + part * (rate - before_rate), least_rate);
      value += arithmetic::log(1.0 + w / others);
      slope += 1.0 / (others + w);
    }
    before_arrived = arrived;
    before_rate = rate;
  }
  const double wanted = -arithmetic::log(1.0 - inclusion);
  return std::clamp(w - (value - wanted) / slope, 0.2 * w, 5.0 * w);
}

}  // namespace

std::vector<double> race_rates(const std::vector<double>& inclusions, std::size_t top_k) {
  std::vector<double> rates(inclusions.size());
  for (std::size_t j = 0; j < rates.size(); ++j) {
    rates[j] =
        std::max(least_rate, top_k == 1 ? inclusions[j] : -arithmetic::log(1.0 - inclusions[j]));
  }
  if (top_k == 1) return rates;
  for (int round = 0; round < rounds; ++round) {
    // Rates that are all larger make the same race in less time; the k-th arrival belongs at
    // time 1.
    const double time = kth_arrival(Course(rates), top_k);
    for (double& rate : rates) rate *= time;
    const Course course(rates);
    for (std::size_t j = 0; j < rates.size(); ++j) {
      if (inclusions[j] > least_rate) rates[j] = improved(rates[j], inclusions[j], top_k, course);
    }
  }
  return rates;
}

}  // namespace ballast::sim
