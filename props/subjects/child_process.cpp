#include "props/subjects/child_process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>

extern char** environ;

namespace ballast::props {

namespace {

using namespace std::chrono_literals;

constexpr auto patience = 200ms;  ///< between asking a child to end and ending it
constexpr auto look_out = 50ms;   ///< how long an answer is waited for before looking whether the child lives
constexpr std::size_t block_bytes = 65536;

[[noreturn]] void fail_system(const char* what) {
  throw std::system_error(errno, std::generic_category(), what);
}

struct Pipe {
  Descriptor read, write;
};

/// Not inherited by any child, and above the standard streams, which the child's copies replace.
Descriptor kept_clear_of_streams(int number) {
  if (number > STDERR_FILENO) return Descriptor(number);
  const Descriptor low(number);
  const int moved = fcntl(number, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
  if (moved < 0) fail_system("cannot keep a pipe");
  return Descriptor(moved);
}

Pipe make_pipe() {
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) fail_system("cannot make a pipe");
  Pipe out;
  out.read = kept_clear_of_streams(ends[0]);
  out.write = kept_clear_of_streams(ends[1]);
  return out;
}

void set_nonblocking(const Descriptor& descriptor) {
  if (fcntl(descriptor.number(), F_SETFL, O_NONBLOCK) != 0) fail_system("cannot set up a pipe");
}

/// What a new process starts with: a group of its own, and no signal blocked or ignored.
class SpawnAttributes {
 public:
  SpawnAttributes() {
    posix_spawnattr_init(&value_);
    posix_spawnattr_setflags(&value_, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    posix_spawnattr_setpgroup(&value_, 0);
    sigset_t none, broken_pipe;
    sigemptyset(&none);
    posix_spawnattr_setsigmask(&value_, &none);
    sigemptyset(&broken_pipe);
    sigaddset(&broken_pipe, SIGPIPE);
    posix_spawnattr_setsigdefault(&value_, &broken_pipe);
  }
  ~SpawnAttributes() { posix_spawnattr_destroy(&value_); }
  SpawnAttributes(const SpawnAttributes&) = delete;
  SpawnAttributes& operator=(const SpawnAttributes&) = delete;
  const posix_spawnattr_t* get() const { return &value_; }

 private:
  posix_spawnattr_t value_;
};

/// The child's standard streams.
class SpawnStreams {
 public:
  SpawnStreams(const Descriptor& in, const Descriptor& out, const Descriptor& err) {
    posix_spawn_file_actions_init(&value_);
    posix_spawn_file_actions_adddup2(&value_, in.number(), STDIN_FILENO);
    posix_spawn_file_actions_adddup2(&value_, out.number(), STDOUT_FILENO);
    posix_spawn_file_actions_adddup2(&value_, err.number(), STDERR_FILENO);
  }
  ~SpawnStreams() { posix_spawn_file_actions_destroy(&value_); }
  SpawnStreams(const SpawnStreams&) = delete;
  SpawnStreams& operator=(const SpawnStreams&) = delete;
  const posix_spawn_file_actions_t* get() const { return &value_; }

 private:
  posix_spawn_file_actions_t value_;
};

pid_t spawn_shell(const std::string& command, const SpawnStreams& streams) {
  std::string shell = "sh", option = "-c", text = command;
  std::array<char*, 4> arguments = {shell.data(), option.data(), text.data(), nullptr};
  const SpawnAttributes attributes;
  pid_t pid = -1;
  errno = posix_spawn(&pid, "/bin/sh", streams.get(), attributes.get(), arguments.data(), environ);
  if (errno != 0) fail_system("cannot start /bin/sh");
  return pid;
}

/// While it lives, writing to a pipe that nobody reads fails with EPIPE and raises no signal in this
/// thread.
class WithoutSigpipe {
 public:
  WithoutSigpipe() {
    sigemptyset(&broken_pipe_);
    sigaddset(&broken_pipe_, SIGPIPE);
    sigset_t pending;
    sigpending(&pending);
    was_pending_ = sigismember(&pending, SIGPIPE) == 1;
    pthread_sigmask(SIG_BLOCK, &broken_pipe_, &before_);
  }
  ~WithoutSigpipe() {
    const timespec no_time{};
    if (!was_pending_) {
      while (sigtimedwait(&broken_pipe_, nullptr, &no_time) == SIGPIPE) {
      }
    }
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }
  WithoutSigpipe(const WithoutSigpipe&) = delete;
  WithoutSigpipe& operator=(const WithoutSigpipe&) = delete;

