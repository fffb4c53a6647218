#include "sim/sweep/points.h"

#include <stdexcept>

namespace ballast::sim {
namespace {

void add(SweepPoint& point, const Axis& axis, const AxisValue& value) {
  point.axes[axis.name()] = value.label;
  point.settings.insert(point.settings.end(), value.settings.begin(), value.settings.end());
}

std::size_t count(std::span<const Axis> axes, SweepMode mode, std::size_t budget) {
  if (mode == SweepMode::random) return budget;
  if (mode == SweepMode::zip) return axes.front().values().size();
  std::size_t product = 1;
  for (const Axis& axis : axes) {
    product *= axis.values().size();
    if (product > most_points) break;
  }
  return product;
}

SweepPoint grid_point(std::span<const Axis> axes, std::size_t index) {
  std::vector<std::size_t> digits(axes.size());
  for (std::size_t a = axes.size(); a-- > 0;) {
    const std::size_t base = axes[a].values().size();
    digits[a] = index % base;
    index /= base;
  }
  SweepPoint point{.axes = Json::object(), .settings = {}};
  for (std::size_t a = 0; a < axes.size(); ++a) add(point, axes[a], axes[a].values()[digits[a]]);
  return point;
}

SweepPoint zip_point(std::span<const Axis> axes, std::size_t index) {
  SweepPoint point{.axes = Json::object(), .settings = {}};
  for (const Axis& axis : axes) add(point, axis, axis.values()[index]);
  return point;
}

SweepPoint random_point(std::span<const Axis> axes, std::size_t index, std::uint64_t seed) {
  SweepPoint point{.axes = Json::object(), .settings = {}};
  for (const Axis& axis : axes) {
    Stream stream = Stream(seed).child("sweep").child(index).child(axis.name());
    add(point, axis, axis.draw(stream));
  }
  return point;
}

}  // namespace

std::vector<SweepPoint> make_points(std::span<const Axis> axes, SweepMode mode, std::size_t budget,
                                    std::uint64_t seed) {
  const std::size_t total = count(axes, mode, budget);
  if (total > most_points) throw std::length_error("a sweep of too many points");
  std::vector<SweepPoint> points;
  points.reserve(total);
  for (std::size_t i = 0; i < total; ++i) {
    points.push_back(mode == SweepMode::grid  ? grid_point(axes, i)
                     : mode == SweepMode::zip ? zip_point(axes, i)
                                              : random_point(axes, i, seed));
  }
  return points;
}

}  // namespace ballast::sim
