#include "sim/recordings/cell_check.h"

#include <algorithm>
#include <bit>
#include <limits>

#include "sim/text/printable.h"

namespace ballast::sim {
namespace {

/// Missing cells are told for this many sequences one by one, and this many layers of each.
constexpr std::int64_t max_reported_sequences = 20;
constexpr std::size_t max_reported_layers = 4;

/// SplitMix64's finaliser (Steele, Lea, Flood 2014): every bit of the input reaches every bit of
/// the output.
std::uint64_t mix(std::uint64_t x) {
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
  return x ^ (x >> 31);
}

std::uint64_t fingerprint(const RoutingRow& row) {
  std::uint64_t hash = row.experts.size();
  for (const std::int64_t expert : row.experts)
    hash = mix(hash ^ std::bit_cast<std::uint64_t>(expert));
  for (const double weight : row.weights) hash = mix(hash ^ std::bit_cast<std::uint64_t>(weight));
  return hash;
}

std::string layer_text(const LayerName& layer) {
  return "layer " + printable(to_text(layer), 40);
}

std::string sequence_name(const std::string& sequence) {
  return sequence.empty() ? "" : " of sequence " + printable(sequence, 60);
}

}  // namespace

CellCheck::Group* CellCheck::find_group(const RoutingRow& row) {
  layers_.insert(row.layer);
  std::pair<std::string, LayerName> key{row.sequence, row.layer};
  const auto found = groups_.find(key);
  if (found != groups_.end()) return &found->second;
  groups_full_ = groups_full_ || groups_.size() >= max_groups;
  if (groups_full_) return nullptr;
  return &groups_.try_emplace(std::move(key)).first->second;
}

CellCheck::Verdict CellCheck::observe(const RoutingRow& row, std::int64_t line, bool warm_up,
                                      ProblemLog& log) {
  Group* group = find_group(row);
  if (group == nullptr) return {};
  group->last_line = line;
  if (!row.token) {
    ++group->rows;
    return {};
  }
  if (*row.token > group->largest_token && !group->restarted) {
    if (group->replaying) settle_duplicates(*group, log);
    advance(*group, *row.token, line);
    remember(*group, row);
    return {};
  }
  if (group->restarted && *row.token > group->last_token) {
    group->last_token = *row.token;
    return {};
  }
  if (warm_up || group->restarted) return restart(*group, row, line, log);
  return replay(*group, row, line, log);
}

void CellCheck::observe_faulty(const RoutingRow& row, std::int64_t line) {
  Group* group = find_group(row);
  if (group == nullptr) return;
  group->last_line = line;
  if (!row.token) {
    ++group->rows;
  } else if (*row.token > group->largest_token && !group->restarted) {
    advance(*group, *row.token, line);
  }
}

void CellCheck::advance(Group& group, std::int64_t token, std::int64_t line) {
  if (group.rows == 0) {
    group.first_token = token;
  } else if (token > group.largest_token + 1 && !group.first_gap) {
    group.first_gap = Gap{group.largest_token + 1, token - 1, line};
  }
  ++group.rows;
  group.last_token = group.largest_token = token;
}

void CellCheck::remember(Group& group, const RoutingRow& row) {
  if (fingerprints_ >= max_fingerprints) return;
  ++fingerprints_;
  group.records.push_back({*row.token, fingerprint(row)});
}

CellCheck::Verdict CellCheck::replay(Group& group, const RoutingRow& row, std::int64_t line,
                                     ProblemLog& log) {
  if (group.replaying && *row.token <= group.last_token) settle_duplicates(group, log);
  if (!equals_earlier(group, row)) return restart(group, row, line, log);
  hold(group, row, line);
  group.last_token = *row.token;
  if (*row.token == group.largest_token) settle_duplicates(group, log);
  return {.counts = false, .released = std::nullopt};
}

CellCheck::Verdict CellCheck::restart(Group& group, const RoutingRow& row, std::int64_t line,
                                      ProblemLog& log) {
  const std::int64_t first_line = group.held_lines.empty() ? line : group.held_lines.front();
  log.add(ProblemKind::token_goes_back, first_line,
          layer_text(row.layer) + sequence_name(row.sequence) + ", to token " +
              std::to_string(*row.token) + " after " + std::to_string(group.largest_token));
  group.restarted = true;
  group.replaying = false;
  group.last_token = *row.token;
  group.held_lines.clear();
  Verdict verdict;
  if (group.held.rows > 0) verdict.released = std::exchange(group.held, {});
  return verdict;
}

bool CellCheck::equals_earlier(const Group& group, const RoutingRow& row) {
  const auto record = std::lower_bound(
      group.records.begin(), group.records.end(), *row.token,
      [](const Record& earlier, std::int64_t token) { return earlier.token < token; });
  return record != group.records.end() && record->token == *row.token &&
         record->fingerprint == fingerprint(row);
}

void CellCheck::hold(Group& group, const RoutingRow& row, std::int64_t line) {
  group.replaying = true;
  ++group.held.rows;
  for (const std::int64_t expert : row.experts) {
    const auto index = static_cast<std::size_t>(expert);
    if (index >= group.held.counts.size()) group.held.counts.resize(index + 1);
    ++group.held.counts[index];
  }
  if (group.held_lines.size() < ProblemLog::max_lines) group.held_lines.push_back(line);
}

void CellCheck::settle_duplicates(Group& group, ProblemLog& log) {
  log.add(ProblemKind::duplicate_record, group.held.rows, group.held_lines, "");
  group.held = {};
  group.held_lines.clear();
  group.replaying = false;
}

void CellCheck::finish(ProblemLog& log) {
  for (auto& [key, group] : groups_) {
    if (group.replaying) settle_duplicates(group, log);
  }
  if (!groups_full_) report_missing(log);
}

void CellCheck::report_missing(ProblemLog& log) const {
  Problem rest{
      .kind = ProblemKind::missing_cells, .count = 0, .counted = false, .lines = {}, .message = ""};
  std::int64_t sequences = 0;
  for (auto begin = groups_.begin(); begin != groups_.end();) {
    const auto end = std::find_if(begin, groups_.end(), [&](const auto& entry) {
      return entry.first.first != begin->first.first;
    });
    if (auto problem = missing_cells(begin, end)) {
      if (++sequences <= max_reported_sequences) {
        log.add(std::move(*problem));
      } else {
        rest.count += problem->count;
      }
    }
    begin = end;
  }
  if (rest.count == 0) return;
  rest.message = counted_noun(rest.count, "cell") + " missing in " +
                 counted_noun(sequences - max_reported_sequences, "more sequence");
  log.add(std::move(rest));
}

std::optional<std::int64_t> CellCheck::expected_rows(Groups::const_iterator begin,
                                                     Groups::const_iterator end) {
  std::int64_t first = std::numeric_limits<std::int64_t>::max();
  std::int64_t last = -1;
  std::int64_t rows = 0;
  for (auto place = begin; place != end; ++place) {
    const Group& group = place->second;
    if (group.restarted) return std::nullopt;
    first = std::min(first, group.first_token);
    last = std::max(last, group.largest_token);
    rows = std::max(rows, group.rows);
  }
  return std::max(rows, last < first ? 0 : last - first + 1);
}

std::vector<CellCheck::Shortfall> CellCheck::shortfalls(Groups::const_iterator begin,
                                                        Groups::const_iterator end,
                                                        std::int64_t expected) const {
  std::vector<Shortfall> result;
  for (const LayerName& layer : layers_) {
    const auto place =
        std::find_if(begin, end, [&](const auto& entry) { return entry.first.second == layer; });
    const Group* group = place == end ? nullptr : &place->second;
    const std::int64_t rows = group == nullptr ? 0 : group->rows;
    if (rows != expected) result.push_back({&layer, rows, group});
  }
  return result;
}

std::string CellCheck::describe(const std::vector<Shortfall>& shortfalls, std::int64_t expected) {
  std::string text;
  for (std::size_t i = 0; i < std::min(shortfalls.size(), max_reported_layers); ++i) {
    const Shortfall& layer = shortfalls[i];
    text += (i == 0 ? "" : ", ") + layer_text(*layer.layer) + " has " + std::to_string(layer.rows) +
            " of " + counted_noun(expected, "token");
    const std::int64_t last_line = layer.group == nullptr ? 0 : layer.group->last_line;
    if (last_line > 0) text += " (to line " + std::to_string(last_line) + ")";
  }
  if (shortfalls.size() <= max_reported_layers) return text;
  return text + ", and " +
         counted_noun(static_cast<std::int64_t>(shortfalls.size() - max_reported_layers),
                      "more layer");
}

std::string CellCheck::describe_gap(const std::vector<Shortfall>& shortfalls) {
  bool has_tokens = false;
  for (const Shortfall& layer : shortfalls) {
    if (layer.group == nullptr) continue;
    has_tokens = has_tokens || layer.group->largest_token >= 0;
    if (!layer.group->first_gap) continue;
    const Gap& gap = *layer.group->first_gap;
    std::string text = "; the first gap: " + layer_text(*layer.layer) + ", tokens " +
                       std::to_string(gap.first_token) + " to " + std::to_string(gap.last_token);
    return gap.line > 0 ? text + ", before line " + std::to_string(gap.line) : text;
  }
  return has_tokens ? "; the index has no gap, so tokens after a lost one may be shifted" : "";
}

std::optional<Problem> CellCheck::missing_cells(Groups::const_iterator begin,
                                                Groups::const_iterator end) const {
  const auto expected = expected_rows(begin, end);
  if (!expected) return std::nullopt;
  const std::vector<Shortfall> found = shortfalls(begin, end, *expected);
  if (found.empty()) return std::nullopt;
  Problem problem{
      .kind = ProblemKind::missing_cells, .count = 0, .counted = false, .lines = {}, .message = ""};
  for (const auto& [layer, rows, group] : found) {
    problem.count += *expected - rows;
    if (group == nullptr) continue;
    const std::int64_t line = group->first_gap ? group->first_gap->line : group->last_line;
    if (line > 0) problem.lines.push_back(line);
  }
  const std::int64_t cells = *expected * static_cast<std::int64_t>(layers_.size());
  problem.message = std::to_string(problem.count) + " of " +
                    counted_noun(cells, "(layer, token) cell") + sequence_name(begin->first.first) +
                    " missing: " + describe(found, *expected) + describe_gap(found);
  return problem;
}

std::vector<std::string> CellCheck::incomplete() const {
  std::vector<std::string> notes;
  if (groups_full_) notes.push_back("missing cells were not looked for: too many sequences");
  if (fingerprints_ >= max_fingerprints) {
    notes.push_back("duplicates were looked for among the first " +
                    std::to_string(max_fingerprints) + " rows only");
  }
  return notes;
}

}  // namespace ballast::sim
