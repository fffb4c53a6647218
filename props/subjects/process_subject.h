#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "props/subjects/child_process.h"
#include "props/subjects/subject.h"

namespace ballast::props {

struct ProcessSettings {
  std::string command;                          ///< for /bin/sh -c
  std::chrono::milliseconds answer_time{10'000};  ///< what a single answer may take
  std::size_t line_bytes_max = std::size_t{64} << 20;
};

/// A command in any language that speaks the subject protocol over its stdin and stdout.
///
/// It is started at the first request and lives over many cases. A SubjectFailure (no answer in time,
/// its end, a line that is no valid answer) ends it with its whole process group; the next `open`
/// starts it anew. The states it saves are kept here, as the text it gave. `hello` throws
/// SubjectFailure too.
class ProcessSubject final : public Subject {
 public:
  explicit ProcessSubject(ProcessSettings settings);
  /// Asks it to close, gives it a moment, and ends it.
  ~ProcessSubject() override;

  const Hello& hello() override;
  Answer open(const Open& open) override;
  Answer ask(const Request& request) override;
  std::string last_lines() override;

 private:
  void start();
  /// Sends the line and reads the answer with `read`, which is given it as JSON and as text, and may
  /// throw ProtocolError.
  template <class Read>
  auto converse(const std::string& line, const std::string& what, Read read);
  [[noreturn]] void fail(const std::string& line, bool timed_out = false);
  bool has_state(const Load& load) const;

  ProcessSettings settings_;
  std::unique_ptr<ChildProcess> child_;
  Hello hello_;
  std::int64_t id_ = 0;
  std::size_t requests_ = 0;  ///< since open
  std::vector<std::optional<std::string>> states_;  ///< by save of the case; none where it was refused
};

}  // namespace ballast::props
