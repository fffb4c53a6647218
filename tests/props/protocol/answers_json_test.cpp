#include "props/protocol/answers_json.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <vector>

namespace ballast::props {
namespace {

const Request forward = Forward{};
const Request snapshot = Collector{.action = CollectorAction::snapshot};

struct Pair {
  Request request;
  Answer answer;
};

std::vector<Pair> every_kind() {
  const LayerSnapshot layer{.expert_load_counts = {3, 0},
                            .tokens = 3,
                            .max_load_over_mean = 2.0,
                            .zero_load_experts = 1,
                            .biases = {0.25, std::nullopt}};
  const LayerSnapshot idle{.expert_load_counts = {0, 0}, .tokens = 0, .max_load_over_mean = std::nullopt,
                           .zero_load_experts = std::nullopt, .biases = {0.0, 0.0}};
  return {{forward, Routed{{{1, 0}, {0, 1}}, {{0.5, 0.5}, {1.0, 0.0}}}},
          {forward, Refusal{"invalid", "no"}},
          {Step{}, BiasesAnswer{{{0.1, -0.1}}}},
          {GetBiases{}, BiasesAnswer{{}}},
          {SetBiases{}, Done{}},
          {snapshot, Snapshot{{{"layers.0", layer}, {"layers.1", idle}}}},
          {Collector{.action = CollectorAction::enter}, Refusal{"already_active", ""}},
          {MetricsOf{}, MetricsAnswer{{{"e_max_violation:max", 1.5}}}},
          {Combine{}, MetricsAnswer{{}}},
          {Load{}, Done{}}};
}

TEST(AnswersJson, EveryKindOfAnswerReadsBack) {
  for (const auto& [request, answer] : every_kind()) {
    const Json written = answer_json(5, answer);
    const Answer read = read_answer(5, request, Json::parse(written.dump()));
    EXPECT_EQ(read.index(), answer.index());
    EXPECT_EQ(answer_json(5, read), written) << written.dump();
  }
}

std::string error(const Request& request, const std::string& line) {
  try {
    read_answer(5, request, Json::parse(line));
  } catch (const ProtocolError& e) {
    return e.what();
  }
  return "none";
}

TEST(AnswersJson, AnAnswerThatIsNotValidSaysWhereAndWhatWouldBeRight) {
  EXPECT_EQ(error(forward, R"([])"), "(top): is an array, should be an object");
  EXPECT_EQ(error(forward, R"({"ok": true})"), "/id: is missing");
  EXPECT_EQ(error(forward, R"({"id": 4, "ok": true})"), "/id: is 4, should be 5, the id of the request");
  EXPECT_EQ(error(forward, R"({"id": 5, "ok": "yes"})"), R"(/ok: is "yes", should be true or false)");
  EXPECT_EQ(error(forward, R"({"id": 5, "ok": true, "indices": []})"), "/weights: is missing");
  EXPECT_EQ(error(forward, R"({"id": 5, "ok": true, "indices": [[0.5]], "weights": [[1]]})"),
            "/indices/0/0: is 0.5, should be an integer of at most 64 bits");
  EXPECT_EQ(error(forward, R"({"id": 5, "ok": true, "indices": [[18446744073709551615]], "weights": [[1]]})"),
            "/indices/0/0: is 18446744073709551615, should be an integer of at most 64 bits");
  EXPECT_EQ(error(forward, R"({"id": 5, "ok": true, "indices": [[0]], "weights": [[null]]})"),
            R"(/weights/0/0: is null, should be a number, or "NaN", "Infinity" or "-Infinity")");
  EXPECT_EQ(error(forward, R"({"id": 5, "ok": false, "error": {"code": "tired"}})"),
            R"(/error/code: is "tired", should be "unsupported", "already_active", "invalid" or "internal")");
  EXPECT_EQ(error(snapshot, R"({"id": 5, "ok": true, "layers": {"a": {"expert_load_counts": {}}}})"),
            "/layers/a/expert_load_counts: is an object, should be an array");
  EXPECT_EQ(error(Save{}, R"({"id": 5, "ok": true})"), "/state: is missing");
}

TEST(AnswersJson, UnknownMembersAndCapabilitiesArePassedOver) {
  const Hello hello = read_hello(
      1, Json::parse(R"({"id":1,"ok":true,"name":"n","supports":["route","fly"],"on_overflow":"keep","more":[]})"));
  EXPECT_EQ(hello.supports, std::set<Capability>{Capability::route});
  EXPECT_EQ(hello.on_overflow, OnOverflow::keep);
}

}  // namespace
}  // namespace ballast::props
