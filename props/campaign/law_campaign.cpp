#include "props/campaign/law_campaign.h"

#include <chrono>
#include <utility>

#include "props/campaign/observation.h"

namespace ballast::props {

namespace {

using Clock = std::chrono::steady_clock;

std::string listed(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "'" : ", '") + word + "'";
  return text;
}

/// Why nothing can be said of a law that no case broke; empty when it passes.
std::string doubt(const LawResult& result) {
  const std::int64_t supported = result.cases - result.unsupported;
  const std::int64_t kept = supported - result.discarded;
  if (result.cases == 0) return "no case was run";
  if (supported == 0) return "the subject refused every case as unsupported";
  if (kept == 0) return "no case concerned the law";
  if (kept * 10 < supported) return "fewer than one case in ten concerned the law";
  std::vector<std::string> missed;
  for (const auto& [edge, met] : result.edges) {
    if (met == 0) missed.push_back(edge);
  }
  if (!missed.empty()) return "never met: " + listed(missed);
  return {};
}

}  // namespace

void LawCampaign::note_failure(std::size_t index) {
  std::size_t before = first_failure_.load();
  while (index < before && !first_failure_.compare_exchange_weak(before, index)) {
  }
}

void LawCampaign::count(const CaseResult& result, Batch& batch) const {
  ++batch.cases;
  if (result.outcome.kind == Outcome::Kind::discarded) ++batch.discarded;
  if (result.outcome.kind == Outcome::Kind::unsupported) ++batch.unsupported;
  for (const std::string& edge : result.outcome.edges) ++batch.edges[edge];
}

void LawCampaign::replay(const StoredCase& stored, SubjectPool& subjects) {
  if (replay_failure_) return;
  const SubjectPool::Loan loan(subjects);
  CaseResult result = check_case(law_, loan.subject(), stored.input);
  count(result, replayed_);
  if (result.broken())
    replay_failure_ = Found{stored.reproduction, stored.input, std::move(result), stored.file};
}

void LawCampaign::run_case(std::size_t index, const SubjectPool::Loan& loan, Batch& batch) {
  const Reproduction which{.law = law_.id, .seed = settings_.seed, .index = index};
  Case input = draw_case(law_, settings_.seed, index);
  if (settings_.note_running && settings_.store != nullptr)
    settings_.store->note_running(loan.number(), which, input);
  const auto begin = Clock::now();
  CaseResult result = check_case(law_, loan.subject(), input);
  count(result, batch);
  if (settings_.observe) {
    const std::chrono::duration<double> seconds = Clock::now() - begin;
    batch.observations.push_back(observation_line(which, input, result, run_start_, seconds.count()));
  }
  if (!result.broken()) return;
  note_failure(index);
  batch.found = Found{which, std::move(input), std::move(result), {}};
}

void LawCampaign::run(std::size_t first, std::size_t last, SubjectPool& subjects,
                      const std::function<bool()>& stop) {
  if (replay_failure_ || first >= first_failure_.load()) return;
  const SubjectPool::Loan loan(subjects);
  Batch batch{.first = first, .edges = {}, .observations = {}, .found = std::nullopt};
  for (std::size_t i = first; i < last && !batch.found && i < first_failure_.load() && !stop(); ++i)
    run_case(i, loan, batch);
  const std::scoped_lock lock(mutex_);
  batches_.emplace(first, std::move(batch));
}

std::vector<const LawCampaign::Batch*> LawCampaign::counted() const {
  std::vector<const Batch*> out;
  if (replay_failure_) return out;
  for (const auto& [first, batch] : batches_) {
    out.push_back(&batch);
    if (batch.found) break;
  }
  return out;
}

const LawCampaign::Found* LawCampaign::found() const {
  if (replay_failure_) return &*replay_failure_;
  const auto batches = counted();
  return !batches.empty() && batches.back()->found ? &*batches.back()->found : nullptr;
}

bool LawCampaign::timed_out() const {
  const Found* const first = found();
  return first != nullptr && first->result.timed_out;
}

void LawCampaign::explain(SubjectPool& subjects, bool may_time_out) {
  const Found* const first = found();
  if (first == nullptr) return;
  const SubjectPool::Loan loan(subjects);
  failure_ = explain_failure(law_, loan.subject(), first->reproduction, first->input, first->result, may_time_out);
  failure_->stored_in = first->file;
}

LawResult LawCampaign::result() const {
  LawResult out;
  out.id = law_.id;
  for (const std::string& edge : law_.edges) out.edges[edge] = 0;
  auto batches = counted();
  batches.push_back(&replayed_);
  for (const Batch* batch : batches) {
    out.cases += batch->cases;
    out.discarded += batch->discarded;
    out.unsupported += batch->unsupported;
    for (const auto& [edge, met] : batch->edges) out.edges[edge] += met;
  }
  out.replayed = replayed_.cases;
  out.failure = failure_;
  if (found() != nullptr) {
    out.verdict = Verdict::fail;
    return out;
  }
  out.reason = doubt(out);
  out.verdict = out.reason.empty() ? Verdict::pass : Verdict::unknown;
  // What the cases that the subject does not support would have met, nobody knows.
  out.skipped = out.verdict == Verdict::unknown && out.unsupported > 0 && out.unsupported * 5 >= out.cases;
  return out;
}

std::vector<std::string> LawCampaign::observations() const {
  std::vector<std::string> out;
  for (const Batch* batch : counted())
    out.insert(out.end(), batch->observations.begin(), batch->observations.end());
  return out;
}

}  // namespace ballast::props
