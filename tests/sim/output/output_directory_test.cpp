#include "sim/output/output_directory.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "sim/output/output_error.h"
#include "sim/usage_error.h"

namespace ballast::sim {
namespace {

namespace fs = std::filesystem;

class OutputDirectoryTest : public testing::Test {
 protected:
  void SetUp() override {
    root_ = fs::temp_directory_path() / ("ballast-output-test-" + std::to_string(getpid()));
    fs::remove_all(root_);
    fs::create_directory(root_);
  }
  void TearDown() override { fs::remove_all(root_); }

  std::string in_root(const std::string& name) const { return (root_ / name).string(); }
  std::size_t entries() const {
    return static_cast<std::size_t>(
        std::distance(fs::directory_iterator(root_), fs::directory_iterator()));
  }

  fs::path root_;
};

TEST_F(OutputDirectoryTest, AppearsWholeAtTheEnd) {
  OutputDirectory directory(in_root("results"));
  directory.write("a/b.txt", "text\n");
  EXPECT_FALSE(fs::exists(root_ / "results"));
  directory.commit();
  std::ifstream file(root_ / "results/a/b.txt");
  std::stringstream text;
  text << file.rdbuf();
  EXPECT_EQ(text.str(), "text\n");
  EXPECT_EQ(entries(), 1u);
}

TEST_F(OutputDirectoryTest, LeavesNothingBehindWithoutCommit) {
  { OutputDirectory(in_root("results")).write("a.txt", "text"); }
  EXPECT_EQ(entries(), 0u);
}

TEST_F(OutputDirectoryTest, RefusesWhatExistsAndLeavesItAlone) {
  fs::create_directory(root_ / "full");
  std::ofstream(root_ / "full/kept.txt") << "kept";
  std::ofstream(root_ / "file") << "kept";
  EXPECT_THROW(OutputDirectory(in_root("full")), UsageError);
  EXPECT_THROW(OutputDirectory(in_root("file")), UsageError);
  EXPECT_THROW(OutputDirectory(in_root("absent/results")), UsageError);
  for (const std::string name : {"", ".", "..", "a/..", "a/../.."}) {
    EXPECT_THROW((OutputDirectory(name)), UsageError) << name;
  }
  EXPECT_THROW(OutputDirectory(in_root(std::string(201, 'n'))), UsageError);
  EXPECT_TRUE(fs::exists(root_ / "full/kept.txt"));
  EXPECT_EQ(entries(), 2u);
}

TEST_F(OutputDirectoryTest, TakesAnEmptyDirectoryAndATrailingSlash) {
  fs::create_directory(root_ / "empty");
  OutputDirectory directory(in_root("empty/"));
  directory.write("a.txt", "text");
  directory.commit();
  EXPECT_TRUE(fs::exists(root_ / "empty/a.txt"));
  EXPECT_EQ(entries(), 1u);
}

TEST_F(OutputDirectoryTest, TellsOfAFileThatCannotBeWrittenAndLeavesNothing) {
  {
    OutputDirectory directory(in_root("results"));
    directory.write("first.txt", "text");
    fs::path hidden;
    for (const auto& entry : fs::directory_iterator(root_)) hidden = entry.path();
    fs::create_symlink("/dev/full", hidden / "a.txt");
    EXPECT_THROW(directory.write("a.txt", std::string(1 << 20, 'x')), OutputError);
  }
  EXPECT_EQ(entries(), 0u);
}

TEST_F(OutputDirectoryTest, MakesNothingBeforeTheFirstFile) {
  OutputDirectory directory(in_root("results"));
  EXPECT_EQ(entries(), 0u);
}

TEST_F(OutputDirectoryTest, TakesTheLongestNameThereMayBe) {
  OutputDirectory directory(in_root(std::string(200, 'n')));
  directory.write("a.txt", "text");
  directory.commit();
  EXPECT_TRUE(fs::exists(root_ / std::string(200, 'n') / "a.txt"));
}

TEST_F(OutputDirectoryTest, DoesNotReplaceWhatCameInTheMeantime) {
  {
    OutputDirectory directory(in_root("results"));
    directory.write("a.txt", "text");
    fs::create_directory(root_ / "results");
    std::ofstream(root_ / "results/kept.txt") << "kept";
    EXPECT_THROW(directory.commit(), OutputError);
  }
  EXPECT_TRUE(fs::exists(root_ / "results/kept.txt"));
  EXPECT_EQ(entries(), 1u);
}

TEST_F(OutputDirectoryTest, LetsAnotherProcessOfTheSameIdAlone) {
  const fs::path other = root_ / (".results.partial-" + std::to_string(getpid()) + "-0");
  fs::create_directory(other);
  {
    OutputDirectory directory(in_root("results"));
    directory.write("a.txt", "text");
    directory.commit();
  }
  EXPECT_TRUE(fs::exists(root_ / "results/a.txt"));
  EXPECT_TRUE(fs::exists(other));
}

TEST_F(OutputDirectoryTest, RemovesWhatIsHalfWrittenBeforeASignalEndsTheProcess) {
  const auto be_interrupted = [&] {
    OutputDirectory directory(in_root("results"));
    directory.write("a.txt", "text");
    raise(SIGTERM);
    directory.write("b.txt", "text");
  };
  EXPECT_EXIT(be_interrupted(), testing::KilledBySignal(SIGTERM), "");
  EXPECT_EQ(entries(), 0u);
}

TEST_F(OutputDirectoryTest, IsWholeBeforeASignalEndsTheProcess) {
  const auto be_interrupted = [&] {
    signal(SIGINT, SIG_DFL);  // whoever started the tests may have it ignored
    OutputDirectory directory(in_root("results"));
    directory.write("a.txt", "text");
    raise(SIGINT);
    directory.write("b.txt", "text");
    directory.commit();
  };
  EXPECT_EXIT(be_interrupted(), testing::KilledBySignal(SIGINT), "");
  EXPECT_TRUE(fs::exists(root_ / "results/b.txt"));
}

}  // namespace
}  // namespace ballast::sim
