#include <algorithm>
#include <cmath>

#include "props/mutants/altered.h"
#include "props/mutants/families.h"
#include "props/mutants/plain_balancer.h"

namespace ballast::props {

namespace {

/// A share where a count is measured.
struct FrequencyTarget : PlainBalancer {
  using PlainBalancer::PlainBalancer;
  double direction(double, double load) const override {
    const double share = static_cast<double>(top_k()) / static_cast<double>(experts());
    return PlainBalancer::direction(share, load);
  }
};
struct WrongDirection : PlainBalancer {
  using PlainBalancer::PlainBalancer;
  double direction(double mean, double load) const override {
    return PlainBalancer::direction(load, mean);
  }
};
struct SignOfZeroIsOne : PlainBalancer {
  using PlainBalancer::PlainBalancer;
  double direction(double mean, double load) const override { return load > mean ? -1.0 : 1.0; }
};
struct OnlyLowers : PlainBalancer {
  using PlainBalancer::PlainBalancer;
  double direction(double mean, double load) const override { return load > mean ? -1.0 : 0.0; }
};
struct Proportional : PlainBalancer {
  using PlainBalancer::PlainBalancer;
  double direction(double mean, double load) const override { return (mean - load) / mean; }
};
struct StepsTwice : PlainBalancer {
  using PlainBalancer::PlainBalancer;
  double direction(double mean, double load) const override {
    return 2.0 * PlainBalancer::direction(mean, load);
  }
};
/// An overloaded expert reads as full.
struct LoadsAfterDropping : PlainBalancer {
  using PlainBalancer::PlainBalancer;
  double direction(double mean, double load) const override {
    return PlainBalancer::direction(mean, std::min(load, mean));
  }
};
struct LoadsOfFirstChoices : PlainBalancer {
  using PlainBalancer::PlainBalancer;
  std::vector<double> loads(const ObservedTokens& tokens) const override {
    std::vector<double> loads(experts());
    for (const ObservedToken& token : tokens) {
      loads[static_cast<std::size_t>(token.chosen[0])] += 1.0;
    }
    return loads;
  }
};
/// bf16 has no integers above 256: close loads change their order against the mean.
struct LoadsInBf16 : PlainBalancer {
  using PlainBalancer::PlainBalancer;
  double direction(double mean, double load) const override {
    const auto rounded = [](double x) {
      return static_cast<double>(in_bf16(static_cast<float>(x)));
    };
    return PlainBalancer::direction(rounded(mean), rounded(load));
  }
};
/// Increments below the spacing of bf16 are lost.
struct BiasesInBf16 : PlainBalancer {
  using PlainBalancer::PlainBalancer;
  void move() override {
    const bool moves = !pending().empty() && spec().kind == BalancerKind::sign;
    PlainBalancer::move();
    if (!moves) return;
    for (float& b : biases_now()) b = in_bf16(b);
  }
};

}  // namespace

std::vector<Mutant> sign_mutants() {
  return {
      mutant<WithBalancer<FrequencyTarget>>("frequency-target", "balance.sign-rule", {"M36"},
                                            "Compares counts with the share k / E."),
      mutant<WithBalancer<WrongDirection>>("wrong-direction", "balance.direction", {"M06", "M12"},
                                           "Raises overloaded experts."),
      mutant<WithBalancer<SignOfZeroIsOne>>("sign-of-zero-is-one", "balance.sign-rule",
                                            {"algorithms 3.3"},
                                            "Raises experts that have exactly the mean load."),
      mutant<WithBalancer<OnlyLowers>>("lowers-only", "balance.sign-rule", {"algorithms 2.1"},
                                       "Lowers overloaded experts and raises none."),
      mutant<WithBalancer<Proportional>>("proportional", "balance.sign-rule", {"algorithms 3.3"},
                                         "Moves in proportion to the load instead of its sign."),
      mutant<WithBalancer<StepsTwice>>("steps-twice", "balance.sign-rule", {"M35"},
                                       "Adds the increments of a step twice."),
      mutant<WithBalancer<LoadsAfterDropping>>("loads-after-dropping", "balance.sign-rule",
                                               {"M48", "algorithms 3.9"},
                                               "Takes no load above the mean, as after dropping."),
      mutant<WithBalancer<LoadsOfFirstChoices>>("loads-of-first-choices", "balance.sign-rule",
                                                {"M45"}, "Balances first choices only."),
      mutant<WithBalancer<LoadsInBf16>>("loads-in-bf16", "balance.sign-rule", {"M25"},
                                        "Compares loads after rounding them to bf16."),
      mutant<WithBalancer<BiasesInBf16>>("increments-in-bf16", "balance.sign-rule", {"M24"},
                                         "Keeps incremented biases in bf16."),
  };
}

}  // namespace ballast::props
