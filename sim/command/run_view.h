#pragma once

#include <cstddef>
#include <iosfwd>
#include <string>
#include <vector>

#include "sim/simulation/simulation.h"
#include "sim/simulation/verdict.h"
#include "sim/text/table.h"

namespace ballast::sim {

/// What a person sees of a run on stdout: a table that grows while it goes on, a row a run (variant) at every
/// shown step, and at the end what became of the expectations, and the verdict.
class RunView {
 public:
  /// `rows`: at about how many steps a row is shown, the first and the last among them.
  RunView(std::ostream& out, const std::vector<Simulation*>& runs, std::size_t rows = 10);

  /// Whether a row is due at this step.
  bool is_due(std::size_t step) const;
  /// The rows of the runs that have completed this step.
  void show_step(std::size_t step);
  void show_end(const std::string& digest, Verdict verdict);

 private:
  void show_outcomes();

  std::ostream& out_;
  std::vector<Simulation*> runs_;
  std::size_t every_;
  std::size_t last_step_ = 0;
  bool colour_;
  bool header_shown_ = false;
  Table table_;
};

}  // namespace ballast::sim
