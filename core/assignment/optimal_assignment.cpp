#include "core/assignment/optimal_assignment.h"

#include <algorithm>
#include <cmath>
#include <compare>
#include <functional>
#include <limits>
#include <optional>
#include <stdexcept>
#include <vector>

#include "core/model/selection.h"

namespace ballast {

namespace {

/// A score in units of the rounding; sums along a path of experts stay far inside the range.
using Units = std::int64_t;

constexpr int unit_bits = 40;
constexpr Units unreachable = std::numeric_limits<Units>::max() / 2;

template <class Real>
Matrix<Units> in_units(const Matrix<Real>& scores) {
  double largest = 0.0;
  for (const Real s : scores.values()) {
    if (!std::isfinite(s))
      throw std::invalid_argument("optimal assignment: a score of a valid row is not finite");
    largest = std::max(largest, std::abs(static_cast<double>(s)));
  }
  int exponent = 0;
  std::frexp(largest, &exponent);
  Matrix<Units> units(scores.rows(), scores.cols());
  for (std::size_t i = 0; i < units.values().size(); ++i) {
    const double scaled = std::ldexp(static_cast<double>(scores.values()[i]), unit_bits - exponent);
    units.values()[i] = static_cast<Units>(std::floor(scaled + 0.5));
  }
  return units;
}

/// Prices beta, `[experts]`, that bring the loads of the k largest s - beta near q: the alternating
/// solver of quantile balancing (Kimi K3 report, Alg. 1) in units.
class Prices {
 public:
  Prices(const Matrix<Units>& scores, std::size_t top_k)
      : scores_(scores), top_k_(top_k), beta_(scores.cols()) {
    constexpr int alternations = 8;
    if (top_k == scores.cols() || scores.rows() == 0) return;
    for (int i = 0; i < alternations; ++i) alternate();
  }

  const std::vector<Units>& beta() const { return beta_; }

  /// The experts of a token, best first; `count` of them.
  std::vector<std::size_t> best(std::size_t token, std::size_t count) const {
    std::vector<std::size_t> order(beta_.size());
    for (std::size_t j = 0; j < order.size(); ++j) order[j] = j;
    const auto value = [&](std::size_t j) { return scores_(token, j) - beta_[j]; };
    const auto end = order.begin() + static_cast<std::ptrdiff_t>(count);
    std::partial_sort(order.begin(), end, order.end(), [&](std::size_t a, std::size_t b) {
      return value(a) > value(b) || (value(a) == value(b) && a < b);
    });
    order.resize(count);
    return order;
  }

 private:
  // alpha_i = the (k + 1)-th largest s_i - beta; beta_j = the (floor(q) + 1)-th largest s_j -
  // alpha.
  void alternate() {
    const std::size_t tokens = scores_.rows();
    const std::size_t position = std::min(tokens - 1, tokens * top_k_ / scores_.cols());
    std::vector<Units> cutoffs(tokens), margins(tokens);
    for (std::size_t i = 0; i < tokens; ++i) {
      const std::size_t dropped = best(i, top_k_ + 1).back();
      cutoffs[i] = scores_(i, dropped) - beta_[dropped];
    }
    for (std::size_t j = 0; j < beta_.size(); ++j) {
      for (std::size_t i = 0; i < tokens; ++i) margins[i] = scores_(i, j) - cutoffs[i];
      const auto at = margins.begin() + static_cast<std::ptrdiff_t>(position);
      std::nth_element(margins.begin(), at, margins.end(), std::greater<>());
      beta_[j] = *at;
    }
  }

  const Matrix<Units>& scores_;
  std::size_t top_k_;
  std::vector<Units> beta_;
};

/// For all pairs of experts, the cheapest way to take one assignment from expert j and give one to
/// expert l: to move the token of j that loses least by it. Kept up to date as tokens move.
class Exchanges {
 public:
  struct Exchange {
    Units loss = unreachable;
    std::size_t token = 0;

    friend auto operator<=>(const Exchange&, const Exchange&) = default;
  };

  Exchanges(const Matrix<Units>& scores, const Prices& prices, std::size_t top_k)
      : scores_(scores),
        assigned_(scores.rows(), scores.cols(), 0),
        tokens_of_(scores.cols()),
        cheapest_(scores.cols(), scores.cols()) {
    for (std::size_t i = 0; i < scores.rows(); ++i) {
      for (const std::size_t j : prices.best(i, top_k)) {
        assigned_(i, j) = 1;
        tokens_of_[j].push_back(i);
      }
    }
    for (std::size_t j = 0; j < scores.cols(); ++j) {
      for (const std::size_t i : tokens_of_[j]) offer_all(i, j);
    }
  }

