#include "sim/output/run_json.h"

#include <span>

#include "core/json.h"
#include "sim/digest.h"
#include "sim/scenario/words.h"

namespace ballast::sim {

namespace {

Json figures_json(const Figures& figures) {
  Json json = Json::object();
  for (const auto& [name, value] : figures) json[name] = value;
  return json;
}

Json expectation_json(const ExpectationOutcome& outcome) {
  const Expectation& expectation = outcome.expectation;
  Json json = Json::object();
  if (expectation.collapse) {
    json["collapse"] = word(*expectation.collapse);
  } else {
    json["metric"] = expectation.metric;
    json["aggregate"] = word(expectation.aggregate);
  }
  json["from"] = expectation.from;
  if (expectation.until) json["until"] = *expectation.until;
  if (expectation.at_most) json["at_most"] = *expectation.at_most;
  if (expectation.at_least) json["at_least"] = *expectation.at_least;
  json["verdict"] = word(outcome.verdict);
  if (!expectation.collapse) json["value"] = outcome.value ? Json(*outcome.value) : Json(nullptr);
  if (outcome.step) json["step"] = *outcome.step;
  return json;
}

Json event_json(const Event& event) {
  Json json = {{"step", event.step}};
  if (event.kind == Event::Kind::overflow) {
    json["event"] = "overflow";
  } else {
    json["event"] = "restart";
    json["from_checkpoint"] = event.checkpoint;
  }
  return json;
}

Json collapse_json(const CollapseReport& report) {
  Json json = {{"verdict", word(report.verdict)}, {"findings", Json::array()}};
  for (const CollapseFinding& finding : report.findings) {
    json["findings"].push_back(
        {{"kind", word(finding.kind)}, {"onset", finding.onset}, {"layers", finding.layers}});
  }
  return json;
}

std::string line(const Json& json) {
  return json.dump() + "\n";
}

}  // namespace

Json summary_json(const Simulation& run) {
  const auto outcomes = judge(run);
  Json json = {{"name", run.scenario().name},
               {"verdict", word(overall(outcomes))},
               {"digest", run.digest()},
               {"steps", run.completed()},
               {"final", figures_json(run.steps().back().figures)},
               {"collapse", collapse_json(run.collapse())},
               {"expectations", Json::array()},
               {"events", Json::array()}};
  if (!run.evaluations().empty() && run.evaluations().back().figures.contains("loss")) {
    json["final"]["eval_loss"] = run.evaluations().back().figures.at("loss");
  }
  for (const auto& outcome : outcomes) json["expectations"].push_back(expectation_json(outcome));
  for (const auto& event : run.events()) json["events"].push_back(event_json(event));
  return json;
}

Json summary_json(const ScenarioFile& file, const std::vector<const Simulation*>& runs) {
  if (file.variants.empty()) return summary_json(*runs.front());
  Json variants = Json::array(), expectations = Json::array();
  for (const Simulation* run : runs) {
    Json summary = summary_json(*run);
    for (const auto& own : summary["expectations"]) {
      Json named = {{"variant", run->scenario().name}};
      named.update(own);
      expectations.push_back(std::move(named));
    }
    variants.push_back(std::move(summary));
  }
  return {{"name", file.common.name},          {"verdict", word(overall(judge(runs)))},
          {"digest", digest_of(file, runs)},   {"steps", variants.back()["steps"]},
          {"final", variants.back()["final"]}, {"expectations", std::move(expectations)},
          {"variants", std::move(variants)}};
}

std::string digest_of(const ScenarioFile& file, const std::vector<const Simulation*>& runs) {
  if (file.variants.empty()) return runs.front()->digest();
  Digest all;
  for (const Simulation* run : runs) {
    const std::string own = run->digest();
    all.add(std::span<const char>(own));
  }
  return all.hex();
}

std::string metrics_lines(const Simulation& run) {
  std::string text;
  for (const auto& record : run.steps()) {
    Json json = {{"step", record.step}};
    json.update(figures_json(record.figures));
    json["tokens"] = record.tokens;
    json["applied"] = record.applied;
    json["loss_scale"] = record.loss_scale;
    text += line(json);
  }
  return text;
}

std::string diagnostics_lines(const Simulation& run) {
  std::string text;
  for (const auto& window : run.windows()) {
    text += line({{"first_step", window.first_step},
                  {"last_step", window.last_step},
                  {"complete", window.complete},
                  {"layers", Json(window.snapshot)}});
  }
  return text;
}

std::string evaluation_lines(const Simulation& run) {
  std::string text;
  for (const auto& record : run.evaluations()) {
    Json json = {{"step", record.step}};
    json.update(figures_json(record.figures));
    text += line(json);
  }
  return text;
}

}  // namespace ballast::sim
