#pragma once

#include <memory>

#include "sim/scenario/scenario.h"
#include "sim/tokens/token_source.h"

namespace ballast::sim {

/// The token source of a scenario, with what its schedule changes over the steps; evaluation keeps
/// the unscheduled tokens. Throws as make_source of token settings does, and InputError for a
/// schedule that asks for more than a thousand different sources.
std::unique_ptr<TokenSource> make_source(const Scenario& scenario);

}  // namespace ballast::sim
