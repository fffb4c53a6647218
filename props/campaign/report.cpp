#include "props/campaign/report.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <ostream>
#include <sstream>
#include <utility>

#include "props/campaign/describe_case.h"
#include "props/campaign/failure_json.h"
#include "sim/text/printable.h"
#include "sim/text/table.h"

namespace ballast::props {

namespace {

constexpr std::size_t width = 78;
constexpr std::size_t stderr_lines_max = 12;

const Law* find_law(const ReportContext& context, const std::string& id) {
  const auto found = std::ranges::find(context.laws, id, &Law::id);
  return found == context.laws.end() ? nullptr : &*found;
}

std::string statement_of(const LawResult& law, const ReportContext& context) {
  const Law* const found = find_law(context, law.id);
  return found != nullptr ? found->statement : "A subject says its name and what it supports when it is greeted.";
}

/// The line that runs the smallest case again.
std::string reproducing_line(const LawResult& law, const ReportContext& context) {
  std::string line = "ballast check";
  if (find_law(context, law.id) != nullptr)
    line += " --reproduce " + shell_quoted(law.failure->reproduction.text());
  if (!context.subject_options.empty()) line += " " + context.subject_options;
  return line;
}

std::string edges_met(const LawResult& law, const ReportContext& context) {
  const Law* const found = find_law(context, law.id);
  if (found == nullptr || found->edges.empty()) return "";
  const auto met = std::ranges::count_if(
      found->edges, [&](const std::string& edge) { return law.edges.at(edge) > 0; });
  return std::to_string(met) + "/" + std::to_string(found->edges.size());
}

std::string verdict_word(const LawResult& law) {
  return law.skipped ? "skipped" : word(law.verdict);
}

sim::Tone tone_of(const LawResult& law) {
  if (law.verdict == Verdict::pass) return sim::Tone::good;
  if (law.verdict == Verdict::fail) return sim::Tone::bad;
  return law.skipped ? sim::Tone::faint : sim::Tone::warning;
}

std::string share_discarded(const LawResult& law) {
  if (law.cases == 0) return "";
  return sim::fixed(100.0 * static_cast<double>(law.discarded) / static_cast<double>(law.cases), 0) + " %";
}

void labelled(std::string& text, const std::string& label, const std::string& what) {
  const std::string body = sim::wrapped(sim::printable(what, 2000), width, 12);
  text += "  " + label + std::string(10 - std::min<std::size_t>(label.size(), 9), ' ') +
          (body.size() > 12 ? body.substr(12) : "\n");
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(sim::printable(line, 400));
  return lines;
}

std::string describe_stderr(const std::string& tail) {
  auto lines = lines_of(tail);
  if (lines.empty()) return "";
  if (lines.size() > stderr_lines_max) lines.erase(lines.begin(), lines.end() - stderr_lines_max);
  std::string text = "\n  The last lines of the subject's stderr\n";
  for (const std::string& line : lines) text += "    | " + line + "\n";
  return text;
}

/// Why the laws that are not decided are not; those with one reason together, for the table names each.
void write_reasons(const CampaignResult& result, std::ostream& out) {
  std::vector<std::pair<std::string, std::vector<std::string>>> reasons;
  for (const LawResult& law : result.laws) {
    if (law.verdict != Verdict::unknown) continue;
    const std::string reason = std::string(verdict_word(law)) + ": " + sim::printable(law.reason, 400);
    auto known = std::ranges::find(reasons, reason, [](const auto& entry) { return entry.first; });
    if (known == reasons.end()) known = reasons.insert(known, {reason, {}});
    known->second.push_back(law.id);
  }
  if (!reasons.empty()) out << "\n";
  for (const auto& [reason, laws] : reasons) {
    const std::string who = laws.size() == 1 ? laws[0] + " is " : std::to_string(laws.size()) + " laws are ";
    out << sim::wrapped(who + reason, width, 0);
  }
}

std::string counts_line(const CampaignResult& result) {
  std::int64_t cases = 0, skipped = 0;
  std::map<Verdict, std::int64_t> laws;
  for (const LawResult& law : result.laws) {
    cases += law.cases;
    law.skipped ? ++skipped : ++laws[law.verdict];
  }
  std::string text = word(result.verdict) + ": of " + std::to_string(result.laws.size()) + " laws " +
                     std::to_string(laws[Verdict::pass]) + " pass, " + std::to_string(laws[Verdict::fail]) + " fail, " +
                     std::to_string(laws[Verdict::unknown]) + " unknown, " + std::to_string(skipped) + " skipped; " +
                     std::to_string(cases) + " cases";
  return text;
}

Json law_json(const LawResult& law, const ReportContext& context) {
  Json out;
  out["id"] = law.id;
  out["verdict"] = word(law.verdict);
  out["cases"] = law.cases;
  out["replayed"] = law.replayed;
  out["discarded"] = law.discarded;
  out["unsupported"] = law.unsupported;
  out["edges"] = law.edges;
  if (law.verdict == Verdict::unknown) {
    out["skipped"] = law.skipped;
    out["reason"] = law.reason;
  }
  if (law.failure) {
    Json failure;
    failure["statement"] = statement_of(law, context);
    failure["reproduce"] = law.failure->reproduction.text();
    failure["command"] = reproducing_line(law, context);
    failure["file"] = law.failure->stored_in.empty() ? Json(nullptr) : Json(law.failure->stored_in);
    const Json told = failure_json(*law.failure);
    for (const auto& [key, value] : told.items()) failure[key] = value;
    out["failure"] = std::move(failure);
  }
  return out;
}

/// Text inside an XML element or attribute: escaped, and without what XML 1.0 cannot hold.
std::string xml(const std::string& text) {
  std::string out;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '&') out += "&amp;";
    else if (c == '<') out += "&lt;";
    else if (c == '>') out += "&gt;";
    else if (c == '"') out += "&quot;";
    else if (c == '\n') out += "&#10;";
    else if (byte < 0x20) out += '?';
    else out += c;
  }
  return out;
}

}  // namespace

