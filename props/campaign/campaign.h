#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/executor.h"
#include "props/campaign/failure.h"
#include "props/campaign/failure_store.h"
#include "props/campaign/subject_pool.h"
#include "props/laws/law.h"

namespace ballast::props {

enum class Verdict { pass, fail, unknown };

/// "pass", "fail" or "unknown".
std::string word(Verdict verdict);

struct CampaignSettings {
  std::uint64_t seed = 1;
  /// Of every law. Absent: as many as the time allows.
  std::optional<std::size_t> cases = 200;
  /// No case begins after this time; absent: no limit.
  std::optional<std::chrono::duration<double>> time_budget = std::nullopt;
  /// Only this case of every law, instead of the first `cases`.
  std::optional<std::size_t> only_case = std::nullopt;
  /// Where failures are kept, and replayed from at the beginning; null: nowhere.
  const FailureStore* store = nullptr;
  bool note_running = false;  ///< every case is in the store before it runs, in case it never ends
  bool observe = false;       ///< collect observations
};

/// What a campaign says of one law.
struct LawResult {
  std::string id;
  Verdict verdict = Verdict::unknown;
  std::string reason;    ///< of unknown, one line
  bool skipped = false;  ///< unknown, because the subject does not support what the law needs
  std::int64_t cases = 0;  ///< that ran: drawn ones up to and with the first that fails, and replayed ones
  std::int64_t replayed = 0;
  std::int64_t discarded = 0;
  std::int64_t unsupported = 0;
  std::map<std::string, std::int64_t> edges;  ///< cases that met each; 0 for an edge of the law that none met
  std::optional<Failure> failure;
};

struct CampaignResult {
  Verdict verdict = Verdict::unknown;
  std::vector<LawResult> laws;           ///< in the order of the laws
  std::vector<std::string> observations;  ///< lines, in the order of laws and cases
  std::vector<std::string> notes;        ///< what else there is to say, one line each
};

/// Called now and then, from one thread at a time: how many of all cases are done; without a number of
/// cases, how many seconds of the time budget.
using CampaignProgress = std::function<void(std::size_t done, std::size_t total)>;

/// Runs the laws on subjects of the pool.
///
/// Case i of a law is decided by the seed, the law's id and i; what is reported of a law is decided by
/// its cases up to the first one that fails. So the result depends neither on the executor nor on other
/// laws (unless the time budget ends it). A failing case is shrunk and stored.
///
/// Verdicts. A law fails when a case breaks it, or the subject fails in one. It is unknown when the
/// subject does not support it, when no case or fewer than one in ten (of those supported) concerned it,
/// or when an edge that it is about was never met. The whole fails when a law does; it passes when at
/// least one law does and all others were skipped; otherwise it is unknown. A subject that does not even
/// introduce itself fails the law `protocol.hello`, which is in no list, and the others are unknown.
///
/// Errors: sim::InputError for a stored case that cannot be read.
CampaignResult run_campaign(std::span<const Law> laws, SubjectPool& subjects, const CampaignSettings& settings,
                            const Executor& executor, const CampaignProgress& progress = {});

}  // namespace ballast::props
