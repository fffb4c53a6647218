#pragma once

#include <cstddef>
#include <set>
#include <string>
#include <vector>

#include "props/campaign/check_case.h"
#include "props/campaign/reproduction.h"
#include "props/cases/case.h"
#include "props/laws/law.h"

namespace ballast::props {

/// How a subject breaks a law: the smallest case found, and what it came to.
struct Failure {
  Reproduction reproduction;
  Case smallest;
  CaseResult result;           ///< on the smallest case
  std::vector<Answer> answers;  ///< to open and the history of the smallest case, as far as they came
  std::string stored_in;       ///< the file it was read from or written to; empty: none
  /// What in the smallest case does not matter: JSON pointers into `case_json(smallest)`.
  std::set<std::string> irrelevant;
  /// It failed once, and not again on the same case: the subject does not always answer alike, or keeps
  /// something over `open`. Then `smallest` is the case it failed on.
  bool flaky = false;
};

/// Makes the case of a failure small, and finds out what the report tells. The same failure always gives
/// the same result when the subject answers alike. `may_time_out`: shrinking may wait for the subject
/// to run out of time a few times; otherwise a case that timed out stays as it is.
Failure explain_failure(const Law& law, Subject& subject, Reproduction reproduction, Case input,
                        CaseResult result, bool may_time_out);

/// Answers of the subject to the conversation of a case, up to the one it fails at: open, then history.
std::vector<Answer> answers_to(Subject& subject, const Case& input);

}  // namespace ballast::props
