#include "sim/signature/signature_json.h"

#include "core/version.h"
#include "sim/input_error.h"
#include "sim/read_file.h"
#include "sim/replay/fingerprint.h"
#include "sim/scenario/json_text.h"

namespace ballast::sim {
namespace {

constexpr int signature_format = 1;
constexpr std::size_t most_bytes = std::size_t{1} << 30;
constexpr const char* what = "cannot read the signature";

Json entry_json(const SignatureEntry& entry) {
  Json json;
  const SignaturePlace& place = entry.place;
  if (!place.run.empty()) json["run"] = place.run;
  if (place.step) json["step"] = *place.step;
  if (place.layer) json["layer"] = *place.layer;
  json["stage"] = place.stage;
  json["digest"] = entry.digest;
  return json;
}

std::optional<std::size_t> optional_count(const Json& entry, const char* key) {
  const auto found = entry.find(key);
  return found == entry.end() ? std::nullopt : std::optional(found->get<std::size_t>());
}

SignatureEntry entry_of(const Json& json) {
  return {.place = {.stage = json.at("stage").get<std::string>(),
                    .run = json.value("run", ""),
                    .step = optional_count(json, "step"),
                    .layer = optional_count(json, "layer")},
          .digest = json.at("digest").get<std::string>()};
}

}  // namespace

Json signature_json(const Signature& signature, bool entries) {
  Json json = {{"ballast_signature", signature_format},
               {"version", version},
               {"numerics", numerics_fingerprint()},
               {"signature", digest_of(signature)}};
  if (!entries) return json;
  json["entries"] = Json::array();
  for (const SignatureEntry& entry : signature) json["entries"].push_back(entry_json(entry));
  return json;
}

Signature load_signature(const std::string& file) {
  const Json json = parse_json(read_file(file, what, most_bytes), file);
  const auto refuse = [&](const std::string& why) {
    throw InputError({.what = what,
                      .where = file,
                      .why = why,
                      .right = "name what 'ballast signature --explain --json' has printed"});
  };
  if (!json.is_object() || json.value("ballast_signature", Json()) != signature_format)
    refuse("the file is none");
  if (!json.contains("entries")) refuse("it is one digest alone");
  Signature signature;
  try {
    for (const Json& entry : json["entries"]) signature.push_back(entry_of(entry));
  } catch (const Json::exception&) {
    refuse("entry " + std::to_string(signature.size()) + " is damaged");
  }
  return signature;
}

}  // namespace ballast::sim
