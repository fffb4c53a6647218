#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "sim/scenario/field.h"
#include "sim/scenario/givens.h"

/// JSON Schemas (draft 2020-12) of objects whose fields are in a registry.
namespace ballast::sim {

namespace schema_parts {

inline Json object_schema() {
  return {{"type", "object"}, {"additionalProperties", false}, {"properties", Json::object()}};
}

/// The schema of the group of fields that `path` is in, made on the way.
inline Json& group_of(Json& root, std::string_view path) {
  Json* group = &root;
  for (auto dot = path.find('.'); dot != std::string_view::npos; dot = path.find('.')) {
    Json& member = (*group)["properties"][std::string(path.substr(0, dot))];
    if (member.is_null()) member = object_schema();
    group = &member;
    path.remove_prefix(dot + 1);
  }
  return *group;
}

inline std::string last_key(const std::string& path) {
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
inline bool is_beside(const std::string& path, const std::string& other) {
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
  const auto word = other.get(Settings{}).template get<std::string>();  // the default
  if (std::find(words.begin(), words.end(), word) == words.end()) {
    demands["required"].push_back(key);
  }
  if (other.only_with && is_beside(other.only_with->path, other.path)) {
    add_condition(demands, fields, *other.only_with);
  }
}

}  // namespace schema_parts

/// The schema of an object with these fields, groups as nested objects.
template <class Settings>
Json fields_schema(const std::vector<Field<Settings>>& fields) {
  Json root = schema_parts::object_schema();
  for (const auto& field : fields) {
    Json& group = schema_parts::group_of(root, field.path);
    const std::string key = schema_parts::last_key(field.path);
    group["properties"][key] = schema_parts::field_schema(field);
    if (field.only_with && schema_parts::is_beside(field.only_with->path, field.path))
      schema_parts::add_condition(group["dependentSchemas"][key], fields, *field.only_with);
  }
  return root;
}

}  // namespace ballast::sim
