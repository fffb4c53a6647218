#include "sim/sweep/sweep_schema.h"

#include "sim/scenario/fields.h"
#include "sim/scenario/fields_schema.h"
#include "sim/sweep/sweep_fields.h"
#include "sim/sweep/sweep_file.h"

namespace ballast::sim {
namespace {

const std::string scenario_schema_file = "scenario.schema.json";

Json reference(const std::string& definition) {
  return {{"$ref", "#/$defs/" + definition}};
}

/// What a field of a scenario takes, whichever it is; which one it is, is the program's to check.
Json paths() {
  return {{"description", "The path of a field of a scenario."},
          {"enum", paths_of(scenario_fields())}};
}

Json group_schema() {
  Json set = schema_parts::object_schema();
  set["description"] = "Fields by their path, with the values they have.";
  for (const auto& field : scenario_fields()) set["properties"][field.path] = schema(field.type);
  Json out = fields_schema(group_fields());
  out["properties"]["set"] = std::move(set);
  out["required"] = {"label", "set"};
  return out;
}

Json range_schema(bool logarithmic) {
  Json out = fields_schema(range_fields());
  for (const char* bound : {"from", "to"}) out["properties"][bound].erase("default");
  out["required"] = {"from", "to"};
  if (logarithmic) {
    out["properties"].erase("step");
    out["properties"]["from"]["exclusiveMinimum"] = 0;
  } else {
    out["not"] = {{"required", {"points", "step"}}};
  }
  return out;
}

Json values_schema(Json items, const std::string& meaning) {
  return {{"description", meaning},
          {"type", "array"},
          {"minItems", 1},
          {"uniqueItems", true},
          {"items", std::move(items)}};
}

/// An axis of one field, or of groups of fields.
Json axis_schema() {
  Json out = fields_schema(heading_fields());
  out["properties"]["field"] = paths();
  out["properties"]["values"] =
      values_schema(Json::object(), "The values of the field; or groups of fields, with labels.");
  out["properties"]["range"] = reference("range");
  out["properties"]["log_range"] = reference("log_range");
  const Json one_of_them = Json::array(
      {{{"required", {"values"}}}, {{"required", {"range"}}}, {{"required", {"log_range"}}}});
  out["oneOf"] = one_of_them;
  out["if"] = {{"required", {"field"}}};
  out["else"] = {{"required", {"name", "values"}},
                 {"properties", {{"values", {{"items", reference("group")}}}}}};
  return out;
}

}  // namespace

Json sweep_schema() {
  const Json fields = fields_schema(sweep_fields());
  Json properties = {
      {"$schema", {{"description", "For editors; ignored."}, {"type", "string"}}},
      {"ballast_sweep", {{"description", "Version of the file format."}, {"const", sweep_format}}}};
  properties.update(fields["properties"]);
  properties["base"] = {
      {"description", "A scenario file, named relative to this one; or a scenario in place."},
      {"oneOf", Json::array({schema(FieldType(TextType{TextForm::not_empty})),
                             Json{{"$ref", scenario_schema_file}}})}};
  properties["axes"] = {{"description", "Directions of the sweep; the last one varies fastest."},
                        {"type", "array"},
                        {"minItems", 1},
                        {"items", reference("axis")}};
  Json out = {{"$schema", "https://json-schema.org/draft/2020-12/schema"},
              {"title", "Ballast sweep"},
              {"type", "object"},
              {"additionalProperties", false},
              {"required", {"ballast_sweep", "base", "axes"}}};
  out["properties"] = std::move(properties);
  out["dependentSchemas"] = fields["dependentSchemas"];
  out["$defs"] = {{"axis", axis_schema()},
                  {"group", group_schema()},
                  {"range", range_schema(false)},
                  {"log_range", range_schema(true)}};
  return out;
}

}  // namespace ballast::sim
