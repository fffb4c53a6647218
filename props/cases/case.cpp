#include "props/cases/case.h"

namespace ballast::props {

Trace run(Subject& subject, const Case& input) {
  Trace trace{.opened = subject.open(input.open), .answers = {}};
  if (std::holds_alternative<Refusal>(trace.opened)) return trace;
  for (const auto& request : input.history) trace.answers.push_back(subject.ask(request));
  return trace;
}

}  // namespace ballast::props
