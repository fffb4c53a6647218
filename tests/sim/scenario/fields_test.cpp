#include "sim/scenario/fields.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <cmath>
#include <set>

#include "sim/scenario/givens.h"
#include "tests/sim/scenario/data_files.h"

namespace ballast::sim {
namespace {

/// Generates values of a field's type, its bounds included.
struct Values {
  rc::Gen<Json> operator()(const IntegerType& t) const {
    const auto range = t.at_most - t.at_least;
    return rc::gen::map(rc::gen::arbitrary<std::uint64_t>(), [=](std::uint64_t x) {
      return Json(
          range == std::numeric_limits<std::uint64_t>::max() ? x : t.at_least + x % (range + 1));
    });
  }
  rc::Gen<Json> operator()(const NumberType& t) const {
    const double low = t.at_least.value_or(t.above.value_or(-1e300));
    const double high = t.at_most.value_or(t.below.value_or(1e300));
    if (t.power_of_two) {
      return rc::gen::map(rc::gen::inRange(-60, 60),
                          [](int e) { return Json(std::ldexp(1.0, e)); });
    }
    return rc::gen::map(rc::gen::inRange<std::int64_t>(1, 1LL << 53), [=](std::int64_t x) {
      const double share = static_cast<double>(x) / static_cast<double>(1LL << 53);
      return Json(low + share * (high - low));
    });
  }
  rc::Gen<Json> operator()(const BooleanType&) const {
    return rc::gen::map(rc::gen::arbitrary<bool>(), [](bool b) { return Json(b); });
  }
  rc::Gen<Json> operator()(const TextType&) const {
    return rc::gen::map(
        rc::gen::nonEmpty(rc::gen::container<std::string>(rc::gen::inRange('a', 'z'))),
        [](std::string s) { return Json(s); });
  }
  rc::Gen<Json> operator()(const WordType& t) const {
    return rc::gen::map(rc::gen::elementOf(t.words), [](std::string s) { return Json(s); });
  }
  rc::Gen<Json> operator()(const StepsType&) const {
    return rc::gen::map(rc::gen::arbitrary<std::set<std::uint32_t>>(),
                        [](std::set<std::uint32_t> steps) {
                          Json list = Json::array();
                          for (const auto step : steps) list.push_back(std::uint64_t{1} + step);
                          return list;
                        });
  }
};

/// A value for every field that has a meaning beside the others.
template <class Settings>
Givens draw_givens(const std::vector<Field<Settings>>& fields) {
  Givens givens;
  for (const auto& field : fields) {
    if (std::holds_alternative<WordType>(field.type)) {
      givens[field.path].value = *std::visit(Values{}, field.type);
    }
  }
  const Givens words = givens;
  for (const auto& field : fields) {
    if (broken_condition(fields, field, words)) {
      givens.erase(field.path);
    } else if (!words.contains(field.path)) {
      givens[field.path].value = *std::visit(Values{}, field.type);
    }
  }
  return givens;
}

template <class Settings>
void each_field_holds_its_own_value(const std::vector<Field<Settings>>& fields) {
  const Givens givens = draw_givens(fields);
  const Settings settings = read_fields(fields, givens);
  for (const auto& [path, given] : givens) {
    RC_ASSERT(find_field(fields, path)->get(settings) == given.value);
  }
}

template <class Settings>
void what_is_written_reads_back_exactly(const std::vector<Field<Settings>>& fields) {
  const Json written = write_fields(fields, read_fields(fields, draw_givens(fields)));
  const Json parsed = parse_json(written.dump(), "written");
  RC_ASSERT(parsed == written);
  const Givens again = flatten(parsed, {"written", ""}, paths_of(fields));
  RC_ASSERT(write_fields(fields, read_fields(fields, again)) == written);
}

RC_GTEST_PROP(ScenarioFields, EachHoldsItsOwnValue, ()) {
  each_field_holds_its_own_value(scenario_fields());
  each_field_holds_its_own_value(expectation_fields());
  each_field_holds_its_own_value(variant_fields());
}

RC_GTEST_PROP(ScenarioFields, WhatIsWrittenReadsBackExactly, ()) {
  what_is_written_reads_back_exactly(scenario_fields());
  what_is_written_reads_back_exactly(expectation_fields());
  what_is_written_reads_back_exactly(variant_fields());
}

TEST(ScenarioFields, HaveDefaultsInTheirOwnRange) {
  for (const auto& field : scenario_fields()) {
    EXPECT_FALSE(problem(field.get(Scenario{}), field.type)) << field.path;
  }
}

TEST(ScenarioFields, HavePathsOfTheirOwnAndAWordAboutThem) {
  std::set<std::string> paths;
  for (const auto& field : scenario_fields()) {
    EXPECT_TRUE(paths.insert(field.path).second) << field.path;
    EXPECT_TRUE(field.meaning.ends_with('.')) << field.path;
  }
}

TEST(ScenarioFields, DependOnlyOnFieldsThatExistInTheSameGroupOrAboveAll) {
  for (const auto& field : scenario_fields()) {
    if (!field.only_with) continue;
    const auto* other = find_field(scenario_fields(), field.only_with->path);
    ASSERT_NE(other, nullptr) << field.path;
    const bool above_all = other->path.find('.') == std::string::npos;
    EXPECT_TRUE(above_all || other->path.substr(0, other->path.rfind('.')) ==
                                 field.path.substr(0, field.path.rfind('.')))
        << field.path;
    for (const auto& word : field.only_with->words) EXPECT_FALSE(problem(Json(word), other->type));
  }
}

}  // namespace
}  // namespace ballast::sim
