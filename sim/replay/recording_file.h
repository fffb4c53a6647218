#pragma once

#include <fstream>
#include <optional>
#include <span>
#include <string>

#include "sim/output/new_file.h"
#include "sim/replay/frame.h"
#include "sim/scenario/scenario_file.h"

/// A recording of a scenario's runs: one line of JSON, then frames (see frame.h) to the end.
///
///     {"ballast_recording": 2, "version": "...", "numerics": "...", "scenario": {...}}
///
/// `scenario` is resolved, `numerics` is `numerics_fingerprint`. A step has a frame for each run,
/// which holds every choice, 16 bits of every weight, the biases, and digests: 3 bytes an
/// assignment up to 255 experts, 4 up to 65535. Evaluations and the ends of the runs have one each.
namespace ballast::sim {

inline constexpr int recording_format = 2;  ///< 1 held the first top_k choices only

/// Writes a recording, which appears whole or not at all. Errors: those of NewFile.
class RecordingWriter {
 public:
  RecordingWriter(const std::string& name, const ScenarioFile& scenario);

  void write(std::span<const Frame> frames);
  void commit() { file_.commit(); }

 private:
  NewFile file_;
};

/// Reads a recording from front to end, a frame at a time. Throws InputError when it is none, was
/// made by another version or with other numerics, or is damaged or cut off.
class RecordingReader {
 public:
  explicit RecordingReader(const std::string& name);

  const ScenarioFile& scenario() const { return scenario_; }
  /// The next frame; nothing at the end of the file.
  std::optional<Frame> next();

 private:
  void read_header();
  [[noreturn]] void refuse(const std::string& why, const std::string& right) const;

  std::string name_;
  std::ifstream file_;
  std::uint64_t size_ = 0, read_ = 0;
  ScenarioFile scenario_;
};

}  // namespace ballast::sim
