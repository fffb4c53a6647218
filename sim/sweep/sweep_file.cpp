#include "sim/sweep/sweep_file.h"

#include <filesystem>
#include <map>

#include "core/version.h"
#include "sim/digest.h"
#include "sim/input_error.h"
#include "sim/read_file.h"
#include "sim/scenario/fields.h"
#include "sim/scenario/files.h"
#include "sim/scenario/givens.h"
#include "sim/sweep/columns.h"
#include "sim/sweep/sweep_fields.h"

namespace ballast::sim {

namespace {

constexpr std::size_t max_file_bytes = std::size_t{16} << 20;

[[noreturn]] void refuse(const std::string& what, const std::string& where, const std::string& why,
                         const std::string& right) {
  throw InputError({.what = what, .where = where, .why = why, .right = right});
}

/// Before anything else, so that another kind of file is told at once.
void check_format(const Json& document, const Place& root) {
  if (!document.is_object()) {
    refuse("the file is no sweep", root.text(), show(document) + " is not an object",
           "begin it with {\"ballast_sweep\": 1, ...");
  }
  if (!document.contains("ballast_sweep")) {
    refuse("'ballast_sweep' is missing", root.text(), "it is required",
           "begin the file with {\"ballast_sweep\": 1, ...");
  }
  const IntegerType format{.at_least = sweep_format, .at_most = sweep_format};
  const Json& given = document.at("ballast_sweep");
  if (!problem(given, format)) return;
  refuse("bad value of 'ballast_sweep'", root.of("ballast_sweep"),
         show(given) + " is no format this program reads",
         "give the number " + std::to_string(sweep_format));
}

/// The base scenario as the sweep file gives it.
class Base {
 public:
  Base(const Json& document, const Place& root, const std::string& folder) {
    const auto found = document.find("base");
    if (found == document.end()) {
      refuse("'base' is missing", root.text(), "it is required",
             "name a scenario file, or give a scenario");
    }
    if (found->is_object()) {
      scenario_ = *found;
      origin_ = root.origin;
      pointer_ = root.in("base").pointer;
    } else if (found->is_string()) {
      origin_ = (std::filesystem::path(folder) / found->get<std::string>()).string();
      scenario_ =
          parse_json(read_file(origin_, "cannot read the base scenario", max_file_bytes), origin_);
    } else {
      refuse("bad value of 'base'", root.of("base"), show(*found) + " is no scenario",
             "name a scenario file, or give a scenario");
    }
  }

  Scenario with(std::span<const Override> settings) const {
    const ScenarioFile file = read_scenario(scenario_, origin_, pointer_, settings);
    if (!file.variants.empty()) {
      refuse("the base has variants", place(origin_, pointer_ + "/variants"),
             "a sweep compares settings by its axes",
             "make them an axis: its values set the fields that the variants set");
    }
    return file.common;
  }

