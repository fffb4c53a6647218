#include <algorithm>
#include <functional>
#include <limits>
#include <numeric>

#include "props/mutants/altered.h"
#include "props/mutants/families.h"

namespace ballast::props {

namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();

/// Routes with other limits than it was opened with.
struct OtherLimits : BuiltInSubject {
  virtual void change(ExpertGroups& groups) = 0;
  Routing<float> route(const Forward& forward) override {
    RouterSettings settings = router().settings();
    if (settings.groups.limit()) change(settings.groups);
    return Router<float>(settings).route(forward.logits, layer(forward.layer).biases());
  }
};
struct NoLimit : OtherLimits {
  void change(ExpertGroups& groups) override { groups = {}; }
};
struct OneGroupMore : OtherLimits {
  void change(ExpertGroups& groups) override {
    groups.chosen = std::min(groups.chosen + 1, groups.count);
  }
};

/// Group-limited selection in the plainest way: scores of groups, the best of them, and a value for
/// the experts of the others.
struct PlainGroups : ChangesRouting {
  virtual float score(std::vector<float> scores, std::span<const float> biases) {
    for (std::size_t j = 0; j < scores.size(); ++j) scores[j] += biases[j];
    std::ranges::sort(scores, std::greater{});
    return scores[0] + scores[1];
  }
  virtual float excluded() { return -infinity; }
  /// Whether group a comes before group b of the same score.
  virtual bool first_of_equals(std::size_t a, std::size_t b) { return a < b; }

  void change(const Forward& forward, Routing<float>& routing) override {
    if (!model().groups) return;
    const auto biases = layer(forward.layer).biases();
    Matrix<float> values = routing.scores;
    for (std::size_t t = 0; t < values.rows(); ++t) {
      const auto order = groups_in_order(routing.scores.row(t), biases);
      for (std::size_t j = 0; j < values.cols(); ++j) values(t, j) += biases[j];
      for (std::size_t i = model().groups->topk_group; i < order.size(); ++i) {
        std::ranges::fill(values.row(t).subspan(order[i] * size(), size()), excluded());
      }
    }
    const std::vector<float> zeros(biases.size());
    routing.selection = select_top_k<float>(values, zeros, model().top_k);
    weigh_anew(routing, model());
  }

 private:
  std::size_t size() const { return model().routed_experts / model().groups->n_group; }
  std::vector<std::size_t> groups_in_order(std::span<const float> scores,
                                           std::span<const float> biases) {
    std::vector<float> sums;
    for (std::size_t g = 0; g < model().groups->n_group; ++g) {
      const auto part = scores.subspan(g * size(), size());
      sums.push_back(score({part.begin(), part.end()}, biases.subspan(g * size(), size())));
    }
    std::vector<std::size_t> order(sums.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::ranges::sort(order, [&](std::size_t a, std::size_t b) {
      return sums[a] != sums[b] ? sums[a] > sums[b] : first_of_equals(a, b);
    });
    return order;
  }
};

struct FillsWithZero : PlainGroups {
  float excluded() override { return 0.0f; }
};
struct BestExpertOfGroup : PlainGroups {
  float score(std::vector<float> scores, std::span<const float> biases) override {
    for (std::size_t j = 0; j < scores.size(); ++j) scores[j] += biases[j];
    return std::ranges::max(scores);
  }
};
struct WholeGroup : PlainGroups {
  float score(std::vector<float> scores, std::span<const float> biases) override {
    return std::accumulate(scores.begin(), scores.end(), 0.0f) +
           std::accumulate(biases.begin(), biases.end(), 0.0f);
  }
};
struct UnbiasedGroups : PlainGroups {
  float score(std::vector<float> scores, std::span<const float>) override {
    const std::vector<float> zeros(scores.size());
    return PlainGroups::score(std::move(scores), zeros);
  }
};
struct GroupScoresInBf16 : PlainGroups {
  float score(std::vector<float> scores, std::span<const float> biases) override {
    return in_bf16(PlainGroups::score(std::move(scores), biases));
  }
};
struct HigherGroupFirst : PlainGroups {
  bool first_of_equals(std::size_t a, std::size_t b) override { return a > b; }
};

}  // namespace

std::vector<Mutant> groups_mutants() {
  return {
      mutant<NoLimit>("no-group-limit", "selection.groups", {"algorithms 3.5"},
                      "Chooses from all groups."),
      mutant<OneGroupMore>("one-group-more", "selection.groups", {"algorithms 3.5"},
                           "Chooses from one group more than it may."),
      mutant<FillsWithZero>("excluded-groups-are-zero", "selection.groups",
                            {"M72", "algorithms 3.5"},
                            "Takes experts of excluded groups for zero instead of -infinity."),
      mutant<BestExpertOfGroup>("groups-by-best-expert", "selection.best-groups", {"M66"},
                                "Judges a group by its best expert alone."),
      mutant<WholeGroup>("groups-by-whole-sum", "selection.best-groups", {"M66"},
                         "Judges a group by the sum of all its experts."),
      mutant<UnbiasedGroups>("groups-without-bias", "selection.best-groups", {"M66", "M72"},
                             "Judges groups by scores without bias."),
      mutant<GroupScoresInBf16>("group-scores-in-bf16", "selection.best-groups", {"M75"},
                                "Rounds the scores of groups to bf16."),
      mutant<HigherGroupFirst>("ties-to-higher-group", "selection.best-groups", {"M76"},
                               "Gives ties between groups to the higher one."),
  };
}

}  // namespace ballast::props
