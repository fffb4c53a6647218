#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstddef>
#include <optional>
#include <stdexcept>
#include <string>

namespace ballast::props {

/// A child that did not answer as it should; `what()` goes on after "the subject ": "exited with
/// status 3".
class ChildFailure : public std::runtime_error {
 public:
  explicit ChildFailure(const std::string& what, bool timed_out_ = false)
      : std::runtime_error(what), timed_out(timed_out_) {}
  bool timed_out;
};

/// A file descriptor that is closed with its owner.
class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int number) : number_(number) {}
  ~Descriptor() { close(); }
  Descriptor(Descriptor&& other) noexcept : number_(other.release()) {}
  Descriptor& operator=(Descriptor&& other) noexcept;

  int number() const { return number_; }
  bool open() const { return number_ >= 0; }
  void close();

 private:
  int release();
  int number_ = -1;
};

/// A shell command in a process group of its own that answers every line on its stdin with one line
/// on its stdout. Its stderr is read whenever we wait for it, and only the end is kept, so that a
/// flood blocks neither side.
///
/// The group ends with the object: what does not leave by itself when its stdin closes is sent
/// SIGTERM, then SIGKILL, and the child is waited for, so that no zombie stays.
class ChildProcess {
 public:
  using Duration = std::chrono::milliseconds;
  static constexpr std::size_t stderr_bytes_max = 16384;  ///< what is kept of stderr

  /// Starts `/bin/sh -c COMMAND`. Throws std::system_error when the system has no process or pipe
  /// left.
  ChildProcess(const std::string& command, std::size_t line_bytes_max);
  ~ChildProcess();
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  /// Sends a line (without its end) and gives the line that answers it. Throws ChildFailure when
  /// there is none within `limit`, when the child ends or closes its stdout first, and when it writes
  /// a line that is too long or that nobody asked for. After that the child is of no more use.
  std::string exchange(const std::string& line, Duration limit);

  /// The end of what it wrote on stderr so far.
  std::string stderr_tail();

  /// Closes its stdin and waits for it to leave by itself; whether it did, with status 0.
  bool leave(Duration limit);

 private:
  using Clock = std::chrono::steady_clock;

  /// Waits until `until` for anything to read, or for room to write, and does it.
  void transfer(const std::string& out, std::size_t& sent, Clock::time_point until);
  void write_some(const std::string& out, std::size_t& sent);
  void read_answer();
  bool read_stderr();
  std::optional<std::string> take_line(bool all_sent);
  [[noreturn]] void fail_ended();
  bool has_exited() const;
  bool exits_within(Duration limit);

  pid_t pid_ = -1;
  std::size_t line_bytes_max_;
  Descriptor stdin_, stdout_, stderr_;
  std::string answer_;
  std::string stderr_tail_;
};

}  // namespace ballast::props
