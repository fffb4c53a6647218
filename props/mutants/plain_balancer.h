#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/balancers/balancer.h"
#include "props/subjects/built_in_subject.h"

namespace ballast::props {

/// What one valid token of a training forward showed.
struct ObservedToken {
  std::vector<float> scores;  ///< raw, `[experts]`
  std::vector<std::int32_t> chosen;
  float cutoff = 0.0f;
  std::size_t rank = 0;
  std::size_t forward = 0;  ///< a running number
};
using ObservedTokens = std::vector<ObservedToken>;

/// Quantile balancing, exact and by histogram, and the sign rule, in the plainest way: it keeps the
/// tokens of a step, and sorts or counts them when the step ends. Every part of it is a virtual
/// function, so that a faulty balancer is one of them overridden.
class PlainBalancer : public Balancer {
 public:
  /// Of one layer of the model. balancer.kind is not `none`.
  PlainBalancer(const Open& open, OnOverflow on_overflow);

  std::span<const float> biases() const final { return biases_; }
  void set_biases(std::span<const float> biases) final;
  void observe(const RoutedBatch& batch) override;
  void end_step(bool applied) override;
  /// The biases; what is pending is dropped by a load.
  void save(StateDict& state, const std::string& prefix) const final;
  void load(const StateDict& state, const std::string& prefix) final;

 protected:
  const BalancerSpec& spec() const { return spec_; }
  OnOverflow on_overflow() const { return on_overflow_; }
  std::size_t experts() const { return biases_.size(); }
  std::size_t top_k() const { return top_k_; }
  std::vector<float>& biases_now() { return biases_; }
  ObservedTokens& pending() { return pending_; }
  double smallest_bias() const;
  double largest_bias() const;

  /// Whether a row counts for something.
  virtual bool takes(const RoutedBatch& batch, std::size_t row) const;
  /// alpha, from s + b in descending order, `[experts]`.
  virtual float cutoff(const std::vector<float>& descending) const { return descending[top_k_]; }
  /// r of one expert.
  virtual float required(const ObservedToken& token, std::size_t expert) const {
    return token.cutoff - token.scores[expert];
  }
  /// bhat of all experts, before centring.
  virtual std::vector<double> estimate(const ObservedTokens& tokens) const;
  /// bhat from the required biases of an expert, ascending.
  virtual double exact(const std::vector<double>& r) const { return r[floor_q(r.size())]; }
  virtual double histogram(const std::vector<double>& r) const;
  // Of the histogram: its range; the bin of a place in units of bins; a count and one more; the
  // rank that is looked for; where in its bin the estimate lies, from q, the count before the bin,
  // and its own.
  virtual double low() const { return smallest_bias() - 1.0; }
  virtual double high() const { return largest_bias() + 1.0; }
  virtual double bin_of(double position) const;
  virtual double counted(double count) const { return count + 1.0; }
  virtual double rank(double q) const;
  virtual double fraction(double q, double before, double own) const;
  /// What the sign rule multiplies its rate with: sign(mean load - load).
  virtual double direction(double mean, double load) const;
  /// What of the mean is taken from all biases.
  virtual double centre(const std::vector<double>& estimate) const;
  /// The biases that follow from the estimate, in place of the old ones.
  virtual std::vector<float> moved(std::vector<double> estimate) const;
  /// Moves the biases from what is pending, and drops it.
  virtual void move();

  /// floor(q), q = T k / E.
  std::size_t floor_q(std::size_t tokens) const { return tokens * top_k_ / experts(); }
  /// Assignments, `[experts]`.
  virtual std::vector<double> loads(const ObservedTokens& tokens) const;
  void add_signs();

 private:
  ObservedToken token(const RoutedBatch& batch, std::size_t row) const;

  BalancerSpec spec_;
  OnOverflow on_overflow_;
  std::size_t top_k_;
  std::vector<float> biases_;
  ObservedTokens pending_;
  std::size_t forwards_ = 0;
};

/// The built-in subject around a balancer of type B.
template <class B>
class WithBalancer : public BuiltInSubject {
 public:
  using BuiltInSubject::BuiltInSubject;

 private:
  std::unique_ptr<Balancer> make_balancer() override {
    if (opened().balancer.kind == BalancerKind::none) return BuiltInSubject::make_balancer();
    return std::make_unique<B>(opened(), hello().on_overflow);
  }
};

}  // namespace ballast::props
