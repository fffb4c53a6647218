#include "sim/route/route_summary.h"

#include <nlohmann/json.hpp>

#include "core/metrics/moe_metrics.h"
#include "sim/scenario/words.h"
#include "sim/text/numbers.h"
#include "sim/text/printable.h"
#include "sim/text/table.h"

namespace ballast::sim {
namespace {

using Json = nlohmann::ordered_json;

Metrics metrics_of(const PassCounts& counts) {
  return moe_metrics(std::span<const std::vector<std::int64_t>>(&counts.loads, 1));
}

Json metrics_json(const PassCounts& counts) {
  const Metrics metrics = metrics_of(counts);
  Json json = Json::object();
  for (const char* key : metric_key::moe) {
    const auto found = metrics.find(key);
    json[key] = found == metrics.end() ? Json(nullptr) : Json(found->second);
  }
  return json;
}

double ns_each(double seconds, std::size_t tokens, const BatchSteps& result) {
  const auto experts = result.biases.size();
  const auto count =
      static_cast<double>(tokens) * static_cast<double>(experts * result.steps.size());
  return count > 0.0 ? seconds * 1e9 / count : 0.0;
}

Json timing_json(std::size_t tokens, const BatchSteps& result) {
  const auto each = [&](double seconds) { return ns_each(seconds, tokens, result); };
  return {{"read_ns_per_token_expert", each(result.times.read)},
          {"route_ns_per_token_expert", each(result.times.route)},
          {"balance_ns_per_token_expert", each(result.times.balance)},
          {"write_ns_per_token_expert", each(result.times.write)}};
}

}  // namespace

Json route_json(const RouteQuestion& question, std::size_t tokens, const BatchSteps& result) {
  const RouterSettings& router = question.router;
  const PassCounts& before = result.steps.front();
  Json json = {{"tokens", tokens},
               {"valid_tokens", before.valid},
               {"not_finite_tokens", before.not_finite},
               {"experts", router.routed_experts},
               {"top_k", router.top_k},
               {"score", word(router.score)},
               {"renormalize", router.renormalize},
               {"scale", router.routed_scale},
               {"balancer", text(question.balancer)},
               {"steps", question.steps}};
  json["metrics"] = {{"before", metrics_json(before)}, {"after", metrics_json(result.after)}};
  json["metrics"]["steps"] = Json::array();
  for (const PassCounts& step : result.steps)
    json["metrics"]["steps"].push_back(metrics_json(step));
  if (question.timing) json["timing"] = timing_json(tokens, result);
  return json;
}

void write_route_text(const RouteQuestion& question, std::size_t tokens, const BatchSteps& result,
                      std::ostream& out) {
  const PassCounts& counts = result.steps.front();
  out << counted(tokens, "token") << " x " << counted(question.router.routed_experts, "expert")
      << ", top " << question.router.top_k << " by " << word(question.router.score) << "; balancer "
      << text(question.balancer) << ", " << counted(question.steps, "step") << '\n';
  if (counts.valid != static_cast<std::int64_t>(tokens))
    out << counts.valid << " of the tokens count\n";
  if (counts.not_finite != 0) {
    out << counted(static_cast<std::uint64_t>(counts.not_finite), "token")
        << " with scores that are not finite: routed, not balanced by\n";
  }
  const Metrics before = metrics_of(counts), after = metrics_of(result.after);
  std::vector<Row> rows;
  for (const char* key : metric_key::moe) {
    const auto cell = [&](const Metrics& metrics) {
      return metrics.empty() ? std::string("-") : fixed(metrics.at(key), 4);
    };
    rows.push_back({key, cell(before), cell(after)});
  }
  out << '\n';
  Table({{"metric", Align::left}, {"before"}, {"after"}}).write(out, rows);
  if (!question.timing) return;
  out << "\nns per token and expert: read " << fixed(ns_each(result.times.read, tokens, result), 3)
      << ", route " << fixed(ns_each(result.times.route, tokens, result), 3) << ", balance "
      << fixed(ns_each(result.times.balance, tokens, result), 3) << ", write "
      << fixed(ns_each(result.times.write, tokens, result), 3) << '\n';
}

}  // namespace ballast::sim
