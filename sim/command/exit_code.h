#pragma once

namespace ballast::sim {

/// How the `ballast` command ends.
enum class ExitCode : int {
  pass = 0,
  failed = 1,     ///< an expectation or a law failed
  unknown = 2,    ///< nothing was actually tested, or not enough to say
  usage = 3,      ///< the command line makes no sense
  bad_input = 4,  ///< a file cannot be used
  diverged = 5,   ///< a replay differs from its recording
  internal = 70,  ///< a fault of this program, or of the machine it runs on
};

}  // namespace ballast::sim
