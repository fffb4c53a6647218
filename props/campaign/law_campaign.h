#pragma once

#include <atomic>
#include <cstddef>
#include <functional>
#include <limits>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "props/campaign/campaign.h"

namespace ballast::props {

/// The cases of one law while a campaign runs: batches of cases run at the same time, and what is told
/// of them is put together in their order, up to the first failure.
class LawCampaign {
 public:
  static constexpr std::size_t none = std::numeric_limits<std::size_t>::max();

  LawCampaign(const Law& law, const CampaignSettings& settings, double run_start)
      : law_(law), settings_(settings), run_start_(run_start) {}

  const Law& law() const { return law_; }
  bool failed() const { return first_failure_.load() != none || replay_failure_.has_value(); }

  /// Runs a stored case before all others.
  void replay(const StoredCase& stored, SubjectPool& subjects);
  /// Runs the cases [first, last), until one fails here, an earlier one has failed elsewhere, or `stop`
  /// says so. May be called at the same time for different cases.
  void run(std::size_t first, std::size_t last, SubjectPool& subjects, const std::function<bool()>& stop);
  /// After all cases: shrinks the failure, if there is one.
  void explain(SubjectPool& subjects, bool may_time_out);
  /// Whether the failure is that the subject gave no answer in time.
  bool timed_out() const;

  LawResult result() const;
  /// The observations of the cases that count.
  std::vector<std::string> observations() const;

 private:
  struct Found {
    Reproduction reproduction;
    Case input;
    CaseResult result;
    std::string file;  ///< of a replayed case
  };
  struct Batch {
    std::size_t first = 0;
    std::int64_t cases = 0, discarded = 0, unsupported = 0;
    std::map<std::string, std::int64_t> edges;
    std::vector<std::string> observations;
    std::optional<Found> found;
  };

  void run_case(std::size_t index, const SubjectPool::Loan& loan, Batch& batch);
  void count(const CaseResult& result, Batch& batch) const;
  void note_failure(std::size_t index);
  const Found* found() const;
  /// The batches that count, in order.
  std::vector<const Batch*> counted() const;

  const Law& law_;
  const CampaignSettings& settings_;
  double run_start_;
  std::atomic<std::size_t> first_failure_{none};
  mutable std::mutex mutex_;
  std::map<std::size_t, Batch> batches_;  ///< by first case
  Batch replayed_;
  std::optional<Found> replay_failure_;
  std::optional<Failure> failure_;
};

}  // namespace ballast::props
