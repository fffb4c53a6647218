#include "props/campaign/campaign.h"

#include <algorithm>
#include <atomic>
#include <limits>
#include <memory>
#include <mutex>
#include <system_error>
#include <utility>

#include "props/campaign/law_campaign.h"
#include "props/protocol/words.h"

namespace ballast::props {

namespace {

using Clock = std::chrono::steady_clock;
using Seconds = std::chrono::duration<double>;

constexpr std::size_t batch_cases = 25;   ///< that one thread runs in one go
constexpr std::size_t round_cases = 100;  ///< of every law, before any law has more

double unix_time() {
  return Seconds(std::chrono::system_clock::now().time_since_epoch()).count();
}

/// What the subject says of itself, or how it failed to.
struct Introduction {
  std::set<Capability> supports;
  std::optional<SubjectFailure> failure;
};

Introduction introduce(SubjectPool& subjects) {
  const SubjectPool::Loan loan(subjects);
  try {
    return {.supports = loan.subject().hello().supports, .failure = std::nullopt};
  } catch (const SubjectFailure& failure) {
    return {.supports = {}, .failure = failure};
  }
}

std::string missing(const Law& law, const std::set<Capability>& supports) {
  std::string text;
  for (const Capability need : law.needs) {
    if (!supports.contains(need)) text += (text.empty() ? "" : ", ") + word(need);
  }
  return text;
}

/// A law of which no case was run.
LawResult not_run(const Law& law, const std::string& reason) {
  LawResult out;
  out.id = law.id;
  out.reason = reason;
  for (const std::string& edge : law.edges) out.edges[edge] = 0;
  return out;
}

Verdict overall(const std::vector<LawResult>& laws) {
  const auto any = [&](auto is) { return std::ranges::any_of(laws, is); };
  if (any([](const LawResult& law) { return law.verdict == Verdict::fail; })) return Verdict::fail;
  if (any([](const LawResult& law) { return law.verdict == Verdict::unknown && !law.skipped; }))
    return Verdict::unknown;
  const bool passed = any([](const LawResult& law) { return law.verdict == Verdict::pass; });
  return passed ? Verdict::pass : Verdict::unknown;
}

CampaignResult without_hello(std::span<const Law> laws, const SubjectFailure& failure) {
  CampaignResult out;
  LawResult hello;
  hello.id = "protocol.hello";
  hello.verdict = Verdict::fail;
  hello.cases = 1;
  hello.failure.emplace();
  hello.failure->reproduction.law = hello.id;
  hello.failure->result.subject_failed = true;
  hello.failure->result.stderr_tail = failure.stderr_tail;
  hello.failure->result.outcome = {.kind = Outcome::Kind::broken,
                                   .where = "the first request, hello",
                                   .expected = "its name and what it supports",
                                   .seen = failure.what(),
                                   .edges = {}};
  out.laws.push_back(std::move(hello));
  for (const Law& law : laws) out.laws.push_back(not_run(law, "the subject did not introduce itself"));
  out.verdict = Verdict::fail;
  return out;
}

class Campaign {
 public:
  Campaign(SubjectPool& subjects, const CampaignSettings& settings, const Executor& executor,
           const CampaignProgress& progress)
      : subjects_(subjects), settings_(settings), executor_(executor), progress_(progress) {
    if (settings.time_budget)
      end_ = begin_ + std::chrono::duration_cast<Clock::duration>(*settings.time_budget);
  }

  CampaignResult run(std::span<const Law> laws, const std::set<Capability>& supports) {
    for (const Law& law : laws) {
      if (missing(law, supports).empty())
        running_.push_back(std::make_unique<LawCampaign>(law, settings_, unix_time()));
    }
    replay();
    run_rounds();
    explain();
    return collect(laws, supports);
  }

 private:
  bool out_of_time() const { return end_ && Clock::now() >= *end_; }

  void replay() {
    if (settings_.store == nullptr || settings_.only_case) return;
    const std::vector<StoredCase> stored = settings_.store->read();
    executor_.for_each(running_.size(), [&](std::size_t i) {
      for (const StoredCase& one : stored) {
        if (one.reproduction.law == running_[i]->law().id) running_[i]->replay(one, subjects_);
      }
    });
    for (const StoredCase& one : stored) settings_.store->forget(one);
  }

