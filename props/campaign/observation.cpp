#include "props/campaign/observation.h"

#include <nlohmann/json.hpp>

#include "props/protocol/requests_json.h"

namespace ballast::props {

namespace {

const char* status_of(Outcome::Kind kind) {
  if (kind == Outcome::Kind::holds) return "passed";
  return kind == Outcome::Kind::broken ? "failed" : "gave_up";
}

std::string reason_of(const CaseResult& result) {
  switch (result.outcome.kind) {
    case Outcome::Kind::holds: return "";
    case Outcome::Kind::discarded: return "the case does not concern the law";
    case Outcome::Kind::unsupported: return "the subject does not support it";
    case Outcome::Kind::broken: break;
  }
  return result.outcome.where + ": expected " + result.outcome.expected + ", seen " + result.outcome.seen;
}

std::size_t tokens_in(const Case& input) {
  std::size_t tokens = 0;
  for (const Request& request : input.history) {
    if (const auto* forward = std::get_if<Forward>(&request)) tokens += forward->logits.rows();
  }
  return tokens;
}

Json features_of(const Reproduction& which, const Case& input, const CaseResult& result) {
  Json out;
  out["size"] = case_size(which.index);
  out["requests"] = input.history.size();
  out["tokens"] = tokens_in(input);
  out["experts"] = input.open.model.routed_experts;
  out["top_k"] = input.open.model.top_k;
  for (const std::string& edge : result.outcome.edges) out["edge: " + edge] = true;
  return out;
}

}  // namespace

std::string observation_line(const Reproduction& which, const Case& input, const CaseResult& result,
                             double run_start, double seconds) {
  Json out;
  out["type"] = "test_case";
  out["run_start"] = run_start;
  out["property"] = which.law;
  out["status"] = status_of(result.outcome.kind);
  out["status_reason"] = reason_of(result);
  out["representation"] = "ballast check --reproduce " + which.text();
  out["arguments"] = case_json(input);
  out["how_generated"] = "drawn from seed " + std::to_string(which.seed);
  out["features"] = features_of(which, input, result);
  out["coverage"] = nullptr;
  out["timing"] = Json{{"execute:test", seconds}};
  out["metadata"] = Json{{"index", which.index}};
  return out.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace ballast::props
