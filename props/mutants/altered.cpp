#include "props/mutants/altered.h"

namespace ballast::props {

void weigh_anew(Routing<float>& routing, const ModelSpec& model) {
  const auto& gates = routing.gates.rows() > 0 ? routing.gates : routing.scores;
  for (std::size_t t = 0; t < routing.weights.rows(); ++t) {
    float sum = 0.0f;
    for (std::size_t slot = 0; slot < routing.weights.cols(); ++slot) {
      routing.weights(t, slot) =
          gates(t, static_cast<std::size_t>(routing.selection.indices(t, slot)));
      sum += routing.weights(t, slot);
    }
    for (float& p : routing.weights.row(t)) {
      if (model.renormalize) p /= sum + 1e-20f;
      p *= static_cast<float>(model.routed_scale);
    }
  }
}

}  // namespace ballast::props
