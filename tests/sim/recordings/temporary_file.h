#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

namespace ballast::sim {

/// A file with this content, gone at the end of its scope. A test that has several at a time gives
/// them different endings.
class TemporaryFile {
 public:
  explicit TemporaryFile(const std::string& content, const std::string& ending = ".jsonl") {
    const auto* test = testing::UnitTest::GetInstance()->current_test_info();
    path_ = (std::filesystem::temp_directory_path() /
             (std::string("ballast-") + test->test_suite_name() + "-" + test->name() + "-" +
              std::to_string(getpid()) + ending))
                .string();
    std::ofstream(path_, std::ios::binary) << content;
  }
  ~TemporaryFile() { std::filesystem::remove(path_); }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;

  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace ballast::sim
