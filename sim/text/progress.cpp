#include "sim/text/progress.h"

#include <cmath>

#include "sim/text/terminal.h"

namespace ballast::sim {

std::string duration(double seconds) {
  const auto total = static_cast<long long>(std::ceil(seconds));
  const auto two_digits = [](long long n) { return (n < 10 ? "0" : "") + std::to_string(n); };
  if (total < 60) return std::to_string(total) + " s";
  if (total < 3600) return std::to_string(total / 60) + " min " + two_digits(total % 60) + " s";
  return std::to_string(total / 3600) + " h " + two_digits(total / 60 % 60) + " min";
}

std::string progress_line(std::size_t done, std::size_t total, const std::string& unit,
                          double seconds) {
  constexpr std::size_t width = 24;
  const std::size_t filled = total == 0 ? width : width * done / total;
  std::string text = "[" + std::string(filled, '#') + std::string(width - filled, '.') + "] ";
  text += std::to_string(total == 0 ? 100 : 100 * done / total) + " %  " + unit + " " +
          std::to_string(done) + " of " + std::to_string(total);
  if (done > 0 && done < total && seconds > 0.5) {
    const double left = seconds / static_cast<double>(done) * static_cast<double>(total - done);
    text += ", " + duration(left) + " left";
  }
  return text;
}

Progress::Progress(std::ostream& err, std::size_t total, std::string unit)
    : err_(err), total_(total), unit_(std::move(unit)), on_(may_redraw(err)) {}

void Progress::show(std::size_t done) {
  const auto now = Clock::now();
  if (!on_ || (shown_ && now - last_ < std::chrono::milliseconds(100))) return;
  const double seconds = std::chrono::duration<double>(now - start_).count();
  // A line that wrapped could not be taken away again.
  const std::string line =
      progress_line(done, total_, unit_, seconds).substr(0, terminal_width(err_) - 1);
  err_ << "\r\033[K" << line << std::flush;
  shown_ = true;
  last_ = now;
}

void Progress::clear() {
  if (!shown_) return;
  err_ << "\r\033[K" << std::flush;
  shown_ = false;
}

}  // namespace ballast::sim
