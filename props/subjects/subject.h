#pragma once

#include <cstddef>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>

#include "props/cases/requests.h"

namespace ballast::props {

enum class Capability { route, balance, collect, metrics, combine, state, mask, recompute, ranks, groups };
/// What becomes of a balancer's pending observations at a step that is skipped.
enum class OnOverflow { keep, discard };

/// What a subject says of itself.
struct Hello {
  std::string name;
  std::set<Capability> supports;
  OnOverflow on_overflow = OnOverflow::discard;
};

/// The subject broke the rules of the conversation: it crashed, hung, or answered something that is no valid
/// answer to the request. It can be used again after `open`, which starts it anew if it has to.
class SubjectFailure : public std::runtime_error {
 public:
  explicit SubjectFailure(const std::string& what, std::string last_lines = {})
      : std::runtime_error(what), stderr_tail(std::move(last_lines)) {}
  std::string stderr_tail;  ///< its last lines on stderr
  bool timed_out = false;   ///< it gave no answer within its time
};

/// Something that routes, balances, collects or computes metrics, to be held against the laws. Strictly
/// request and answer. `open` throws SubjectFailure or returns a Refusal like `ask`.
class Subject {
 public:
  virtual ~Subject() = default;
  virtual const Hello& hello() = 0;
  /// Begins a case. Done, or a Refusal.
  virtual Answer open(const Open& open) = 0;
  /// One request of the case. The answer has the type the request calls for (see the protocol), or is a
  /// Refusal; SubjectFailure otherwise. Shapes are the subject's: laws check them.
  virtual Answer ask(const Request& request) = 0;
  /// What it last wrote on stderr, if it has one of its own.
  virtual std::string last_lines() { return {}; }
};

}  // namespace ballast::props
