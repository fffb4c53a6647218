#include "sim/sweep/axis.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "core/arithmetic/functions.h"
#include "core/random/distributions.h"
#include "sim/scenario/fields.h"
#include "sim/scenario/files.h"
#include "sim/sweep/sweep_fields.h"
#include "sim/text/numbers.h"

namespace ballast::sim {
namespace {

constexpr std::size_t most_values = 100'000;

[[noreturn]] void refuse(const std::string& what, const std::string& where, const std::string& why,
                         const std::string& right) {
  throw InputError({.what = what, .where = where, .why = why, .right = right});
}

const Field<Scenario>& field_at(const std::string& path, const std::string& where) {
  if (const auto* field = find_field(scenario_fields(), path)) return *field;
  throw unknown_path(path, where, paths_of(scenario_fields()));
}

/// `file` is that of the sweep.
Override setting(const std::string& path, const Json& value, const std::string& where,
                 const std::string& file) {
  const auto& type = field_at(path, where).type;
  if (const auto wrong = problem(value, type)) {
    throw bad_value(path, Given{value, where, Speaker::override}, *wrong, type);
  }
  return {.path = path, .value = resolved(type, value, folder_of(file)).dump(), .where = where};
}

bool is_number(const FieldType& type) {
  return std::holds_alternative<IntegerType>(type) || std::holds_alternative<NumberType>(type);
}

double six_digits(double value) {
  const std::string text = significant(value, 6);
  double rounded = value;
  std::from_chars(text.data(), text.data() + text.size(), rounded);
  return rounded;
}

/// The value at a share of the way, 0 to 1, along the range or along its logarithm.
double along(const AxisRange& range, bool logarithmic, double share) {
  if (!logarithmic) return range.from + share * (range.to - range.from);
  const double first = arithmetic::log(range.from), last = arithmetic::log(range.to);
  return arithmetic::exp(first + share * (last - first));
}

std::size_t value_count(const AxisRange& range) {
  if (range.points) return *range.points;
  // A step that goes into the range up to rounding reaches its end.
  return static_cast<std::size_t>(std::floor((range.to - range.from) / *range.step + 1e-9)) + 1;
}

}  // namespace

Axis::Axis(const Json& entry, const Place& at) : at_(at) {
  const std::vector<std::string> content = {"values", "range", "log_range"};
  const Givens givens = flatten(entry, at, paths_of(heading_fields()), content);
  const AxisHeading heading = read_fields(heading_fields(), givens);
  if (heading.field.empty() && heading.name.empty()) {
    refuse("the axis sets no field", at.text(), "it has neither 'field' nor 'name'",
           "give 'field', or 'name' and 'values' that set several fields together");
  }
  field_ = heading.field;
  name_ = heading.name.empty() ? heading.field : heading.name;
  if (!field_.empty()) {
    field_at(field_, at.of("field"));
    note_field(field_);
  }
  const auto given =
      std::ranges::count_if(content, [&](const std::string& key) { return entry.contains(key); });
  if (given != 1) {
    refuse("bad axis '" + name_ + "'", at.text(),
           given == 0 ? "it has no values" : "it says more than once what its values are",
           "give one of 'values', 'range' and 'log_range'");
  }
  logarithmic_ = entry.contains("log_range");
  if (entry.contains("values")) {
    read_list(entry.at("values"), at.in("values"));
  } else {
    const std::string key = logarithmic_ ? "log_range" : "range";
    read_range(entry.at(key), at.in(key));
  }
}

void Axis::note_field(const std::string& path) {
  if (std::ranges::find(fields_, path) == fields_.end()) fields_.push_back(path);
}

AxisValue Axis::value_of(const Json& value, const std::string& where) const {
  return {.label = value, .settings = {setting(field_, value, where, at_.origin)}};
}

void Axis::read_list(const Json& list, const Place& at) {
  if (!list.is_array() || list.empty()) {
    refuse("bad values of axis '" + name_ + "'", at.text(),
           list.is_array() ? "the list is empty" : show(list) + " is not a list",
           field_.empty()
               ? R"(give a list like [{"label": "off", "set": {"balancer.kind": "none"}}])"
               : "give a list of values of " + field_);
  }
  for (std::size_t i = 0; i < list.size(); ++i) {
    const Place here = at.in(i);
    if (field_.empty()) {
      add_group(list[i], here);
    } else {
      values_.push_back(value_of(list[i], here.text()));
    }
    for (std::size_t before = 0; before < i; ++before) {
      if (values_[before].label != values_[i].label) continue;
      refuse("bad values of axis '" + name_ + "'", here.text(),
             show(values_[i].label) + " is there twice", "remove one of them");
    }
  }
}

void Axis::add_group(const Json& entry, const Place& at) {
  const Givens givens = flatten(entry, at, paths_of(group_fields()), {"set"});
  const AxisGroup group = read_fields(group_fields(), givens);
  const auto set = entry.find("set");
  if (group.label.empty() || set == entry.end() || !set->is_object()) {
    refuse("bad value of axis '" + name_ + "'", at.text(),
           group.label.empty() ? "it has no label" : "it sets no fields",
           R"(give it as {"label": "off", "set": {"balancer.kind": "none"}})");
  }
  AxisValue value{.label = group.label, .settings = {}};
  for (const auto& [path, each] : set->items()) {
    value.settings.push_back(setting(path, each, at.in("set").of(path), at.origin));
    note_field(path);
  }
  values_.push_back(std::move(value));
}

void Axis::read_range(const Json& object, const Place& at) {
  const Givens givens = flatten(object, at, paths_of(range_fields()));
  const AxisRange range = read_fields(range_fields(), givens);
  if (field_.empty() || !is_number(field_at(field_, at.text()).type)) {
    refuse(
        "bad axis '" + name_ + "'", at.text(),
        field_.empty() ? "only a field can take numbers of a range" : field_ + " takes no numbers",
        "give 'values'");
  }
  for (const char* key : {"from", "to"}) {
    if (!object.contains(key))
      refuse("'" + std::string(key) + "' is missing", at.text(), "it is required", "");
    setting(field_, object.at(key), at.of(key), at.origin);
  }
  if (range.from >= range.to) {
    refuse("bad range of axis '" + name_ + "'", at.of("to"),
           "to (" + show(object.at("to")) + ") is not above from (" + show(object.at("from")) + ")",
           "");
  }
  if (logarithmic_ && range.from <= 0.0) {
    refuse("bad range of axis '" + name_ + "'", at.of("from"),
           show(object.at("from")) + " has no logarithm", "begin above 0, or give a 'range'");
  }
  if (range.points && range.step) {
    refuse("bad range of axis '" + name_ + "'", at.of("step"), "points and step are both given",
           "leave one of them out");
  }
  if (logarithmic_ && range.step) {
    refuse("bad range of axis '" + name_ + "'", at.of("step"),
           "steps of a logarithmic range are no equal ones", "give 'points'");
  }
  if (range.step && (range.to - range.from) / *range.step > static_cast<double>(most_values)) {
    refuse("bad range of axis '" + name_ + "'", at.of("step"),
           "it makes more than " + std::to_string(most_values) + " values", "make it larger");
  }
  range_ = range;
  if (range.points || range.step) fill_range();
}

void Axis::fill_range() {
  const std::size_t count = value_count(*range_);
  for (std::size_t i = 0; i < count; ++i) {
    const double value =
        range_->step
            ? range_->from + static_cast<double>(i) * *range_->step
            : along(*range_, logarithmic_, static_cast<double>(i) / static_cast<double>(count - 1));
    AxisValue next = value_of(rounded(value), at_.text());
    if (values_.empty() || values_.back().label != next.label) values_.push_back(std::move(next));
  }
}

Json Axis::rounded(double value) const {
  const double inside = std::clamp(six_digits(value), range_->from, range_->to);
  const bool whole =
      std::holds_alternative<IntegerType>(find_field(scenario_fields(), field_)->type);
  return whole ? Json(static_cast<std::uint64_t>(std::floor(inside + 0.5))) : Json(inside);
}

AxisValue Axis::draw(Stream& stream) const {
  if (!values_.empty()) {
    return values_[static_cast<std::size_t>(uniform_index(stream, values_.size()))];
  }
  return value_of(rounded(along(*range_, logarithmic_, uniform(stream))), at_.text());
}

}  // namespace ballast::sim
