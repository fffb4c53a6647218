#pragma once

#include <concepts>
#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "sim/scenario/field_type.h"
#include "sim/scenario/words.h"

namespace ballast::sim {

/// A field that means something only while another one holds one of these words.
struct Condition {
  std::string path;
  std::vector<std::string> words;
};

/// One field of a scenario file and the member of `Settings` that holds it. Everything that is
/// known of a field is here: reading, checking, writing, the JSON Schema, overrides and the
/// reference come from it. The default is what a default-constructed `Settings` holds.
template <class Settings>
struct Field {
  std::string path;  ///< "model.top_k"
  FieldType type;
  std::string meaning;                                 ///< one sentence
  std::function<void(Settings&, const Json&)> assign;  ///< the value has no `problem`
  std::function<Json(const Settings&)> get;            ///< null when an optional is empty
  std::optional<Condition> only_with = std::nullopt;

  Field when(std::string other, std::vector<std::string> words) && {
    only_with = Condition{std::move(other), std::move(words)};
    return std::move(*this);
  }
};

namespace binding {

template <class T>
requires std::is_enum_v<T> WordType all_words() {
  return {.words = {words_of<T>.begin(), words_of<T>.end()}};
}

template <class T>
requires(std::integral<T> || std::floating_point<T>) void read(const Json& value, T& member) {
  member = value.get<T>();
}

inline void read(const Json& value, std::string& member) {
  member = value.get<std::string>();
}

inline void read(const Json& value, std::vector<std::size_t>& member) {
  member = value.get<std::vector<std::size_t>>();
}

template <class T>
requires std::is_enum_v<T>
void read(const Json& value, T& member) {
  const auto& given = value.get_ref<const std::string&>();
  for (std::size_t i = 0; i < words_of<T>.size(); ++i) {
    if (words_of<T>[i] == given) member = static_cast<T>(i);
  }
}

template <class T>
void read(const Json& value, std::optional<T>& member) {
  read(value, member.emplace());
}

template <class T>
Json write(const T& member) {
  if constexpr (std::is_enum_v<T>) {
    return Json(std::string(word(member)));
  } else {
    return Json(member);
  }
}

template <class T>
Json write(const std::optional<T>& member) {
  return member ? write(*member) : Json(nullptr);
}

}  // namespace binding

/// `member` gives the member of a `Settings&` or `const Settings&`.
template <class Settings, class Member>
Field<Settings> bind_field(std::string path, Member member, FieldType type, std::string meaning) {
  return {.path = std::move(path),
          .type = std::move(type),
          .meaning = std::move(meaning),
          .assign = [member](Settings& settings,
                             const Json& value) { binding::read(value, member(settings)); },
          .get = [member](const Settings& settings) { return binding::write(member(settings)); }};
}

/// The same for an enumeration, whose type says which words there are.
template <class Settings, class Member>
requires std::is_enum_v<std::remove_cvref_t<std::invoke_result_t<Member, Settings&>>>
    Field<Settings> bind_field(std::string path, Member member, std::string meaning) {
  using Enum = std::remove_cvref_t<std::invoke_result_t<Member, Settings&>>;
  return bind_field<Settings>(std::move(path), member, binding::all_words<Enum>(),
                              std::move(meaning));
}

/// The field of this path, or null.
template <class Settings>
const Field<Settings>* find_field(const std::vector<Field<Settings>>& fields,
                                  std::string_view path) {
  for (const auto& field : fields) {
    if (field.path == path) return &field;
  }
  return nullptr;
}

}  // namespace ballast::sim
