#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "core/random/stream.h"
#include "sim/scenario/givens.h"
#include "sim/scenario/scenario_file.h"

namespace ballast::sim {

/// One value of an axis: what it is called in results, and which fields it sets.
struct AxisValue {
  Json label;  ///< the value of the field itself, or the label of a group of fields
  std::vector<Override> settings;
};

/// Numbers from `from` to `to`, both included.
struct AxisRange {
  double from = 0.0;
  double to = 0.0;
  std::optional<std::size_t> points = std::nullopt;
  std::optional<double> step = std::nullopt;
};

/// One direction of a sweep: fields of the scenario, and the values they take. Values of a range
/// have six significant digits, so that what is printed is what was run; those of a field that
/// takes integers are whole, and none is there twice.
class Axis {
 public:
  /// Reads an entry of "axes". Throws InputError with its place for everything that is wrong.
  Axis(const Json& entry, const Place& at);

  /// Its column in results: the field's path, unless it was given a name.
  const std::string& name() const { return name_; }
  /// The paths of all fields that it sets.
  const std::vector<std::string>& fields() const { return fields_; }
  const Place& place() const { return at_; }

  /// The values of a list, or of a range that says how many; empty for a range that only says from
  /// where to where.
  const std::vector<AxisValue>& values() const { return values_; }
  /// One of the values, each as likely; from a range without values: uniform in it, or in its
  /// logarithm. One draw (more when integers are rejected, see `uniform_index`).
  AxisValue draw(Stream& stream) const;

 private:
  void read_list(const Json& list, const Place& at);
  void read_range(const Json& range, const Place& at);
  void add_group(const Json& entry, const Place& at);
  void fill_range();
  void note_field(const std::string& path);
  Json rounded(double value) const;
  AxisValue value_of(const Json& value, const std::string& where) const;

  std::string name_;
  std::string field_;  ///< empty for an axis of groups
  std::vector<std::string> fields_;
  std::vector<AxisValue> values_;
  std::optional<AxisRange> range_;
  bool logarithmic_ = false;
  Place at_;
};

}  // namespace ballast::sim
