#pragma once

#include <algorithm>
#include <cmath>
#include <string>

#include "sim/scenario/field_type.h"

namespace ballast::sim::test {

/// Whether a JSON Schema accepts a value: the keywords that this project's schemas use, written
/// from the specification (draft 2020-12). References to other files accept every object.
class JsonSchema {
 public:
  explicit JsonSchema(Json root) : root_(std::move(root)) {}

  bool accepts(const Json& value) const { return accepts(root_, value); }

 private:
  bool accepts(const Json& schema, const Json& value) const {
    for (const auto& [key, rule] : schema.items()) {
      if (!holds(key, rule, schema, value)) return false;
    }
    return true;
  }

  bool holds(const std::string& key, const Json& rule, const Json& schema, const Json& v) const {
    const auto count = [&] {
      return std::count_if(rule.begin(), rule.end(), [&](const Json& r) { return accepts(r, v); });
    };
    if (key == "$ref") {
      const auto name = rule.get<std::string>();
      if (!name.starts_with("#")) return v.is_object();
      return accepts(root_.at(Json::json_pointer(name.substr(1))), v);
    }
    if (key == "type") return is_of_type(rule.get<std::string>(), v);
    if (key == "const") return v == rule;
    if (key == "enum") return std::find(rule.begin(), rule.end(), v) != rule.end();
    if (key == "oneOf") return count() == 1;
    if (key == "anyOf") return count() > 0;
    if (key == "not") return !accepts(rule, v);
    if (key == "if") {
      const char* branch = accepts(rule, v) ? "then" : "else";
      return !schema.contains(branch) || accepts(schema.at(branch), v);
    }
    if (v.is_number()) {
      const double number = v.get<double>();
      if (key == "minimum") return number >= rule.get<double>();
      if (key == "maximum") return number <= rule.get<double>();
      if (key == "exclusiveMinimum") return number > rule.get<double>();
      if (key == "exclusiveMaximum") return number < rule.get<double>();
    }
    if (v.is_string() && key == "minLength")
      return v.get<std::string>().size() >= rule.get<std::size_t>();
    if (v.is_array()) return holds_of_list(key, rule, v);
    if (v.is_object()) return holds_of_object(key, rule, schema, v);
    return true;
  }

  bool holds_of_list(const std::string& key, const Json& rule, const Json& list) const {
    if (key == "minItems") return list.size() >= rule.get<std::size_t>();
    for (auto item = list.begin(); item != list.end(); ++item) {
      if (key == "items" && !accepts(rule, *item)) return false;
      if (key == "uniqueItems" && std::find(list.begin(), item, *item) != item) return false;
    }
    return true;
  }

  bool holds_of_object(const std::string& key, const Json& rule, const Json& schema,
                       const Json& object) const {
    if (key == "required") {
      return std::all_of(rule.begin(), rule.end(), [&](const Json& name) {
        return object.contains(name.get<std::string>());
      });
    }
    if (key == "dependentSchemas") {
      for (const auto& [name, dependent] : rule.items()) {
        if (object.contains(name) && !accepts(dependent, object)) return false;
      }
    }
    for (const auto& [name, member] : object.items()) {
      if (key == "properties" && rule.contains(name) && !accepts(rule.at(name), member))
        return false;
      if (key == "additionalProperties" && !schema.at("properties").contains(name)) return false;
    }
    return true;
  }

  static bool is_of_type(const std::string& type, const Json& v) {
    if (type == "object") return v.is_object();
    if (type == "array") return v.is_array();
    if (type == "string") return v.is_string();
    if (type == "boolean") return v.is_boolean();
    if (type == "number") return v.is_number();
    return v.is_number() && std::floor(v.get<double>()) == v.get<double>();
  }

  Json root_;
};

}  // namespace ballast::sim::test
