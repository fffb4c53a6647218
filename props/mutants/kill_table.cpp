#include "props/mutants/kill_table.h"

#include <algorithm>
#include <cmath>
#include <mutex>

#include "props/campaign/check_case.h"
#include "props/campaign/reproduction.h"
#include "props/cases/shrink.h"
#include "props/mutants/canary.h"
#include "props/subjects/built_in_subject.h"

namespace ballast::props {

namespace {

constexpr std::size_t hunters_max = 3;    ///< laws that are tried under all seeds
constexpr std::size_t shrunk_max = 2;     ///< laws whose counterexample is shrunk
constexpr std::size_t round_cases = 50;   ///< of every law, before any has more
constexpr std::size_t canary_seeds = 400;

/// The cases of one law against one subject of its own.
class Hunt {
 public:
  Hunt(const Law& law, const Mutant& mutant, std::uint64_t seed)
      : law_(law), seed_(seed), subject_(mutant.make()) {}

  const Law& law() const { return law_; }
  bool supported() const {
    return std::ranges::includes(subject_->hello().supports, law_.needs);
  }
  /// Goes on up to case `last`, or the first that breaks.
  void run_to(std::size_t last) {
    for (; !broken_ && next_ < last; ++next_) {
      broken_ = check_case(law_, *subject_, draw_case(law_, seed_, next_)).broken();
    }
  }
  /// Cases up to and with the one that breaks.
  std::optional<std::size_t> killed_after() const {
    return broken_ ? std::optional(next_) : std::nullopt;
  }
  Reproduction reproduction() const {
    return {.law = law_.id, .seed = seed_, .index = next_ - 1};
  }

 private:
  const Law& law_;
  std::uint64_t seed_;
  std::unique_ptr<Subject> subject_;
  std::size_t next_ = 0;
  bool broken_ = false;
};

using Hunts = std::vector<Hunt>;

/// Fewer attempts for a large case, which takes long to check.
ShrinkLimits limits_for(const Case& input) {
  const CaseExtent extent = extent_of(input);
  const std::size_t values = std::max<std::size_t>(1, extent.tokens * extent.experts);
  return {.attempts = std::clamp<std::size_t>(1'000'000 / values, 50, 2000)};
}

/// One mutant against the laws.
class Trial {
 public:
  Trial(std::span<const Law> laws, const Mutant& mutant, const KillSettings& settings)
      : laws_(laws), mutant_(mutant), settings_(settings) {}

  MutantResult run() {
    if (mutant_.equivalent) {
      for (std::size_t s = 0; s < settings_.seeds; ++s) hold_equivalent(settings_.seed + s);
      return std::move(result_);
    }
    survey();
    result_.cases.push_back(fastest());
    for (std::size_t s = 1; s < settings_.seeds; ++s) hunt_again(settings_.seed + s);
    return std::move(result_);
  }

 private:
  Hunts hunts(std::uint64_t seed) const {
    Hunts out;
    for (const Law& law : laws_) {
      Hunt hunt(law, mutant_, seed);
      if (hunt.supported()) out.push_back(std::move(hunt));
    }
    return out;
  }

  /// The first seed: which laws kill it, and how small their counterexamples are.
  void survey() {
    Hunts all = hunts(settings_.seed);
    for (Hunt& hunt : all) {
      hunt.run_to(hunt.law().id == mutant_.law ? settings_.cases
                                               : std::min(survey_cases, settings_.cases));
    }
    if (std::ranges::none_of(all, [](const Hunt& h) { return h.killed_after().has_value(); })) {
      run_in_rounds(all);
    }
    note_kills(all);
  }

  void note_kills(const Hunts& all) {
    std::vector<const Hunt*> kills;
    for (const Hunt& hunt : all) {
      if (hunt.killed_after()) kills.push_back(&hunt);
    }
    std::ranges::stable_sort(kills, {}, [](const Hunt* hunt) { return *hunt->killed_after(); });
    for (const Hunt* hunt : kills) {
      result_.kills.push_back({hunt->law().id, *hunt->killed_after()});
      if (hunters_.size() < hunters_max) hunters_.push_back(&hunt->law());
    }
    for (std::size_t i = 0; i < std::min(shrunk_max, kills.size()); ++i) shrink_case(*kills[i]);
  }

  std::optional<std::size_t> fastest() const {
    if (result_.kills.empty()) return std::nullopt;
    return result_.kills.front().cases;
  }

  /// Another seed: the fastest laws, and all if those do not kill it.
  void hunt_again(std::uint64_t seed) {
    Hunts fast;
    for (const Law* law : hunters_) fast.emplace_back(*law, mutant_, seed);
    auto cases = first_kill(fast);
    if (!cases) {
      Hunts all = hunts(seed);
      cases = run_in_rounds(all);
    }
    result_.cases.push_back(cases);
  }

  /// Case after case of each, to the first that breaks.
  std::optional<std::size_t> first_kill(Hunts& hunts) const {
    for (std::size_t last = 1; last <= settings_.cases; ++last) {
      for (Hunt& hunt : hunts) {
        hunt.run_to(last);
        if (hunt.killed_after()) return last;
      }
    }
    return std::nullopt;
  }

  /// Some cases after another of each, until one is broken; the fewest cases that break one.
  std::optional<std::size_t> run_in_rounds(Hunts& hunts) const {
    std::optional<std::size_t> fewest;
    for (std::size_t last = round_cases; !fewest && last < settings_.cases + round_cases;
         last += round_cases) {
      for (Hunt& hunt : hunts) {
        hunt.run_to(std::min(last, settings_.cases));
        const auto cases = hunt.killed_after();
        if (cases && (!fewest || *cases < *fewest)) fewest = cases;
      }
    }
    return fewest;
  }

