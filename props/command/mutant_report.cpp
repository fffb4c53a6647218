#include "props/command/mutant_report.h"

#include <algorithm>
#include <ostream>

#include "props/campaign/describe_case.h"
#include "sim/text/numbers.h"
#include "sim/text/printable.h"
#include "sim/text/table.h"

namespace ballast::props {

namespace {

constexpr std::size_t width = 80;
constexpr std::size_t faults_shown = 1;

/// "a, b and 3 more": as many as fit on a line behind the indent.
std::string some_of(const std::vector<std::string>& words, std::size_t columns) {
  std::string text;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string next = (i == 0 ? "" : ", ") + words[i];
    const std::string rest = " and " + std::to_string(words.size() - i) + " more";
    if (i > 0 && text.size() + next.size() + rest.size() > columns) return text + rest;
    text += next;
  }
  return text;
}

std::string faults_of(const Mutant& mutant) {
  std::string text;
  for (std::size_t i = 0; i < std::min(faults_shown, mutant.faults.size()); ++i) {
    text += (i == 0 ? "" : " ") + mutant.faults[i];
  }
  const std::size_t shown = std::min(faults_shown, mutant.faults.size());
  if (mutant.faults.size() > shown) text += " +" + std::to_string(mutant.faults.size() - shown);
  return text;
}

std::string extent_text(const MutantResult& result) {
  if (!result.smallest) return "";
  const CaseExtent& extent = result.smallest->extent;
  return std::to_string(extent.tokens) + "x" + std::to_string(extent.experts) + "x" +
         std::to_string(extent.requests);
}

std::string median_text(const MutantResult& result) {
  const auto median = result.median_cases();
  return median ? sim::shortest(*median) : "-";
}

std::optional<std::size_t> worst_cases(const MutantResult& result) {
  if (!result.killed() || result.cases.empty()) return std::nullopt;
  std::size_t worst = 0;
  for (const auto& cases : result.cases) worst = std::max(worst, *cases);
  return worst;
}

sim::Row row_of(const Mutant& mutant, const MutantResult& result) {
  const auto worst = mutant.equivalent ? std::nullopt : worst_cases(result);
  const bool fine = mutant.equivalent ? result.kills.empty() : result.killed();
  return {sim::Cell(mutant.name, fine ? sim::Tone::strong : sim::Tone::bad),
          faults_of(mutant),
          std::to_string(result.kills.size()),
          mutant.equivalent ? "-" : median_text(result),
          worst ? std::to_string(*worst) : "-",
          extent_text(result)};
}

std::vector<std::string> seeds_text(const std::vector<std::uint64_t>& seeds) {
  std::vector<std::string> out;
  for (const std::uint64_t seed : seeds) out.push_back(std::to_string(seed));
  return out;
}

/// The second line of a mutant, after its indent.
std::string kills_line(const Mutant& mutant, const MutantResult& result, const KillSettings& settings) {
  std::vector<std::string> laws;
  for (const Kill& kill : result.kills) laws.push_back(kill.law);
  const std::size_t columns = width - 4;
  if (mutant.equivalent) {
    if (laws.empty()) return "equivalent to a correct subject, and broken by no law";
    return "marked as equivalent, but broken by " + some_of(laws, columns - 36);
  }
  if (const auto seeds = result.survived(settings); !seeds.empty()) {
    return "SURVIVES under seed " + some_of(seeds_text(seeds), columns - 20);
  }
  return some_of(laws, columns);
}

std::vector<std::string> idle_laws(const KillTable& table) {
  std::vector<std::string> ids;
  for (const auto& law : table.laws) {
    if (law.kills == 0) ids.push_back(law.id);
  }
  return ids;
}

struct Sum {
  std::size_t killed = 0, surviving = 0, equivalent = 0;
};

Sum sum_of(const KillTable& table, const KillContext& context) {
  Sum sum;
  for (std::size_t i = 0; i < table.mutants.size(); ++i) {
    if (context.mutants[i].equivalent) {
      ++sum.equivalent;
    } else {
      ++(table.mutants[i].killed() ? sum.killed : sum.surviving);
    }
  }
  return sum;
}

std::string seeds_of(const KillSettings& settings) {
  if (settings.seeds == 1) return "seed " + std::to_string(settings.seed);
  return "each of " + std::to_string(settings.seeds) + " seeds";
}

void write_legend(const KillContext& context, std::ostream& out) {
  out << sim::wrapped("laws: how many break it (seed " + std::to_string(context.settings.seed) +
                          "), the fastest below it; cases, worst: of every law, until one breaks, median and "
                          "maximum over " +
                          sim::counted(context.settings.seeds, "seed") +
                          "; smallest: tokens x experts x requests of a counterexample, shrunk",
                      width, 0)
      << "\n";
}

void write_sums(const KillTable& table, const KillContext& context, std::ostream& out) {
  const Sum sum = sum_of(table, context);
  out << sim::counted(table.mutants.size(), "mutant") << ": " << sum.killed << " killed under "
      << seeds_of(context.settings) << " within " << context.settings.cases << " cases of every law,\n"
      << sum.surviving << " survive, " << sum.equivalent << " equivalent\n";
  if (context.every_law) {
    const auto idle = idle_laws(table);
    out << sim::counted(table.laws.size(), "law") << ": ";
    if (idle.empty()) {
      out << "each kills at least one mutant\n";
    } else {
      out << idle.size() << " kill none\n";
      for (const std::string& id : idle) out << "    " << id << "\n";
    }
  }
  out << "canary: broken by " << table.canary.broken << " of " << table.canary.seeds << " cases (one in four), "
      << (table.canary.shrunk ? "and shrunk to its smallest case\n" : "and NOT shrunk to its smallest case\n");
}

sim::Tone tone_of(Verdict verdict) {
  if (verdict == Verdict::pass) return sim::Tone::good;
  return verdict == Verdict::fail ? sim::Tone::bad : sim::Tone::warning;
}

Json smallest_json(const MutantResult& result) {
  if (!result.smallest) return nullptr;
  const SmallestCase& smallest = *result.smallest;
  return {{"law", smallest.reproduction.law},       {"from", smallest.reproduction.text()},
          {"tokens", smallest.extent.tokens},       {"experts", smallest.extent.experts},
          {"requests", smallest.extent.requests}};
}

template <class T>
Json or_null(const std::optional<T>& value) {
  return value ? Json(*value) : Json(nullptr);
}

Json mutant_json(const Mutant& mutant, const MutantResult& result, const KillSettings& settings) {
  Json killed_by = Json::array();
  Json kills = Json::object();
  for (const Kill& kill : result.kills) {
    killed_by.push_back(kill.law);
    kills[kill.law] = kill.cases;
  }
  Json cases = Json::array();
  for (const auto& one : result.cases) cases.push_back(or_null(one));
  Json out;
  out["name"] = mutant.name;
  out["description"] = mutant.description;
  out["faults"] = mutant.faults;
  out["law"] = mutant.law;
  out["equivalent"] = mutant.equivalent;
  out["killed_by"] = std::move(killed_by);
  out["cases_by_law"] = std::move(kills);
  out["cases"] = std::move(cases);
  out["median_cases"] = or_null(result.median_cases());
  out["survived_seeds"] = mutant.equivalent ? std::vector<std::uint64_t>() : result.survived(settings);
  out["smallest"] = smallest_json(result);
  return out;
}

}  // namespace

