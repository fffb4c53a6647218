// A C++ router held against Ballast's laws in its own process, without a protocol between. Copy it, and replace
// `MyRouter::route` with a call of your own code; linking-cpp.md goes through it.
//
//     find_package(ballast 0.1 REQUIRED)
//     add_executable(cpp_router cpp_router.cpp)
//     target_link_libraries(cpp_router PRIVATE ballast::props)
#include <algorithm>
#include <cmath>
#include <iostream>
#include <memory>
#include <numeric>
#include <span>
#include <variant>
#include <vector>

#include "props/campaign/campaign.h"
#include "props/campaign/report.h"
#include "props/laws/law.h"

using namespace ballast::props;

namespace {

/// Sigmoid scores, the top_k largest of score + bias, weights from the unbiased scores.
class MyRouter final : public Subject {
 public:
  const Hello& hello() override { return hello_; }

  /// Begins a case: nothing of the one before may stay. What is refused as "unsupported" is skipped, not failed.
  Answer open(const Open& open) override {
    if (open.model.groups) return Refusal{"unsupported", "groups of experts"};
    if (open.model.score != ballast::ScoreFunction::sigmoid) return Refusal{"unsupported", "scores but sigmoid"};
    open_ = open;
    return Done{};
  }

  Answer ask(const Request& request) override {
    const auto* forward = std::get_if<Forward>(&request);
    if (forward == nullptr) return Refusal{"unsupported", "this router only routes"};
    Routed routed;
    for (std::size_t token = 0; token < forward->logits.rows(); ++token)
      route(forward->logits.row(token), biases(forward->layer), routed);
    return routed;
  }

 private:
  std::vector<float> biases(std::size_t layer) const {
    return open_.biases ? (*open_.biases)[layer] : std::vector<float>(open_.model.routed_experts);
  }

  void route(std::span<const float> logits, const std::vector<float>& biases, Routed& routed) const {
    std::vector<float> scores;
    for (const float logit : logits) scores.push_back(1.0F / (1.0F + std::exp(-logit)));

    std::vector<std::size_t> order(scores.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    // Larger first, equal ones by index, a NaN after every number.
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
      const float left = scores[a] + biases[a], right = scores[b] + biases[b];
      return left > right || (std::isnan(right) && !std::isnan(left));
    });
    order.resize(open_.model.top_k);
    routed.indices.emplace_back(order.begin(), order.end());

    double sum = 1e-20;
    for (const std::size_t expert : order) sum += scores[expert];
    const double scale = open_.model.routed_scale / (open_.model.renormalize ? sum : 1.0);
    auto& weights = routed.weights.emplace_back();
    for (const std::size_t expert : order) weights.push_back(static_cast<float>(scores[expert] * scale));
  }

  Hello hello_{.name = "my router", .supports = {Capability::route}};
  Open open_;
};

}  // namespace

int main() {
  SubjectPool subjects([] { return std::make_unique<MyRouter>(); });
  const std::vector<Law> laws = all_laws();
  const CampaignResult result = run_campaign(laws, subjects, {.cases = 1000}, ballast::serial_executor());
  write_report(result, {.laws = laws, .subject_options = {}}, std::cout);
  return result.verdict == Verdict::pass ? 0 : 1;
}