 private:
  Json scenario_;
  std::string origin_, pointer_;
};

std::vector<Axis> read_axes(const Json& document, const Place& root) {
  const auto found = document.find("axes");
  if (found == document.end() || !found->is_array() || found->empty()) {
    refuse(found == document.end() ? "'axes' is missing" : "bad value of 'axes'", root.of("axes"),
           "a sweep goes along at least one axis",
           R"(give a list like [{"field": "tokens.sigma", "values": [1, 2, 3]}])");
  }
  std::vector<Axis> axes;
  for (const Json& entry : *found) axes.emplace_back(entry, root.in("axes").in(axes.size()));
  return axes;
}

/// Nothing is set by two axes, or by an axis and something else.
void check_fields(const std::vector<Axis>& axes, std::span<const Override> overrides) {
  std::map<std::string, std::string> names, owners;
  for (const Axis& axis : axes) {
    if (!names.emplace(axis.name(), "").second) {
      refuse("bad axis '" + axis.name() + "'", axis.place().text(), "another axis is called so too",
             "give each axis a name of its own");
    }
    for (const std::string& field : axis.fields()) {
      if (field == "seed") {
        refuse("bad axis '" + axis.name() + "'", axis.place().text(), "it sets the seed",
               "say by 'seeds' how many runs each point has");
      }
      const auto [owner, is_new] = owners.emplace(field, axis.name());
      if (is_new) continue;
      refuse("bad axis '" + axis.name() + "'", axis.place().text(),
             "it sets " + field + ", and axis '" + owner->second + "' sets it too",
             "let one axis set it");
    }
  }
  for (const Override& each : overrides) {
    const auto owner = owners.find(each.path);
    if (owner == owners.end()) continue;
    refuse("cannot set '" + each.path + "'", each.where,
           "axis '" + owner->second + "' of the sweep sets it", "leave it out");
  }
}

void check_values(const std::vector<Axis>& axes, SweepMode mode) {
  if (mode == SweepMode::random) return;
  for (const Axis& axis : axes) {
    if (axis.values().empty()) {
      refuse("bad range of axis '" + axis.name() + "'", axis.place().text(),
             "it does not say how many values there are", "give 'points' or 'step' in it");
    }
    const Axis& first = axes.front();
    if (mode == SweepMode::zip && axis.values().size() != first.values().size()) {
      refuse("axis '" + axis.name() + "' cannot be zipped", axis.place().text(),
             "it has " + std::to_string(axis.values().size()) + " values, and axis '" +
                 first.name() + "' has " + std::to_string(first.values().size()),
             "give all axes equally many, or set mode to \"grid\"");
    }
  }
}

std::vector<SweepPoint> points_of(const std::vector<Axis>& axes, const SweepSettings& settings,
                                  const Place& root) {
  try {
    return make_points(axes, settings.mode, settings.budget, settings.sampling_seed);
  } catch (const std::length_error&) {
    refuse("the sweep is too large", root.of("axes"),
           "the grid has more than " + std::to_string(most_points) + " points",
           "take values out, or set mode to \"random\" with a budget");
  }
}

std::variant<Scenario, Impossible> scenario_at(const SweepPoint& point, const Base& base,
                                               std::span<const Override> overrides) {
  std::vector<Override> settings(overrides.begin(), overrides.end());
  settings.insert(settings.end(), point.settings.begin(), point.settings.end());
  try {
    return base.with(settings);
  } catch (const InputError& error) {
    return Impossible{error.what()};
  }
}

void add_scenarios(Sweep& sweep, const Base& base, std::span<const Override> overrides,
                   const Place& root) {
  bool any = false;
  for (const SweepPoint& point : sweep.points) {
    sweep.scenarios.push_back(scenario_at(point, base, overrides));
    any = any || std::holds_alternative<Scenario>(sweep.scenarios.back());
  }
  if (any) return;
  refuse("no point of the sweep can be run", root.of("axes"),
         "of the first: " + std::get<Impossible>(sweep.scenarios.front()).reason, "");
}

std::string scenarios_digest(const Sweep& sweep) {
  Digest digest;
  const auto add_text = [&](const std::string& text) { digest.add(std::span<const char>(text)); };
  for (std::size_t i = 0; i < sweep.points.size(); ++i) {
    add_text(sweep.points[i].axes.dump());
    const auto* scenario = std::get_if<Scenario>(&sweep.scenarios[i]);
    add_text(scenario ? to_json(*scenario).dump() : "");
    if (scenario) add_text(content_digest(files_of(*scenario)));
  }
  return digest.hex();
}

}  // namespace

Sweep parse_sweep(std::string_view text, const std::string& origin, const std::string& folder,
                  std::span<const Override> overrides) {
  const Json document = parse_json(text, origin);
  const Place root{origin, "", Speaker::file};
  check_format(document, root);
  const Givens givens = flatten(document, root, paths_of(sweep_fields()),
                                {"$schema", "ballast_sweep", "base", "axes"});
  const SweepSettings settings = read_fields(sweep_fields(), givens);
  const Base base(document, root, folder);
  const std::vector<Axis> axes = read_axes(document, root);
  check_fields(axes, overrides);
  check_values(axes, settings.mode);

  Sweep sweep{.name = settings.name,
              .description = settings.description,
              .origin = origin,
              .base = base.with(overrides),
              .axes = {},
              .points = points_of(axes, settings, root),
              .scenarios = {},
              .seeds = settings.seeds};
  for (const Axis& axis : axes) sweep.axes.push_back(axis.name());
  add_scenarios(sweep, base, overrides, root);
  return sweep;
}

Sweep load_sweep(const std::string& file, std::span<const Override> overrides) {
  return parse_sweep(read_file(file, "cannot read the sweep", max_file_bytes), file,
                     std::filesystem::path(file).parent_path().string(), overrides);
}

Json identity_of(const Sweep& sweep) {
  Json columns = Json::array();
  for (const RunColumn& column : run_columns()) columns.push_back(column.name);
  return {{"ballast_sweep", sweep_format},
          {"version", version},
          {"name", sweep.name},
          {"axes", sweep.axes},
          {"points", sweep.points.size()},
          {"seeds", sweep.seeds},
          {"columns", std::move(columns)},
          {"base", to_json(sweep.base)},
          {"scenarios", scenarios_digest(sweep)}};
}

}  // namespace ballast::sim
