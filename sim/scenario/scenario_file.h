#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sim/scenario/field_type.h"
#include "sim/scenario/scenario.h"

namespace ballast::sim {

/// The scenario file with some of its fields set otherwise.
struct Variant {
  std::string name;
  std::string description;
  Json set;                         ///< what it sets, by dotted path: {"balancer.kind": "none"}
  std::vector<Expectation> expect;  ///< its own, which are judged beside the common ones
  Scenario scenario;                ///< complete: the run to make
};

/// What a scenario file says.
struct ScenarioFile {
  Scenario common;  ///< without what variants set
  std::vector<Variant> variants;
};

/// A field set from outside, over what the file and its variants say: `--set training.steps=50`.
struct Override {
  std::string path;
  std::string
      value;  ///< JSON; what is none, and all that is given for a field of text, is a string
  std::string where;  ///< for errors: "--set training.steps"
};

/// "training.steps=50" taken apart; nothing when there is no '=' or nothing before it.
std::optional<Override> parse_override(std::string_view assignment);

/// Reads the text of a scenario file; `origin` names it in errors. Absent fields have their
/// defaults. An override has the last word, over variants too; fields that mean nothing any more
/// beside what an override or a variant sets fall away. Throws InputError for everything that is
/// wrong (see contradictions.h for values that do not go together); memory is another question (see
/// memory.h).
ScenarioFile parse_scenario(std::string_view text, std::string_view origin,
                            std::span<const Override> overrides = {});
/// The same for a scenario inside another document, at this JSON pointer of it.
ScenarioFile read_scenario(const Json& scenario, std::string_view origin, std::string_view pointer,
                           std::span<const Override> overrides = {});
/// The same for a file on disk, of at most 16 MiB.
ScenarioFile load_scenario(const std::string& file, std::span<const Override> overrides = {});

/// The runs to make: one for each variant, in their order, with the variant's name (and
/// description, if it has one); without variants the common one alone.
std::vector<Scenario> expand(const ScenarioFile& file);

/// The resolved scenario: every default filled in, in the order of the registry. Reading it again
/// gives the same scenario to the bit.
Json to_json(const Scenario& scenario);
Json to_json(const ScenarioFile& file);

}  // namespace ballast::sim
