#include "core/model/language_model.h"

#include <algorithm>
#include <stdexcept>
#include <string>

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
const Matrix<Real>& LanguageModel<Real>::forward(std::span<const std::int32_t> inputs,
                                                 const ForwardContext& context) {
  const std::size_t hidden = settings_.moe.router.hidden;
  const auto offset = static_cast<Real>(settings_.embedding_offset);
  inputs_.assign(inputs.begin(), inputs.end());
  Matrix<Real> x(inputs.size(), hidden);
  for (std::size_t t = 0; t < inputs.size(); ++t) {
    const auto id = static_cast<std::size_t>(inputs[t]);
    if (id >= settings_.vocabulary) {
      throw std::invalid_argument("language model: token " + std::to_string(inputs[t]) +
                                  " is not in the vocabulary of " + std::to_string(settings_.vocabulary));
    }
    const auto from = embedding.value.row(id);
    for (std::size_t i = 0; i < hidden; ++i) x(t, i) = from[i] + offset;
  }
  for (const auto& block : blocks_) {
    Matrix<Real> normed(x.rows(), hidden);
    block->norm.forward(x, normed, block->inverse_rms);
    const Matrix<Real> y = block->moe.forward(normed, context);
    block->x = x;
    for (std::size_t i = 0; i < x.values().size(); ++i) x.values()[i] += y.values()[i];
  }
  last_ = std::move(x);
  normed_ = {last_.rows(), hidden};
  norm_.forward(last_, normed_, inverse_rms_);
  logits_ = {last_.rows(), settings_.vocabulary};
  output_.forward(normed_, logits_, context.executor);
  return logits_;
}

template <class Real>
void LanguageModel<Real>::backward(MatrixView<const Real> dlogits, const Executor& executor) {
  Matrix<Real> dx(last_.rows(), last_.cols()), dnormed(last_.rows(), last_.cols());
  output_.backward_weight(normed_, dlogits, executor);
  output_.backward_input(dlogits, dx, executor);
  norm_.backward(last_, inverse_rms_, dx, dx);
  for (auto block = blocks_.rbegin(); block != blocks_.rend(); ++block) {
    const Matrix<Real> dmoe = (*block)->moe.backward(dx, executor);
    (*block)->norm.backward((*block)->x, (*block)->inverse_rms, dmoe, dnormed);
    for (std::size_t i = 0; i < dx.values().size(); ++i) dx.values()[i] += dnormed.values()[i];
  }
  for (std::size_t t = 0; t < inputs_.size(); ++t) {
    const auto to = embedding.gradient.row(static_cast<std::size_t>(inputs_[t]));
    for (std::size_t i = 0; i < to.size(); ++i) to[i] += dx(t, i);
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
