#include "sim/scenario/files.h"

#include <filesystem>

#include "sim/digest.h"
#include "sim/input_error.h"
#include "sim/read_file.h"
#include "sim/scenario/fields.h"

namespace ballast::sim {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t max_file_bytes = std::size_t{1} << 30;

bool is_file(const FieldType& type) {
  const auto* text = std::get_if<TextType>(&type);
  return text != nullptr && text->form == TextForm::file;
}

}  // namespace

Json resolved(const FieldType& type, Json value, const std::string& folder) {
  if (!is_file(type) || !value.is_string() || value == "") return value;
  return fs::absolute(fs::path(folder) / value.get<std::string>()).lexically_normal().string();
}

void resolve_files(Givens& givens, const std::string& folder) {
  for (auto& [path, given] : givens) {
    given.value = resolved(find_field(scenario_fields(), path)->type, given.value, folder);
  }
}

std::string folder_of(const std::string& file) {
  return fs::path(file).parent_path().string();
}

std::vector<std::string> files_of(const Scenario& scenario) {
  const Givens words = all_words(scenario_fields(), scenario);
  std::vector<std::string> files;
  const auto add = [&](const Json& value) {
    if (value.is_string() && value != "") files.push_back(value.get<std::string>());
  };
  for (const auto& field : scenario_fields()) {
    if (!is_file(field.type)) continue;
    if (!broken_condition(scenario_fields(), field, words)) add(field.get(scenario));
    for (const ScheduleEntry& entry : scenario.schedule) {
      if (const auto set = entry.set.find(field.path); set != entry.set.end())
        add(Json::parse(set->second));
    }
  }
  return files;
}

std::string content_digest(const std::vector<std::string>& files) {
  if (files.empty()) return "";
  Digest digest;
  for (const std::string& file : files) {
    try {
      const std::string text = read_file(file, "", max_file_bytes);
      digest.add(std::span<const char>(text));
    } catch (const InputError&) {
      digest.add(std::span<const char>());  // whoever reads it says so
    }
  }
  return digest.hex();
}

}  // namespace ballast::sim