 private:
  sigset_t broken_pipe_, before_;
  bool was_pending_ = false;
};

/// Reads what is there, at most one block, and says whether there was anything; closes the descriptor
/// at its end.
bool read_available(Descriptor& from, std::string& to) {
  std::array<char, block_bytes> block;
  const ssize_t count = read(from.number(), block.data(), block.size());
  if (count > 0) {
    to.append(block.data(), static_cast<std::size_t>(count));
  } else if (count == 0 || (errno != EAGAIN && errno != EINTR)) {
    from.close();
  }
  return count > 0;
}

std::string seconds(ChildProcess::Duration limit) {
  std::string text = std::to_string(static_cast<double>(limit.count()) / 1000.0);
  text.erase(text.find_last_not_of('0') + 1);
  if (text.back() == '.') text.pop_back();
  return text + " s";
}

/// How a process that is not yet waited for ended.
std::string ending(const siginfo_t& info) {
  if (info.si_code == CLD_EXITED) return "exited with status " + std::to_string(info.si_status);
  const char* const name = strsignal(info.si_status);
  return "was ended by signal " + std::to_string(info.si_status) +
         (name != nullptr ? " (" + std::string(name) + ")" : "");
}

/// The groups that live, for a signal handler: it can not take a lock. More children than places are not
/// known to it.
std::array<std::atomic<pid_t>, 1024> live_groups;

void exchange_group(pid_t from, pid_t to) {
  for (std::atomic<pid_t>& place : live_groups) {
    pid_t found = from;
    if (place.compare_exchange_strong(found, to)) return;
  }
}

constexpr std::array ending_signals = {SIGINT, SIGTERM, SIGHUP};
std::atomic<int> being_started;

/// While it lives, no signal ends this process between the start of a child and its entry in the groups that
/// live: this thread gets none, and a handler in another one waits.
class StartOfChild {
 public:
  StartOfChild() {
    sigset_t ending;
    sigemptyset(&ending);
    for (const int signal : ending_signals) sigaddset(&ending, signal);
    pthread_sigmask(SIG_BLOCK, &ending, &before_);
    ++being_started;
  }
  ~StartOfChild() {
    --being_started;
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }
  StartOfChild(const StartOfChild&) = delete;
  StartOfChild& operator=(const StartOfChild&) = delete;

