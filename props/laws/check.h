#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "props/laws/law.h"
#include "props/laws/support.h"

namespace ballast::props {

using BiasRows = std::vector<std::vector<double>>;  ///< as answered, `[layers][experts]`

/// A law at work on one case: it asks the subject and takes the answers apart, so that the law
/// itself need only judge them. The check ends early, by an exception that `checked` turns into the
/// outcome, where an answer is a refusal or of the wrong shape, and where the law says so.
class Check {
 public:
  explicit Check(Subject& subject) : subject_(subject) {}

  // Asking. An "unsupported" ends the check as unsupported, any other refusal as broken.
  void open(const Open& open);
  void done(const Request& request);
  Routed route(const Request& forward);  ///< shape and range of the indices are checked
  BiasRows step(const Request& step);
  BiasRows biases();
  Snapshot snapshot();
  std::map<std::string, double> metrics(const Request& request);  ///< of MetricsOf or Combine
  /// An answer whatever it is; an "unsupported" ends the check.
  Answer ask(const Request& request);

  // Judging, of what was asked last.
  const Open& opened() const { return open_; }
  const ModelSpec& model() const { return open_.model; }
  const Hello& hello() { return subject_.hello(); }
  /// The case met an edge of the law.
  void meet(const std::string& edge) { outcome_.edges.insert(edge); }
  void meet_if(bool met, const char* edge) {
    if (met) meet(edge);
  }
  /// A place within what was asked last, "layer 1, expert 2".
  [[noreturn]] void broken(const std::string& place, std::string expected, std::string seen);
  [[noreturn]] void discard();
  void discard_unless(bool concerned) {
    if (!concerned) discard();
  }

  const Outcome& outcome() const { return outcome_; }

 private:
  BiasRows bias_rows(Answer answer);
  [[noreturn]] void end(Outcome::Kind kind);
  [[noreturn]] void wrong_answer(const Answer& answer, const std::string& expected);

  Subject& subject_;
  Open open_;
  Outcome outcome_;
  std::size_t asked_ = 0;  ///< requests since open
  std::string last_;       ///< what the last one was
};

/// A law's check from a function that judges; returning is holding. Cases that make no sense are
/// discarded.
std::function<Outcome(Subject&, const Case&)> checked(void (*judge)(Check& check,
                                                                    const Case& input));

/// One move of one layer's biases, and what it was made from: at a step, the training forwards
/// since the one before (and what the subject kept of a skipped one); with Update::forward, one
/// forward.
struct BiasMove {
  std::size_t layer = 0;
  std::vector<const Forward*> forwards;
  std::vector<Routed> routed;  ///< of each forward
  std::vector<double> before;
  std::vector<double> after;
};

/// What a law sees of a training run. Both may be empty.
struct Observer {
  std::function<void(const Forward&, const Routed&, const std::vector<double>& biases)> routed;
  std::function<void(const BiasMove&)> moved;
};

/// Opens and holds the conversation of a case, and shows its forwards, each with the biases that
/// were in force, and its moves. Steps without a forward of a layer are moves from nothing. A
/// history with anything but forwards and steps is discarded.
void follow(Check& check, const Case& input, const Observer& observer);

}  // namespace ballast::props
