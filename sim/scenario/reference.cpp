#include "sim/scenario/reference.h"

#include "sim/scenario/fields.h"
#include "sim/scenario/score_fields.h"

namespace ballast::sim {
namespace {

std::string code(const std::string& text) {
  std::string out;
  out.append("`").append(text).append("`");
  return out;
}

std::string conditions(const Condition& condition) {
  std::string words;
  for (const std::string& word : condition.words)
    words.append(words.empty() ? "" : " or ").append(code(word));
  return " Only with " + code(condition.path) + " " + words + ".";
}

template <class Settings>
std::string row(const Field<Settings>& field) {
  const Json initial = field.get(Settings{});
  const bool has_default = !initial.is_null() && !problem(initial, field.type);
  return "| " + code(field.path) + " | " + describe(field.type) + " | " +
         (has_default ? code(initial.dump()) : "") + " | " + field.meaning +
         (field.only_with ? conditions(*field.only_with) : "") + " |\n";
}

template <class Settings>
std::string table(const std::vector<Field<Settings>>& fields) {
  std::string out = "| field | value | default | meaning |\n| --- | --- | --- | --- |\n";
  for (const auto& field : fields) out += row(field);
  return out;
}

}  // namespace

std::string field_reference() {
  return "# Fields of a scenario file\n\n"
         "Made from the registry of fields (sim/scenario/fields.cpp); a test holds it equal. Paths "
         "are dotted\n"
         "here and in overrides (`--set training.steps=50`), and nested objects in the file:\n"
         "`{\"ballast\": 1, \"training\": {\"steps\": 50}}`. `ballast` is the version of the "
         "format and required;\n"
         "`$schema` is ignored. Whole numbers may be written as `1e3`.\n\n"
         "## Fields\n\n" +
         table(scenario_fields()) +
         "\n## `schedule`: a list of changes over the steps\n\n"
         "`set` gives fields by their dotted path (`{\"scores.shift\": 0.5}`): those of `scores`, "
         "the "
         "shares of\n"
         "`tokens` and the learning rate.\n\n" +
         table(schedule_fields()) +
         "\n## `expect`: a list of bounds\n\n"
         "The run passes when each entry holds.\n\n" +
         table(expectation_fields()) +
         "\n## `variants`: a list of runs side by side\n\n"
         "`set` gives fields by their dotted path (`{\"balancer.kind\": \"none\"}`); fields of the "
         "common part that\n"
         "mean nothing beside them fall away. `expect` is judged beside the common list.\n\n" +
         table(variant_fields());
}

}  // namespace ballast::sim
