#include "sim/command/report.h"

#include <algorithm>

#include "tests/sim/command/run_command.h"

namespace ballast::sim {
namespace {

using nlohmann::json;
using Names = std::vector<std::string>;

/// What is wrong with the nesting of the page's elements; empty when it is well-formed.
std::string fault_of(const std::string& page) {
  std::vector<std::string> open;
  for (std::size_t at = page.find("<html"); at != std::string::npos; at = page.find('<', at + 1)) {
    const std::size_t end = page.find('>', at);
    if (end == std::string::npos) return "a tag does not end";
    const std::string tag = page.substr(at + 1, end - at - 1);
    if (tag.find('<') != std::string::npos) return "a tag in a tag: " + tag;
    if (std::count(tag.begin(), tag.end(), '"') % 2 != 0) return "an open quote: " + tag;
    if (tag.ends_with('/')) continue;
    if (!tag.starts_with('/')) {
      open.push_back(tag.substr(0, tag.find(' ')));
      continue;
    }
    if (open.empty() || "/" + open.back() != tag) return "not open: " + tag;
    open.pop_back();
  }
  return open.empty() ? "" : "not closed: " + open.back();
}

class ReportCommand : public RunCommandTest {
 protected:
  static RunOutcome report_outcome(const Names& arguments) {
    return command({"report", "", report}, arguments);
  }
  void run_to(const std::string& name, const json& scenario) const {
    write("scenario.json", scenario.dump());
    ASSERT_EQ(run_command({path("scenario.json"), "--out", path(name)}).code, ExitCode::pass);
  }
  /// The page about these results.
  std::string page_of(const std::string& name, const std::string& file = "page.html") const {
    const RunOutcome outcome = report_outcome({path(name), "--out", path(file)});
    EXPECT_EQ(outcome.code, ExitCode::pass) << outcome.err;
    return read(file);
  }
  void expect_refused(const std::string& name, const std::string& place) const {
    const RunOutcome outcome = report_outcome({path(name), "--out", path("none.html")});
    EXPECT_EQ(outcome.code, ExitCode::bad_input);
    EXPECT_NE(outcome.err.find(place), std::string::npos) << outcome.err;
    EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1);
    EXPECT_FALSE(std::filesystem::exists(path("none.html")));
  }
};

TEST_F(ReportCommand, WritesOneWellFormedPageIntoTheResults) {
  run_to("results", tiny());
  const RunOutcome outcome = report_outcome({path("results"), "--json"});
  EXPECT_EQ(outcome.code, ExitCode::pass);
  const std::string page = read("results/report.html");
  EXPECT_EQ(fault_of(page), "");
  EXPECT_EQ(outcome.json().at("bytes"), page.size());
  EXPECT_EQ(outcome.json().at("verdict"), "pass");
}

TEST_F(ReportCommand, NeedsNothingFromOutsideAndNamesNoPlaceOfTheMachine) {
  run_to("results", tiny_variants());
  const std::string page = page_of("results");
  for (const std::string text : {"http", "<script", "url(", "@import", "src=", root_.c_str()})
    EXPECT_EQ(page.find(text), std::string::npos) << text;
}

TEST_F(ReportCommand, TheSameResultsGiveTheSamePageWhereverTheyLie) {
  run_to("results", tiny_variants());
  const std::string page = page_of("results");
  std::filesystem::rename(path("results"), path("elsewhere"));
  EXPECT_TRUE(page_of("elsewhere", "again.html") == page);
}

TEST_F(ReportCommand, EveryMetricOfTheLastStepIsInThePageExactly) {
  run_to("results", tiny_variants());
  const std::string page = page_of("results");
  for (const json& run : read_json("results/summary.json").at("variants")) {
    for (const auto& [metric, value] : run.at("final").items()) {
      EXPECT_NE(page.find(">" + metric + "<"), std::string::npos) << metric;
      // The title of a figure reads back as exactly the figure.
      bool is_there = false;
      for (std::size_t at = 0; (at = page.find("<span title=\"", at)) != std::string::npos; ++at)
        is_there = is_there || std::stod(page.substr(at + 13, 40)) == value.get<double>();
      EXPECT_TRUE(is_there) << metric << " " << value;
    }
  }
}

TEST_F(ReportCommand, NamesTheMostLoadedExpertOfEachLayerWithItsCount) {
  run_to("results", tiny());
  const std::string page = page_of("results");
  const json last = read_lines("results/diagnostics.jsonl").back();
  for (const auto& [layer, record] : last.at("layers").items()) {
    const auto counts = record.at("expert_load_counts").get<std::vector<int>>();
    const auto most = std::max_element(counts.begin(), counts.end());
    const std::string words =
        "<td>expert " + std::to_string(most - counts.begin()) + ": " + std::to_string(*most) + " (";
    EXPECT_NE(page.find(words), std::string::npos) << layer << " " << words;
  }
}

TEST_F(ReportCommand, NamesFromOutsideStayText) {
  run_to("results", tiny());
  const std::string hostile = "</title><script>alert(1)</script><b onclick=\"x\">&amp;'";
  json summary = read_json("results/summary.json");
  summary["name"] = summary["verdict"] = summary["expectations"][0]["metric"] = hostile;
  summary["collapse"]["verdict"] = hostile;
  summary["final"][hostile] = 1;
  write("results/summary.json", summary.dump());
  json interval = read_lines("results/diagnostics.jsonl").front();
  interval["layers"] = {{hostile, interval["layers"].front()}};
  write("results/diagnostics.jsonl", interval.dump() + "\n");
  const std::string page = page_of("results");
  EXPECT_EQ(fault_of(page), "");
  EXPECT_EQ(page.find("<script"), std::string::npos);
  EXPECT_EQ(page.find("<b "), std::string::npos);
  EXPECT_NE(page.find("&lt;b onclick=&quot;x&quot;&gt;&amp;amp;&#39;"), std::string::npos);
}

TEST_F(ReportCommand, SaysWhatIsMissing) {
  json scenario = tiny();
  scenario["training"] = {{"steps", 1}, {"sequences", 2}};
  scenario.erase("expect");
  write("scenario.json", scenario.dump());
  run_command({path("scenario.json"), "--out", path("results")});
  for (const std::string name : {"eval.jsonl", "diagnostics.jsonl"})
    std::filesystem::remove(path("results/" + name));
  const std::string page = page_of("results");
  EXPECT_EQ(fault_of(page), "");
  for (const std::string text : {"Missing from the results: eval.jsonl, diagnostics.jsonl",
                                 "nothing was judged", "No evaluation loss", "No log interval"})
    EXPECT_NE(page.find(text), std::string::npos) << text;
}

TEST_F(ReportCommand, BrokenFilesAreNamedAndLeaveNoPage) {
  run_to("results", tiny());
  const auto good = [this](const std::string& name) { return read("results/" + name); };
  const auto expect_broken = [&](const std::string& name, const std::string& text,
                                 const std::string& place) {
    const std::string before = good(name);
    write("results/" + name, text);
    expect_refused("results", place);
    write("results/" + name, before);
  };
  const std::string metrics = good("metrics.jsonl"), diagnostics = good("diagnostics.jsonl");
  expect_broken("metrics.jsonl", metrics.substr(0, metrics.size() - 5), "metrics.jsonl:6");
  expect_broken("metrics.jsonl", metrics + "[1]\n", "metrics.jsonl:7");
  expect_broken("metrics.jsonl", metrics + metrics, "metrics.jsonl:7");
  expect_broken("eval.jsonl", "{\"step\":1,\"loss\":\"low\"}\n", "eval.jsonl:1");
  expect_broken("diagnostics.jsonl",
                R"({"first_step":1,"last_step":4,"layers":{"a":{"expert_load_counts":[-1,2]}}})"
                "\n",
                "diagnostics.jsonl:1");
  expect_broken("diagnostics.jsonl",
                diagnostics + R"({"first_step":7,"last_step":8,"layers":{}})" + "\n",
                "diagnostics.jsonl:3");
  expect_broken("summary.json", "{}", "summary.json");
  EXPECT_EQ(fault_of(page_of("results")), "");  // and whole it is read
}

TEST_F(ReportCommand, RefusesWhatIsNoResultOfARun) {
  expect_refused("nowhere", "nowhere");
  std::filesystem::create_directory(path("empty"));
  expect_refused("empty", "it holds no summary.json");
  std::filesystem::create_directory(path("sweep"));
  write("sweep/sweep.json", "{}");
  expect_refused("sweep", "'ballast compare'");
}

TEST_F(ReportCommand, TakesOneDirectoryAndNeverOverwritesAFile) {
  EXPECT_EQ(report_outcome({}).code, ExitCode::usage);
  EXPECT_EQ(report_outcome({"a", "b"}).code, ExitCode::usage);
  run_to("results", tiny());
  write("page.html", "mine");
  EXPECT_EQ(report_outcome({path("results"), "--out", path("page.html")}).code, ExitCode::usage);
  EXPECT_EQ(read("page.html"), "mine");
}

TEST_F(ReportCommand, ManyExpertsLayersAndIntervalsStayUnderTwoMegabytes) {
  run_to("results", tiny());
  json layers = json::object();
  std::string text;
  std::uint64_t draw = 1;
  for (int interval = 0; interval < 60; ++interval) {
    for (int layer = 0; layer < 12; ++layer) {
      json counts = json::array();
      for (int expert = 0; expert < 896; ++expert) {
        draw = draw * 6364136223846793005u + 1442695040888963407u;
        counts.push_back(std::uint64_t{1} << (draw >> 61));  // hardly two neighbours of one colour
      }
      layers["layers." + std::to_string(layer) + ".moe"]["expert_load_counts"] = counts;
    }
    text += json({{"first_step", interval + 1}, {"last_step", interval + 1}, {"layers", layers}})
                .dump() +
            "\n";
  }
  write("results/diagnostics.jsonl", text);
  std::string metrics;
  for (int step = 1; step <= 8000; ++step) {
    draw = draw * 6364136223846793005u + 1442695040888963407u;
    metrics +=
        json({{"step", step}, {"loss", step == 4321 ? 1e6 : static_cast<double>(draw >> 40)}})
            .dump() +
        "\n";
  }
  write("results/metrics.jsonl", metrics);
  const std::string page = page_of("results");
  EXPECT_LT(page.size(), 2'000'000u);
  EXPECT_EQ(fault_of(page), "");
  for (const std::string words : {"A row is 7 neighbouring experts", "2 log intervals added up",
                                  "Of 12 layers the 4", "More points than pixels"})
    EXPECT_NE(page.find(words), std::string::npos) << words;
}

}  // namespace
}  // namespace ballast::sim
