#include "sim/replay/divergence.h"

#include <algorithm>
#include <bit>

#include "sim/text/numbers.h"

namespace ballast::sim {
namespace {

using What = Divergence::What;
using Found = std::optional<Divergence>;

bool same_bits(float a, float b) {
  return std::bit_cast<std::uint32_t>(a) == std::bit_cast<std::uint32_t>(b);
}

/// The expert in a slot, if the token has one there.
std::optional<std::size_t> expert_at(const StepLayers& step, std::size_t layer, std::size_t token,
                                     std::size_t slot) {
  if (slot >= step.slots(layer)) return std::nullopt;
  const std::size_t expert = step.choice(layer, token, slot);
  return expert == step.experts() ? std::nullopt : std::optional(expert);
}

Found routing_divergence(const StepLayers& recorded, const StepLayers& replayed, Divergence at) {
  const std::size_t layer = *at.layer;
  const std::size_t slots = std::max(recorded.slots(layer), replayed.slots(layer));
  for (std::size_t token = 0; token < recorded.tokens(); ++token) {
    for (std::size_t slot = 0; slot < slots; ++slot) {
      const auto before = expert_at(recorded, layer, token, slot);
      const auto now = expert_at(replayed, layer, token, slot);
      const bool other_weight =
          before && now && recorded.mark(layer, token, slot) != replayed.mark(layer, token, slot);
      if (before == now && !other_weight) continue;
      at.what = before != now ? What::choice : What::weight;
      at.token = token;
      at.expert = now;
      if (before != now) at.recorded_expert = before;
      return at;
    }
  }
  return std::nullopt;
}

Found bias_divergence(const StepLayers& recorded, const StepLayers& replayed, Divergence at) {
  const std::size_t layer = *at.layer;
  for (std::size_t expert = 0; expert < recorded.experts(); ++expert) {
    const float before = recorded.bias(layer, expert), now = replayed.bias(layer, expert);
    if (same_bits(before, now)) continue;
    at.what = What::bias;
    at.expert = expert;
    at.value = now;
    at.recorded_value = before;
    return at;
  }
  return std::nullopt;
}

/// The first layer where `find` finds something, among those that differ.
template <class Find>
Found first_of_layers(const StepLayers& recorded, const StepLayers& replayed, Divergence at,
                      Find find) {
  for (std::size_t layer = 0; layer < recorded.layers(); ++layer) {
    if (recorded.whole(layer) == replayed.whole(layer)) continue;
    at.layer = layer;
    if (auto found = find(recorded, replayed, at)) return found;
  }
  return std::nullopt;
}

Found undetailed(const StepLayers&, const StepLayers&, Divergence at) {
  at.what = What::layer;
  return at;
}

Divergence step_divergence(const Frame& recorded, const Frame& replayed, const Scenario& scenario,
                           Divergence at) {
  const StepLayers before(scenario, recorded.layers), now(scenario, replayed.layers);
  at.what = What::step;
  if (!before.fits() || !now.fits()) return at;
  if (auto found = first_of_layers(before, now, at, routing_divergence)) return *found;
  if (auto found = first_of_layers(before, now, at, bias_divergence)) return *found;
  if (auto found = first_of_layers(before, now, at, undetailed)) return *found;
  return at;
}

}  // namespace

std::string_view word(What what) {
  switch (what) {
    case What::choice:
      return "choice";
    case What::weight:
      return "weight";
    case What::bias:
      return "bias";
    case What::layer:
      return "layer";
    case What::step:
      return "step";
    case What::evaluation:
      return "evaluation";
    case What::end:
      return "end";
    default:
      return "order";
  }
}

Found divergence(const Frame& recorded, const Frame& replayed, const Scenario& scenario) {
  if (recorded == replayed) return std::nullopt;
  Divergence at{.what = What::order, .run = replayed.run, .step = replayed.step};
  if (recorded.kind != replayed.kind || recorded.run != replayed.run ||
      recorded.step != replayed.step) {
    return at;
  }
  if (recorded.kind == Frame::Kind::step) return step_divergence(recorded, replayed, scenario, at);
  at.what = recorded.kind == Frame::Kind::evaluation ? What::evaluation : What::end;
  return at;
}

TokenPlace place_of_token(std::size_t token, const Scenario& scenario) {
  const std::size_t length = scenario.tokens.sequence_length;
  const std::size_t sequence = token / length;
  const std::size_t batch = sequence / scenario.training.sequences;
  return {.rank = batch / scenario.training.micro_batches,
          .micro_batch = batch % scenario.training.micro_batches,
          .sequence = sequence % scenario.training.sequences,
          .position = token % length};
}

std::string in_words(const Divergence& d, const Scenario& scenario) {
  const auto named = [](const std::optional<std::size_t>& expert) {
    return expert ? "expert " + std::to_string(*expert) : std::string("no further expert");
  };
  const auto expert = [&] { return named(d.expert); };
  std::string text = "step " + std::to_string(d.step);
  if (d.layer) text += ", layer " + std::to_string(*d.layer);
  if (d.token) {
    const TokenPlace place = place_of_token(*d.token, scenario);
    text += ", token " + std::to_string(*d.token) + " (rank " + std::to_string(place.rank) +
            ", micro-batch " + std::to_string(place.micro_batch) + ", sequence " +
            std::to_string(place.sequence) + ", position " + std::to_string(place.position) + ")";
  }
  switch (d.what) {
    case What::choice:
      return text + ": goes to " + expert() + ", and in the recording to " +
             named(d.recorded_expert);
    case What::weight:
      return text + ": " + expert() + " has another weight than in the recording";
    case What::bias:
      return text + ": the bias of " + expert() + " is " + shortest(*d.value) +
             ", and in the recording " + shortest(*d.recorded_value);
    case What::layer:
      return text + ": its digest is another than in the recording";
    case What::step:
      return text + ": the loss, or the number of tokens, is another than in the recording";
    case What::evaluation:
      return "the evaluation after " + text + " is another than in the recording";
    case What::end:
      return "after " + text + ", the last: the final state is another than in the recording";
    default:
      return text + ": the recording does not go on with this";
  }
}

}  // namespace ballast::sim
