#include "props/command/laws.h"

#include <nlohmann/json.hpp>
#include <ostream>
#include <string_view>
#include <vector>

#include "props/command/select_laws.h"
#include "props/protocol/json.h"
#include "props/protocol/words.h"
#include "sim/command/options.h"
#include "sim/text/printable.h"
#include "sim/text/terminal.h"

namespace ballast::props {

namespace po = boost::program_options;

namespace {

constexpr const char* usage = R"(ballast laws [options]

Lists the laws that 'ballast check' holds a subject against: id, statement, the capabilities of the subject that the
law needs, where it comes from, and the edges of the input space that it is about (a campaign that met none of one
has not tested the law).

Examples
  ballast laws                                 all laws, in sentences
  ballast laws --laws 'weights.*'              one family
  ballast laws --json | jq -r '.laws[].id'
  ballast laws --markdown                      the document props/laws.md

)";

sim::OptionSet option_set() {
  sim::OptionSet set{.named = po::options_description("Options"), .positional = {}};
  set.named.add_options()("laws", po::value<std::vector<std::string>>()->composing()->value_name("PATTERN"),
                          "only these laws: ids with *, several separated by commas")(
      "json", "print them as JSON")("markdown", "print them as tables in Markdown")("help", "print this text");
  return set;
}

std::string needs_of(const Law& law) {
  std::string text;
  for (const Capability need : law.needs) text += (text.empty() ? "" : ", ") + word(need);
  return text;
}

std::string edges_of(const Law& law) {
  std::string text;
  for (const std::string& edge : law.edges) text += (text.empty() ? "" : "; ") + edge;
  return text;
}

std::string family_of(const Law& law) {
  return law.id.substr(0, law.id.find('.'));
}

Json law_json(const Law& law) {
  Json needs = Json::array();
  for (const Capability need : law.needs) needs.push_back(word(need));
  Json out;
  out["id"] = law.id;
  out["statement"] = law.statement;
  out["needs"] = std::move(needs);
  out["source"] = law.source;
  out["edges"] = law.edges;
  return out;
}

void write_json(std::span<const Law> laws, std::ostream& out) {
  Json list = Json::array();
  for (const Law& law : laws) list.push_back(law_json(law));
  Json document;
  document["laws"] = std::move(list);
  out << document.dump(2) << "\n";
}

void write_text(std::span<const Law> laws, std::ostream& out) {
  const bool colour = sim::may_colour(out);
  std::string family;
  for (const Law& law : laws) {
    if (family_of(law) != family) out << (family.empty() ? "" : "\n");
    family = family_of(law);
    out << sim::toned(law.id, sim::Tone::strong, colour) << "\n" << sim::wrapped(law.statement, 80, 4);
    out << sim::wrapped("needs " + needs_of(law) + "; source: " + law.source, 80, 4);
    if (!law.edges.empty()) out << sim::wrapped("edges: " + edges_of(law), 80, 4);
  }
  out << "\n" << laws.size() << " laws\n";
}

/// Text of a cell of a table.
std::string cell(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '|') out += '\\';
    out += c == '\n' ? ' ' : c;
  }
  return out;
}

}  // namespace

std::string laws_markdown(std::span<const Law> laws) {
  std::string text =
      "# The laws\n\n"
      "What `ballast check` holds a subject against. This document is printed by `ballast laws --markdown`.\n"
      "A law needs these capabilities of the subject, or is skipped; a campaign that never met one of its edges\n"
      "does not pass it.\n";
  std::string family;
  for (const Law& law : laws) {
    if (family_of(law) != family) {
      family = family_of(law);
      text += "\n## " + family + "\n\n| id | statement | needs | source | edges |\n|---|---|---|---|---|\n";
    }
    text += "| `" + law.id + "` | " + cell(law.statement) + " | " + needs_of(law) + " | " + cell(law.source) + " | " +
            cell(edges_of(law)) + " |\n";
  }
  return text;
}

sim::ExitCode laws(std::span<const Law> all, sim::Arguments arguments, std::ostream& out, std::ostream&) {
  const auto given = sim::parse_options(option_set(), arguments);
  if (given.contains("help")) {
    out << usage << option_set().named << "\nExit codes: 0 listed; 3 usage; 70 internal error.\n";
    return sim::ExitCode::pass;
  }
  std::vector<std::string> patterns;
  if (given.contains("laws")) patterns = given["laws"].as<std::vector<std::string>>();
  const std::vector<Law> chosen = select_laws(all, patterns);
  if (given.contains("json")) {
    write_json(chosen, out);
  } else if (given.contains("markdown")) {
    out << laws_markdown(chosen);
  } else {
    write_text(chosen, out);
  }
  return sim::ExitCode::pass;
}

}  // namespace ballast::props
