#include "sim/scenario/scenario_file.h"

#include <algorithm>
#include <set>

#include "sim/input_error.h"
#include "sim/read_file.h"
#include "sim/scenario/contradictions.h"
#include "sim/scenario/fields.h"
#include "sim/scenario/files.h"
#include "sim/scenario/givens.h"
#include "sim/scenario/score_fields.h"

namespace ballast::sim {
namespace {

constexpr std::size_t max_file_bytes = std::size_t{16} << 20;

/// A value read from a document, with the places of its parts.
template <class Settings>
struct Read {
  Settings value;
  Givens givens;
  Place at;
};

const std::vector<std::string>& scenario_paths() {
  static const auto paths = paths_of(scenario_fields());
  return paths;
}

/// Where the likeliest culprit was given: what was said last, and the first path of those.
std::string place_of(const std::vector<std::string>& paths, const Givens& givens,
                     const Place& fallback) {
  const Given* culprit = nullptr;
  for (const std::string& path : paths) {
    const auto given = givens.find(path);
    if (given == givens.end()) continue;
    if (!culprit || given->second.speaker > culprit->speaker) culprit = &given->second;
  }
  return culprit ? culprit->where : fallback.text();
}

[[noreturn]] void refuse(const Contradiction& found, const Givens& givens, const Place& at) {
  throw InputError({.what = "bad value of '" + found.paths.front() + "'",
                    .where = place_of(found.paths, givens, at),
                    .why = found.why,
                    .right = found.right});
}

void require(const Json& object, const Place& at, const std::string& key,
             const std::string& right) {
  if (object.contains(key)) return;
  throw InputError({.what = "'" + key + "' is missing",
                    .where = at.text(),
                    .why = "it is required",
                    .right = right});
}

const Json& list_at(const Json& object, const Place& at, const std::string& key) {
  static const Json empty = Json::array();
  const auto found = object.find(key);
  if (found == object.end()) return empty;
  if (found->is_array()) return *found;
  throw InputError({.what = "bad value of '" + key + "'",
                    .where = at.of(key),
                    .why = show(*found) + " is not a list",
                    .right = "give a list of objects"});
}

void check_format(const Json& document, const Place& at) {
  require(document, at, "ballast", "begin the file with {\"ballast\": 1, ...");
  const IntegerType format{.at_least = scenario_format, .at_most = scenario_format};
  const Given given{document.at("ballast"), at.of("ballast"), at.speaker};
  if (!problem(given.value, format)) return;
  throw InputError({.what = "bad value of 'ballast'",
                    .where = given.where,
                    .why = show(given.value) + " is no format this program reads",
                    .right = "give the number " + std::to_string(scenario_format)});
}

using ReadExpectation = Read<Expectation>;

std::vector<ReadExpectation> read_expectations(const Json& object, const Place& at) {
  std::vector<ReadExpectation> all;
  for (const Json& item : list_at(object, at, "expect")) {
    const Place here = at.in("expect").in(all.size());
    Givens givens = flatten(item, here, paths_of(expectation_fields()));
    if (!item.contains("collapse")) require(item, here, "metric", "say what is judged");
    all.push_back({read_fields(expectation_fields(), givens), givens, here});
  }
  return all;
}

/// The values that an entry of "schedule" sets: fields that may change over the steps, and go
/// together with the others of the file.
std::map<std::string, std::string> read_scheduled(const Json& entry, const Place& at,
                                                  const Givens& common) {
  require(entry, at, "set", "give fields by their path: {\"scores.shift\": 0.5}");
  std::map<std::string, std::string> out;
  Givens set;
  const Place here = at.in("set");
  for (const auto& [path, value] : entry.at("set").items()) {
    const auto* field = find_field(scenario_fields(), path);
    if (!field) throw unknown_path(path, here.of(path), scenario_paths());
    if (!may_be_scheduled(path)) {
      throw InputError(
          {.what = "cannot schedule '" + path + "'",
           .where = here.of(path),
           .why = "it is fixed for the whole run",
           .right = "schedule fields of scores, shares of tokens, or the learning rate"});
    }
    const Json kept = resolved(field->type, value, folder_of(at.origin));
    set[path] = {kept, here.of(path), Speaker::variant};
    out[path] = kept.dump();
  }
  read_fields(scenario_fields(), overridden(scenario_fields(), common, set));
  return out;
}

std::vector<ScheduleEntry> read_schedule(const Json& document, const Place& at,
                                         const Givens& common) {
  std::vector<ScheduleEntry> all;
  for (const Json& item : list_at(document, at, "schedule")) {
    const Place here = at.in("schedule").in(all.size());
    const Givens givens = flatten(item, here, paths_of(schedule_fields()), {"set"});
    all.push_back(read_fields(schedule_fields(), givens));
    all.back().set = read_scheduled(item, here, common);
  }
  return all;
}

std::vector<Expectation> values(const std::vector<ReadExpectation>& all) {
  std::vector<Expectation> out;
  for (const auto& each : all) out.push_back(each.value);
  return out;
}

Json override_value(const Override& given, const FieldType& type) {
  Json value = Json::parse(given.value, nullptr, /*allow_exceptions=*/false);
  const bool text =
      std::holds_alternative<TextType>(type) || std::holds_alternative<WordType>(type);
  if (value.is_discarded() || (text && !value.is_string())) return Json(given.value);
  return value;
}

Givens read_overrides(std::span<const Override> overrides) {
  Givens out;
  for (const Override& each : overrides) {
    const auto* field = find_field(scenario_fields(), each.path);
    if (!field) throw unknown_path(each.path, each.where, scenario_paths());
    const Json value = resolved(field->type, override_value(each, field->type), "");
    out[each.path] = {value, each.where, Speaker::override};
  }
  return out;
}

/// A variant as the file has it.
struct ReadVariant {
  VariantHeading heading;
  Givens set;
  std::vector<ReadExpectation> expect;
};

/// What the variant sets; for a field with an override, the override's value.
Givens read_set(const Json& variant, const Place& at, const Givens& overrides) {
  const Json none = Json::object();
  const auto found = variant.find("set");
  const Json& set = found == variant.end() ? none : *found;
  const Place here = at.in("set");
  if (!set.is_object()) {
    throw InputError({.what = "bad value of 'set'",
                      .where = here.text(),
                      .why = show(set) + " is not an object",
                      .right = "give fields by their path: {\"balancer.kind\": \"none\"}"});
  }
  Givens out;
  for (const auto& [path, value] : set.items()) {
    if (!find_field(scenario_fields(), path))
      throw unknown_path(path, here.of(path), scenario_paths());
    const auto over = overrides.find(path);
    const auto& type = find_field(scenario_fields(), path)->type;
    const Given own{resolved(type, value, folder_of(at.origin)), here.of(path), Speaker::variant};
    out[path] = over == overrides.end() ? own : over->second;
  }
  return out;
}

ReadVariant read_variant(const Json& variant, const Place& at, const Givens& overrides) {
  const Givens heading = flatten(variant, at, paths_of(variant_fields()), {"set", "expect"});
  require(variant, at, "name", "give each variant a name");
  return {read_fields(variant_fields(), heading), read_set(variant, at, overrides),
          read_expectations(variant, at)};
}

std::vector<ReadVariant> read_variants(const Json& document, const Place& at,
                                       const Givens& overrides) {
  std::vector<ReadVariant> all;
  std::set<std::string> names;
  for (const Json& item : list_at(document, at, "variants")) {
    const Place here = at.in("variants").in(all.size());
    all.push_back(read_variant(item, here, overrides));
    const std::string& name = all.back().heading.name;
    if (!names.insert(name).second) {
      throw InputError({.what = "bad value of 'name'",
                        .where = here.of("name"),
                        .why = "another variant is called '" + name + "' too",
                        .right = "give each variant a name of its own"});
    }
  }
  return all;
}

/// A complete run: its fields and expectations, which have to go together.
Scenario complete(const Givens& givens, const Json& document,
                  const std::vector<std::vector<ReadExpectation>>& expectations, const Place& at) {
  Scenario scenario = read_fields(scenario_fields(), givens);
  scenario.schedule = read_schedule(document, at, givens);
  if (const auto found = contradiction_in(scenario)) refuse(*found, givens, at);
  for (const auto& group : expectations) {
    for (const ReadExpectation& each : group) {
      if (const auto found = contradiction_in(each.value, scenario))
        refuse(*found, each.givens, each.at);
      scenario.expect.push_back(each.value);
    }
  }
  return scenario;
}

Variant complete(const ReadVariant& read, const Givens& common, const Json& document,
                 const std::vector<ReadExpectation>& common_expect, const Place& at) {
  const Givens givens = overridden(scenario_fields(), common, read.set);
  Variant variant{.name = read.heading.name,
                  .description = read.heading.description,
                  .set = Json::object(),
                  .expect = values(read.expect),
                  .scenario = complete(givens, document, {common_expect, read.expect}, at)};
  for (const auto& [path, given] : read.set) variant.set[path] = given.value;
  variant.scenario.name = variant.name;
  if (!variant.description.empty()) variant.scenario.description = variant.description;
  return variant;
}

template <class Settings>
Json write_list(const std::vector<Field<Settings>>& fields, const std::vector<Settings>& list) {
  Json out = Json::array();
  for (const Settings& each : list) out.push_back(write_fields(fields, each));
  return out;
}

Json write_schedule(const std::vector<ScheduleEntry>& schedule) {
  Json out = Json::array();
  for (const ScheduleEntry& entry : schedule) {
    out.push_back(write_fields(schedule_fields(), entry));
    out.back()["set"] = Json::object();
    for (const auto& [path, value] : entry.set) out.back()["set"][path] = Json::parse(value);
  }
  return out;
}

Json write_variant(const Variant& variant) {
  Json out = write_fields(variant_fields(), VariantHeading{variant.name, variant.description});
  out["set"] = variant.set;
  out["expect"] = write_list(expectation_fields(), variant.expect);
  return out;
}

}  // namespace

std::optional<Override> parse_override(std::string_view assignment) {
  const auto equals = assignment.find('=');
  if (equals == 0 || equals == std::string_view::npos) return std::nullopt;
  const std::string path(assignment.substr(0, equals));
  return Override{path, std::string(assignment.substr(equals + 1)), "--set " + path};
}

ScenarioFile parse_scenario(std::string_view text, std::string_view origin,
                            std::span<const Override> overrides) {
  return read_scenario(parse_json(text, origin), origin, "", overrides);
}

ScenarioFile read_scenario(const Json& document, std::string_view origin, std::string_view pointer,
                           std::span<const Override> overrides) {
  const Place root{std::string(origin), std::string(pointer), Speaker::file};
  Givens in_file = flatten(document, root, scenario_paths(),
                           {"$schema", "ballast", "schedule", "expect", "variants"});
  resolve_files(in_file, folder_of(root.origin));
  check_format(document, root);
  read_fields(scenario_fields(), in_file);

  const Givens over = read_overrides(overrides);
  const Givens common = overridden(scenario_fields(), in_file, over);
  const auto expect = read_expectations(document, root);
  const auto variants = read_variants(document, root, over);

  ScenarioFile file;
  if (variants.empty()) {
    file.common = complete(common, document, {expect}, root);
    return file;
  }
  file.common = read_fields(scenario_fields(), common);
  file.common.schedule = read_schedule(document, root, common);
  file.common.expect = values(expect);
  for (const auto& each : variants) {
    file.variants.push_back(complete(each, common, document, expect, root));
  }
  return file;
}

ScenarioFile load_scenario(const std::string& file, std::span<const Override> overrides) {
  return parse_scenario(read_file(file, "cannot read the scenario", max_file_bytes), file,
                        overrides);
}

std::vector<Scenario> expand(const ScenarioFile& file) {
  if (file.variants.empty()) return {file.common};
  std::vector<Scenario> runs;
  for (const Variant& variant : file.variants) runs.push_back(variant.scenario);
  return runs;
}

Json to_json(const Scenario& scenario) {
  Json out = {{"ballast", scenario_format}};
  out.update(write_fields(scenario_fields(), scenario));
  if (!scenario.schedule.empty()) out["schedule"] = write_schedule(scenario.schedule);
  out["expect"] = write_list(expectation_fields(), scenario.expect);
  return out;
}

Json to_json(const ScenarioFile& file) {
  Json out = to_json(file.common);
  if (file.variants.empty()) return out;
  out["variants"] = Json::array();
  for (const Variant& variant : file.variants) out["variants"].push_back(write_variant(variant));
  return out;
}

}  // namespace ballast::sim
