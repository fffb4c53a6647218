#include "core/assignment/optimal_assignment.h"

#include <algorithm>
#include <cmath>
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
    if (!std::isfinite(s)) throw std::invalid_argument("optimal assignment: a score of a valid row is not finite");
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

/// Prices beta, `[experts]`, that bring the loads of the k largest s - beta near q: the alternating solver of quantile
/// balancing (Kimi K3 report, Alg. 1) in units.
class Prices {
 public:
  Prices(const Matrix<Units>& scores, std::size_t top_k) : scores_(scores), top_k_(top_k), beta_(scores.cols()) {
    constexpr int alternations = 8;
    if (top_k == scores.cols() || scores.rows() == 0) return;
    for (int i = 0; i < alternations; ++i) alternate();
  }

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
  // alpha_i = the (k + 1)-th largest s_i - beta; beta_j = the (floor(q) + 1)-th largest s_j - alpha.
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

/// An assignment that is optimal among those of its loads, and the moves that keep it so.
class BalancedAssignment {
 public:
  BalancedAssignment(const Matrix<Units>& scores, std::size_t top_k)
      : scores_(scores),
        assigned_(scores.rows(), scores.cols(), 0),
        loads_(scores.cols()),
        least_(scores.rows() * top_k / scores.cols()),
        most_((scores.rows() * top_k + scores.cols() - 1) / scores.cols()) {
    const Prices prices(scores, top_k);
    for (std::size_t i = 0; i < scores.rows(); ++i) {
      for (const std::size_t j : prices.best(i, top_k)) {
        assigned_(i, j) = 1;
        ++loads_[j];
      }
    }
  }

  void balance() {
    while (move_one()) {
    }
  }

  bool has(std::size_t token, std::size_t expert) const { return assigned_(token, expert) != 0; }

 private:
  /// The cheapest way to take one assignment from expert j and give one to expert l, for all pairs.
  struct Step {
    Units loss = unreachable;
    std::size_t token = 0;
  };

  struct Path {
    Units loss = unreachable;
    std::vector<std::size_t> experts;
  };

  /// Moves one assignment, if loads are out of bounds or a move inside the bounds gains.
  bool move_one() {
    const auto over = [&](std::size_t j) { return loads_[j] > most_; };
    const auto under = [&](std::size_t j) { return loads_[j] < least_; };
    const auto can_give = [&](std::size_t j) { return loads_[j] > least_; };
    const auto can_take = [&](std::size_t j) { return loads_[j] < most_; };
    find_steps();
    if (const auto path = cheapest_path(over, can_take)) return move_along(*path);
    if (const auto path = cheapest_path(can_give, under)) return move_along(*path);
    const auto path = cheapest_path(can_give, can_take);
    return path && path->loss < 0 && move_along(*path);
  }

  void find_steps() {
    const std::size_t experts = loads_.size();
    steps_ = {experts, experts};
    for (std::size_t i = 0; i < scores_.rows(); ++i) {
      for (std::size_t j = 0; j < experts; ++j) {
        if (assigned_(i, j) == 0) continue;
        for (std::size_t l = 0; l < experts; ++l) {
          const Units loss = scores_(i, j) - scores_(i, l);
          if (assigned_(i, l) == 0 && loss < steps_(j, l).loss) steps_(j, l) = {loss, i};
        }
      }
    }
  }

  /// From one of the experts that may give to another that may take, by Bellman and Ford: steps can gain, but no
  /// cycle does.
  template <class Give, class Take>
  std::optional<Path> cheapest_path(Give may_give, Take may_take) const {
    const std::size_t experts = loads_.size();
    std::vector<Units> loss(experts, unreachable);
    std::vector<std::size_t> before(experts, experts);
    for (std::size_t j = 0; j < experts; ++j) {
      if (may_give(j)) loss[j] = 0;
    }
    for (bool changed = true; changed;) {
      changed = false;
      for (std::size_t j = 0; j < experts; ++j) {
        if (loss[j] == unreachable) continue;
        for (std::size_t l = 0; l < experts; ++l) {
          if (steps_(j, l).loss == unreachable || loss[j] + steps_(j, l).loss >= loss[l]) continue;
          loss[l] = loss[j] + steps_(j, l).loss;
          before[l] = j;
          changed = true;
        }
      }
    }
    std::optional<std::size_t> last;
    for (std::size_t l = 0; l < experts; ++l) {
      if (may_take(l) && before[l] != experts && (!last || loss[l] < loss[*last])) last = l;
    }
    if (!last) return std::nullopt;
    Path path{.loss = loss[*last], .experts = {*last}};
    while (before[path.experts.back()] != experts) path.experts.push_back(before[path.experts.back()]);
    std::ranges::reverse(path.experts);
    return path;
  }

  bool move_along(const Path& path) {
    for (std::size_t i = 0; i + 1 < path.experts.size(); ++i) {
      const std::size_t from = path.experts[i], to = path.experts[i + 1];
      const std::size_t token = steps_(from, to).token;
      assigned_(token, from) = 0;
      assigned_(token, to) = 1;
    }
    --loads_[path.experts.front()];
    ++loads_[path.experts.back()];
    return true;
  }

  const Matrix<Units>& scores_;
  Matrix<std::uint8_t> assigned_;
  std::vector<std::size_t> loads_;
  std::size_t least_, most_;  ///< bounds of a load: floor(q), ceil(q)
  Matrix<Step> steps_;
};

template <class Real>
Matrix<Real> rows_of(MatrixView<const Real> scores, const std::vector<std::size_t>& tokens) {
  Matrix<Real> rows(tokens.size(), scores.cols());
  for (std::size_t i = 0; i < tokens.size(); ++i) std::ranges::copy(scores.row(tokens[i]), rows.row(i).begin());
  return rows;
}

}  // namespace

template <class Real>
Matrix<std::int32_t> assign_optimally(MatrixView<const Real> scores, std::span<const std::uint8_t> valid,
                                      std::size_t top_k) {
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

template Matrix<std::int32_t> assign_optimally(MatrixView<const float>, std::span<const std::uint8_t>, std::size_t);
template Matrix<std::int32_t> assign_optimally(MatrixView<const double>, std::span<const std::uint8_t>, std::size_t);

}  // namespace ballast
