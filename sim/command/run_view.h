#pragma once

#include <cstddef>
#include <iosfwd>
#include <string>
#include <vector>

#include "sim/scenario/scenario_file.h"
#include "sim/simulation/simulation.h"
#include "sim/simulation/verdict.h"
#include "sim/text/table.h"

namespace ballast::sim {

/// What a person sees of a run on stdout, in 80 columns: what runs, a table that grows while it
/// goes on, with a row a run (variant) at every shown step, and at the end what became of the
/// expectations, and the verdict. Throws OutputError as soon as the stream takes nothing more.
class RunView {
 public:
  /// The file and the runs outlive the view. `rows`: at about how many steps rows are shown; the
  /// first step and the last of each run are always among them.
  RunView(std::ostream& out, const ScenarioFile& file, std::vector<const Simulation*> runs,
          std::size_t rows = 10);

  void show_start();
  /// Whether a row is due at this step.
  bool is_due(std::size_t step) const;
  /// The rows of the runs that have completed this step.
  void show_step(std::size_t step);
  void show_end();

 private:
  void show_events();
  void show_collapse();
  void show_expectations();
  void show_verdict();
  void flush();
  bool has_variants() const { return !file_.variants.empty(); }

  std::ostream& out_;
  const ScenarioFile& file_;
  std::vector<const Simulation*> runs_;
  std::size_t every_;
  bool colour_;
  Table table_;
};

}  // namespace ballast::sim