void write_kill_table(const KillTable& table, const KillContext& context, std::ostream& out) {
  std::vector<sim::Row> rows;
  for (std::size_t i = 0; i < table.mutants.size(); ++i) {
    rows.push_back(row_of(context.mutants[i], table.mutants[i]));
  }
  sim::Table columns({{"mutant", sim::Align::left},
                      {"faults", sim::Align::left},
                      {"laws"},
                      {"cases"},
                      {"worst"},
                      {"smallest", sim::Align::left}},
                     context.colour);
  columns.fit(rows, width);
  write_legend(context, out);
  out << columns.header();
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const Mutant& mutant = context.mutants[i];
    out << columns.line(rows[i]) << "    "
        << sim::toned(kills_line(mutant, table.mutants[i], context.settings), sim::Tone::faint, context.colour)
        << "\n";
    if (!context.show) continue;
    out << sim::wrapped(mutant.description, width, 4);
    if (const auto& smallest = table.mutants[i].smallest) {
      out << "    breaks " << smallest->reproduction.law << " with\n" << describe_case(smallest->input, {}, 6);
    }
  }
  out << "\n";
  write_sums(table, context, out);
  const Verdict verdict = verdict_of(table, context.mutants, context.every_law);
  out << sim::toned(word(verdict), tone_of(verdict), context.colour) << "\n";
}

Json kill_table_json(const KillTable& table, const KillContext& context) {
  Json mutants = Json::array();
  for (std::size_t i = 0; i < table.mutants.size(); ++i) {
    mutants.push_back(mutant_json(context.mutants[i], table.mutants[i], context.settings));
  }
  Json laws = Json::array();
  for (const auto& law : table.laws) laws.push_back({{"id", law.id}, {"kills", law.kills}});
  Json out;
  out["verdict"] = word(verdict_of(table, context.mutants, context.every_law));
  out["seed"] = context.settings.seed;
  out["seeds"] = context.settings.seeds;
  out["cases_max"] = context.settings.cases;
  out["mutants"] = std::move(mutants);
  out["laws"] = std::move(laws);
  out["canary"] = {{"cases", table.canary.seeds}, {"broken", table.canary.broken}, {"shrunk", table.canary.shrunk}};
  return out;
}

}  // namespace ballast::props
