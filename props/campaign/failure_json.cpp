#include "props/campaign/failure_json.h"

#include <nlohmann/json.hpp>

#include "props/protocol/answers_json.h"
#include "props/protocol/requests_json.h"

namespace ballast::props {

Json failure_json(const Failure& failure) {
  const Outcome& outcome = failure.result.outcome;
  Json answers = Json::array();
  std::int64_t id = 0;
  for (const Answer& answer : failure.answers) answers.push_back(answer_json(++id, answer));
  Json out;
  out["where"] = outcome.where;
  out["expected"] = outcome.expected;
  out["seen"] = outcome.seen;
  out["subject_failed"] = failure.result.subject_failed;
  out["flaky"] = failure.flaky;
  out["case"] = case_json(failure.smallest);
  out["irrelevant"] = failure.irrelevant;
  out["answers"] = std::move(answers);
  out["stderr"] = failure.result.stderr_tail;
  return out;
}

}  // namespace ballast::props
