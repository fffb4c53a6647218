#include "sim/tokens/text.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>

#include "sim/input_error.h"

namespace ballast::sim {
namespace {

/// A file that goes away with its test.
class TextFile {
 public:
  explicit TextFile(const std::string& bytes)
      : path_(std::filesystem::temp_directory_path() /
              ("ballast-text-test-" + std::to_string(::getpid()))) {
    std::ofstream(path_, std::ios::binary) << bytes;
  }
  ~TextFile() { std::filesystem::remove(path_); }
  TextFile(const TextFile&) = delete;
  TextFile& operator=(const TextFile&) = delete;
  std::string path() const { return path_.string(); }

 private:
  std::filesystem::path path_;
};

/// 2000 bytes, all 256 values among them, in which 4 bytes in a row tell the place: the place in
/// base 45, twice.
std::string bytes_that_tell_their_place() {
  std::string bytes;
  for (int i = 0; i < 1000; ++i) {
    bytes += static_cast<char>(i % 256);
    bytes += static_cast<char>(i / 256 + 4 * (i % 64));
  }
  return bytes;
}

std::string as_bytes(const Sequence& sequence) {
  std::string out;
  for (const auto token : sequence.tokens) out += static_cast<char>(token);
  return out;
}

std::set<std::size_t> starts(const TextSource& source, const std::string& bytes, Split split) {
  std::set<std::size_t> found;
  for (std::uint64_t i = 0; i < 3000; ++i) {
    const std::string piece = as_bytes(source.sequence({split, i / 10, i % 10}));
    const auto start = bytes.find(piece);
    EXPECT_NE(start, std::string::npos);
    EXPECT_EQ(bytes.find(piece, start + 1), std::string::npos);
    found.insert(start);
  }
  return found;
}

TEST(TextSource, TakesPiecesOfTheFileWithTrainingAndEvaluationApart) {
  const std::string bytes = bytes_that_tell_their_place();
  const TextFile file(bytes);
  const std::size_t length = 30;
  const TextSource source(file.path(), length, 11);
  ASSERT_EQ(source.training_bytes(), 1800u);

  const auto training = starts(source, bytes, Split::training);
  EXPECT_LE(*training.rbegin() + length + 1, 1800u);
  EXPECT_GT(training.size(), 1300u);  // of 1770 places, 3000 draws leave e^(-3000/1770) out: 18 %

  const auto evaluation = starts(source, bytes, Split::evaluation);
  EXPECT_EQ(*evaluation.begin(), 1800u);
  EXPECT_EQ(*evaluation.rbegin() + length + 1, 2000u);
  EXPECT_EQ(evaluation.size(), 170u);
}

TEST(TextSource, CanHaveOnePlaceOnlyForEvaluation) {
  std::string text(60, 'x');
  text.back() = 'y';
  const TextFile file(text);
  const TextSource source(file.path(), 5, 1);
  EXPECT_EQ(as_bytes(source.sequence({Split::evaluation, 0, 0})), "xxxxxy");
}

std::string error_of(const std::string& file, std::size_t length) {
  try {
    TextSource(file, length, 1);
  } catch (const InputError& error) {
    return error.what();
  }
  return "accepted";
}

TEST(TextSource, RefusesAFileThatIsTooShort) {
  const TextFile file(std::string(59, 'x'));
  EXPECT_EQ(error_of(file.path(), 4), "accepted");
  EXPECT_EQ(error_of(file.path(), 5),
            file.path() +
                ": cannot take tokens from the text: it has 59 bytes, and its last tenth has to "
                "hold a sequence of 5 and one more; give a longer file, or make "
                "tokens.sequence_length smaller");
}

TEST(TextSource, RefusesAnEmptyFileADirectoryAndNoFile) {
  const TextFile file("");
  EXPECT_EQ(error_of(file.path(), 1),
            file.path() +
                ": cannot take tokens from the text: it has 0 bytes, and its last tenth has to "
                "hold a sequence of 1 and one more; give a longer file, or make "
                "tokens.sequence_length smaller");
  EXPECT_EQ(error_of("/", 1), "/: cannot take tokens from the text: Is a directory");
  EXPECT_EQ(error_of("no/such.txt", 1),
            "no/such.txt: cannot take tokens from the text: No such file or directory");
}

}  // namespace
}  // namespace ballast::sim
