#include "sim/scenario/schema.h"

#include <algorithm>

#include "sim/scenario/fields.h"
#include "sim/scenario/givens.h"
#include "sim/scenario/score_fields.h"

namespace ballast::sim {
namespace {

Json object_schema() {
  return {{"type", "object"}, {"additionalProperties", false}, {"properties", Json::object()}};
}

/// The schema of the group of fields that `path` is in, made on the way.
Json& group_of(Json& root, std::string_view path) {
  Json* group = &root;
  for (auto dot = path.find('.'); dot != std::string_view::npos; dot = path.find('.')) {
    Json& member = (*group)["properties"][std::string(path.substr(0, dot))];
    if (member.is_null()) member = object_schema();
    group = &member;
    path.remove_prefix(dot + 1);
  }
  return *group;
}

std::string last_key(const std::string& path) {
  return path.substr(path.rfind('.') + 1);
}

template <class Settings>
Json field_schema(const Field<Settings>& field) {
  Json out = {{"description", field.meaning}};
  out.update(schema(field.type));
  const Json initial = field.get(Settings{});
  if (!initial.is_null() && !problem(initial, field.type)) out["default"] = initial;
  return out;
}

/// Whether two fields are in one group; a schema of a group cannot speak of another's fields, which
/// are the program's to check.
bool is_beside(const std::string& path, const std::string& other) {
  const auto group = [](const std::string& p) {
    return p.find('.') == std::string::npos ? "" : p.substr(0, p.rfind('.'));
  };
  return group(path) == group(other);
}

/// What a field that belongs to a word of another one asks of that other one, which is in the same
/// group.
template <class Settings>
void add_condition(Json& demands, const std::vector<Field<Settings>>& fields,
                   const Condition& condition) {
  const Field<Settings>& other = *find_field(fields, condition.path);
  const std::string key = last_key(condition.path);
  demands["properties"][key] = {{"enum", condition.words}};
  const auto& words = condition.words;
  if (std::find(words.begin(), words.end(), other.get(Settings{})) == words.end()) {
    demands["required"].push_back(key);
  }
  if (other.only_with && is_beside(other.only_with->path, other.path)) {
    add_condition(demands, fields, *other.only_with);
  }
}

template <class Settings>
Json fields_schema(const std::vector<Field<Settings>>& fields) {
  Json root = object_schema();
  for (const auto& field : fields) {
    Json& group = group_of(root, field.path);
    const std::string key = last_key(field.path);
    group["properties"][key] = field_schema(field);
    if (field.only_with && is_beside(field.only_with->path, field.path))
      add_condition(group["dependentSchemas"][key], fields, *field.only_with);
  }
  return root;
}

Json list_of(const std::string& definition, const std::string& meaning) {
  return {
      {"description", meaning}, {"type", "array"}, {"items", {{"$ref", "#/$defs/" + definition}}}};
}

Json expectation_schema() {
  Json out = fields_schema(expectation_fields());
  out["anyOf"] = Json::array({{{"required", {"metric", "at_most"}}},
                              {{"required", {"metric", "at_least"}}},
                              {{"required", {"collapse"}}}});
  return out;
}

/// A field set on its own: its conditions are on the file as a whole, and the program's to check.
Json set_schema(const std::string& meaning, bool scheduled) {
  Json out = object_schema();
  out["description"] = meaning;
  for (const auto& field : scenario_fields()) {
    if (scheduled && !may_be_scheduled(field.path)) continue;
    out["properties"][field.path] = schema(field.type);
  }
  return out;
}

Json variant_schema() {
  Json out = fields_schema(variant_fields());
  out["properties"]["set"] =
      set_schema("Fields by their path, with the values they have in this variant.", false);
  out["properties"]["expect"] = list_of("expectation", "Judged beside the common expectations.");
  out["required"] = {"name"};
  return out;
}

Json schedule_schema() {
  Json out = fields_schema(schedule_fields());
  out["properties"]["set"] =
      set_schema("Fields by their path, with the values they have from then on.", true);
  out["required"] = {"set"};
  return out;
}

}  // namespace

Json scenario_schema() {
  Json root = fields_schema(scenario_fields());
  Json properties = {
      {"$schema", {{"description", "For editors; ignored."}, {"type", "string"}}},
      {"ballast", {{"description", "Version of the file format."}, {"const", scenario_format}}}};
  properties.update(root["properties"]);
  properties["schedule"] = list_of("change", "Fields that change over the steps.");
  properties["expect"] = list_of("expectation", "What has to hold; every scenario is a test.");
  properties["variants"] = list_of("variant", "Runs with some fields set otherwise, side by side.");

  Json out = {{"$schema", "https://json-schema.org/draft/2020-12/schema"},
              {"title", "Ballast scenario"},
              {"type", "object"},
              {"additionalProperties", false},
              {"required", {"ballast"}}};
  out["properties"] = std::move(properties);
  out["$defs"] = {{"change", schedule_schema()},
                  {"expectation", expectation_schema()},
                  {"variant", variant_schema()}};
  return out;
}

}  // namespace ballast::sim
