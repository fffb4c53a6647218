#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "core/model/settings.h"
#include "core/model/stable_latent_moe.h"
#include "core/random/stream.h"

namespace ballast {

/// Draws every parameter that has an initial deviation from N(0, deviation^2), each from the stream of its
/// own name, so that adding a parameter changes no other.
template <class Real>
void initialize(Module& model, const Stream& stream);

/// All parameters of a tree under their dotted names.
template <class Real>
void save_parameters(Module& model, StateDict& state, const std::string& prefix);
template <class Real>
void load_parameters(Module& model, const StateDict& state, const std::string& prefix);

/// The simulated next-token model: x = embedding[token] + offset; L times x <- x + MoE(RMSNorm(x)); logits =
/// W_out RMSNorm(x). There is no mixing between positions: the next token is predicted from the current one.
template <class Real>
class LanguageModel : public Module {
 public:
  using MakeBalancer = std::function<std::unique_ptr<Balancer>()>;

  LanguageModel(const LanguageModelSettings& settings, const MakeBalancer& make_balancer);

  /// Token ids `[tokens]`, each in [0, vocabulary), to logits `[tokens, vocabulary]`.
  const Matrix<Real>& forward(std::span<const std::int32_t> inputs, const ForwardContext& context);
  /// Of the last forward, from the gradient of the logits: adds the gradients of all parameters.
  void backward(MatrixView<const Real> dlogits, const Executor& executor);

  std::size_t layers() const { return blocks_.size(); }
  StableLatentMoE<Real>& moe(std::size_t layer) { return blocks_[layer]->moe; }
  const LanguageModelSettings& settings() const { return settings_; }

  Parameter<Real> embedding;  ///< `[vocabulary, hidden]`

 private:
  struct Block : Module {
    Block(const StableLatentMoESettings& settings, std::unique_ptr<Balancer> balancer);
    RmsNorm<Real> norm;
    StableLatentMoE<Real> moe;
    Matrix<Real> x;  ///< input of the last forward
    Matrix<Real> normed;
    std::vector<Real> inverse_rms;
  };

  /// What a layer of the last forward took in, or what the last one of them gave.
  Matrix<Real>& input_of(std::size_t layer) { return layer < layers() ? blocks_[layer]->x : last_; }
  void embed(Matrix<Real>& x) const;

  LanguageModelSettings settings_;
  std::vector<std::unique_ptr<Block>> blocks_;
  RmsNorm<Real> norm_;
  Linear<Real> output_;
  std::vector<std::int32_t> inputs_;
  Matrix<Real> last_, normed_, logits_, dx_, dnormed_;
  std::vector<Real> inverse_rms_;
};

}  // namespace ballast
