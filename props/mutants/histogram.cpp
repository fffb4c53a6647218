#include <algorithm>
#include <cmath>

#include "props/mutants/families.h"
#include "props/mutants/plain_balancer.h"

namespace ballast::props {

namespace {

// The range.

struct StaleRange : PlainBalancer {
  using PlainBalancer::PlainBalancer;
  double low() const override { return low_; }
  double high() const override { return high_; }
  void move() override {
    const double low = PlainBalancer::low();
    const double high = PlainBalancer::high();
    PlainBalancer::move();
    low_ = low;
    high_ = high;
  }

 private:
  double low_ = -1.0;
  double high_ = 1.0;
};
struct NarrowRange : PlainBalancer {
  using PlainBalancer::PlainBalancer;
  double low() const override { return smallest_bias() - 0.5; }
  double high() const override { return largest_bias() + 0.5; }
};
struct FixedRange : PlainBalancer {
  using PlainBalancer::PlainBalancer;
  double low() const override { return -1.0; }
  double high() const override { return 1.0; }
};
/// Equal biases leave no width at all.
struct NoMargin : PlainBalancer {
  using PlainBalancer::PlainBalancer;
  double low() const override { return smallest_bias(); }
  double high() const override { return largest_bias(); }
  double bin_of(double position) const override {
    return std::isnan(position) ? 0.0 : PlainBalancer::bin_of(position);
  }
};
/// Required biases of b in bins around the next b.
struct RangeOfNextBiases : PlainBalancer {
  using PlainBalancer::PlainBalancer;
  double low() const override { return PlainBalancer::low() + shift_; }
  double high() const override { return PlainBalancer::high() + stretch_; }
  void move() override {
    if (spec().kind == BalancerKind::sign || pending().empty()) return PlainBalancer::move();
    shift_ = stretch_ = 0.0;
    const auto next = moved(estimate(pending()));
    shift_ = static_cast<double>(std::ranges::min(next)) - smallest_bias();
    stretch_ = static_cast<double>(std::ranges::max(next)) - largest_bias();
    PlainBalancer::move();
    shift_ = stretch_ = 0.0;
  }

