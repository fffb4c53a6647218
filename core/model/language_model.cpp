#include "core/model/language_model.h"

#include <algorithm>
#include <functional>
#include <stdexcept>
#include <string>

#include "core/model/elementwise.h"
#include "core/random/distributions.h"

namespace ballast {

template <class Real>
void initialize(Module& model, const Stream& stream) {
  for (const auto& [name, parameter] : model.named_parameters<Real>()) {
    if (parameter->initial_deviation == 0.0) continue;
    Stream own = stream.child(name);
    for (Real& value : parameter->value.values()) {
      value = static_cast<Real>(parameter->initial_deviation * normal(own));
    }
  }
}

template <class Real>
void save_parameters(Module& model, StateDict& state, const std::string& prefix) {
  for (const auto& [name, parameter] : model.named_parameters<Real>()) {
    state.put(prefix + name, std::span<const Real>(parameter->value.values()));
  }
}

template <class Real>
void load_parameters(Module& model, const StateDict& state, const std::string& prefix) {
  const auto parameters = model.named_parameters<Real>();
  for (const auto& [name, parameter] : parameters) {
    state.get<Real>(prefix + name, parameter->value.values().size());
  }
  for (const auto& [name, parameter] : parameters) {
    std::ranges::copy(state.get<Real>(prefix + name), parameter->value.values().begin());
  }
}

template <class Real>
LanguageModel<Real>::Block::Block(const StableLatentMoESettings& settings,
                                  std::unique_ptr<Balancer> balancer)
    : norm(settings.router.hidden, settings.norm_eps), moe(settings, std::move(balancer)) {
  this->add_module("norm", norm);
  this->add_module("moe", moe);
}

template <class Real>
LanguageModel<Real>::LanguageModel(const LanguageModelSettings& settings,
                                   const MakeBalancer& make_balancer)
    : embedding(settings.vocabulary, settings.moe.router.hidden),
      settings_(settings),
      norm_(settings.moe.router.hidden, settings.moe.norm_eps),
      output_(settings.vocabulary, settings.moe.router.hidden) {
  embedding.initial_deviation = 1.0;
  this->add_parameter("embedding", embedding);
  for (std::size_t layer = 0; layer < settings.layers; ++layer) {
    blocks_.push_back(std::make_unique<Block>(settings.moe, make_balancer()));
    this->add_module("layers." + std::to_string(layer), *blocks_.back());
  }
  this->add_module("norm", norm_);
  this->add_module("output", output_);
}

template <class Real>
void LanguageModel<Real>::embed(Matrix<Real>& x) const {
  const std::size_t hidden = settings_.moe.router.hidden;
  const auto offset = static_cast<Real>(settings_.embedding_offset);
  x.reshape(inputs_.size(), hidden);
  for (std::size_t t = 0; t < inputs_.size(); ++t) {
    const auto id = static_cast<std::size_t>(inputs_[t]);
    if (id >= settings_.vocabulary) {
      throw std::invalid_argument("language model: token " + std::to_string(inputs_[t]) +
                                  " is not in the vocabulary of " + std::to_string(settings_.vocabulary));
    }
    const auto from = embedding.value.row(id);
    const auto to = x.row(t);
    for (std::size_t i = 0; i < hidden; ++i) to[i] = from[i] + offset;
  }
}

template <class Real>
const Matrix<Real>& LanguageModel<Real>::forward(std::span<const std::int32_t> inputs,
                                                 const ForwardContext& context) {
  const std::size_t tokens = inputs.size(), hidden = settings_.moe.router.hidden;
  inputs_.assign(inputs.begin(), inputs.end());
  embed(input_of(0));
  for (std::size_t layer = 0; layer < layers(); ++layer) {
    Block& block = *blocks_[layer];
    block.normed.reshape(tokens, hidden);
    block.norm.forward(block.x, block.normed, block.inverse_rms);
    const auto y = block.moe.forward(block.normed, context).values();
    Matrix<Real>& next = input_of(layer + 1);
    next.reshape(tokens, hidden);
    std::ranges::transform(block.x.values(), y, next.data(), std::plus{});
  }
  normed_.reshape(tokens, hidden);
  norm_.forward(last_, normed_, inverse_rms_);
  logits_.reshape(tokens, settings_.vocabulary);
  output_.forward(normed_, logits_, context.executor);
  return logits_;
}

template <class Real>
void LanguageModel<Real>::backward(MatrixView<const Real> dlogits, const Executor& executor) {
  dx_.reshape(last_.rows(), last_.cols());
  dnormed_.reshape(last_.rows(), last_.cols());
  output_.backward_weight(normed_, dlogits, executor);
  output_.backward_input(dlogits, dx_, executor);
  norm_.backward(last_, inverse_rms_, dx_, dx_);
  for (auto block = blocks_.rbegin(); block != blocks_.rend(); ++block) {
    const Matrix<Real>& dmoe = (*block)->moe.backward(dx_, executor);
    (*block)->norm.backward((*block)->x, (*block)->inverse_rms, dmoe, dnormed_);
    add_to<Real>(dx_.values(), dnormed_.values());
  }
  for (std::size_t t = 0; t < inputs_.size(); ++t) {
    add_to<Real>(embedding.gradient.row(static_cast<std::size_t>(inputs_[t])), dx_.row(t));
  }
}

template void initialize<float>(Module&, const Stream&);
template void initialize<double>(Module&, const Stream&);
template void save_parameters<float>(Module&, StateDict&, const std::string&);
template void save_parameters<double>(Module&, StateDict&, const std::string&);
template void load_parameters<float>(Module&, const StateDict&, const std::string&);
template void load_parameters<double>(Module&, const StateDict&, const std::string&);
template class LanguageModel<float>;
template class LanguageModel<double>;

}  // namespace ballast
