#include "core/model/expert_groups.h"

namespace ballast {

namespace {

std::string text(std::size_t number) { return std::to_string(number); }

}  // namespace

std::optional<std::string> problem(const ExpertGroups& groups, std::size_t experts,
                                   std::size_t top_k) {
  if (groups.count < 1 || experts % groups.count != 0) {
    return text(experts) + " experts do not make " + text(groups.count) + " groups of one size";
  }
  if (groups.chosen < 1 || groups.chosen > groups.count) {
    return text(groups.chosen) + " groups of a token are not within 1.." + text(groups.count);
  }
  if (!groups.limit()) return std::nullopt;
  const std::size_t size = experts / groups.count;
  if (top_k > groups.chosen * size) {
    return "a token's " + text(groups.chosen) + " groups of " + text(size) + " have fewer than its " +
           text(top_k) + " experts";
  }
  const std::size_t scored = groups.scored(top_k);
  if (scored < 1) {
    return "top_share scores a group by its floor(" + text(top_k) + " / " + text(groups.chosen) +
           ") = 0 best experts";
  }
  if (scored > size) {
    return "a group is scored by its " + text(scored) + " best experts and has " + text(size);
  }
  return std::nullopt;
}

}  // namespace ballast
