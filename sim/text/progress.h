#pragma once

#include <chrono>
#include <cstddef>
#include <ostream>
#include <string>

namespace ballast::sim {

/// A line on a terminal that says how far the work is and how long it will still take, redrawn in place at most ten
/// times a second. On a stream that is no terminal it writes nothing.
class Progress {
 public:
  Progress(std::ostream& err, std::size_t total, std::string unit);
  ~Progress() { clear(); }
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  /// `done` of `total` are done.
  void show(std::size_t done);
  /// Takes the line away, before something else is written or at the end.
  void clear();

 private:
  using Clock = std::chrono::steady_clock;

  std::ostream& err_;
  std::size_t total_;
  std::string unit_;
  bool on_;
  bool shown_ = false;
  Clock::time_point start_ = Clock::now();
  Clock::time_point last_ = {};
};

/// The text of that line: a bar, the share, "step 12 of 300", and the time left once it can be told.
std::string progress_line(std::size_t done, std::size_t total, const std::string& unit, double seconds);
/// "8 s", "2 min 05 s", "1 h 10 min".
std::string duration(double seconds);

}  // namespace ballast::sim
