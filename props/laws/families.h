#pragma once

#include <vector>

#include "props/laws/law.h"

/// The laws by family; all_laws() holds them all in this order.
namespace ballast::props {

std::vector<Law> selection_laws();  ///< which experts are chosen
std::vector<Law> weights_laws();    ///< with which weights
std::vector<Law> counting_laws();   ///< what a collector counts
std::vector<Law> invisible_laws();  ///< what must leave no trace
std::vector<Law> collector_laws();  ///< the life of a collector
std::vector<Law> state_laws();      ///< saving, loading, opening anew

}  // namespace ballast::props
