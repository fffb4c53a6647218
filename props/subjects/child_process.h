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
/// on its stdout. Its stderr is read whenever we wait for it, and only the end is kept. What it says
/// there is free, but a child that floods it while we wait for one answer has failed: something in it
/// runs away.
///
/// The group ends with the object: what does not leave by itself when its stdin closes is sent
/// SIGTERM, then SIGKILL, and the child is waited for, so that no zombie stays.
class ChildProcess {
 public:
  using Duration = std::chrono::milliseconds;
  static constexpr std::size_t stderr_bytes_max = 16384;  ///< what is kept of stderr
  static constexpr std::size_t flood_bytes = std::size_t{256} << 10;  ///< more on stderr than this, for one answer

  /// Starts `/bin/sh -c COMMAND`. Throws std::system_error when the system has no process or pipe
  /// left.
  ChildProcess(const std::string& command, std::size_t line_bytes_max);
  ~ChildProcess();
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  /// Sends a line (without its end) and gives the line that answers it. Throws ChildFailure when
  /// there is none within `limit`, when the child ends or closes its stdout first, when it writes a
  /// line that is too long or that nobody asked for, and when it floods stderr. After that the child is of no more use.
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
  std::size_t stderr_bytes_ = 0;  ///< since the last answer
};

/// From now on SIGINT, SIGTERM and SIGHUP end the groups of all children before they end this process: a
/// group of its own gets no Ctrl-C from the terminal, and would stay if it also ignored that its stdin
/// closes.
void end_children_on_signals();

}  // namespace ballast::props
