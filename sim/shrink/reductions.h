#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "sim/scenario/field_type.h"
#include "sim/scenario/scenario.h"

/// How a scenario becomes smaller, one field at a time. Fields are those of the registry, so that a
/// new one is reduced without further work.
namespace ballast::sim {

/// A field that says how large something is, and its least value.
struct SizeField {
  std::string path;
  std::uint64_t least = 1;
};

/// Fields of size that have an effect in this scenario, those that save most time first.
std::vector<SizeField> size_fields(const Scenario& scenario);
std::uint64_t size_of(const Scenario& scenario, const SizeField& field);
/// The scenario with another size. With other steps, everything that is said in steps goes along in
/// proportion: faults, evaluations, checkpoints, and the steps that expectations are about, where
/// those that leave out the beginning still do.
Scenario with_size(const Scenario& scenario, const SizeField& field, std::uint64_t size);

/// A simpler value for a field that is no size.
struct Simplification {
  std::string path;
  Json from, to;
  Scenario scenario;  ///< with it
};

/// For each field that has an effect and differs from its default: the default; for lists of steps
/// also each list with one step less. Kind and estimator of the balancer stay: they are part of why
/// it fails.
std::vector<Simplification> simplifications(const Scenario& scenario);

/// The scenario with the defaults of all fields that have no effect beside the others, such as
/// balancer.bins without a balancer. Its run is the same to the bit.
Scenario without_idle_fields(const Scenario& scenario);

/// Whether a smaller scenario may be run in place of `original`: its values go together, and its
/// loads still mean something. With few tokens for each expert, chance alone makes loads uneven and
/// leaves experts idle; so the fair load stays at 8 assignments of a layer and step at least, or at
/// what it was. With tokens that are all alike every router is uneven; so the vocabulary stays at
/// two tokens an expert at least, or at what it was.
bool is_sound(const Scenario& smaller, const Scenario& original);

}  // namespace ballast::sim
