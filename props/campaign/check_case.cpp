#include "props/campaign/check_case.h"

namespace ballast::props {

CaseResult check_case(const Law& law, Subject& subject, const Case& input) {
  CaseResult result;
  try {
    result.outcome = law.check(subject, input);
    if (result.broken()) result.stderr_tail = subject.last_lines();
  } catch (const SubjectFailure& failure) {
    result.outcome.kind = Outcome::Kind::broken;
    result.outcome.where = "the conversation itself";
    result.outcome.expected = "a valid answer to every request, in time";
    result.outcome.seen = failure.what();
    result.subject_failed = true;
    result.timed_out = failure.timed_out;
    result.stderr_tail = failure.stderr_tail;
  }
  return result;
}

}  // namespace ballast::props
