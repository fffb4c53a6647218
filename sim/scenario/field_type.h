#pragma once

#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace ballast::sim {

/// Keeps members in the order of the file, so that what is written reads as what was read.
using Json = nlohmann::ordered_json;

/// A whole number. 8, 8.0 and 8e0 are the same number, as in JSON Schema; 8.5 is none.
struct IntegerType {
  std::uint64_t at_least = 0;
  std::uint64_t at_most = std::numeric_limits<std::uint64_t>::max();
};

struct NumberType {
  std::optional<double> at_least = std::nullopt;
  std::optional<double> above = std::nullopt;
  std::optional<double> at_most = std::nullopt;
  std::optional<double> below = std::nullopt;
  bool power_of_two = false;
};

struct BooleanType {};

/// A name can be part of a file name. A file that is relative, and named in a file, is looked for
/// in that file's folder.
enum class TextForm { any, not_empty, name, file };

struct TextType {
  TextForm form = TextForm::any;
};

/// One of a few words.
struct WordType {
  std::vector<std::string> words;
};

/// Steps, counted from 1, in ascending order.
struct StepsType {};

using FieldType = std::variant<IntegerType, NumberType, BooleanType, TextType, WordType, StepsType>;

/// Why a value is none of this type ("0 is too small"), or nothing when it is one.
std::optional<std::string> problem(const Json& value, const FieldType& type);
/// What a value has to be: "an integer from 1 to 4096".
std::string describe(const FieldType& type);
/// The same as a JSON Schema.
Json schema(const FieldType& type);

/// A value for an error line: itself when it is short, otherwise its kind.
std::string show(const Json& value);

}  // namespace ballast::sim