 private:
  double shift_ = 0.0;
  double stretch_ = 0.0;
};

// The bins.

/// Required biases outside the range are lost instead of counted in the bin at the edge.
struct DropsOutOfRange : PlainBalancer {
  using PlainBalancer::PlainBalancer;
  double histogram(const std::vector<double>& r) const override {
    std::vector<double> inside;
    for (const double value : r) {
      if (value >= low() && value < high()) inside.push_back(value);
    }
    return inside.empty() ? low() : PlainBalancer::histogram(inside);
  }
};
/// Rounds to the nearest edge of a bin, instead of down.
struct NearestBin : PlainBalancer {
  using PlainBalancer::PlainBalancer;
  double bin_of(double position) const override { return PlainBalancer::bin_of(position + 0.5); }
};
/// Equivalent. Truncation and floor differ for positions below 0 only, where truncation gives an
/// integer in [position, 0] and floor one in (position - 1, position]. None of these is above 0, so
/// that the clamp to [0, bins - 1] makes both 0.
struct Truncates : PlainBalancer {
  using PlainBalancer::PlainBalancer;
  double bin_of(double position) const override {
    return std::clamp(std::trunc(position), 0.0, static_cast<double>(spec().bins - 1));
  }
};
/// 256 and one more is 256.
struct BinsInBf16 : PlainBalancer {
  using PlainBalancer::PlainBalancer;
  double counted(double count) const override { return std::min(256.0, count + 1.0); }
};

// The rank, and the place within the bin.

struct FloorRank : PlainBalancer {
  using PlainBalancer::PlainBalancer;
  double rank(double q) const override { return std::max(1.0, std::floor(q)); }
};
struct RankPastQ : PlainBalancer {
  using PlainBalancer::PlainBalancer;
  double rank(double q) const override { return std::floor(q) + 1.0; }
};
struct MiddleOfBin : PlainBalancer {
  using PlainBalancer::PlainBalancer;
  double fraction(double, double, double) const override { return 0.5; }
};
struct LowerEdge : PlainBalancer {
  using PlainBalancer::PlainBalancer;
  double fraction(double, double, double) const override { return 0.0; }
};
struct UpperEdge : PlainBalancer {
  using PlainBalancer::PlainBalancer;
  double fraction(double, double, double) const override { return 1.0; }
};
/// Equivalent. The bin is the first with c + h >= ceil(q), c the count before it: c < ceil(q), and
/// as an integer c <= ceil(q) - 1 < q <= c + h. So (q - c) / h lies in (0, 1], and is not clipped.
struct FractionNotClipped : PlainBalancer {
  using PlainBalancer::PlainBalancer;
  double fraction(double q, double before, double own) const override {
    return (q - before) / own;
  }
};

}  // namespace

std::vector<Mutant> histogram_mutants() {
  return {
      mutant<WithBalancer<StaleRange>>("stale-range", "quantile.histogram-estimate",
                                       {"M08", "algorithms 2.9"},
                                       "Bins in the range of the biases before the last move."),
      mutant<WithBalancer<NarrowRange>>("narrow-range", "quantile.histogram-occupancy", {"M08"},
                                        "Bins within half a unit of the biases."),
      mutant<WithBalancer<FixedRange>>("fixed-range", "quantile.bias-shift", {"M01", "M08"},
                                       "Bins from -1 to 1 whatever the biases are."),
      mutant<WithBalancer<NoMargin>>("range-without-margin", "quantile.histogram-rank", {"M07"},
                                     "Bins between the smallest and the largest bias."),
      mutant<WithBalancer<RangeOfNextBiases>>("range-of-next-biases",
                                              "quantile.histogram-estimate", {"algorithms 2.9"},
                                              "Bins in the range of the biases it is to find."),
      mutant<WithBalancer<DropsOutOfRange>>("drops-out-of-range", "quantile.histogram-estimate",
                                            {"M07", "M08"},
                                            "Loses required biases outside the range."),
      mutant<WithBalancer<NearestBin>>("nearest-bin", "quantile.histogram-estimate",
                                       {"algorithms 6"}, "Rounds to the nearest edge of a bin."),
      mutant<WithBalancer<BinsInBf16>>("bins-in-bf16", "quantile.histogram-estimate",
                                       {"M03", "M25"},
                                       "Keeps counts in bf16, which end at 256."),
      equivalent<WithBalancer<Truncates>>("truncates", "quantile.histogram-estimate",
                                          {"algorithms 2.9"},
                                          "Truncates to a bin where others take the floor."),
      mutant<WithBalancer<FloorRank>>("floor-rank", "quantile.histogram-estimate",
                                      {"algorithms 2.3"}, "Takes rank floor(q) instead of ceil(q)."),
      mutant<WithBalancer<RankPastQ>>("rank-past-q", "quantile.histogram-estimate",
                                      {"algorithms 2.4"}, "Takes rank floor(q) + 1."),
      mutant<WithBalancer<MiddleOfBin>>("middle-of-bin", "quantile.histogram-estimate",
                                        {"algorithms 2.3"}, "Answers the middle of a bin."),
      mutant<WithBalancer<LowerEdge>>("lower-edge-of-bin", "quantile.histogram-estimate",
                                      {"algorithms 2.3"}, "Answers the lower edge of a bin."),
      mutant<WithBalancer<UpperEdge>>("upper-edge-of-bin", "quantile.histogram-estimate",
                                      {"algorithms 2.3"}, "Answers the upper edge of a bin."),
      equivalent<WithBalancer<FractionNotClipped>>(
          "fraction-not-clipped", "quantile.histogram-estimate", {"algorithms 6"},
          "Does not clip the place within a bin to the bin."),
  };
}

}  // namespace ballast::props
