#include "sim/command/stats.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "sim/text/printable.h"
#include "tests/sim/command/run_stats.h"
#include "tests/sim/recordings/temporary_file.h"
#include "tests/support/paths.h"

namespace ballast::sim {
namespace {

using nlohmann::json;
using Counts = std::vector<std::int64_t>;

std::string sample(const std::string& name) {
  return test::source_dir() + "/tests/data/recordings/" + name;
}

std::string read(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

json problem(const json& file, const std::string& kind) {
  for (const json& entry : file["problems"]) {
    if (entry["kind"] == kind) return entry;
  }
  return nullptr;
}

/// Runs the rest of a test in the samples' folder, so that outputs name files by their names alone.
class InSampleFolder {
 public:
  InSampleFolder() { std::filesystem::current_path(test::source_dir() + "/tests/data/recordings"); }
  ~InSampleFolder() { std::filesystem::current_path(before_); }
  InSampleFolder(const InSampleFolder&) = delete;
  InSampleFolder& operator=(const InSampleFolder&) = delete;

 private:
  std::filesystem::path before_ = std::filesystem::current_path();
};

// Shape

TEST(Stats, JsonHasTheStatedShape) {
  const json files = stats_files({sample("rows.jsonl"), sample("loads.csv")});
  ASSERT_EQ(files.size(), 4u);
  for (const json& file : files) {
    EXPECT_TRUE(file["file"].is_string());
    EXPECT_TRUE(file["problems"].is_array());
    for (const char* key :
         {"e_frac_with_tokens:mean", "e_frac_oversubscribed:mean", "e_max_violation:mean",
          "e_max_violation:max", "e_min_violation:mean"}) {
      EXPECT_TRUE(file["metrics"][key].is_number()) << key;
    }
    EXPECT_EQ(file["metrics"].size(), 5u);
    for (const json& layer : file["layers"]) {
      for (const char* key : {"layer", "experts", "top_k", "tokens", "assignments"}) {
        EXPECT_TRUE(layer[key].is_number_integer()) << key;
      }
      for (const char* key :
           {"frac_with_tokens", "frac_oversubscribed", "max_violation", "min_violation"}) {
        EXPECT_TRUE(layer[key].is_number()) << key;
      }
      EXPECT_EQ(layer["counts"].size(), layer["experts"].get<std::size_t>());
    }
  }
}

TEST(Stats, CountsRowsByLayer) {
  const json file = stats_files({sample("rows.jsonl")})[0];
  EXPECT_TRUE(file["problems"].empty()) << file["problems"];
  ASSERT_EQ(file["layers"].size(), 2u);
  EXPECT_EQ(file["layers"][0]["counts"].get<Counts>(), (Counts{1, 3, 4, 2}));
  EXPECT_EQ(file["layers"][1]["counts"].get<Counts>(), (Counts{2, 3, 2, 3}));
  EXPECT_EQ(file["layers"][0]["tokens"], 5);
  EXPECT_EQ(file["layers"][0]["max_violation"], 0.6);  // (4 - 2.5) / 2.5
}

TEST(Stats, TakesTheNumberOfExpertsFromMetaFromTheOptionOrFromTheIds) {
  EXPECT_EQ(stats_files({sample("routes.jsonl")})[0]["experts"], 6);
  EXPECT_EQ(stats_files({"--experts", "9", sample("rows.jsonl")})[0]["experts"], 9);
  const json inferred = stats_files({sample("rows.jsonl")})[0];
  EXPECT_EQ(inferred["experts"], 4);
  EXPECT_EQ(inferred["notes"].size(), 1u);
}

TEST(Stats, TheTableFitsEightyColumnsAndHasNoEscapes) {
  for (const char* name : {"rows.jsonl", "routes.jsonl", "faulty.jsonl", "loads.csv",
                           "selections.json", "load.json"}) {
    const InSampleFolder here;
    const Outcome outcome = run_stats({name});
    EXPECT_EQ(outcome.code, ExitCode::pass);
    EXPECT_EQ(outcome.out.find('\x1b'), std::string::npos);
    std::istringstream lines(outcome.out);
    for (std::string line; std::getline(lines, line);) EXPECT_LE(display_width(line), 80u) << line;
  }
}

TEST(Stats, TheTableIsAsApproved) {
  const InSampleFolder here;
  EXPECT_EQ(run_stats({"routes.jsonl"}).out,
            "routes.jsonl: meta and route rows, 6 experts, top 2\n"
            "layer  tokens    used    over  max viol  min viol  max/mean  sorted loads\n"
            "0          24  0.8333  0.3333    1.7500   -1.0000    2.7500  ██▂▁▁·\n"
            "mean           0.8333  0.3333    1.7500   -1.0000\n"
            "max                              1.7500\n"
            "  problem: 20 identical rows at the front of layer 0, lines 2 to 21: a warm-up;\n"
            "  counted (--skip-warmup leaves them out)\n");
}

TEST(Stats, HelpFitsEightyColumns) {
  const Outcome outcome = run_stats({"--help"});
  EXPECT_EQ(outcome.code, ExitCode::pass);
  std::istringstream lines(outcome.out);
  for (std::string line; std::getline(lines, line);) EXPECT_LE(display_width(line), 80u) << line;
  for (const char* option :
       {"--json", "--map", "--experts", "--top-k", "--layer", "--skip-warmup"}) {
    EXPECT_NE(outcome.out.find(option), std::string::npos) << option;
  }
}

// Problems

TEST(Stats, EveryFaultIsNamedWithItsLineAndNotCounted) {
  const json file = stats_files({"--experts", "4", sample("faulty.jsonl")})[0];
  const std::vector<std::pair<std::string, std::int64_t>> expected = {
      {"blank_line", 2},         {"expert_out_of_range", 3}, {"repeated_expert", 4},
      {"wrong_expert_count", 5}, {"weight_count", 6},        {"weight_sum", 7},
      {"not_json", 8},           {"bad_field", 9},           {"duplicate_record", 11},
      {"token_goes_back", 12},   {"unknown_record", 13},     {"truncated_line", 15}};
  for (const auto& [kind, line] : expected) {
    const json found = problem(file, kind);
    ASSERT_FALSE(found.is_null()) << kind << ": " << file["problems"].dump(1);
    EXPECT_EQ(found["count"], 1) << kind;
    EXPECT_EQ(found["lines"], json({line})) << kind;
    EXPECT_EQ(found["counted"], kind == "weight_sum" || kind == "token_goes_back") << kind;
    EXPECT_NE(found["message"].get<std::string>().find("line " + std::to_string(line)),
              std::string::npos)
        << found["message"];
  }
  EXPECT_EQ(file["problems"].size(), expected.size());
  // Lines 1, 7, 10 and 12.
  EXPECT_EQ(file["layers"][0]["tokens"], 4);
  EXPECT_EQ(file["layers"][0]["counts"].get<Counts>(), (Counts{2, 2, 2, 2}));
}

TEST(Stats, WarmUpIsLeftOutOnRequest) {
  const json with = stats_files({sample("routes.jsonl")})[0];
  EXPECT_EQ(with["layers"][0]["counts"].get<Counts>(), (Counts{3, 22, 2, 20, 1, 0}));
  const json without = stats_files({"--skip-warmup", sample("routes.jsonl")})[0];
  EXPECT_EQ(without["layers"][0]["counts"].get<Counts>(), (Counts{3, 2, 2, 0, 1, 0}));
  EXPECT_EQ(without["layers"][0]["tokens"], 4);
  EXPECT_EQ(problem(without, "warm_up")["counted"], false);
}

TEST(Stats, AnAppendedCopyOfALogCountsOnce) {
  const std::string log = read(sample("rows.jsonl"));
  const TemporaryFile twice(log + log);
  const json file = stats_files({twice.path()})[0];
  EXPECT_EQ(file["layers"], stats_files({sample("rows.jsonl")})[0]["layers"]);
  EXPECT_EQ(problem(file, "duplicate_record")["count"], 10);
}

TEST(Stats, AnAppendedCopyWithItsWarmUpCountsOnceToo) {
  const std::string log = read(sample("routes.jsonl"));
  const TemporaryFile twice(log + log);
  const json file = stats_files({twice.path()})[0];
  EXPECT_EQ(file["layers"], stats_files({sample("routes.jsonl")})[0]["layers"]);
  EXPECT_EQ(problem(file, "repeated_meta")["lines"], json({26}));
  EXPECT_EQ(problem(file, "duplicate_record")["count"], 24);
}

TEST(Stats, AnotherPassOverTheSameTokensCountsInFull) {
  std::string log;
  for (const int expert :
       {0, 1, 2, 0, 1, 3}) {  // two passes of three tokens that differ in the last
    static int token = 0;
    log += json{{"layer", 0}, {"experts", {expert}}, {"token_idx", token++ % 3}}.dump() + "\n";
  }
  const TemporaryFile passes(log);
  const json file = stats_files({passes.path()})[0];
  EXPECT_EQ(file["layers"][0]["counts"].get<Counts>(), (Counts{2, 2, 1, 1}));
  EXPECT_EQ(kinds(file), std::vector<std::string>{"token_goes_back"});
  EXPECT_EQ(file["problems"][0]["lines"], json({4}));
}

TEST(Stats, MissingCellsAreNamed) {
  std::string log;
  for (int layer = 0; layer < 2; ++layer) {
    for (int token = 0; token < 5; ++token) {
      if (layer == 1 && (token == 2 || token == 3)) continue;
      log += json{{"layer", layer}, {"experts", {token % 3}}, {"token_idx", token}}.dump() + "\n";
    }
  }
  const TemporaryFile gap(log);
  const json file = stats_files({gap.path()})[0];
  const json found = problem(file, "missing_cells");
  EXPECT_EQ(found["count"], 2);
  EXPECT_EQ(found["lines"], json({8}));
  EXPECT_EQ(
      found["message"],
      "2 of 10 (layer, token) cells missing: layer 1 has 3 of 5 tokens (to line 8); the first gap: "
      "layer 1, tokens 2 to 3, before line 8");
}

TEST(Stats, AFaultyRowIsNotAMissingCell) {
  const json file = stats_files({"--experts", "4", sample("faulty.jsonl")})[0];
  EXPECT_TRUE(problem(file, "missing_cells").is_null());
}

TEST(Stats, WindowsLineEndsAndAByteOrderMarkChangeNothing) {
  std::string log = read(sample("rows.jsonl"));
  for (std::size_t at = 0; (at = log.find('\n', at)) != std::string::npos; at += 2)
    log.replace(at, 1, "\r\n");
  const TemporaryFile windows("\xEF\xBB\xBF" + log);
  json file = stats_files({windows.path()})[0];
  json expected = stats_files({sample("rows.jsonl")})[0];
  file.erase("file");
  expected.erase("file");
  EXPECT_EQ(file, expected);
}

// Other formats

TEST(Stats, ReadsOtherJsonLinesByAMap) {
  const TemporaryFile log(
      "{\"l\": \"blocks.0\", \"moe\": {\"e\": 2}, \"t\": 0}\n"
      "{\"l\": \"blocks.0\", \"moe\": {\"e\": 0}, \"t\": 1}\n"
      "{\"l\": \"blocks.1\", \"moe\": {\"e\": 1}, \"t\": 0}\n"
      "{\"l\": \"blocks.1\", \"moe\": {\"e\": 1}, \"t\": 1}\n");
  const json file = stats_files({"--map", "layer=l,experts=/moe/e,token=t", log.path()})[0];
  EXPECT_EQ(file["layers"][0]["layer"], "blocks.0");
  EXPECT_EQ(file["layers"][0]["counts"].get<Counts>(), (Counts{1, 0, 1}));
  EXPECT_EQ(file["layers"][1]["counts"].get<Counts>(), (Counts{0, 2, 0}));
  EXPECT_TRUE(file["problems"].empty());
}

TEST(Stats, ReadsLoadTables) {
  const json files = stats_files({sample("loads.csv")});
  std::vector<std::string> traces;
  for (const json& file : files) traces.push_back(file["trace"]);
  EXPECT_EQ(traces, (std::vector<std::string>{"own/prose", "own/prose#top1", "own/code"}));
  EXPECT_EQ(files[0]["layers"][1]["layer"], 5);
  EXPECT_EQ(files[0]["layers"][1]["counts"].get<Counts>(), (Counts{4, 4, 3, 1}));
  EXPECT_EQ(files[0]["layers"][1]["tokens"], 6);
  EXPECT_EQ(files[1]["top_k"], 1);
  EXPECT_EQ(files[1]["layers"][0]["counts"].get<Counts>(), (Counts{4, 1, 1, 0}));
}

TEST(Stats, SumsLoadTablesOverTokens) {
  const json file = stats_files({"--top-k", "2", sample("token_loads.csv")})[0];
  EXPECT_EQ(file["layers"][0]["counts"].get<Counts>(), (Counts{3, 1, 2}));
  EXPECT_EQ(file["layers"][0]["tokens"], 3);
  EXPECT_TRUE(stats_files({sample("token_loads.csv")})[0]["layers"][0]["tokens"].is_null());
}

TEST(Stats, ALoadTableNamesItsFaultyRows) {
  const TemporaryFile table(
      "layer,num_experts,top_k,expert,count\n"
      "0,4,2,0,3\n0,4,2,1,3\n0,4,2,4,9\n0,4,2,0,9\n0,4,2,x,9\n0,4,2,2,-1\n0,4\n0,5,2,2,9\n",
      ".csv");
  const json file = stats_files({table.path()})[0];
  EXPECT_EQ(file["layers"][0]["counts"].get<Counts>(), (Counts{3, 3, 0, 0}));
  EXPECT_EQ(problem(file, "expert_out_of_range")["lines"], json({4}));
  EXPECT_EQ(problem(file, "duplicate_record")["lines"], json({5}));
}

TEST(Stats, ALoadAboveTheNumberOfTokensIsNoRouting) {
  const TemporaryFile table("layer,num_experts,top_k,expert,count\n0,2,2,0,4\n0,2,2,1,1\n", ".csv");
  EXPECT_EQ(kinds(stats_files({table.path()})[0]), std::vector<std::string>{"uneven_load"});
}

TEST(Stats, ReadsSelectionsAndLoadMatrices) {
  const json selections = stats_files({sample("selections.json")})[0];
  EXPECT_EQ(selections["layers"][0]["counts"].get<Counts>(), (Counts{2, 1, 0, 0}));
  EXPECT_EQ(selections["layers"][1]["counts"].get<Counts>(), (Counts{0, 0, 1, 2}));
  const json loads = stats_files({sample("load.json")})[0];
  EXPECT_EQ(loads["layers"][1]["counts"].get<Counts>(), (Counts{9, 0, 0}));
  EXPECT_TRUE(loads["layers"][1]["tokens"].is_null());
  EXPECT_EQ(loads["layers"][1]["max_violation"], 2.0);
}

// Exit codes

TEST(Stats, AFileWithoutAssignmentsIsUnknown) {
  for (const std::string content :
       {"", "\n\n", "{\"type\": \"meta\", \"num_experts\": 4, \"top_k\": 2}\n"}) {
    const TemporaryFile file(content);
    const Outcome outcome = run_stats({"--json", file.path()});
    EXPECT_EQ(outcome.code, ExitCode::unknown) << content;
    EXPECT_TRUE(json::parse(outcome.out)["files"][0]["metrics"]["e_max_violation:max"].is_null());
    EXPECT_EQ(run_stats({file.path()}).code, ExitCode::unknown);
  }
}

TEST(Stats, ALayerThatIsNotThereIsUnknownAndOneThatIsStandsAlone) {
  const Outcome absent = run_stats({"--json", "--layer", "7", sample("rows.jsonl")});
  EXPECT_EQ(absent.code, ExitCode::unknown);
  const json file = stats_files({"--layer", "1", sample("rows.jsonl")})[0];
  ASSERT_EQ(file["layers"].size(), 1u);
  EXPECT_EQ(file["metrics"]["e_max_violation:mean"], file["layers"][0]["max_violation"]);
}

TEST(Stats, ACommandLineThatMakesNoSenseIsAUsageError) {
  const std::vector<std::vector<std::string>> misuses = {{},
                                                         {"--json"},
                                                         {"--experts", "0", "f"},
                                                         {"--experts", "100000000000", "f"},
                                                         {"--experts", "many", "f"},
                                                         {"--top-k", "3", "--experts", "2", "f"},
                                                         {"--map", "layer=l", "f"},
                                                         {"--map", "experts", "f"},
                                                         {"--map", "expert=e", "f"},
                                                         {"--map", "experts=", "f"},
                                                         {"--map", "experts=/a~b", "f"},
                                                         {"--map", "experts=a,experts=b", "f"},
                                                         {"--frobnicate", "f"}};
  for (const auto& arguments : misuses) {
    const Outcome outcome = run_stats(arguments);
    EXPECT_EQ(outcome.code, ExitCode::usage) << json(arguments);
    EXPECT_EQ(outcome.out, "");
    EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1) << outcome.err;
  }
}

TEST(Stats, AFileThatCannotBeReadIsOneLineThatNamesIt) {
  const TemporaryFile prose("This is no recording.\n"), other("{\"step\": 1}\n", ".other"),
      cut("{\"layer\": 0, \"exp", ".cut"), two("{\"load\": [[1]]}\n{\"load\": [[1]]}\n", ".two"),
      ragged("{\"load\": [[1, 2], [3]]}", ".ragged"), negative("{\"load\": [[-1]]}", ".negative"),
      huge("{\"load\": [[9007199254740992, 1]]}", ".huge"),
      metas("{\"type\": \"meta\", \"num_experts\": 4}\n{\"type\": \"meta\", \"num_experts\": 8}\n",
            ".metas"),
      meta("{\"type\": \"meta\", \"num_experts\": \"4\"}\n", ".meta"),
      columns("a,b\n1,2\n", ".columns");
  for (const std::string& path :
       {std::string("no/such/file"), test::source_dir(), sample("pointer.jsonl"),
        prose.path(), other.path(), cut.path(), two.path(), ragged.path(), negative.path(),
        huge.path(), metas.path(), meta.path(), columns.path()}) {
    const Outcome outcome = run_stats({sample("rows.jsonl"), path});
    EXPECT_EQ(outcome.code, ExitCode::bad_input) << path;
    EXPECT_EQ(outcome.out, "") << path;
    EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1) << outcome.err;
    EXPECT_NE(outcome.err.find(path), std::string::npos) << outcome.err;
  }
}

TEST(Stats, AWrongFieldNameGetsTheNearestRightOne) {
  const Outcome outcome = run_stats({"--map", "experts=expert", sample("rows.jsonl")});
  EXPECT_EQ(outcome.code, ExitCode::bad_input);
  EXPECT_NE(outcome.err.find("Did you mean 'experts'?"), std::string::npos) << outcome.err;
}

TEST(Stats, AWrongLayerFieldEndsBeforeMemoryDoes) {
  std::string log;
  for (int i = 0; i < 2000; ++i)
    log += "{\"layer\": " + std::to_string(i) + ", \"experts\": [0]}\n";
  const TemporaryFile file(log);
  EXPECT_EQ(run_stats({file.path()}).code, ExitCode::bad_input);
}

TEST(Stats, ADamagedFileNeverDoesWorseThanAnErrorLine) {
  for (const char* name :
       {"rows.jsonl", "routes.jsonl", "loads.csv", "selections.json", "load.json"}) {
    const std::string sound = read(sample(name)).substr(0, 1500);
    for (std::size_t i = 0; i < sound.size(); i += 7) {
      std::string flipped = sound;
      flipped[i] = static_cast<char>(flipped[i] ^ (1 << (i % 8)));
      for (const std::string& damaged : {sound.substr(0, i), flipped}) {
        const TemporaryFile file(damaged);
        const ExitCode code = run_stats({"--json", file.path()}).code;
        EXPECT_TRUE(code == ExitCode::pass || code == ExitCode::unknown ||
                    code == ExitCode::bad_input)
            << name << " at byte " << i << ": exit " << static_cast<int>(code);
      }
    }
  }
}

}  // namespace
}  // namespace ballast::sim
