#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "sim/replay/frame.h"

namespace ballast::sim {

/// The first place where a replay differs from its recording.
struct Divergence {
  enum class What {
    choice,      ///< a token goes to another expert
    weight,      ///< a chosen expert has another weight
    bias,        ///< an expert's bias after the step is another
    layer,       ///< something of the layer that the recording keeps only a digest of
    step,        ///< what is not of a layer: the loss, the number of tokens
    evaluation,  ///< an evaluation
    end,         ///< the end of the run: its final state
    order,       ///< another kind of event comes next
  };

  What what = What::order;
  std::size_t run = 0;
  std::size_t step = 0;
  /// Of a choice: no expert when the token has no more in the replay, where the recording has one.
  std::optional<std::size_t> layer = std::nullopt, token = std::nullopt, expert = std::nullopt;
  /// Of a choice: the expert that the recording has in this place, if it has one.
  std::optional<std::size_t> recorded_expert = std::nullopt;
  /// Of a bias: the values of the replay and of the recording.
  std::optional<float> value = std::nullopt, recorded_value = std::nullopt;
};

std::string_view word(Divergence::What what);

/// Compares what was recorded with what the replay has at the same place; nothing when they are
/// equal. In a step the choices and weights of all layers come first, layer by layer and token by
/// token, then the biases, which follow from them.
std::optional<Divergence> divergence(const Frame& recorded, const Frame& replayed,
                                     const Scenario& scenario);

/// Where a token of a step is: rank, micro-batch, sequence and position, each from 0.
struct TokenPlace {
  std::size_t rank = 0, micro_batch = 0, sequence = 0, position = 0;
};
TokenPlace place_of_token(std::size_t token, const Scenario& scenario);

/// "step 12, layer 1, token 345 (rank 0, micro-batch 1, sequence 2, position 25): goes to expert
/// 17, and in the recording to expert 4".
std::string in_words(const Divergence& divergence, const Scenario& scenario);

}  // namespace ballast::sim
