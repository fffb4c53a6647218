#include "sim/sweep/sweep_schema.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "sim/input_error.h"
#include "sim/read_file.h"
#include "sim/sweep/sweep_file.h"
#include "tests/sim/support/json_schema.h"
#include "tests/support/paths.h"

namespace ballast::sim {
namespace {

const test::JsonSchema& schema() {
  static const test::JsonSchema schema(sweep_schema());
  return schema;
}

bool is_read(const Json& sweep) {
  try {
    parse_sweep(sweep.dump(), "s.json", ".");
    return true;
  } catch (const InputError&) {
    return false;
  }
}

Json sweep() {
  return Json::parse(R"({"ballast_sweep": 1, "base": {"ballast": 1, "model": {"routed_experts": 8}},
      "axes": [{"field": "tokens.sigma", "values": [1, 2, 3]}]})");
}

Json with_axis(const std::string& axis) {
  Json json = sweep();
  json["axes"] = Json::array({Json::parse(axis)});
  return json;
}

Json with(const std::string& key, const Json& value) {
  Json json = sweep();
  json[key] = value;
  return json;
}

TEST(SweepSchema, IsTheFileThatIsShipped) {
  const std::string file = ballast::test::source_dir() + "/scenarios/sweep.schema.json";
  const std::string text = sweep_schema().dump(2) + "\n";
  if (std::getenv("BALLAST_WRITE_GENERATED")) std::ofstream(file) << text;
  EXPECT_TRUE(read_file(file, "cannot read the schema", 1 << 20) == text)
      << "run test_sim with BALLAST_WRITE_GENERATED=1";
}

TEST(SweepSchema, AcceptsWhatTheProgramReads) {
  Json random = with_axis(R"({"field": "tokens.sigma", "range": {"from": 0, "to": 4}})");
  random["mode"] = "random";
  random["budget"] = 5;
  random["sampling_seed"] = 3;
  for (const Json& json :
       {sweep(), random, with("seeds", 3), with("$schema", "sweep.schema.json"),
        with_axis(R"({"field": "model.top_k", "range": {"from": 1, "to": 4, "step": 1}})"),
        with_axis(R"({"name": "k", "field": "model.top_k", "values": [1, 2]})"),
        with_axis(R"({"field": "tokens.sigma", "log_range": {"from": 1, "to": 2, "points": 3}})"),
        with_axis(R"({"name": "b", "values": [{"label": "x", "set": {"model.top_k": 1}}]})")}) {
    EXPECT_TRUE(is_read(json)) << json;
    EXPECT_TRUE(schema().accepts(json)) << json;
  }
}

TEST(SweepSchema, RefusesWhatTheProgramRefuses) {
  Json without_axes = sweep(), without_base = sweep();
  without_axes.erase("axes");
  without_base.erase("base");
  for (const Json& json :
       {without_axes,
        without_base,
        with("ballast_sweep", 2),
        with("seed", 3),
        with("seeds", 0),
        with("mode", "grd"),
        with("budget", 5),
        with("axes", Json::array()),
        with("base", ""),
        with("base", 3),
        with_axis(R"({"values": [1]})"),
        with_axis(R"({"field": "tokens.sigma"})"),
        with_axis(R"({"field": "tokens.sigm", "values": [1]})"),
        with_axis(R"({"field": "tokens.sigma", "values": []})"),
        with_axis(R"({"field": "tokens.sigma", "values": [1, 1]})"),
        with_axis(R"({"field": "tokens.sigma", "values": [1], "range": {"from": 1, "to": 2}})"),
        with_axis(R"({"field": "tokens.sigma", "range": {"from": 1}})"),
        with_axis(R"({"field": "tokens.sigma",
                      "range": {"from": 1, "to": 2, "step": 1, "points": 2}})"),
        with_axis(R"({"field": "tokens.sigma", "log_range": {"from": 0, "to": 2, "points": 2}})"),
        with_axis(R"({"field": "tokens.sigma", "log_range": {"from": 1, "to": 2, "step": 1}})"),
        with_axis(R"({"name": "b", "range": {"from": 1, "to": 2, "points": 2}})"),
        with_axis(R"({"name": "b", "values": [1, 2]})"),
        with_axis(R"({"name": "b", "values": [{"label": "x"}]})"),
        with_axis(R"({"name": "b", "values": [{"label": "x", "set": {"model.top_q": 1}}]})"),
        with_axis(R"({"name": "b", "values": [{"label": "x", "set": {"model.top_k": 0}}]})")}) {
    EXPECT_FALSE(is_read(json)) << json;
    EXPECT_FALSE(schema().accepts(json)) << json;
  }
}

TEST(SweepSchema, AcceptsTheShippedSweeps) {
  std::size_t sweeps = 0;
  for (const auto& entry :
       std::filesystem::recursive_directory_iterator(ballast::test::source_dir() + "/scenarios")) {
    const std::string file = entry.path().string();
    if (!file.ends_with(".sweep.json")) continue;
    EXPECT_TRUE(schema().accepts(Json::parse(read_file(file, "cannot read it", 1 << 20)))) << file;
    ++sweeps;
  }
  EXPECT_GT(sweeps, 0u);
}

}  // namespace
}  // namespace ballast::sim