  void hold_equivalent(std::uint64_t seed) {
    Hunts all = hunts(seed);
    std::optional<std::size_t> fewest;
    for (Hunt& hunt : all) {
      hunt.run_to(std::min(equivalent_cases, settings_.cases));
      const auto cases = hunt.killed_after();
      if (!cases) continue;
      result_.kills.push_back({hunt.law().id, *cases});
      fewest = std::min(*cases, fewest.value_or(*cases));
    }
    result_.cases.push_back(fewest);
  }

  void shrink_case(const Hunt& hunt) {
    const Law& law = hunt.law();
    const StillFails still_fails = [&](const Case& candidate) {
      const auto subject = mutant_.make();
      return check_case(law, *subject, candidate).broken();
    };
    const Reproduction from = hunt.reproduction();
    Case input = draw_case(law, from.seed, from.index);
    if (!still_fails(input)) return;  // it takes the cases before as well
    input = shrink(input, still_fails, limits_for(input));
    const CaseExtent extent = extent_of(input);
    if (result_.smallest && !is_smaller(extent, result_.smallest->extent)) return;
    result_.smallest = SmallestCase{from, extent, std::move(input)};
  }

  static bool is_smaller(const CaseExtent& a, const CaseExtent& b) {
    return a.tokens * a.experts + a.requests < b.tokens * b.experts + b.requests;
  }

  std::span<const Law> laws_;
  const Mutant& mutant_;
  const KillSettings& settings_;
  std::vector<const Law*> hunters_;
  MutantResult result_;
};

CanaryResult run_canary(const KillSettings& settings) {
  CanaryResult result{.seeds = canary_seeds};
  BuiltInSubject subject;
  const StillFails still_fails = [&](const Case& candidate) {
    return check_case(canary(), subject, candidate).broken();
  };
  for (std::size_t s = 0; s < canary_seeds; ++s) {
    Case input = draw_case(canary(), settings.seed + s, 0);
    if (!still_fails(input)) continue;
    if (++result.broken > 1) continue;
    const Case smallest = shrink(std::move(input), still_fails);
    const auto* forward = std::get_if<Forward>(&smallest.history.front());
    result.shrunk = forward != nullptr && forward->logits.values().size() == 1 &&
                    forward->logits(0, 0) == canary_limit;
  }
  return result;
}

std::vector<LawResultOfMutants> by_law(std::span<const Law> laws,
                                       const std::vector<MutantResult>& mutants) {
  std::vector<LawResultOfMutants> out;
  for (const Law& law : laws) {
    const auto kills = std::ranges::count_if(mutants, [&](const MutantResult& mutant) {
      return std::ranges::any_of(mutant.kills, [&](const Kill& k) { return k.law == law.id; });
    });
    out.push_back({law.id, static_cast<std::size_t>(kills)});
  }
  return out;
}

}  // namespace

CaseExtent extent_of(const Case& input) {
  CaseExtent extent{.experts = input.open.model.routed_experts, .requests = input.history.size()};
  for (const Request& request : input.history) {
    if (const auto* forward = std::get_if<Forward>(&request)) {
      extent.tokens += forward->logits.rows();
    }
  }
  return extent;
}

bool MutantResult::killed() const {
  return std::ranges::all_of(cases, [](const auto& one) { return one.has_value(); });
}

std::optional<double> MutantResult::median_cases() const {
  if (cases.empty() || !killed()) return std::nullopt;
  std::vector<std::size_t> sorted;
  for (const auto& one : cases) sorted.push_back(*one);
  std::ranges::sort(sorted);
  const std::size_t half = sorted.size() / 2;
  if (sorted.size() % 2 == 1) return static_cast<double>(sorted[half]);
  return 0.5 * static_cast<double>(sorted[half - 1] + sorted[half]);
}

std::vector<std::uint64_t> MutantResult::survived(const KillSettings& settings) const {
  std::vector<std::uint64_t> seeds;
  for (std::size_t s = 0; s < cases.size(); ++s) {
    if (!cases[s]) seeds.push_back(settings.seed + s);
  }
  return seeds;
}

bool CanaryResult::sings() const {
  const auto n = static_cast<double>(seeds);
  const double deviation = std::sqrt(n * canary_share * (1.0 - canary_share));
  return shrunk && std::abs(static_cast<double>(broken) - n * canary_share) <= 5.0 * deviation;
}

KillTable run_mutants(std::span<const Law> laws, std::span<const Mutant> mutants,
                      const KillSettings& settings, const Executor& executor,
                      const CampaignProgress& progress) {
  KillTable table;
  table.canary = run_canary(settings);
  table.mutants.resize(mutants.size());
  std::mutex mutex;
  std::size_t done = 0;
  executor.for_each(mutants.size(), [&](std::size_t i) {
    table.mutants[i] = Trial(laws, mutants[i], settings).run();
    const std::scoped_lock lock(mutex);
    if (progress) progress(++done, mutants.size());
  });
  table.laws = by_law(laws, table.mutants);
  return table;
}

Verdict verdict_of(const KillTable& table, std::span<const Mutant> mutants, bool every_law) {
  if (!table.canary.sings()) return Verdict::unknown;
  std::size_t to_kill = 0;
  for (std::size_t i = 0; i < mutants.size(); ++i) {
    const MutantResult& result = table.mutants[i];
    to_kill += !mutants[i].equivalent;
    if (mutants[i].equivalent ? !result.kills.empty() : !result.killed()) return Verdict::fail;
  }
  const auto idle = [](const LawResultOfMutants& law) { return law.kills == 0; };
  if (every_law && std::ranges::any_of(table.laws, idle)) return Verdict::fail;
  return to_kill > 0 ? Verdict::pass : Verdict::unknown;
}

}  // namespace ballast::props
