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
std::vector<Law> metrics_laws();    ///< what snapshots, metrics and combined chunks say of loads
std::vector<Law> quantile_laws();  ///< how balancers, quantile balancing in particular, move biases
std::vector<Law> state_laws();      ///< saving, loading, opening anew
std::vector<Law> interplay_laws();  ///< accumulation, skipped steps, evaluation, several layers
std::vector<Law> drift_laws();      ///< balance over many steps of fresh, skewed, moving traffic

}  // namespace ballast::props
