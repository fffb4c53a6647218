#include "sim/scenario/schema.h"

#include "sim/scenario/fields.h"
#include "sim/scenario/fields_schema.h"
#include "sim/scenario/score_fields.h"

namespace ballast::sim {

using schema_parts::object_schema;

namespace {

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
