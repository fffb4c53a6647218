#include "props/cases/generate.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <set>
#include <string>

namespace ballast::props {
namespace {

constexpr int draws = 3000;

/// What `see` names over many cases of all sizes, with how often.
template <class Generate, class See>
std::map<std::string, int> seen_in(Generate generate, See see) {
  std::map<std::string, int> seen;
  for (int i = 0; i < draws; ++i) {
    Stream stream = Stream(7).child(static_cast<std::uint64_t>(i));
    see(generate(stream, static_cast<std::size_t>(i % 101)), seen);
  }
  return seen;
}

void expect_all(std::map<std::string, int> seen, const std::set<std::string>& wanted,
                int at_least = draws / 200) {
  for (const auto& name : wanted) EXPECT_GE(seen[name], at_least) << name;
}

TEST(Generate, MeetsTheEdgesOfShapes) {
  const auto seen = seen_in(
      [](Stream& stream, std::size_t size) {
        const ModelSpec model = generate_model(stream, size);
        return std::pair(model, generate_tokens(stream, size, model.routed_experts));
      },
      [](const auto& drawn, auto& names) {
        const auto& [model, tokens] = drawn;
        const std::size_t experts = model.routed_experts;
        ASSERT_GE(model.top_k, 1u);
        ASSERT_LE(model.top_k, experts);
        names["k = 1"] += model.top_k == 1;
        names["k = E - 1"] += model.top_k + 1 == experts;
        names["k = E"] += model.top_k == experts;
        names["E = 1"] += experts == 1;
        names["E no power of two"] += (experts & (experts - 1)) != 0;
        names["E <= 4"] += experts <= 4;
        names["T = 0"] += tokens == 0;
        names["T = 1"] += tokens == 1;
        names["T = E"] += tokens == experts;
        names["T <= 4"] += tokens <= 4;
        names["T > 16"] += tokens > 16;
        names["layers"] += model.layers > 1;
        names["sigmoid"] += model.score == ScoreFunction::sigmoid;
        names["softmax"] += model.score == ScoreFunction::softmax;
        names["logit"] += model.score == ScoreFunction::logit;
        names["E > 256"] += experts > 256;
      });
  expect_all(seen, {"k = 1", "k = E - 1", "k = E", "E = 1", "E no power of two", "T = 0", "T = 1",
                    "T = E", "T > 16", "layers", "sigmoid", "softmax", "logit"});
  expect_all(seen, {"E <= 4", "T <= 4"}, draws / 2);
  expect_all(seen, {"E > 256"}, 3);
}

TEST(Generate, MeetsEveryKindOfScore) {
  const auto seen = seen_in(
      [](Stream& stream, std::size_t) {
        const LogitFamily family = any_family(stream);
        return generate_logits(stream, 3, 3, family);
      },
      [](const Matrix<float>& logits, auto& names) {
        bool tie = false;
        for (std::size_t t = 0; t < 3; ++t) {
          const auto row = logits.row(t);
          tie |= row[0] == row[1];
          names["one ulp"] += row[0] != row[1] && std::nextafter(row[0], row[1]) == row[1];
          names["zeros of both signs"] +=
              row[0] == 0 && row[1] == 0 && std::signbit(row[0]) != std::signbit(row[1]);
          names["constant"] += row[0] == row[1] && row[1] == row[2];
        }
        names["tie"] += tie;
        for (const float z : logits.values()) {
          names["subnormal"] += std::fpclassify(z) == FP_SUBNORMAL;
          names["infinite"] += std::isinf(z);
          names["nan"] += std::isnan(z);
          names["saturated"] += std::abs(z) > 88.0f;
          names["huge offset"] += std::abs(z) > 4000.0f;
        }
      });
  expect_all(seen, {"one ulp", "zeros of both signs", "constant", "tie", "subnormal", "infinite",
                    "nan", "saturated", "huge offset"});
}

TEST(Generate, FiniteFamiliesAreFinite) {
  for (int i = 0; i < draws; ++i) {
    Stream stream = Stream(9).child(static_cast<std::uint64_t>(i));
    const Matrix<float> logits = generate_logits(stream, 3, 4, finite_family(stream));
    for (const float z : logits.values()) ASSERT_TRUE(std::isfinite(z));
  }
}

TEST(Generate, MeetsEveryRequestOfHistories) {
  const auto seen =
      seen_in([](Stream& stream, std::size_t size) { return generate_case(stream, size, {}); },
              [](const Case& c, auto& names) {
                std::size_t saves = 0;
                bool active = false;
                int kinds = 0;
                for (const auto& request : c.history) {
                  if (const auto* forward = std::get_if<Forward>(&request)) {
                    ASSERT_LT(forward->layer, c.open.model.layers);
                    ASSERT_LT(forward->rank, c.open.ranks);
                    names["train"] += forward->mode == Mode::train;
                    names["eval"] += forward->mode == Mode::eval;
                    names["recompute"] += forward->mode == Mode::recompute;
                    names["mask"] += !forward->mask.empty();
                    names["rank"] += forward->rank > 0;
                  } else if (const auto* step = std::get_if<Step>(&request)) {
                    names[step->applied ? "step" : "skipped step"]++;
                  } else if (const auto* collector = std::get_if<Collector>(&request)) {
                    const bool enters = collector->action == CollectorAction::enter;
                    ASSERT_EQ(active, !enters) << "requests make sense";
                    active = collector->action != CollectorAction::exit;
                    names["collector"]++;
                    names["exit"] += collector->action == CollectorAction::exit;
                    ++kinds;
                  } else if (std::holds_alternative<SetBiases>(request)) {
                    names["set_biases"]++;
                  } else if (std::holds_alternative<Save>(request)) {
                    ++saves;
                  } else if (const auto* load = std::get_if<Load>(&request)) {
                    ASSERT_LT(load->slot, saves);
                    names["load"]++;
                  }
                }
                names["no collector"] += kinds == 0;
              });
  expect_all(seen, {"train", "eval", "recompute", "mask", "rank", "step", "skipped step",
                    "collector", "exit", "set_biases", "load", "no collector"});
}

TEST(Generate, IsDecidedByTheStream) {
  Stream a(3), b(3);
  const Case x = generate_case(a, 60, {}), y = generate_case(b, 60, {});
  ASSERT_EQ(x.history.size(), y.history.size());
  EXPECT_EQ(x.salt, y.salt);
  EXPECT_EQ(x.open.model, y.open.model);
}

TEST(Generate, PermutesEveryElement) {
  Stream stream(5);
  const auto order = permutation(stream, 20);
  EXPECT_EQ(std::set<std::size_t>(order.begin(), order.end()).size(), 20u);
}

}  // namespace
}  // namespace ballast::props
