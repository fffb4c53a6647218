#pragma once

#include <string>
#include <utility>
#include <vector>

#include "core/diagnostics/expert_load_slot.h"
#include "core/matrix.h"

namespace ballast {

/// A trained matrix (vectors are matrices of one row) and the sum of its gradients since the last step.
template <class Real>
struct Parameter {
  Parameter() = default;
  Parameter(std::size_t rows, std::size_t cols, Real fill = Real{})
      : value(rows, cols, fill), gradient(rows, cols) {}
  Matrix<Real> value;
  Matrix<Real> gradient;
  /// Standard deviation of the normal distribution that `initialize` draws the values from; 0 keeps them.
  double initial_deviation = 0.0;
};

/// A node of the model's tree of modules: children and parameters under names, and a train/eval mode.
/// Modules are registered by reference, so they are neither copied nor moved.
class Module {
 public:
  Module() = default;
  Module(const Module&) = delete;
  Module& operator=(const Module&) = delete;
  virtual ~Module() = default;

  /// This module under the name "", then all below it by dotted name, parents before children, in the
  /// order of registration.
  std::vector<std::pair<std::string, Module*>> named_modules();

  /// All parameters of scalar type Real in the tree, by dotted name, in the same order.
  template <class Real>
  std::vector<std::pair<std::string, Parameter<Real>*>> named_parameters();

  /// Sets the mode of this module and all below it. New modules are in training mode.
  void train(bool on = true);
  void eval() { train(false); }
  bool training() const { return training_; }

  /// The slot by which a load collector counts this module's choices, or null for a module without one.
  /// A wrapper takes part by returning the slot of what it wraps.
  virtual ExpertLoadSlot* expert_load_slot() { return nullptr; }

 protected:
  void add_module(std::string name, Module& child);
  void add_parameter(std::string name, Parameter<float>& parameter);
  void add_parameter(std::string name, Parameter<double>& parameter);

 private:
  template <class Real>
  std::vector<std::pair<std::string, Parameter<Real>*>>& own_parameters();

  std::vector<std::pair<std::string, Module*>> children_;
  std::vector<std::pair<std::string, Parameter<float>*>> float_parameters_;
  std::vector<std::pair<std::string, Parameter<double>*>> double_parameters_;
  bool training_ = true;
};

}  // namespace ballast
