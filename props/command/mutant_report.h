#pragma once

#include <iosfwd>
#include <span>

#include "props/mutants/kill_table.h"
#include "props/protocol/json.h"

namespace ballast::props {

/// What a kill table was made with.
struct KillContext {
  std::span<const Mutant> mutants;
  KillSettings settings;
  bool every_law = true;  ///< whether each law has to kill a mutant
  bool show = false;      ///< the smallest counterexample of each mutant
  bool colour = false;
};

/// Two lines a mutant, at most 80 columns wide, and what they add up to.
void write_kill_table(const KillTable& table, const KillContext& context, std::ostream& out);

/// {"verdict", "mutants": [{"name", "faults", "killed_by", "equivalent", ...}], "laws", "canary", ...}
Json kill_table_json(const KillTable& table, const KillContext& context);

}  // namespace ballast::props
