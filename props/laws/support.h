#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "props/laws/law.h"

/// What laws are written with. A check is a straight line of questions and expectations that ends
/// early when one of them fails: `break_law`, `discard` and `converse` throw, and `judged` makes an
/// Outcome of it.
namespace ballast::props {

using History = std::vector<Request>;
using Edges = std::set<std::string>;

[[noreturn]] void break_law(std::string where, std::string expected, std::string seen);
/// The case does not concern the law.
[[noreturn]] void discard();

/// The check of a law from one that throws. Cases that make no sense are discarded; what the
/// subject has no capability for is left out of the others.
std::function<Outcome(Subject&, const Case&)> judged(
    std::function<void(Subject&, const Case&, Edges&)> check);

/// "request 3 (train forward, layer 0)", and the token.
std::string place(const History& history, std::size_t request);
std::string place(const History& history, std::size_t request, std::size_t token);
/// "0 2 1"
std::string text(const std::vector<std::int64_t>& values);
std::string text(const std::vector<double>& values);
std::string text(double value);

/// Opens and asks. The answers are of the types and shapes that the requests call for: every valid
/// token has top_k distinct experts of the model and as many weights, biases have a value an expert
/// and layer, a snapshot has a count an expert. Only a forward with logits that are not finite may
/// be refused (and counts for nothing then). All else breaks the law, or makes it unsupported.
std::vector<Answer> converse(Subject& subject, const Open& open, const History& history);

/// The answer as the type that `converse` made sure of. They point into it, so it must not be a temporary.
const Routed* routed(const Answer& answer);  ///< null when it was refused
const std::vector<std::vector<double>>& biases_of(const Answer& answer);
/// The records in the order of the layers: numbers in names count as numbers.
std::vector<const LayerSnapshot*> records_of(const Answer& answer);
const Routed* routed(Answer&&) = delete;
const std::vector<std::vector<double>>& biases_of(Answer&&) = delete;
std::vector<const LayerSnapshot*> records_of(Answer&&) = delete;

/// The biases a case opens with.
std::vector<std::vector<double>> opening_biases(const Open& open);

bool is_valid(const Forward& forward, std::size_t token);
std::int64_t valid_tokens(const Forward& forward);
bool is_finite(const Forward& forward);

/// Breaks the law unless two answers to the request are equal to the bit (rows of padding aside).
/// `context` says when: "with an evaluation before request 2".
void expect_same(const History& history, std::size_t request, const Answer& expected,
                 const Answer& seen, const std::string& context);

/// A history with requests inserted, and where the original ones went.
struct Spliced {
  History history;
  std::vector<std::size_t> position;  ///< of each original request
};
/// Each request is inserted before the original one of its number (or at the end). Numbers ascend.
Spliced splice(const History& history,
               const std::vector<std::pair<std::size_t, Request>>& insertions);

/// Holds both conversations, and breaks the law unless the original requests are answered alike to
/// the bit.
void expect_invisible(Subject& subject, const Open& open, const History& history,
                      const std::vector<std::pair<std::size_t, Request>>& insertions,
                      const std::string& what);

/// The history, then what makes its end visible: a snapshot if a collector is active, and, for a
/// subject that balances, an applied step, whose biases show what was observed.
History with_end_shown(const History& history, const std::set<Capability>& supports);

/// Whether a collector is active before each request, and at the end: `[requests + 1]`.
std::vector<bool> collector_active(const History& history);
/// The training forwards between each request and the applied step, or the opening, before it;
/// `[requests + 1]`.
std::vector<std::size_t> pending_forwards(const History& history);

/// Notes the edges of shapes and requests: "k = 1", "k = E - 1", "k = E", "no tokens", "several
/// layers", "several ranks", "padding", "all padding", "nonfinite logits", "skipped step".
void note_edges(const Case& input, Edges& edges);

}  // namespace ballast::props
