#include "props/campaign/failure.h"

#include <utility>

#include "props/cases/shrink.h"

namespace ballast::props {

namespace {

constexpr std::size_t timeouts_max = 3;  ///< that shrinking one case waits for
/// How often it lets a subject crash, which has to be started again each time.
constexpr std::size_t crashes_max = 100;

/// Whether candidates fail like the first case did: broken, and in the same one of the two ways.
class SameFailure {
 public:
  SameFailure(const Law& law, Subject& subject, const CaseResult& first)
      : law_(law), subject_(subject), subject_failed_(first.subject_failed) {}

  bool operator()(const Case& candidate) {
    if (timeouts_ >= timeouts_max || crashes_ >= crashes_max) return false;
    CaseResult result = check_case(law_, subject_, candidate);
    if (result.timed_out) ++timeouts_;
    if (result.subject_failed) ++crashes_;
    return result.broken() && result.subject_failed == subject_failed_;
  }

 private:
  const Law& law_;
  Subject& subject_;
  bool subject_failed_;
  std::size_t timeouts_ = 0;
  std::size_t crashes_ = 0;
};

}  // namespace

std::vector<Answer> answers_to(Subject& subject, const Case& input) {
  std::vector<Answer> answers;
  try {
    answers.push_back(subject.open(input.open));
    if (std::holds_alternative<Refusal>(answers.front())) return answers;
    for (const Request& request : input.history) answers.push_back(subject.ask(request));
  } catch (const SubjectFailure&) {
    // The answers before it are what there is to show.
  }
  return answers;
}

Failure explain_failure(const Law& law, Subject& subject, Reproduction reproduction, Case input,
                        CaseResult result, bool may_time_out) {
  Failure failure;
  failure.reproduction = std::move(reproduction);
  failure.smallest = std::move(input);
  failure.result = std::move(result);
  if (failure.result.timed_out && !may_time_out) return failure;
  SameFailure same(law, subject, failure.result);
  failure.flaky = !same(failure.smallest);
  if (failure.flaky) return failure;
  const StillFails still_fails = [&](const Case& candidate) { return same(candidate); };
  failure.smallest = shrink(std::move(failure.smallest), still_fails);
  if (failure.result.timed_out) return failure;
  failure.irrelevant = irrelevant_parts(failure.smallest, still_fails);
  CaseResult smallest = check_case(law, subject, failure.smallest);
  if (smallest.broken()) failure.result = std::move(smallest);
  failure.answers = answers_to(subject, failure.smallest);
  return failure;
}

}  // namespace ballast::props