  bool has(std::size_t token, std::size_t expert) const { return assigned_(token, expert) != 0; }
  std::size_t load(std::size_t expert) const { return tokens_of_[expert].size(); }
  const Exchange& operator()(std::size_t from, std::size_t to) const { return cheapest_(from, to); }

  /// Looks through the tokens of an expert for each pair that the token was the cheapest of: at
  /// most tokens * top_k.
  void move(std::size_t token, std::size_t from, std::size_t to) {
    assigned_(token, from) = 0;
    assigned_(token, to) = 1;
    std::erase(tokens_of_[from], token);
    tokens_of_[to].push_back(token);
    for (std::size_t l = 0; l < experts(); ++l) renew(from, l, token);
    offer_all(token, to);
    for (std::size_t j = 0; j < experts(); ++j) {
      if (!has(token, j)) continue;
      renew(j, to, token);
      offer(token, j, from);
    }
  }

 private:
  std::size_t experts() const { return tokens_of_.size(); }

  void offer(std::size_t token, std::size_t from, std::size_t to) {
    const Exchange own{.loss = scores_(token, from) - scores_(token, to), .token = token};
    cheapest_(from, to) = std::min(cheapest_(from, to), own);
  }

  void offer_all(std::size_t token, std::size_t from) {
    for (std::size_t l = 0; l < experts(); ++l) {
      if (!has(token, l)) offer(token, from, l);
    }
  }

  /// Looks for the cheapest again where it was this token.
  void renew(std::size_t from, std::size_t to, std::size_t token) {
    Exchange& cheapest = cheapest_(from, to);
    if (cheapest.loss == unreachable || cheapest.token != token) return;
    cheapest = {};
    for (const std::size_t i : tokens_of_[from]) {
      if (!has(i, to)) offer(i, from, to);
    }
  }

  const Matrix<Units>& scores_;
  Matrix<std::uint8_t> assigned_;
  std::vector<std::vector<std::size_t>> tokens_of_;  ///< by expert
  Matrix<Exchange> cheapest_;
};

/// An assignment that is optimal among those of its loads, and the moves that keep it so.
class BalancedAssignment {
 public:
  BalancedAssignment(const Matrix<Units>& scores, std::size_t top_k)
      : BalancedAssignment(scores, top_k, {scores, top_k}) {}

  void balance() {
    while (move_one()) {
    }
  }

  bool has(std::size_t token, std::size_t expert) const { return exchanges_.has(token, expert); }

 private:
  struct Path {
    Units loss = unreachable;
    std::vector<std::size_t> experts;
  };

  BalancedAssignment(const Matrix<Units>& scores, std::size_t top_k, const Prices& prices)
      : exchanges_(scores, prices, top_k),
        potentials_(prices.beta()),
        least_(scores.rows() * top_k / scores.cols()),
        most_((scores.rows() * top_k + scores.cols() - 1) / scores.cols()) {}

  std::size_t experts() const { return potentials_.size(); }

  /// Moves one assignment, if loads are out of bounds or a move inside the bounds gains.
  bool move_one() {
    const auto over = [&](std::size_t j) { return exchanges_.load(j) > most_; };
    const auto under = [&](std::size_t j) { return exchanges_.load(j) < least_; };
    const auto can_give = [&](std::size_t j) { return exchanges_.load(j) > least_; };
    const auto can_take = [&](std::size_t j) { return exchanges_.load(j) < most_; };
    if (const auto path = cheapest_path(over, can_take)) return move_along(*path);
    if (const auto path = cheapest_path(can_give, under)) return move_along(*path);
    const auto path = cheapest_path(can_give, can_take);
    return path && path->loss < 0 && move_along(*path);
  }

