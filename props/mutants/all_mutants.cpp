#include <iterator>

#include "props/mutants/families.h"

namespace ballast::props {

namespace {

std::vector<Mutant> concatenated() {
  std::vector<Mutant> all;
  for (const auto family :
       {selection_mutants, groups_mutants, weights_mutants, counting_mutants, invisible_mutants, collector_mutants,
        snapshot_mutants, metrics_mutants, combine_mutants, quantile_mutants, histogram_mutants,
        sign_mutants, interplay_mutants, state_mutants}) {
    auto mutants = family();
    all.insert(all.end(), std::make_move_iterator(mutants.begin()),
               std::make_move_iterator(mutants.end()));
  }
  return all;
}

}  // namespace

const std::vector<Mutant>& all_mutants() {
  static const std::vector<Mutant> mutants = concatenated();
  return mutants;
}

}  // namespace ballast::props
