#include "sim/tokens/recorded_tokens.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <numeric>
#include <set>

#include "sim/input_error.h"
#include "sim/tokens/make_source.h"
#include "tests/support/shared_data.h"

namespace ballast::sim {
namespace {

/// A file of its own for each text, as files are read once.
class RecordedTokensTest : public testing::Test {
 protected:
  void TearDown() override {
    for (const auto& file : files_) std::filesystem::remove(file);
  }
  std::string write(const std::string& text) {
    const auto name = std::string("ballast-tokens-") + std::to_string(getpid()) + "-" +
                      testing::UnitTest::GetInstance()->current_test_info()->name() +
                      std::to_string(files_.size());
    files_.push_back(std::filesystem::temp_directory_path() / name);
    std::ofstream(files_.back()) << text;
    return files_.back().string();
  }
  std::string error(const std::string& text) {
    try {
      recorded_tokens(write(text));
      return "no error";
    } catch (const InputError& error) {
      return error.what();
    }
  }

  std::vector<std::filesystem::path> files_;
};

/// How often each token comes, over the sequences of a step.
std::vector<double> counts_of(const TokenSource& source, std::size_t sequences,
                              Split split = Split::training) {
  std::vector<double> counts(source.vocabulary());
  for (std::uint64_t s = 0; s < sequences; ++s) {
    const auto tokens = source.sequence({.split = split, .sequence = s}).tokens;
    for (std::size_t i = 0; i + 1 < tokens.size(); ++i)
      counts[static_cast<std::size_t>(tokens[i])] += 1.0;
  }
  return counts;
}

TEST_F(RecordedTokensTest, AreAStreamOfNumbersOrATableOfCounts) {
  const RecordedTokens& stream = recorded_tokens(write("[17, 3, 17,\n 50000]\n"));
  EXPECT_EQ(stream.ids, (std::vector<std::int64_t>{3, 17, 50000}));
  EXPECT_EQ(stream.stream, (std::vector<std::int32_t>{1, 0, 1, 2}));
  EXPECT_EQ(recorded_tokens(write("5 4\r\n5\t4\n")).stream,
            (std::vector<std::int32_t>{1, 0, 1, 0}));
  const RecordedTokens& table =
      recorded_tokens(write("layer,token_id,expert,count\n0,9,0,3\n0,2,1,4\n0,9,5,2\n0,3,5,0\n"));
  EXPECT_EQ(table.ids, (std::vector<std::int64_t>{2, 9}));
  EXPECT_EQ(table.counts, (std::vector<double>{4, 5}));
  EXPECT_TRUE(table.stream.empty());
}

TEST_F(RecordedTokensTest, SaysWhatIsWrongAndWhere) {
  const auto expect = [&](const std::string& text, const std::string& where,
                          const std::string& why) {
    const std::string said = error(text);
    EXPECT_NE(said.find(where), std::string::npos) << said;
    EXPECT_NE(said.find(why), std::string::npos) << said;
  };
  expect("1 2\n3 x4\n", ":2: ", "'x4' is no whole number from 0");
  expect("1 -2", ":1: ", "'-2' is no whole number");
  expect("", "ballast-tokens-", "it holds no token");
  expect("token_id,expert\n1,2\n", ":1: ", "the table has no column count");
  expect("token_id,count\n1\n", ":2: ", "1 fields where the header has 2");
  expect("token_id,count\n1,-3\n", ":2: ", "'-3' is no whole number");
  EXPECT_THROW(RecordedTokenSource(write("1 2 3"), 4, 1), InputError) << "too few";
  EXPECT_THROW(recorded_tokens("/nowhere/tokens"), InputError);
}

TEST_F(RecordedTokensTest, FollowEachOtherAsRecordedAndKeepTheLastTenthForEvaluation) {
  std::string text;
  for (int i = 0; i < 100; ++i) text += std::to_string(i) + " ";
  const RecordedTokenSource source(write(text), 30, 7);
  EXPECT_EQ(source.vocabulary(), 100u);
  std::set<std::int32_t> starts;
  for (std::uint64_t s = 0; s < 200; ++s) {
    const auto tokens = source.sequence({.sequence = s}).tokens;
    ASSERT_EQ(tokens.size(), 31u);
    starts.insert(tokens.front());
    for (std::size_t i = 1; i < tokens.size(); ++i)
      EXPECT_EQ(tokens[i], (tokens[i - 1] + 1) % 90) << "the first nine tenths, around";
    for (const auto token : source.sequence({.split = Split::evaluation, .sequence = s}).tokens)
      EXPECT_GE(token, 90);
  }
  EXPECT_GT(starts.size(), 70u);
}

TEST_F(RecordedTokensTest, AreAsFrequentAsInTheRecording) {
  // A stream whose frequencies are 1 : 2 : 4 : 2 in its first nine tenths.
  std::string text;
  for (int i = 0; i < 100; ++i)
    text += i % 9 == 0 ? "5 " : i % 9 < 3 ? "6 " : i % 9 < 7 ? "7 " : "8 ";
  const std::string table = "token_id,count\n5,1\n6,2\n7,4\n8,2\n";
  for (const std::string& file : {write(text), write(table)}) {
    const RecordedTokenSource source(file, 50, 3);
    const auto counts = counts_of(source, 800);
    ASSERT_EQ(counts.size(), 4u);
    const std::vector<double> wanted = {1, 2, 4, 2};
    for (std::size_t i = 0; i < 4; ++i) {
      const double share = wanted[i] / 9.0;
      EXPECT_NEAR(counts[i] / 40'000, share, 5 * std::sqrt(share * (1 - share) / 40'000)) << i;
    }
  }
}

TEST_F(RecordedTokensTest, AreASourceLikeAnyOther) {
  TokenSettings settings;
  settings.source = TokenSourceKind::recorded;
  settings.file = write("token_id,count\n5,1\n6,2\n7,4\n8,2\n");
  settings.sequence_length = 20;
  settings.padding = 0.5;
  settings.repeat_period = 3;
  EXPECT_EQ(vocabulary_of(settings), 4u);
  const auto source = make_source(settings, 1);
  EXPECT_EQ(source->vocabulary(), 4u);
  const Sequence one = source->sequence({});
  EXPECT_EQ(one.tokens, source->sequence({}).tokens);
  EXPECT_LT(one.valid, 20u);
  settings.file = "/nowhere/tokens";
  EXPECT_EQ(vocabulary_of(settings), 256u) << "make_source says what is wrong";
  EXPECT_THROW(make_source(settings, 1), InputError);
}

/// arXiv text in the tokens of a model: 7,875 ids, the commonest 3.9 % (README of the data).
TEST_F(RecordedTokensTest, OfOthersAreAsFrequentAsWasComputed) {
  SKIP_WITHOUT_SHARED_DATA();
  const RecordedTokenSource source(
      test::shared_data_dir() + "/olmoe-expert-counts/olmoe_arxiv_token_expert_L0.csv", 100, 1);
  EXPECT_EQ(source.vocabulary(), 7875u);
  const auto counts = counts_of(source, 1000);
  const double most = *std::ranges::max_element(counts) / 100'000;
  EXPECT_NEAR(most, 0.039, 0.0005 + 5 * std::sqrt(0.039 * 0.961 / 100'000));
}

}  // namespace
}  // namespace ballast::sim