 private:
  sigset_t before_;
};

void end_children_and_self(int signal) {
  while (being_started.load() > 0) {
  }
  for (const std::atomic<pid_t>& group : live_groups) {
    if (const pid_t pid = group.load(); pid > 0) kill(-pid, SIGKILL);
  }
  raise(signal);  // the handler stands for one signal only, and this one ends the process as if there were none
}

std::optional<siginfo_t> exit_of(pid_t pid) {
  siginfo_t info{};
  // WNOWAIT: it stays to be waited for, so that its number names no other process meanwhile.
  const bool known = waitid(P_PID, static_cast<id_t>(pid), &info, WEXITED | WNOHANG | WNOWAIT) == 0;
  if (known && info.si_pid == pid) return info;
  return std::nullopt;
}

}  // namespace

Descriptor& Descriptor::operator=(Descriptor&& other) noexcept {
  if (this != &other) {
    close();
    number_ = other.release();
  }
  return *this;
}

void Descriptor::close() {
  if (number_ >= 0) ::close(number_);
  number_ = -1;
}

int Descriptor::release() {
  return std::exchange(number_, -1);
}

ChildProcess::ChildProcess(const std::string& command, std::size_t line_bytes_max)
    : line_bytes_max_(line_bytes_max) {
  Pipe in = make_pipe(), out = make_pipe(), err = make_pipe();
  set_nonblocking(in.write);
  set_nonblocking(out.read);
  set_nonblocking(err.read);
  {
    const StartOfChild guard;
    pid_ = spawn_shell(command, SpawnStreams(in.read, out.write, err.write));
    exchange_group(0, pid_);
  }
  stdin_ = std::move(in.write);
  stdout_ = std::move(out.read);
  stderr_ = std::move(err.read);
}

ChildProcess::~ChildProcess() {
  stdin_.close();
  if (!has_exited()) {
    kill(-pid_, SIGTERM);
    exits_within(patience);
  }
  kill(-pid_, SIGKILL);  // the child, or what it started and left behind
  exchange_group(pid_, 0);
  while (waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
  }
}

std::string ChildProcess::exchange(const std::string& line, Duration limit) {
  const auto until = Clock::now() + limit;
  const std::string message = line + "\n";
  std::size_t sent = 0;
  while (true) {
    if (auto answer = take_line(sent == message.size())) {
      stderr_bytes_ = 0;
      return *std::move(answer);
    }
    if (stderr_bytes_ > flood_bytes) {
      throw ChildFailure("flooded stderr, with more than " + std::to_string(flood_bytes >> 10) +
                         " KiB for one answer");
    }
    if (!stdout_.open()) fail_ended();
    if (Clock::now() >= until)
      throw ChildFailure("gave no answer within " + seconds(limit), true);
    // What it started may keep its stdout open when it is gone, so its end is looked for as well.
    const bool gone = has_exited();
    const std::size_t before = answer_.size();
    transfer(message, sent, std::min(until, Clock::now() + (gone ? 0ms : look_out)));
    if (gone && answer_.size() == before) fail_ended();
  }
}

std::optional<std::string> ChildProcess::take_line(bool all_sent) {
  const std::size_t end = answer_.find('\n');
  if (std::min(end, answer_.size()) > line_bytes_max_)
    throw ChildFailure("wrote a line longer than " + std::to_string(line_bytes_max_) + " bytes");
  if (end == std::string::npos) return std::nullopt;
  if (!all_sent) throw ChildFailure("wrote a line that nobody asked for");
  if (end + 1 < answer_.size()) throw ChildFailure("wrote more than the one line that answers");
  std::string line = std::exchange(answer_, {});
  line.pop_back();
  return line;
}

void ChildProcess::transfer(const std::string& out, std::size_t& sent, Clock::time_point until) {
  // A negative descriptor is passed over by poll.
  std::array<pollfd, 3> waiting = {{{sent < out.size() ? stdin_.number() : -1, POLLOUT, 0},
                                    {stdout_.number(), POLLIN, 0},
                                    {stderr_.number(), POLLIN, 0}}};
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - Clock::now()).count();
  poll(waiting.data(), waiting.size(), static_cast<int>(std::clamp<long long>(left, 0, 60'000)));
  if (waiting[0].revents != 0) write_some(out, sent);
  if (waiting[1].revents != 0) read_answer();
  if (waiting[2].revents != 0) read_stderr();
}

void ChildProcess::write_some(const std::string& out, std::size_t& sent) {
  const WithoutSigpipe guard;
  const ssize_t count = write(stdin_.number(), out.data() + sent, out.size() - sent);
  if (count >= 0) {
    sent += static_cast<std::size_t>(count);
  } else if (errno != EAGAIN && errno != EINTR) {
    stdin_.close();  // it reads no more; what it has to say, or its end, will follow on stdout
    sent = out.size();
  }
}

void ChildProcess::read_answer() {
  read_available(stdout_, answer_);
}

bool ChildProcess::read_stderr() {
  const std::size_t before = stderr_tail_.size();
  const bool any = read_available(stderr_, stderr_tail_);
  stderr_bytes_ += stderr_tail_.size() - before;
  if (stderr_tail_.size() > stderr_bytes_max)
    stderr_tail_.erase(0, stderr_tail_.size() - stderr_bytes_max);
  return any;
}

std::string ChildProcess::stderr_tail() {
  // What is there already; a child that floods it is not read to the end, for there is none.
  constexpr int blocks_max = 4;
  for (int block = 0; block < blocks_max && stderr_.open(); ++block) {
    if (!read_stderr()) break;
  }
  return stderr_tail_;
}

void ChildProcess::fail_ended() {
  exits_within(patience);
  const auto info = exit_of(pid_);
  const std::string how = info ? ending(*info) : "closed its stdout";
  throw ChildFailure(how + (answer_.empty() ? "" : " in the middle of a line"));
}

bool ChildProcess::has_exited() const {
  return exit_of(pid_).has_value();
}

bool ChildProcess::exits_within(Duration limit) {
  const auto until = Clock::now() + limit;
  std::size_t nothing = 0;
  while (!has_exited()) {
    if (Clock::now() >= until) return false;
    // Read on meanwhile: it may hang in writing to a full pipe.
    transfer({}, nothing, std::min(until, Clock::now() + 2ms));
    if (answer_.size() > line_bytes_max_) answer_.clear();
    // With both streams closed there is nothing to wait for but time.
    if (!stdout_.open() && !stderr_.open()) std::this_thread::sleep_for(1ms);
  }
  return true;
}

bool ChildProcess::leave(Duration limit) {
  stdin_.close();
  if (!exits_within(limit)) return false;
  const auto info = exit_of(pid_);
  return info && info->si_code == CLD_EXITED && info->si_status == 0;
}

void end_children_on_signals() {
  struct sigaction action {};
  action.sa_handler = end_children_and_self;
  action.sa_flags = static_cast<int>(SA_RESETHAND);
  for (const int signal : ending_signals) {
    struct sigaction before {};
    // One that is ignored (nohup) stays so.
    if (sigaction(signal, nullptr, &before) == 0 && before.sa_handler == SIG_DFL) sigaction(signal, &action, nullptr);
  }
}

}  // namespace ballast::props
