#include <iterator>

#include "props/laws/families.h"

namespace ballast::props {

namespace {

std::vector<Law> concatenated() {
  std::vector<Law> all;
  for (const auto family :
       {selection_laws, weights_laws, counting_laws, invisible_laws, collector_laws, metrics_laws,
        quantile_laws, state_laws, interplay_laws, drift_laws}) {
    auto laws = family();
    all.insert(all.end(), std::make_move_iterator(laws.begin()),
               std::make_move_iterator(laws.end()));
  }
  return all;
}

}  // namespace

const std::vector<Law>& all_laws() {
  static const std::vector<Law> laws = concatenated();
  return laws;
}

}  // namespace ballast::props
