#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/executor.h"
#include "props/campaign/campaign.h"
#include "props/laws/law.h"
#include "props/mutants/mutant.h"

/// Which law tells which mutant from a correct subject, and how fast: what the laws are worth.
namespace ballast::props {

struct KillSettings {
  std::uint64_t seed = 1;    ///< the first of the seeds
  std::size_t seeds = 20;    ///< consecutive ones, each a campaign of its own; at least 1
  std::size_t cases = 2000;  ///< of every law, within which a mutant has to be killed
};

/// A law that a mutant breaks under the first seed.
struct Kill {
  std::string law;
  std::size_t cases = 0;  ///< of the law, up to and with the first that breaks it
};

/// How large a shrunk counterexample is.
struct CaseExtent {
  std::size_t tokens = 0;    ///< of all its forwards together
  std::size_t experts = 0;
  std::size_t requests = 0;
};
CaseExtent extent_of(const Case& input);

struct SmallestCase {
  Reproduction reproduction;
  CaseExtent extent;
  Case input;
};

struct MutantResult {
  /// Fastest first. The law that the mutant is made for is tried for all cases, the others for
  /// `survey_cases` (for all, if none of these breaks).
  std::vector<Kill> kills;
  /// Under each seed: the cases of every law that a campaign needs until one of the fastest three
  /// breaks (any, if none of these does); nothing where the mutant survives. A campaign of all laws
  /// needs no more.
  std::vector<std::optional<std::size_t>> cases;
  std::optional<SmallestCase> smallest;  ///< of the fastest laws, shrunk

  bool killed() const;                       ///< under every seed
  std::optional<double> median_cases() const;  ///< where it is killed under every seed
  std::vector<std::uint64_t> survived(const KillSettings& settings) const;  ///< seeds
};

/// A law, and how many mutants it kills.
struct LawResultOfMutants {
  std::string id;
  std::size_t kills = 0;
};

struct CanaryResult {
  std::size_t seeds = 0;   ///< of one case each
  std::size_t broken = 0;
  bool shrunk = false;     ///< its smallest case was found
  /// Within five standard deviations of the share it is made for.
  bool sings() const;
};

struct KillTable {
  std::vector<MutantResult> mutants;  ///< in the order of the mutants
  std::vector<LawResultOfMutants> laws;
  CanaryResult canary;
};

inline constexpr std::size_t survey_cases = 40;
/// Of every law and seed for a mutant that is marked equivalent: none may break.
inline constexpr std::size_t equivalent_cases = 60;

/// Holds the mutants against the laws. The result depends on the laws, the mutants and the settings,
/// and not on the executor. `progress` is called from one thread at a time.
KillTable run_mutants(std::span<const Law> laws, std::span<const Mutant> mutants,
                      const KillSettings& settings, const Executor& executor,
                      const CampaignProgress& progress = {});

/// Fails when a mutant survives a seed, or one that is marked equivalent does not, or, with
/// `every_law`, a law kills none. Unknown when there is no mutant that could be killed, or the
/// canary shows that the result says nothing.
Verdict verdict_of(const KillTable& table, std::span<const Mutant> mutants, bool every_law);

}  // namespace ballast::props
