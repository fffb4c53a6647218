#include "sim/scenario/givens.h"

#include <algorithm>

#include "sim/text/nearest.h"

namespace ballast::sim {
namespace {

bool is_in(const std::vector<std::string>& list, std::string_view item) {
  return std::find(list.begin(), list.end(), item) != list.end();
}

std::string joined(std::string_view prefix, std::string_view key) {
  std::string path(prefix);
  if (!path.empty()) path += '.';
  return path.append(key);
}

bool is_group(const std::vector<std::string>& paths, std::string_view path) {
  const std::string prefix = joined(path, "");
  return std::any_of(paths.begin(), paths.end(),
                     [&](const std::string& field) { return field.starts_with(prefix); });
}

/// The keys that the group `prefix` has.
std::vector<std::string> keys_of(const std::vector<std::string>& paths, const std::string& prefix) {
  std::vector<std::string> keys;
  const std::string start = joined(prefix, "");
  for (const std::string& path : paths) {
    if (!path.starts_with(start)) continue;
    std::string key = path.substr(start.size(), path.find('.', start.size()) - start.size());
    if (!is_in(keys, key)) keys.push_back(std::move(key));
  }
  return keys;
}

/// The nearest key of the group; or else the field elsewhere whose own name is nearest.
std::optional<std::string> meant(const std::string& key, const std::vector<std::string>& keys,
                                 const std::vector<std::string>& paths) {
  if (auto found = nearest(key, keys)) return found;
  std::vector<std::string> leaves;
  for (const std::string& path : paths) leaves.push_back(path.substr(path.rfind('.') + 1));
  const auto leaf = nearest(key, leaves);
  if (!leaf) return std::nullopt;
  return paths[static_cast<std::size_t>(std::find(leaves.begin(), leaves.end(), *leaf) -
                                        leaves.begin())];
}

std::string list(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text.append(text.empty() ? "" : ", ").append(word);
  return text;
}

std::string right_key(const std::string& key, const std::vector<std::string>& keys,
                      const std::vector<std::string>& paths) {
  if (is_in(paths, key)) return "write a dotted path as objects inside each other";
  const auto right = meant(key, keys, paths);
  return right ? "did you mean '" + *right + "'?" : "there are " + list(keys);
}

InputError unknown_key(const std::string& key, const std::string& prefix, const Place& at,
                       const std::vector<std::string>& paths,
                       const std::vector<std::string>& also) {
  std::vector<std::string> keys = keys_of(paths, prefix);
  if (prefix.empty()) keys.insert(keys.end(), also.begin(), also.end());
  return InputError({.what = "unknown key '" + key + "'",
                     .where = at.of(key),
                     .why = "there is no such field here",
                     .right = right_key(key, keys, paths)});
}

class Flattener {
 public:
  Flattener(const std::vector<std::string>& paths, const std::vector<std::string>& also)
      : paths_(paths), also_(also) {}

  void flatten(const Json& object, const std::string& prefix, const Place& at) {
    if (!object.is_object()) {
      throw InputError({.what = prefix.empty() ? "bad entry" : "bad value of '" + prefix + "'",
                        .where = at.text(),
                        .why = show(object) + " is not an object",
                        .right = "give an object with some of " + list(keys_of(paths_, prefix))});
    }
    for (const auto& [key, value] : object.items()) member(key, value, prefix, at);
  }

  Givens givens;

 private:
  void member(const std::string& key, const Json& value, const std::string& prefix,
              const Place& at) {
    const std::string path = joined(prefix, key);
    const bool plain = key.find('.') == std::string::npos;
    if (plain && is_in(paths_, path)) {
      givens[path] = {value, at.of(key), at.speaker};
    } else if (plain && is_group(paths_, path)) {
      flatten(value, path, at.in(key));
    } else if (!prefix.empty() || !is_in(also_, key)) {
      throw unknown_key(key, prefix, at, paths_, also_);
    }
  }

  const std::vector<std::string>& paths_;
  const std::vector<std::string>& also_;
};

}  // namespace

Givens flatten(const Json& object, const Place& at, const std::vector<std::string>& paths,
               const std::vector<std::string>& also) {
  Flattener flattener(paths, also);
  flattener.flatten(object, "", at);
  return std::move(flattener.givens);
}

InputError unknown_path(std::string_view path, const std::string& where,
                        const std::vector<std::string>& paths) {
  const std::string name(path);
  if (is_group(paths, path)) {
    return InputError({.what = "cannot set '" + name + "' as a whole",
                       .where = where,
                       .why = "it is a group of fields",
                       .right = "name one of " + list(keys_of(paths, name)) + " in it"});
  }
  const auto right = meant(name, paths, paths);
  return InputError({.what = "unknown field '" + name + "'",
                     .where = where,
                     .why = "a scenario has no such field",
                     .right = right ? "did you mean '" + *right + "'?"
                                    : "a field has a path like 'training.steps'"});
}

InputError bad_value(std::string_view path, const Given& given, const std::string& why,
                     const FieldType& type) {
  return InputError({.what = "bad value of '" + std::string(path) + "'",
                     .where = given.where,
                     .why = why,
                     .right = "give " + describe(type)});
}

InputError foreign_field(std::string_view path, const Given& given, const Condition& condition,
                         const std::string& word) {
  std::string words;
  for (const std::string& each : condition.words) {
    if (!words.empty()) words += " or ";
    words.append("\"").append(each).append("\"");
  }
  return InputError({.what = "useless value of '" + std::string(path) + "'",
                     .where = given.where,
                     .why = "it belongs to " + condition.path + " " + words + ", and " +
                            condition.path + " is \"" + word + "\"",
                     .right = "remove it, or set " + condition.path});
}

void put(Json& object, std::string_view path, Json value) {
  const auto dot = path.find('.');
  Json& member = object[std::string(path.substr(0, dot))];
  if (dot == std::string_view::npos) {
    member = std::move(value);
  } else {
    put(member, path.substr(dot + 1), std::move(value));
  }
}

}  // namespace ballast::sim