  void run_rounds() {
    total_ = running_.size();
    if (settings_.only_case) return run_round(*settings_.only_case, *settings_.only_case + 1);
    const std::size_t cases = settings_.cases.value_or(std::numeric_limits<std::size_t>::max() - round_cases);
    total_ = settings_.cases.value_or(0) * running_.size();
    for (std::size_t first = 0; first < cases && !out_of_time() && any_unbroken(); first += round_cases)
      run_round(first, std::min(first + round_cases, cases));
  }

  bool any_unbroken() const {
    return std::ranges::any_of(running_, [](const auto& law) { return !law->failed(); });
  }

  /// The cases [first, last) of every law that has not failed.
  void run_round(std::size_t first, std::size_t last) {
    const std::size_t batches = (last - first + batch_cases - 1) / batch_cases;
    executor_.for_each(batches * running_.size(), [&](std::size_t piece) {
      LawCampaign& law = *running_[piece % running_.size()];
      const std::size_t from = first + piece / running_.size() * batch_cases;
      const std::size_t to = std::min(from + batch_cases, last);
      law.run(from, to, subjects_, [this] { return out_of_time(); });
      show_progress(to - from);
    });
  }

  void show_progress(std::size_t cases) {
    const std::scoped_lock lock(mutex_);
    done_ += cases;
    if (!progress_) return;
    if (settings_.cases) return progress_(std::min(done_, total_), total_);
    if (!settings_.time_budget) return;
    const auto whole = [](Seconds time) { return static_cast<std::size_t>(time.count()); };
    const std::size_t budget = whole(*settings_.time_budget);
    progress_(std::min(whole(Clock::now() - begin_), budget), budget);
  }

  void explain() {
    // One law may wait for the subject to run out of time again and again, to find a small case; that
    // must not be repeated for every law.
    const auto first_timeout =
        std::ranges::find_if(running_, [](const auto& law) { return law->timed_out(); });
    executor_.for_each(running_.size(), [&](std::size_t i) {
      const bool may_time_out = first_timeout != running_.end() && running_[i] == *first_timeout;
      running_[i]->explain(subjects_, may_time_out);
    });
  }

  CampaignResult collect(std::span<const Law> laws, const std::set<Capability>& supports) {
    CampaignResult out;
    auto next = running_.begin();
    for (const Law& law : laws) {
      if (const std::string what = missing(law, supports); !what.empty()) {
        out.laws.push_back(not_run(law, "the subject does not support " + what));
        out.laws.back().skipped = true;
        continue;
      }
      out.laws.push_back((*next)->result());
      const auto lines = (*next)->observations();
      out.observations.insert(out.observations.end(), lines.begin(), lines.end());
      store(law, out.laws.back(), out.notes);
      ++next;
    }
    out.verdict = overall(out.laws);
    return out;
  }

  void store(const Law& law, LawResult& result, std::vector<std::string>& notes) const {
    if (!result.failure || settings_.store == nullptr || !result.failure->stored_in.empty()) return;
    try {
      result.failure->stored_in = settings_.store->write(law, *result.failure);
    } catch (const std::system_error& error) {
      notes.push_back("the failure of " + law.id + " is not stored: " + error.what());
    }
  }

  SubjectPool& subjects_;
  const CampaignSettings& settings_;
  const Executor& executor_;
  const CampaignProgress& progress_;
  Clock::time_point begin_ = Clock::now();
  std::optional<Clock::time_point> end_;
  std::vector<std::unique_ptr<LawCampaign>> running_;
  std::mutex mutex_;
  std::size_t done_ = 0;
  std::size_t total_ = 0;
};

}  // namespace

std::string word(Verdict verdict) {
  if (verdict == Verdict::pass) return "pass";
  return verdict == Verdict::fail ? "fail" : "unknown";
}

CampaignResult run_campaign(std::span<const Law> laws, SubjectPool& subjects, const CampaignSettings& settings,
                            const Executor& executor, const CampaignProgress& progress) {
  const Introduction introduction = introduce(subjects);
  CampaignResult result = introduction.failure
                              ? without_hello(laws, *introduction.failure)
                              : Campaign(subjects, settings, executor, progress).run(laws, introduction.supports);
  if (settings.store != nullptr) settings.store->forget_running(subjects.made());
  return result;
}

}  // namespace ballast::props
