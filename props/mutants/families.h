#pragma once

#include <vector>

#include "props/mutants/mutant.h"

/// The mutants by family; all_mutants() holds them all in this order.
namespace ballast::props {

std::vector<Mutant> selection_mutants();   ///< other experts are chosen
std::vector<Mutant> groups_mutants();      ///< groups of experts are limited otherwise
std::vector<Mutant> weights_mutants();     ///< with other weights
std::vector<Mutant> counting_mutants();    ///< a collector counts otherwise
std::vector<Mutant> invisible_mutants();   ///< what must leave no trace leaves one
std::vector<Mutant> collector_mutants();   ///< a collector lives otherwise
std::vector<Mutant> snapshot_mutants();    ///< a snapshot says other things of the same counts
std::vector<Mutant> metrics_mutants();     ///< metrics of loads are others
std::vector<Mutant> combine_mutants();     ///< chunks combine otherwise
std::vector<Mutant> quantile_mutants();    ///< the exact quantile is another
std::vector<Mutant> histogram_mutants();   ///< so is the histogram's
std::vector<Mutant> sign_mutants();        ///< signs of other loads are added
std::vector<Mutant> interplay_mutants();   ///< biases move at other times, or from other forwards
std::vector<Mutant> state_mutants();       ///< what is saved, loaded, set or opened is another

}  // namespace ballast::props
