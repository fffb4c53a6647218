#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "tests/support/paths.h"

#include "core/metrics/load_metrics.h"

namespace ballast {
namespace {

using Row = std::map<std::string, std::string>;
using LayerKey = std::pair<std::string, std::string>;  // trace, layer

const std::filesystem::path data = test::shared_data_dir();

std::vector<std::string> cells(const std::string& line) {
  std::vector<std::string> out;
  std::istringstream stream(line);
  for (std::string cell; std::getline(stream, cell, ',');) out.push_back(cell);
  return out;
}

std::vector<Row> read_csv(const std::filesystem::path& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  const auto names = cells(line);
  std::vector<Row> rows;
  while (std::getline(file, line)) {
    const auto values = cells(line);
    Row& row = rows.emplace_back();
    for (std::size_t i = 0; i < values.size(); ++i) row[names[i]] = values[i];
  }
  return rows;
}

/// Loads per trace and layer; the trace of the highest-scoring expert alone is called `#top1`.
std::map<LayerKey, std::vector<std::int64_t>> recorded_loads() {
  std::map<LayerKey, std::vector<std::int64_t>> loads;
  for (const Row& row : read_csv(data / "olmoe-expert-counts/expert_counts.csv")) {
    const std::string trace = row.at("model") + "/" + row.at("domain");
    loads[{trace, row.at("layer")}].push_back(std::stoll(row.at("count_topk")));
    const auto top1 = row.find("count_top1");
    if (top1 != row.end() && !top1->second.empty()) {
      loads[{trace + "#top1", row.at("layer")}].push_back(std::stoll(top1->second));
    }
  }
  return loads;
}

TEST(LoadMetrics, AgreeWithIndependentFiguresOfRealModels) {
  if (!std::filesystem::exists(data)) {
    GTEST_SKIP() << "no recorded loads at " << data << "; they are not part of the project";
  }
  const auto loads = recorded_loads();
  std::size_t layers = 0;
  for (const Row& row : read_csv(data / "figures_per_layer.csv")) {
    const auto found = loads.find({row.at("trace"), row.at("layer")});
    if (found == loads.end()) continue;
    ++layers;
    const auto m = load_metrics(found->second).value();
    const std::map<std::string, double> figures = {
        {"max_over_mean", m.max_over_mean},
        {"frac_with_tokens", m.frac_with_tokens},
        {"frac_oversubscribed", m.frac_oversubscribed},
        {"max_violation", m.max_violation},
        {"min_violation", m.min_violation},
        {"cv", m.load_cv},
        {"entropy_norm", m.entropy_normalised},
        {"gini", m.gini},
    };
    for (const auto& [name, value] : figures) {
      EXPECT_NEAR(value, std::stod(row.at(name)), 5.001e-7)
          << row.at("trace") << " layer " << row.at("layer") << " " << name;
    }
  }
  EXPECT_EQ(layers, loads.size());
}

}  // namespace
}  // namespace ballast
