#include "sim/route/batch_balancer.h"

#include <gtest/gtest.h>

#include <numeric>
#include <string>

#include "core/model/router.h"
#include "sim/threads/thread_pool.h"
#include "tests/core/support/bits.h"
#include "tests/core/support/random_matrix.h"

namespace ballast::sim {
namespace {

using ballast::test::random_matrix;
using oracle::bits;

/// Logits in memory that tell how many tokens were looked at.
class Counted final : public LogitSource {
 public:
  explicit Counted(const Matrix<float>& logits) : logits_(logits_in_memory(logits.view())) {}

  std::size_t tokens() const override { return logits_->tokens(); }
  std::size_t experts() const override { return logits_->experts(); }
  void open_window(std::span<const TokenPiece> pieces, const Executor& executor) override {
    for (const TokenPiece& piece : pieces) looked_at += piece.count;
    logits_->open_window(pieces, executor);
  }
  MatrixView<const float> rows(const TokenPiece& piece, RowBuffer& buffer) const override {
    return logits_->rows(piece, buffer);
  }

  std::size_t looked_at = 0;

 private:
  std::unique_ptr<LogitSource> logits_;
};

constexpr RouterSettings four = {.hidden = 1, .routed_experts = 4, .top_k = 1};
constexpr RouterSettings many = {.hidden = 1, .routed_experts = 64, .top_k = 1};

/// Steps with a quantile, holds the biases against the core's, and returns how many tokens were
/// looked at.
std::size_t looked_at(const Matrix<float>& logits, const std::vector<std::uint8_t>& valid = {},
                      const std::string& choice = "quantile:exact",
                      const RouterSettings& router = four) {
  const std::size_t experts = router.routed_experts;
  std::vector<float> biases = {-0.1f, 0.0f, 0.05f, 0.2f};
  biases.resize(experts, 0.1f);
  const auto balancer_choice = *parse_balancer(choice);
  Counted counted(logits);
  BatchBalancer balancer(balancer_choice, router, biases);
  ThreadPool pool(2);
  balancer.step({counted, valid}, nullptr, pool);

  const auto whole = make_balancer(balancer_choice, router);
  whole->set_biases(biases);
  const auto routing = Router<float>(router).route(logits, biases);
  whole->observe({.scores = routing.scores,
                  .cutoffs = routing.selection.cutoffs,
                  .indices = routing.selection.indices,
                  .valid = valid});
  whole->end_step(true);
  EXPECT_EQ(bits(balancer.biases()), bits(whole->biases()));
  return counted.looked_at;
}

std::size_t looked_at_for_bins(const Matrix<float>& logits, const std::string& bins = "1000") {
  return looked_at(logits, {}, "quantile:histogram:" + bins, many);
}

TEST(BatchBalancer, LooksAtSamplesOfABatchAndOnceAtAllOfIt) {
  EXPECT_EQ(looked_at(random_matrix<float>(2048, 4, 1)), 2048);
  EXPECT_EQ(looked_at(random_matrix<float>(2049, 4, 1)), 256 + 2049);
  EXPECT_EQ(looked_at(random_matrix<float>(8191, 4, 1)), 256 + 8191);
  EXPECT_EQ(looked_at(random_matrix<float>(8192, 4, 1)), 256 + 512 + 8192);
  EXPECT_EQ(looked_at(random_matrix<float>(70000, 4, 1)), 256 + 4096 + 70000);
}

/// Whether a token is in the first sample of 16384.
bool is_in_first(std::size_t token) {
  for (std::size_t run = 0; run < 8; ++run) {
    const std::size_t first = (16384 - 32) * run / 7;
    if (token >= first && token < first + 32) return true;
  }
  return false;
}

TEST(BatchBalancer, TakesTheSecondSampleAgainWhereTheFirstHasMisledIt) {
  auto logits = random_matrix<float>(16384, 4, 2);
  for (std::size_t t = 0; t < 16384; ++t) logits(t, 0) += is_in_first(t) ? 4.0f : -4.0f;
  EXPECT_EQ(looked_at(logits), 256 + 1024 + 1024 + 16384);
}

TEST(BatchBalancer, IsHelpedByTheSecondSampleWhereNoTokenOfTheFirstCounts) {
  std::vector<std::uint8_t> valid;
  for (std::size_t t = 0; t < 16384; ++t) valid.push_back(is_in_first(t) ? 0 : 1);
  EXPECT_EQ(looked_at(random_matrix<float>(16384, 4, 3), valid), 256 + 1024 + 16384);
}

TEST(BatchBalancer, LeavesBiasesWhereNoTokenCounts) {
  EXPECT_EQ(looked_at(random_matrix<float>(9000, 4, 4), std::vector<std::uint8_t>(9000)),
            256 + 2 * 544 + 9000);
}

TEST(BatchBalancer, CountsAllBinsOnceWhereWindowsWouldNotPay) {
  EXPECT_EQ(looked_at_for_bins(random_matrix<float>(2048, 64, 5)), 2048);
  EXPECT_EQ(looked_at_for_bins(random_matrix<float>(9000, 64, 5)), 9000);
  EXPECT_EQ(looked_at(random_matrix<float>(32768, 4, 5), {}, "quantile:histogram:1000"), 32768);
}

TEST(BatchBalancer, LooksAtSamplesForTheWindowsOfAHistogram) {
  constexpr std::size_t samples = 256 + 2048 + 256;
  EXPECT_EQ(looked_at_for_bins(random_matrix<float>(32768, 64, 6)), samples + 32768);
  // All values in the few bins that the windows have.
  EXPECT_EQ(looked_at_for_bins(random_matrix<float>(32768, 64, 6), "3"), samples + 32768);
}

TEST(BatchBalancer, CountsAllBinsAfterAllWhereSamplesHaveMisledTheWindows) {
  auto logits = random_matrix<float>(32768, 64, 7);
  std::size_t next = 0;
  for (std::size_t run = 0; run < 64; ++run) {
    const std::size_t first = (32768 - 32) * run / 63;
    for (; next < first; ++next) logits(next, 0) -= 8.0f;
    next = first + 32;
  }
  EXPECT_EQ(looked_at_for_bins(logits), 256 + 2048 + 256 + 2 * 32768);
}

}  // namespace
}  // namespace ballast::sim
