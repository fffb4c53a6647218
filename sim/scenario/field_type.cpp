#include "sim/scenario/field_type.h"

#include <algorithm>
#include <cmath>

#include "sim/text/nearest.h"

namespace ballast::sim {
namespace {

constexpr std::uint64_t any_integer = std::numeric_limits<std::uint64_t>::max();
constexpr double exact_integers = 9007199254740992.0;  // 2^53: every integer up to here is a double

bool power_of_two(double value) {
  int exponent = 0;
  return value > 0 && std::frexp(value, &exponent) == 0.5;
}

bool is_name_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
         c == '_' || c == '.';
}

bool is_name(std::string_view text) {
  return !text.empty() && text.front() != '.' &&
         std::all_of(text.begin(), text.end(), is_name_letter);
}

std::optional<std::string> wrong_kind(const Json& value, const char* wanted) {
  return show(value) + " is not " + wanted;
}

std::optional<std::string> problem_of(const Json& value, const IntegerType& type) {
  if (!value.is_number()) return wrong_kind(value, "a number");
  if (value.is_number_float()) {
    const double number = value.get<double>();
    if (number != std::floor(number)) return wrong_kind(value, "a whole number");
    if (number > exact_integers && number <= static_cast<double>(type.at_most)) {
      return show(value) + " is not written out in digits";
    }
    if (number > exact_integers) return show(value) + " is too large";
    if (number < static_cast<double>(type.at_least)) return show(value) + " is too small";
    return problem_of(Json(static_cast<std::uint64_t>(number)), type);
  }
  if (!value.is_number_unsigned() && value.get<std::int64_t>() < 0)
    return show(value) + " is negative";
  const auto number = value.get<std::uint64_t>();
  if (number < type.at_least) return show(value) + " is too small";
  if (number > type.at_most) return show(value) + " is too large";
  return std::nullopt;
}

std::optional<std::string> problem_of(const Json& value, const NumberType& type) {
  if (!value.is_number()) return wrong_kind(value, "a number");
  const double number = value.get<double>();
  if (type.at_least && number < *type.at_least) return show(value) + " is too small";
  if (type.above && number <= *type.above) return show(value) + " is too small";
  if (type.at_most && number > *type.at_most) return show(value) + " is too large";
  if (type.below && number >= *type.below) return show(value) + " is too large";
  if (type.power_of_two && !power_of_two(number)) return show(value) + " is not a power of two";
  return std::nullopt;
}

std::optional<std::string> problem_of(const Json& value, const BooleanType&) {
  if (!value.is_boolean()) return wrong_kind(value, "true or false");
  return std::nullopt;
}

std::optional<std::string> problem_of(const Json& value, const TextType& type) {
  if (!value.is_string()) return wrong_kind(value, "a string");
  const auto& text = value.get_ref<const std::string&>();
  if (type.form == TextForm::name && !is_name(text)) return show(value) + " is not a name";
  if (type.form == TextForm::not_empty && text.empty()) return "the string is empty";
  return std::nullopt;
}

std::optional<std::string> problem_of(const Json& value, const WordType& type) {
  if (!value.is_string()) return wrong_kind(value, "a string");
  const auto& given = value.get_ref<const std::string&>();
  if (std::find(type.words.begin(), type.words.end(), given) != type.words.end())
    return std::nullopt;
  const auto meant = nearest(given, type.words);
  return show(value) + " is not known" + (meant ? " (did you mean \"" + *meant + "\"?)" : "");
}

std::optional<std::string> problem_of(const Json& value, const StepsType&) {
  if (!value.is_array()) return wrong_kind(value, "a list");
  std::uint64_t last = 0;
  for (const Json& item : value) {
    if (const auto wrong = problem_of(item, IntegerType{.at_least = 1})) return wrong;
    const auto step = item.get<std::uint64_t>();
    if (step == last) return "step " + std::to_string(step) + " is there twice";
    if (step < last) {
      return "step " + std::to_string(step) + " comes after step " + std::to_string(last);
    }
    last = step;
  }
  return std::nullopt;
}

std::string digits(double value) {
  return Json(value).dump();
}

std::string text_of(const IntegerType& type) {
  const std::string low = std::to_string(type.at_least);
  if (type.at_most == any_integer) return "an integer of at least " + low;
  return "an integer from " + low + " to " + std::to_string(type.at_most);
}

std::string text_of(const NumberType& type) {
  std::vector<std::string> bounds;
  if (type.at_least) bounds.push_back("at least " + digits(*type.at_least));
  if (type.above) bounds.push_back("above " + digits(*type.above));
  if (type.at_most) bounds.push_back("at most " + digits(*type.at_most));
  if (type.below) bounds.push_back("below " + digits(*type.below));
  std::string text = type.power_of_two ? "a power of two" : "a number";
  for (std::size_t i = 0; i < bounds.size(); ++i) text += (i == 0 ? " " : " and ") + bounds[i];
  return text;
}

std::string text_of(const BooleanType&) {
  return "true or false";
}

std::string text_of(const TextType& type) {
  switch (type.form) {
    case TextForm::any:
      return "a string";
    case TextForm::not_empty:
      return "a string that is not empty";
    case TextForm::file:
      return "the name of a file";
    case TextForm::name:
      break;
  }
  return "a name of letters, digits, '-', '_' and '.', which does not begin with '.'";
}

std::string text_of(const WordType& type) {
  std::string text = type.words.size() == 1 ? "" : "one of ";
  for (std::size_t i = 0; i < type.words.size(); ++i) {
    text += (i == 0 ? "\"" : ", \"") + type.words[i] + "\"";
  }
  return text;
}

std::string text_of(const StepsType&) {
  return "a list of steps, from 1, in ascending order";
}

Json schema_of(const IntegerType& type) {
  Json out = {{"type", "integer"}, {"minimum", type.at_least}};
  if (type.at_most != any_integer) out["maximum"] = type.at_most;
  return out;
}

Json schema_of(const NumberType& type) {
  Json out = {{"type", "number"}};
  if (type.at_least) out["minimum"] = *type.at_least;
  if (type.above) out["exclusiveMinimum"] = *type.above;
  if (type.at_most) out["maximum"] = *type.at_most;
  if (type.below) out["exclusiveMaximum"] = *type.below;
  return out;
}

Json schema_of(const BooleanType&) {
  return {{"type", "boolean"}};
}

Json schema_of(const TextType& type) {
  Json out = {{"type", "string"}};
  if (type.form == TextForm::not_empty) out["minLength"] = 1;
  if (type.form == TextForm::name) out["pattern"] = "^[A-Za-z0-9_-][A-Za-z0-9._-]*$";
  return out;
}

Json schema_of(const WordType& type) {
  return {{"enum", type.words}};
}

Json schema_of(const StepsType&) {
  return {
      {"type", "array"}, {"items", schema_of(IntegerType{.at_least = 1})}, {"uniqueItems", true}};
}

}  // namespace

std::optional<std::string> problem(const Json& value, const FieldType& type) {
  return std::visit([&](const auto& t) { return problem_of(value, t); }, type);
}

std::string describe(const FieldType& type) {
  return std::visit([](const auto& t) { return text_of(t); }, type);
}

Json schema(const FieldType& type) {
  return std::visit([](const auto& t) { return schema_of(t); }, type);
}

std::string show(const Json& value) {
  constexpr std::size_t short_bytes = 60;
  if (value.is_object()) return "an object";
  if (value.is_array()) return "a list";
  const std::string text = value.dump(-1, ' ', false, Json::error_handler_t::replace);
  return text.size() <= short_bytes ? text : "a long string";
}

}  // namespace ballast::sim
