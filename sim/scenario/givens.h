#pragma once

#include <algorithm>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "sim/input_error.h"
#include "sim/scenario/field.h"
#include "sim/scenario/json_text.h"

namespace ballast::sim {

/// Who said it; a later one has the last word.
enum class Speaker { file, variant, override };

/// A value that somebody gave for a field, and where.
struct Given {
  Json value;
  std::string where;  ///< "skew.json#/model/top_k" or "--set model.top_k"
  Speaker speaker = Speaker::file;
};

/// Given values by the path of their field: a document laid flat, so that overrides are plain
/// assignments.
using Givens = std::map<std::string, Given, std::less<>>;

/// The object at `pointer` of the document `origin`.
struct Place {
  std::string origin;
  std::string pointer;
  Speaker speaker = Speaker::file;

  std::string text() const { return place(origin, pointer); }
  std::string of(std::string_view key) const { return place(origin, pointer_to(pointer, key)); }
  Place in(std::string_view key) const { return {origin, pointer_to(pointer, key), speaker}; }
  Place in(std::size_t index) const { return {origin, pointer_to(pointer, index), speaker}; }
};

/// Lays an object flat. `also` are keys of the object itself that are no fields and are left out.
/// Throws InputError for a key that is no field (naming the nearest), and for a group that is no
/// object.
Givens flatten(const Json& object, const Place& at, const std::vector<std::string>& paths,
               const std::vector<std::string>& also = {});

/// The error for a path that is no field: a group of fields, or unknown, with the nearest right
/// one.
InputError unknown_path(std::string_view path, const std::string& where,
                        const std::vector<std::string>& paths);

InputError bad_value(std::string_view path, const Given& given, const std::string& why,
                     const FieldType& type);

template <class Settings>
std::vector<std::string> paths_of(const std::vector<Field<Settings>>& fields) {
  std::vector<std::string> paths;
  for (const auto& field : fields) paths.push_back(field.path);
  return paths;
}

/// The word in force for a field: the given one, or its default.
template <class Settings>
std::string word_in_force(const std::vector<Field<Settings>>& fields, const std::string& path,
                          const Givens& givens) {
  const auto given = givens.find(path);
  if (given != givens.end()) return given->second.value.get<std::string>();
  return find_field(fields, path)->get(Settings{}).template get<std::string>();
}

/// The first condition of a field, its condition's field included, that does not hold; or null.
template <class Settings>
const Condition* broken_condition(const std::vector<Field<Settings>>& fields,
                                  const Field<Settings>& field, const Givens& givens) {
  if (!field.only_with) return nullptr;
  const Condition& condition = *field.only_with;
  if (const auto* outer = broken_condition(fields, *find_field(fields, condition.path), givens)) {
    return outer;
  }
  const std::string word = word_in_force(fields, condition.path, givens);
  const auto& words = condition.words;
  return std::find(words.begin(), words.end(), word) == words.end() ? &condition : nullptr;
}

InputError foreign_field(std::string_view path, const Given& given, const Condition& condition,
                         const std::string& word);

/// The settings that the given values make, with the defaults for all others. Throws InputError for
/// a value that its field does not take, and for a field that means nothing beside the others.
template <class Settings>
Settings read_fields(const std::vector<Field<Settings>>& fields, const Givens& givens) {
  for (const auto& [path, given] : givens) {
    const auto& type = find_field(fields, path)->type;
    if (const auto wrong = problem(given.value, type)) throw bad_value(path, given, *wrong, type);
  }
  Settings settings;
  for (const auto& field : fields) {
    const auto given = givens.find(field.path);
    if (given == givens.end()) continue;
    if (const auto* broken = broken_condition(fields, field, givens)) {
      throw foreign_field(field.path, given->second, *broken,
                          word_in_force(fields, broken->path, givens));
    }
    field.assign(settings, given->second.value);
  }
  return settings;
}

/// `givens` with the values of `overrides` in place of its own. What it gave for fields that mean
/// nothing any more (tokens.sigma, once tokens.source is "text") falls away.
template <class Settings>
Givens overridden(const std::vector<Field<Settings>>& fields, Givens givens,
                  const Givens& overrides) {
  for (const auto& [path, given] : overrides) {
    const auto& type = find_field(fields, path)->type;
    if (const auto wrong = problem(given.value, type)) throw bad_value(path, given, *wrong, type);
    givens.insert_or_assign(path, given);
  }
  const Givens merged = givens;
  std::erase_if(givens, [&](const auto& entry) {
    return !overrides.contains(entry.first) &&
           broken_condition(fields, *find_field(fields, entry.first), merged) != nullptr;
  });
  return givens;
}

/// Every field with its value, as nested objects; fields that mean nothing beside the others are
/// left out.
template <class Settings>
Json write_fields(const std::vector<Field<Settings>>& fields, const Settings& settings);

/// Sets the member at a dotted path, making the objects on the way.
void put(Json& object, std::string_view path, Json value);

template <class Settings>
Givens all_words(const std::vector<Field<Settings>>& fields, const Settings& settings) {
  Givens givens;
  for (const auto& field : fields) {
    if (std::holds_alternative<WordType>(field.type))
      givens[field.path].value = field.get(settings);
  }
  return givens;
}

template <class Settings>
Json write_fields(const std::vector<Field<Settings>>& fields, const Settings& settings) {
  const Givens words = all_words(fields, settings);
  Json out = Json::object();
  for (const auto& field : fields) {
    if (broken_condition(fields, field, words)) continue;
    Json value = field.get(settings);
    if (!value.is_null()) put(out, field.path, std::move(value));
  }
  return out;
}

}  // namespace ballast::sim