std::string shell_quoted(const std::string& word) {
  const auto plain = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           std::string_view("-_.:/=+,").find(c) != std::string_view::npos;
  };
  if (!word.empty() && std::ranges::all_of(word, plain)) return word;
  std::string out = "'";
  for (const char c : word) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
}

Json report_json(const CampaignResult& result, const ReportContext& context) {
  Json laws = Json::array();
  for (const LawResult& law : result.laws) laws.push_back(law_json(law, context));
  Json out;
  out["verdict"] = word(result.verdict);
  out["laws"] = std::move(laws);
  return out;
}

std::string describe_failure(const LawResult& law, const ReportContext& context) {
  const Failure& failure = *law.failure;
  const Outcome& outcome = failure.result.outcome;
  std::string text = law.id + (failure.flaky ? " failed once" : " is broken") + "\n";
  labelled(text, "Law", statement_of(law, context));
  labelled(text, "Where", outcome.where);
  labelled(text, "Expected", outcome.expected);
  labelled(text, "Seen", outcome.seen);
  if (failure.flaky) {
    labelled(text, "Beware", "The same case did not fail again: the subject does not always answer alike, or keeps "
             "something over open. The case is the one it failed on.");
  }
  if (find_law(context, law.id) != nullptr) {
    text += "\n  The smallest case\n" + describe_case(failure.smallest, failure.irrelevant, 4);
    if (!failure.irrelevant.empty()) text += "    (* another value here fails alike)\n";
  }
  text += describe_stderr(failure.result.stderr_tail);
  text += "\n  Again: " + reproducing_line(law, context) + "\n";
  if (!failure.stored_in.empty()) text += "  Stored in " + failure.stored_in + ", and run first next time\n";
  return text;
}

void write_report(const CampaignResult& result, const ReportContext& context, std::ostream& out) {
  using sim::Align;
  sim::Table table({{"Law", Align::left},
                    {"Verdict", Align::left},
                    {"Cases"},
                    {"Discarded"},
                    {"Edges"}},
                   context.colour);
  std::vector<sim::Row> rows;
  for (const LawResult& law : result.laws) {
    rows.push_back({law.id,
                    sim::Cell(verdict_word(law), tone_of(law)),
                    std::to_string(law.cases),
                    share_discarded(law),
                    edges_met(law, context)});
  }
  table.write(out, rows, 80);
  write_reasons(result, out);
  for (const LawResult& law : result.laws) {
    if (law.failure) out << "\n" << describe_failure(law, context);
  }
  out << "\n" << counts_line(result) << "\n";
}

std::string junit_xml(const CampaignResult& result, const ReportContext& context) {
  std::int64_t failures = 0, skipped = 0;
  std::string cases;
  for (const LawResult& law : result.laws) {
    const std::string family = law.id.substr(0, law.id.find('.'));
    cases += "    <testcase classname=\"ballast." + xml(family) + "\" name=\"" + xml(law.id) + "\"";
    if (law.failure) {
      ++failures;
      cases += ">\n      <failure type=\"broken\" message=\"" + xml(law.failure->result.outcome.seen) + "\">" +
               xml(describe_failure(law, context)) + "</failure>\n    </testcase>\n";
    } else if (law.verdict == Verdict::unknown) {
      ++skipped;
      cases += ">\n      <skipped message=\"" + xml(law.reason) + "\"/>\n    </testcase>\n";
    } else {
      cases += "/>\n";
    }
  }
  const std::string totals = " tests=\"" + std::to_string(result.laws.size()) + "\" failures=\"" +
                             std::to_string(failures) + "\" errors=\"0\" skipped=\"" + std::to_string(skipped) + "\"";
  return "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites" + totals + ">\n  <testsuite name=\"ballast laws\"" +
         totals + ">\n" + cases + "  </testsuite>\n</testsuites>\n";
}

}  // namespace ballast::props