  /// From one of the experts that may give to another that may take, by Dijkstra over all experts:
  /// the loss of a step less the potential of its beginning and with that of its end is never below
  /// 0. Potentials become those of the distances found, under which the path's steps cost nothing,
  /// so that moving along it keeps this.
  template <class Give, class Take>
  std::optional<Path> cheapest_path(Give may_give, Take may_take) {
    std::vector<std::size_t> givers, takers;
    for (std::size_t j = 0; j < experts(); ++j) {
      if (may_give(j)) givers.push_back(j);
      if (may_take(j)) takers.push_back(j);
    }
    if (givers.empty() || takers.empty()) return std::nullopt;
    const auto potential = [&](std::size_t j) { return potentials_[j]; };
    const Units begin = potential(std::ranges::min(givers, {}, potential));
    const Units end = potential(std::ranges::max(takers, {}, potential));
    std::vector<Units> distance(experts(), unreachable);
    std::vector<std::size_t> before(experts(), experts());
    std::vector<std::uint8_t> done(experts(), 0);
    for (const std::size_t j : givers) distance[j] = potentials_[j] - begin;
    std::optional<std::size_t> last;
    Units reached = unreachable;
    while (true) {
      std::size_t next = experts();
      for (std::size_t j = 0; j < experts(); ++j) {
        if (done[j] == 0 && distance[j] < unreachable &&
            (next == experts() || distance[j] < distance[next]))
          next = j;
      }
      if (next == experts() || distance[next] >= reached) break;
      done[next] = 1;
      const Units there = distance[next] + end - potentials_[next];
      if (before[next] != experts() && may_take(next) && there < reached) {
        reached = there;
        last = next;
      }
      relax(next, done, distance, before);
    }
    if (!last) return std::nullopt;
    for (std::size_t j = 0; j < experts(); ++j) potentials_[j] -= std::min(distance[j], reached);
    Path path{.loss = reached + begin - end, .experts = {*last}};
    while (before[path.experts.back()] != experts())
      path.experts.push_back(before[path.experts.back()]);
    std::ranges::reverse(path.experts);
    return path;
  }

  void relax(std::size_t j, const std::vector<std::uint8_t>& done, std::vector<Units>& distance,
             std::vector<std::size_t>& before) const {
    for (std::size_t l = 0; l < experts(); ++l) {
      const Units loss = exchanges_(j, l).loss;
      if (done[l] != 0 || loss == unreachable) continue;
      const Units through = distance[j] + loss - potentials_[j] + potentials_[l];
      if (through >= distance[l]) continue;
      distance[l] = through;
      before[l] = j;
    }
  }

  bool move_along(const Path& path) {
    std::vector<std::size_t> tokens;
    for (std::size_t i = 0; i + 1 < path.experts.size(); ++i) {
      tokens.push_back(exchanges_(path.experts[i], path.experts[i + 1]).token);
    }
    for (std::size_t i = 0; i < tokens.size(); ++i)
      exchanges_.move(tokens[i], path.experts[i], path.experts[i + 1]);
    return true;
  }

  Exchanges exchanges_;
  std::vector<Units> potentials_;  ///< by expert
  std::size_t least_, most_;       ///< bounds of a load: floor(q), ceil(q)
};

template <class Real>
Matrix<Real> rows_of(MatrixView<const Real> scores, const std::vector<std::size_t>& tokens) {
  Matrix<Real> rows(tokens.size(), scores.cols());
  for (std::size_t i = 0; i < tokens.size(); ++i)
    std::ranges::copy(scores.row(tokens[i]), rows.row(i).begin());
  return rows;
}

}  // namespace

template <class Real>
Matrix<std::int32_t> assign_optimally(MatrixView<const Real> scores,
                                      std::span<const std::uint8_t> valid, std::size_t top_k) {
  const std::vector<float> unbiased(scores.cols(), 0.0f);
  auto indices = select_top_k<Real>(scores, unbiased, top_k).indices;
  std::vector<std::size_t> tokens;
  for (std::size_t t = 0; t < scores.rows(); ++t) {
    if (valid.empty() || valid[t] != 0) tokens.push_back(t);
  }
  const Matrix<Units> units = in_units(rows_of(scores, tokens));
  BalancedAssignment assignment(units, top_k);
  assignment.balance();
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    const auto row = indices.row(tokens[i]);
    std::size_t slot = 0;
    for (std::size_t j = 0; j < scores.cols(); ++j) {
      if (assignment.has(i, j)) row[slot++] = static_cast<std::int32_t>(j);
    }
  }
  return indices;
}

template Matrix<std::int32_t> assign_optimally(MatrixView<const float>,
                                               std::span<const std::uint8_t>, std::size_t);
template Matrix<std::int32_t> assign_optimally(MatrixView<const double>,
                                               std::span<const std::uint8_t>, std::size_t);

}  // namespace ballast
