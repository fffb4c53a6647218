#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <string_view>

#include "sim/output/file_descriptor.h"
#include "sim/sweep/run_result.h"

namespace ballast::sim {

/// The directory that a sweep keeps its results in, so that it can go on from there when it was
/// stopped, by kill -9 too:
///
///     sweep.json     whose results these are (identity_of)
///     results.jsonl  a line a run. While the sweep is under way it is a journal, in the order in
///                    which runs came to their end; at the end it is put in the order of the runs
///     results.csv, summary.json   come at the end
///
/// Every file but the journal appears whole under its name. A journal line is written by one call;
/// from the first line that is not whole everything is dropped when the directory is opened again.
/// The last line of a run counts. Two processes never work in one directory.
///
/// Errors: UsageError when the name cannot be used, when it holds anything else than this sweep
/// (with the reason), or another process is at work in it; OutputError when nothing can be written.
class SweepDirectory {
 public:
  /// Makes the directory, or opens it and reads the journal.
  SweepDirectory(const std::string& name, const Sweep& sweep);

  /// The runs that have a result. A run that failed is not among them: it is made again.
  const std::map<std::size_t, RunResult>& results() const { return results_; }

  /// Adds a line to the journal.
  void append(const RunResult& result);
  /// Replaces a file, whole.
  void replace(const std::string& file, std::string_view text) const;

 private:
  void lock();
  void check_identity();
  void open_journal();

  const Sweep& sweep_;
  std::filesystem::path path_;
  FileDescriptor lock_, journal_;
  std::map<std::size_t, RunResult> results_;
};

/// The names of its files.
inline constexpr const char* sweep_file_name = "sweep.json";
inline constexpr const char* results_file_name = "results.jsonl";

}  // namespace ballast::sim
