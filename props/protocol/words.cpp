#include "props/protocol/words.h"

#include <array>
#include <stdexcept>
#include <string_view>
#include <utility>

namespace ballast::props {

namespace {

using namespace std::string_view_literals;

template <class Value, std::size_t n>
using Words = std::array<std::pair<Value, std::string_view>, n>;

constexpr Words<ScoreFunction, 3> scores{{{ScoreFunction::sigmoid, "sigmoid"sv},
                                          {ScoreFunction::softmax, "softmax"sv},
                                          {ScoreFunction::logit, "logit"sv}}};
constexpr Words<BalancerKind, 3> balancers{{{BalancerKind::quantile, "quantile"sv},
                                            {BalancerKind::sign, "sign"sv},
                                            {BalancerKind::none, "none"sv}}};
constexpr Words<Estimator, 2> estimators{
    {{Estimator::exact, "exact"sv}, {Estimator::histogram, "histogram"sv}}};
constexpr Words<Update, 2> updates{{{Update::step, "step"sv}, {Update::forward, "forward"sv}}};
constexpr Words<Mode, 3> modes{
    {{Mode::train, "train"sv}, {Mode::eval, "eval"sv}, {Mode::recompute, "recompute"sv}}};
constexpr Words<CollectorAction, 3> actions{{{CollectorAction::enter, "enter"sv},
                                             {CollectorAction::exit, "exit"sv},
                                             {CollectorAction::snapshot, "snapshot"sv}}};
constexpr Words<Capability, 10> capabilities{{{Capability::route, "route"sv},
                                              {Capability::balance, "balance"sv},
                                              {Capability::collect, "collect"sv},
                                              {Capability::metrics, "metrics"sv},
                                              {Capability::combine, "combine"sv},
                                              {Capability::state, "state"sv},
                                              {Capability::mask, "mask"sv},
                                              {Capability::recompute, "recompute"sv},
                                              {Capability::ranks, "ranks"sv},
                                              {Capability::groups, "groups"sv}}};
constexpr Words<OnOverflow, 2> policies{
    {{OnOverflow::keep, "keep"sv}, {OnOverflow::discard, "discard"sv}}};

template <class Value, std::size_t n>
std::string find_word(const Words<Value, n>& words, Value value) {
  for (const auto& [candidate, text] : words) {
    if (candidate == value) return std::string(text);
  }
  throw std::invalid_argument("an enumeration has a value without a word");
}

template <class Value, std::size_t n>
Value find_value(const Words<Value, n>& words, const std::string& word) {
  std::string all;
  for (const auto& [value, text] : words) {
    if (text == word) return value;
    all += (all.empty() ? "\"" : ", \"") + std::string(text) + "\"";
  }
  throw std::invalid_argument("one of " + all);
}

}  // namespace

std::string word(ScoreFunction value) { return find_word(scores, value); }
std::string word(BalancerKind value) { return find_word(balancers, value); }
std::string word(Estimator value) { return find_word(estimators, value); }
std::string word(Update value) { return find_word(updates, value); }
std::string word(Mode value) { return find_word(modes, value); }
std::string word(CollectorAction value) { return find_word(actions, value); }
std::string word(Capability value) { return find_word(capabilities, value); }
std::string word(OnOverflow value) { return find_word(policies, value); }

std::string word(const Request& request) {
  struct Visitor {
    const char* operator()(const Forward&) const { return "forward"; }
    const char* operator()(const Step&) const { return "step"; }
    const char* operator()(const GetBiases&) const { return "biases"; }
    const char* operator()(const SetBiases&) const { return "set_biases"; }
    const char* operator()(const Collector&) const { return "collector"; }
    const char* operator()(const MetricsOf&) const { return "metrics"; }
    const char* operator()(const Combine&) const { return "combine"; }
    const char* operator()(const Save&) const { return "save"; }
    const char* operator()(const Load&) const { return "load"; }
  };
  return std::visit(Visitor{}, request);
}

template <>
ScoreFunction value_of(const std::string& word) { return find_value(scores, word); }
template <>
BalancerKind value_of(const std::string& word) { return find_value(balancers, word); }
template <>
Estimator value_of(const std::string& word) { return find_value(estimators, word); }
template <>
Update value_of(const std::string& word) { return find_value(updates, word); }
template <>
Mode value_of(const std::string& word) { return find_value(modes, word); }
template <>
CollectorAction value_of(const std::string& word) { return find_value(actions, word); }
template <>
Capability value_of(const std::string& word) { return find_value(capabilities, word); }
template <>
OnOverflow value_of(const std::string& word) { return find_value(policies, word); }

bool is_capability(const std::string& word) {
  for (const auto& entry : capabilities) {
    if (entry.second == word) return true;
  }
  return false;
}

}  // namespace ballast::props
