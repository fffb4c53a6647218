#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <vector>

#include "props/campaign/failure.h"

namespace ballast::props {

/// A case that is on disk: one that failed, or one that was running when a campaign was cut off.
struct StoredCase {
  Reproduction reproduction;
  Case input;
  std::string file;
  bool unfinished = false;  ///< it was running; whether it fails is not known
};

/// Failures as files, one each, in a folder; and beside it, in `running`, the cases that are being run.
/// A file is small JSON that a person can read, change and send to a subject by hand.
class FailureStore {
 public:
  /// `.ballast/failures` for the failures and `.ballast/running`. Nothing is made before there is
  /// something to write.
  explicit FailureStore(std::filesystem::path failures);

  /// Writes a failure, whole or not at all, and gives its file: LAW-SEED-INDEX.json. Throws
  /// std::system_error.
  std::string write(const Law& law, const Failure& failure) const;

  /// The stored failures in the order of their names, and after them the cases that a campaign which is
  /// no longer alive had running. Throws sim::InputError for a file that is no such case.
  std::vector<StoredCase> read() const;

  /// Notes the case that the subject of this number runs now, in the place of its last one. Throws
  /// std::system_error.
  void note_running(std::size_t subject, const Reproduction& reproduction, const Case& input) const;
  /// Forgets what this process had running.
  void forget_running(std::size_t subjects) const;
  /// Forgets an unfinished case.
  void forget(const StoredCase& stored) const;

 private:
  std::filesystem::path running_file(std::size_t subject) const;

  std::filesystem::path failures_;
  std::filesystem::path running_;
};

}  // namespace ballast::props
