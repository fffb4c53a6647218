#include "sim/recordings/field_map.h"

#include <nlohmann/json.hpp>
#include <stdexcept>

#include "sim/text/nearest.h"

namespace ballast::sim {
namespace {

const std::vector<std::string> parts = {"layer", "experts", "token", "weights", "sequence"};

std::vector<std::string> split(const std::string& text, char separator) {
  std::vector<std::string> words(1);
  for (const char character : text) {
    if (character == separator) {
      words.emplace_back();
    } else {
      words.back() += character;
    }
  }
  return words;
}

void check_field(const std::string& field) {
  if (field.empty()) throw std::invalid_argument("a field's name is empty");
  if (!field.starts_with('/')) return;
  try {
    const nlohmann::json::json_pointer pointer(field);
  } catch (const nlohmann::json::exception&) {
    throw std::invalid_argument("'" + field + "' is no JSON pointer");
  }
}

void assign(RowSchema& schema, const std::string& part, const std::string& field) {
  std::string* target = part == "layer"     ? &schema.layer
                        : part == "experts" ? &schema.experts
                        : part == "token"   ? &schema.token
                        : part == "weights" ? &schema.weights
                                            : nullptr;
  const std::vector<std::string> fields =
      target != nullptr ? std::vector{field} : split(field, '+');
  for (const std::string& one : fields) check_field(one);
  if (target == nullptr ? !schema.sequence.empty() : !target->empty()) {
    throw std::invalid_argument("'" + part + "' is named twice");
  }
  if (target != nullptr) {
    *target = field;
  } else {
    schema.sequence = fields;
  }
}

}  // namespace

RowSchema parse_field_map(const std::string& text) {
  RowSchema schema;
  for (const std::string& item : split(text, ',')) {
    const std::size_t equals = item.find('=');
    if (equals == std::string::npos)
      throw std::invalid_argument("'" + item + "' is not like layer=FIELD");
    const std::string part = item.substr(0, equals);
    if (std::find(parts.begin(), parts.end(), part) == parts.end()) {
      throw std::invalid_argument("'" + part +
                                  "' is none of layer, experts, token, weights, sequence." +
                                  did_you_mean(part, parts));
    }
    assign(schema, part, item.substr(equals + 1));
  }
  if (schema.experts.empty())
    throw std::invalid_argument("it does not say which field holds the experts");
  return schema;
}

}  // namespace ballast::sim
