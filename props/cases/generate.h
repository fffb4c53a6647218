#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/matrix.h"
#include "core/random/stream.h"
#include "props/cases/case.h"

/// Cases from a stream. Everything is decided by the stream and a size from 0 (the smallest) to
/// 100. At any size small shapes (at most 4 experts, 4 tokens, 2 layers) and small dyadic values
/// are common, for a fault that they show is understood at once; large ones come with the size.
namespace ballast::props {

// Draws that generators and laws share.

/// True once in `n`.
bool one_in(Stream& stream, std::uint64_t n);
/// Uniform in [low, high].
std::size_t between(Stream& stream, std::size_t low, std::size_t high);
template <class T>
const T& pick(Stream& stream, std::span<const T> from) {
  return from[between(stream, 0, from.size() - 1)];
}
template <class T, std::size_t N>
T pick(Stream& stream, const T (&from)[N]) {
  return from[between(stream, 0, N - 1)];
}
/// A permutation of 0, ..., n - 1.
std::vector<std::size_t> permutation(Stream& stream, std::size_t n);

/// How the logits of a forward are distributed: each family is a way to be wrong.
enum class LogitFamily {
  grid,         ///< multiples of 1/2 in [-2, 2]: exact ties everywhere
  smooth,       ///< standard normal
  ulps,         ///< neighbours in fp32 of one value
  saturated,    ///< so large in size that sigmoid and softmax round to 0 and 1
  signed_zero,  ///< zeros of both signs, and few small values
  subnormal,    ///< multiples of the smallest float, and few small values
  constant,     ///< all experts of a token alike
  one_hot,      ///< one expert of each token far above the rest, which tie
  offset,       ///< a huge common offset with a small dyadic spread
  log_normal,   ///< few very large values
  hot_expert,   ///< normal, with one expert far above for all tokens
  tiny_scores,  ///< all sigmoids from 1e-9 to 1e-6
  infinite,     ///< grid with infinities of both signs
  nan,          ///< grid with NaNs, whole rows of them at times
};
/// A family whose values are all finite, the grid most often.
LogitFamily finite_family(Stream& stream);
/// Any family.
LogitFamily any_family(Stream& stream);
/// Logits `[tokens, experts]` of a family.
Matrix<float> generate_logits(Stream& stream, std::size_t tokens, std::size_t experts,
                              LogitFamily family);

/// How the biases of a layer are distributed.
enum class BiasFamily {
  zero,
  grid,      ///< multiples of 1/4 in [-1, 1]
  smooth,    ///< normal, deviation 1/4: all bits of the mantissa in use
  offset,    ///< 34.5 and a spread of multiples of 1/1024: nothing is left of it in bf16
  negative,  ///< multiples of 1/4 in [-9, -8]
};
BiasFamily bias_family(Stream& stream);
std::vector<float> generate_biases(Stream& stream, std::size_t experts, BiasFamily family);

/// `[tokens]`: none (empty), random, or all padding.
std::vector<std::uint8_t> generate_mask(Stream& stream, std::size_t tokens);

/// From 0 up, T = 1 and T = experts among them; a few hundred at times when the size is above 50.
std::size_t generate_tokens(Stream& stream, std::size_t size, std::size_t experts);

/// Experts from 1 up, not only powers of two, some hundreds at times when the size is above 50;
/// top_k with the edges 1, E - 1 and E; every score function, with and without renormalisation; up
/// to 3 layers.
ModelSpec generate_model(Stream& stream, std::size_t size);
/// The shapes that fast code has branches for: powers of two from 8 to 256 experts and from 1 to 16
/// chosen, and those of public models, up to 896 experts.
ModelSpec generate_tile_model(Stream& stream);

/// none, quantile (none if top_k = experts) and, rarely, sign; updates at the step, rarely at the
/// forward.
BalancerSpec generate_balancer(Stream& stream, const ModelSpec& model);
/// Of one of the families each; absent in a third of the cases.
std::optional<Biases> generate_open_biases(Stream& stream, const ModelSpec& model);

/// What a history may contain beside training forwards.
struct Features {
  bool eval = true;
  bool recompute = true;  ///< repeats of training forwards of the same step
  bool masks = true;
  bool steps = true;
  bool skipped_steps = true;
  bool collector = true;  ///< enter, exit, snapshot; one snapshot at the end if it is active there
  bool set_biases = true;
  bool save_load = true;
  bool ranks = true;
  bool nonfinite = false;  ///< logits that are infinite or NaN
};
/// Leaves each feature out with probability 1/2, so that others meet more often (Groce et al.,
/// "Swarm testing", ISSTA 2012).
Features swarm(Stream& stream, const Features& features);

/// Requests that make sense one after the other, at least one training forward among them. At most
/// about 4 + size / 6 requests.
std::vector<Request> generate_history(Stream& stream, std::size_t size, const Open& open,
                                      const Features& features);

/// A model, a balancer, and a history of a swarm of the features. With ranks left out there is one
/// rank.
Case generate_case(Stream& stream, std::size_t size, const Features& features);
/// A model without a balancer, and `forwards` evaluation forwards or fewer: for laws of routing
/// alone. Any family of logits, or finite ones only.
Case generate_routing_case(Stream& stream, std::size_t size, std::size_t forwards,
                           bool finite_only);

/// The same of one forward with up to 320 tokens on few experts.
Case generate_long_routing_case(Stream& stream, std::size_t size);

}  // namespace ballast::props
