#pragma once

#include <cstdint>
#include <vector>

#include "props/cases/requests.h"
#include "props/subjects/subject.h"

namespace ballast::props {

/// One generated input: a conversation. What a law does beside it (a permutation, where it inserts an
/// evaluation, the constant it adds) it derives from `salt`, so a case decides everything.
struct Case {
  Open open;
  std::vector<Request> history;
  std::uint64_t salt = 0;
};

/// A case and what the subject answered to each request of the history.
struct Trace {
  Answer opened;
  std::vector<Answer> answers;
};

/// Holds the conversation. Refusals are answers; SubjectFailure passes through. When `open` is refused, no
/// request is asked.
Trace run(Subject& subject, const Case& input);

}  // namespace ballast::props
