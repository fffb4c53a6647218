#include "core/model/module.h"

namespace ballast {

namespace {

std::string dotted(const std::string& path, const std::string& name) {
  return path.empty() ? name : path + "." + name;
}

}  // namespace

std::vector<std::pair<std::string, Module*>> Module::named_modules() {
  std::vector<std::pair<std::string, Module*>> all = {{"", this}};
  for (const auto& [name, child] : children_) {
    for (const auto& [path, module] : child->named_modules()) {
      all.emplace_back(path.empty() ? name : dotted(name, path), module);
    }
  }
  return all;
}

template <>
std::vector<std::pair<std::string, Parameter<float>*>>& Module::own_parameters<float>() {
  return float_parameters_;
}

template <>
std::vector<std::pair<std::string, Parameter<double>*>>& Module::own_parameters<double>() {
  return double_parameters_;
}

template <class Real>
std::vector<std::pair<std::string, Parameter<Real>*>> Module::named_parameters() {
  std::vector<std::pair<std::string, Parameter<Real>*>> all;
  for (const auto& [path, module] : named_modules()) {
    for (const auto& [name, parameter] : module->template own_parameters<Real>()) {
      all.emplace_back(dotted(path, name), parameter);
    }
  }
  return all;
}

template std::vector<std::pair<std::string, Parameter<float>*>> Module::named_parameters<float>();
template std::vector<std::pair<std::string, Parameter<double>*>> Module::named_parameters<double>();

void Module::train(bool on) {
  training_ = on;
  for (const auto& [name, child] : children_) child->train(on);
}

void Module::add_module(std::string name, Module& child) {
  children_.emplace_back(std::move(name), &child);
}

void Module::add_parameter(std::string name, Parameter<float>& parameter) {
  float_parameters_.emplace_back(std::move(name), &parameter);
}

void Module::add_parameter(std::string name, Parameter<double>& parameter) {
  double_parameters_.emplace_back(std::move(name), &parameter);
}

}  // namespace ballast
