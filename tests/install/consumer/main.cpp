// A program outside the project: keeps a balancer's biases and gets them back from their bytes.
#include <iostream>
#include <vector>

#include "core/state.h"

int main() {
  ballast::StateDict state;
  state.put("router.biases", std::vector<float>{0.25F, -0.5F, 0.125F});
  const auto restored = ballast::StateDict::from_bytes(state.to_bytes());
  if (!(restored == state)) {
    std::cerr << "the state did not survive its own bytes\n";
    return 1;
  }
  return 0;
}
