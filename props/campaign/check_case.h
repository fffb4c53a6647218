#pragma once

#include <string>

#include "props/cases/case.h"
#include "props/laws/law.h"

namespace ballast::props {

/// What came of holding a subject against a law on one case.
struct CaseResult {
  Outcome outcome;
  bool subject_failed = false;  ///< it broke the rules of the conversation, not the law's own statement
  bool timed_out = false;       ///< it gave no answer in time
  std::string stderr_tail;      ///< of a law that is broken

  bool broken() const { return outcome.kind == Outcome::Kind::broken; }
};

/// Checks the law. A subject that fails breaks every law it fails in: then `expected` is a valid answer.
CaseResult check_case(const Law& law, Subject& subject, const Case& input);

}  // namespace ballast::props
