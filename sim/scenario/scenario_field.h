#pragma once

#include <string>
#include <utility>

#include "sim/scenario/field.h"
#include "sim/scenario/scenario.h"

/// What the lists of a scenario's fields are written with.
namespace ballast::sim {

/// Ranges that fields have in common.
namespace range {
inline constexpr IntegerType count{.at_least = 0, .at_most = 1'000'000'000};
inline constexpr IntegerType positive_count{.at_least = 1, .at_most = 1'000'000'000};
inline constexpr NumberType finite{};
// What ends in fp32 arithmetic has bounds far inside its range.
inline constexpr NumberType moderate{.at_least = -1e6, .at_most = 1e6};
inline constexpr NumberType positive{.above = 0.0, .at_most = 1e6};
inline constexpr NumberType not_negative{.at_least = 0.0, .at_most = 1e6};
inline constexpr NumberType below_one{.at_least = 0.0, .below = 1.0};
inline constexpr NumberType probability{.at_least = 0.0, .at_most = 1.0};
}  // namespace range

/// The field that `member` finds in a scenario.
template <class Member>
Field<Scenario> field(std::string path, Member member, FieldType type, std::string meaning) {
  return bind_field<Scenario>(std::move(path), member, std::move(type), std::move(meaning));
}
/// The same, of the type that the member's own type says: a word, or true and false.
template <class Member>
Field<Scenario> field(std::string path, Member member, std::string meaning) {
  return bind_field<Scenario>(std::move(path), member, std::move(meaning));
}

}  // namespace ballast::sim
