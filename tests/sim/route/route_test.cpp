#include "sim/command/route.h"

#include <bit>
#include <cmath>
#include <limits>
#include <memory>

#include "core/balancers/quantile_balancer.h"
#include "core/balancers/sign_balancer.h"
#include "core/metrics/moe_metrics.h"
#include "core/model/router.h"
#include "tests/core/support/bits.h"
#include "tests/core/support/random_matrix.h"
#include "tests/sim/route/route_command.h"

namespace ballast::sim {
namespace {

using ballast::test::random_matrix;
using oracle::bits;
using test::npy_bytes;
using test::npy_values;
using test::run_route;
using Words = std::vector<std::string>;

std::string shape(std::size_t rows, std::size_t cols) {
  return "(" + std::to_string(rows) + ", " + std::to_string(cols) + ")";
}
std::string shape(std::size_t count) {
  return "(" + std::to_string(count) + ",)";
}
std::string bytes_of(const Matrix<float>& m) {
  return npy_bytes<float>("<f4", shape(m.rows(), m.cols()), {m.values().begin(), m.values().end()});
}
std::string bytes_of(const std::vector<float>& v) {
  return npy_bytes("<f4", shape(v.size()), v);
}

/// Biases linear within +-0.2.
std::vector<float> linear_biases(std::size_t experts) {
  std::vector<float> biases;
  for (std::size_t j = 0; j < experts; ++j) {
    biases.push_back(-0.2f + 0.4f * static_cast<float>(j) / static_cast<float>(experts));
  }
  return biases;
}

/// A batch, and what the core's Router and balancer make of all of it at once.
struct Question {
  Matrix<float> logits;
  std::vector<float> biases;
  RouterSettings router = {.hidden = 1};
  QuantileSettings quantile = {};
  std::vector<std::uint8_t> valid = {};
  std::size_t steps = 1;
};

struct Answer {
  Routing<float> routing;
  std::vector<std::int64_t> counts, first_counts, last_counts;
  std::vector<float> biases;
};

Answer oracle_answer(Question q) {
  q.router.routed_experts = q.logits.cols();
  const Router<float> router(q.router);
  QuantileBalancer balancer(q.logits.cols(), q.router.top_k, q.quantile);
  balancer.set_biases(q.biases);
  Answer answer;
  const auto count = [&] {
    std::vector<std::int64_t> counts(q.logits.cols());
    count_assignments(answer.routing.selection.indices, q.valid, counts);
    return counts;
  };
  for (std::size_t step = 0; step < q.steps; ++step) {
    answer.routing = router.route(q.logits, balancer.biases());
    auto observed = answer.routing.finite;
    for (std::size_t t = 0; t < q.valid.size(); ++t) observed[t] &= q.valid[t];
    balancer.observe({.scores = answer.routing.scores,
                      .cutoffs = answer.routing.selection.cutoffs,
                      .indices = answer.routing.selection.indices,
                      .valid = observed});
    balancer.end_step(true);
    answer.counts = count();
    if (step == 0) answer.first_counts = answer.counts;
  }
  answer.biases.assign(balancer.biases().begin(), balancer.biases().end());
  const auto routing = std::move(answer.routing);
  answer.routing = router.route(q.logits, answer.biases);
  answer.last_counts = count();
  answer.routing = routing;
  return answer;
}

double max_violation(const std::vector<std::int64_t>& counts) {
  return load_metrics(counts)->max_violation;
}

class Route : public test::FolderTest {
 protected:
  /// Runs the command on the question and holds its files against the oracle's, to the bit.
  void expect_oracle(const Question& q, Words options) {
    const Answer right = oracle_answer(q);
    const std::size_t tokens = q.logits.rows(), k = q.router.top_k;
    const std::string out = "out" + std::to_string(++runs_);
    options.insert(options.end(), {"--top-k", std::to_string(k), "--out", path(out), "--json"});
    const auto outcome = run_route(options);
    ASSERT_EQ(outcome.code, ExitCode::pass) << outcome.err;
    EXPECT_EQ(outcome.err, "");

    const auto& selection = right.routing.selection;
    const auto indices =
        npy_values<std::int32_t>(read(out + "/indices.npy"), "<i4", shape(tokens, k), tokens * k);
    EXPECT_TRUE(std::ranges::equal(indices, selection.indices.values()));
    const auto weights =
        npy_values<float>(read(out + "/weights.npy"), "<f4", shape(tokens, k), tokens * k);
    EXPECT_EQ(bits(weights), bits(right.routing.weights.values()));
    const auto cutoffs =
        npy_values<float>(read(out + "/cutoffs.npy"), "<f4", shape(tokens), tokens);
    EXPECT_EQ(bits(cutoffs), bits(selection.cutoffs));
    const auto counts = npy_values<std::int64_t>(read(out + "/counts.npy"), "<i8",
                                                 shape(q.biases.size()), q.biases.size());
    EXPECT_EQ(counts, right.counts);
    const auto biases = npy_values<float>(read(out + "/biases.npy"), "<f4", shape(q.biases.size()),
                                          q.biases.size());
    EXPECT_EQ(bits(biases), bits(right.biases));

    EXPECT_EQ(read(out + "/summary.json"), outcome.out);
    const auto summary = nlohmann::json::parse(outcome.out);
    EXPECT_EQ(summary["metrics"]["before"]["e_max_violation:mean"],
              max_violation(right.first_counts));
    EXPECT_EQ(summary["metrics"]["after"]["e_max_violation:mean"],
              max_violation(right.last_counts));
    EXPECT_EQ(summary["metrics"]["steps"].size(), q.steps);
  }

  /// The command's words for a question of random logits.
  Words files_of(const Question& q) {
    return {write("logits.npy", bytes_of(q.logits)), "--bias",
            write("bias.npy", bytes_of(q.biases))};
  }

  void expect_refusal(const Words& words, ExitCode code, const std::string& part) {
    const auto outcome = run_route(words);
    EXPECT_EQ(outcome.code, code) << outcome.out;
    EXPECT_EQ(outcome.out, "");
    EXPECT_NE(outcome.err.find(part), std::string::npos) << outcome.err;
    EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1) << outcome.err;
  }

  int runs_ = 0;
};

Words plus(Words words, const Words& more) {
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

// The contract: the core's Router and QuantileBalancer, to the bit

TEST_F(Route, GivesTheBitsOfTheCoresRouterAndBalancerOnAnyNumberOfThreads) {
  // Enough tokens for several windows of pieces.
  Question q{.logits = random_matrix<float>(20011, 7, 1), .biases = linear_biases(7)};
  for (const char* threads : {"1", "2", "5"}) {
    q.quantile.estimator = QuantileEstimatorKind::exact;
    expect_oracle(q, plus(files_of(q), {"--balancer", "quantile:exact", "--threads", threads}));
    q.quantile.estimator = QuantileEstimatorKind::histogram;
    expect_oracle(q, plus(files_of(q), {"--threads", threads}));
  }
}

TEST_F(Route, FindsExactQuantilesThatASampleOfTheBatchMisses) {
  // All that matters is in stretches of tokens between two runs of either sample.
  Question q{.logits = random_matrix<float>(9000, 6, 20, 0.01), .biases = linear_biases(6)};
  for (std::size_t t = 0; t < 9000; ++t) q.logits(t, t % 6) += t > 5200 && t < 5370 ? 9.0f : 1.0f;
  for (std::size_t t = 300; t < 560; ++t) {
    for (float& z : q.logits.row(t)) z = 4.0f * z - 3.0f;
  }
  q.quantile.estimator = QuantileEstimatorKind::exact;
  for (const std::size_t k : {1, 3, 5}) {
    q.router.top_k = k;
    expect_oracle(
        q, plus(files_of(q), {"--balancer", "quantile:exact", "--threads", "3", "--steps", "1"}));
  }
}

TEST_F(Route, FindsExactQuantilesWhateverSamplesABatchOfItsSizeHas) {
  for (const std::size_t tokens : {2048, 2049, 8191, 8192, 8703}) {
    SCOPED_TRACE(std::to_string(tokens) + " tokens");
    Question q{.logits = random_matrix<float>(tokens, 5, 30), .biases = linear_biases(5)};
    q.quantile.estimator = QuantileEstimatorKind::exact;
    expect_oracle(q, plus(files_of(q), {"--balancer", "quantile:exact", "--threads", "3"}));
  }
}

TEST_F(Route, FindsExactQuantilesWhereSamplesSeeNoTokenThatCounts) {
  Question q{.logits = random_matrix<float>(9000, 6, 31), .biases = linear_biases(6)};
  q.quantile.estimator = QuantileEstimatorKind::exact;
  // Runs of 32 begin at 0, 1281, 2562, ... and then at 0, 560, 1121, ...
  for (const auto& [first, end] : {std::pair{40, 1270}, {600, 1110}, {1281, 1313}}) {
    SCOPED_TRACE("tokens from " + std::to_string(first));
    q.valid.assign(9000, 0);
    std::fill(q.valid.begin() + first, q.valid.begin() + end, std::uint8_t{1});
    const auto mask = write("mask.npy", npy_bytes("|b1", "(9000,)", q.valid));
    expect_oracle(q, plus(files_of(q), {"--mask", mask, "--balancer", "quantile:exact"}));
  }
}

TEST_F(Route, GivesTheSameForManyExperts) {
  Question q{.logits = random_matrix<float>(700, 256, 21), .biases = linear_biases(256)};
  q.router.top_k = 8;
  expect_oracle(q, plus(files_of(q), {"--threads", "2"}));
  q.router.score = ScoreFunction::logit;
  expect_oracle(q, plus(files_of(q), {"--threads", "2", "--score", "logit"}));
}

TEST_F(Route, MovesBiasesByLoadsAsTheSignBalancerDoes) {
  const auto logits = random_matrix<float>(300, 12, 22);
  const auto biases = linear_biases(12);
  SignBalancer balancer(12, {.rate = 0.01});
  balancer.set_biases(biases);
  const auto routing =
      Router<float>({.hidden = 1, .routed_experts = 12, .top_k = 3}).route(logits, biases);
  balancer.observe({.scores = routing.scores,
                    .cutoffs = routing.selection.cutoffs,
                    .indices = routing.selection.indices,
                    .valid = {}});
  balancer.end_step(true);
  const auto outcome = run_route({write("logits.npy", bytes_of(logits)), "--bias",
                                  write("bias.npy", bytes_of(biases)), "--top-k", "3", "--balancer",
                                  "sign:0.01", "--out", path("out")});
  EXPECT_EQ(outcome.code, ExitCode::pass) << outcome.err;
  EXPECT_EQ(bits(npy_values<float>(read("out/biases.npy"), "<f4", "(12,)", 12)),
            bits(balancer.biases()));
}

TEST_F(Route, LimitsTokensToTheirBestGroupsAsTheRouterDoes) {
  const auto logits = random_matrix<float>(300, 16, 23);
  const auto routing =
      Router<float>(
          {.hidden = 1, .routed_experts = 16, .top_k = 3, .groups = {.count = 4, .chosen = 2}})
          .route(logits, std::vector<float>(16));
  const auto file = write("logits.npy", bytes_of(logits));
  const auto outcome = run_route(
      {file, "--top-k", "3", "--groups", "4,2", "--balancer", "sign:0.01", "--out", path("out")});
  EXPECT_EQ(outcome.code, ExitCode::pass) << outcome.err;
  const auto indices = npy_values<std::int32_t>(read("out/indices.npy"), "<i4", "(300, 3)", 900);
  EXPECT_TRUE(std::ranges::equal(indices, routing.selection.indices.values()));
  expect_refusal({file, "--top-k", "3", "--groups", "4,2"}, ExitCode::usage,
                 "quantiles need cutoffs");
  expect_refusal({file, "--top-k", "3", "--groups", "5,2"}, ExitCode::usage,
                 "--groups: 16 experts do not make 5 groups");
  expect_refusal({file, "--top-k", "3", "--groups", "4;2"}, ExitCode::usage, "G,T such as 8,4");
}

TEST_F(Route, GivesTheSameForEveryScoreAndWeighting) {
  Question q{.logits = random_matrix<float>(300, 24, 2, 2.0), .biases = linear_biases(24)};
  q.router.top_k = 3;
  for (const auto& [word, score] :
       {std::pair("sigmoid", ScoreFunction::sigmoid), std::pair("softmax", ScoreFunction::softmax),
        std::pair("logit", ScoreFunction::logit)}) {
    q.router.score = score;
    q.router.renormalize = true;
    q.router.routed_scale = 1.0;
    expect_oracle(q, plus(files_of(q), {"--score", word, "--renormalize"}));
    q.router.renormalize = false;
    q.router.routed_scale = 2.5;
    expect_oracle(q, plus(files_of(q), {"--score", word, "--no-renormalize", "--scale", "2.5"}));
  }
}

TEST_F(Route, IteratesOnTheBatchAndWritesTheLastStep) {
  Question q{.logits = random_matrix<float>(512, 16, 3), .biases = std::vector<float>(16)};
  q.router.top_k = 4;
  q.steps = 4;
  q.quantile.estimator = QuantileEstimatorKind::exact;
  expect_oracle(q, plus(files_of(q), {"--balancer", "quantile:exact", "--steps", "4"}));
  q.quantile = {.estimator = QuantileEstimatorKind::histogram, .bins = 100};
  expect_oracle(q, plus(files_of(q), {"--balancer", "quantile:histogram:100", "--steps", "4"}));
}

TEST_F(Route, LeavesMaskedAndNonfiniteTokensOutOfTheBalance) {
  Question q{.logits = random_matrix<float>(400, 12, 4), .biases = linear_biases(12)};
  q.logits(7, 3) = std::numeric_limits<float>::quiet_NaN();
  q.logits(8, 0) = std::numeric_limits<float>::infinity();
  q.logits(9, 11) = -std::numeric_limits<float>::infinity();
  for (std::size_t t = 0; t < 400; ++t) q.valid.push_back(t % 3 != 0);
  const auto mask = write("mask.npy", npy_bytes("|b1", "(400,)", q.valid));
  for (const char* balancer : {"quantile:exact", "quantile:histogram:1000"}) {
    q.quantile.estimator = std::string(balancer) == "quantile:exact"
                               ? QuantileEstimatorKind::exact
                               : QuantileEstimatorKind::histogram;
    expect_oracle(q, plus(files_of(q), {"--mask", mask, "--balancer", balancer}));
  }
  const auto summary = nlohmann::json::parse(
      run_route(plus(files_of(q), {"--mask", mask, "--top-k", "2", "--json"})).out);
  EXPECT_EQ(summary["tokens"], 400);
  EXPECT_EQ(summary["valid_tokens"], 266);
  EXPECT_EQ(summary["not_finite_tokens"], 1);  // token 9 is masked, and sigmoid(inf) is 1
}

TEST_F(Route, ReadsBfloat16AsTheUpperHalvesOfFloats) {
  Question q{.logits = random_matrix<float>(100, 10, 5), .biases = linear_biases(10)};
  std::vector<std::uint16_t> halves;
  for (float& z : q.logits.values()) {
    halves.push_back(static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(z) >> 16));
    z = std::bit_cast<float>(static_cast<std::uint32_t>(halves.back()) << 16);
  }
  auto words = files_of(q);
  words[0] = write("half.npy", npy_bytes("<u2", "(100, 10)", halves));
  expect_oracle(q, words);
}

TEST_F(Route, MakesLogitsFromHiddenStatesAndTheGateAsTheRouterDoes) {
  const auto gate = random_matrix<float>(9, 33, 7);
  Router<float> router({.hidden = 33, .routed_experts = 9, .top_k = 2});
  router.gate.weight.value = gate;
  for (const std::size_t tokens : {700, 8700}) {  // the second with samples
    const auto hidden = random_matrix<float>(tokens, 33, 6);
    Question q{.logits = {tokens, 9}, .biases = linear_biases(9)};
    router.gate.forward(hidden, q.logits, serial_executor());
    const Words words = {"--hidden",  write("h.npy", bytes_of(hidden)),
                         "--gate",    write("w.npy", bytes_of(gate)),
                         "--bias",    write("bias.npy", bytes_of(q.biases)),
                         "--threads", "2"};
    expect_oracle(q, words);
    q.quantile.estimator = QuantileEstimatorKind::exact;
    expect_oracle(q, plus(words, {"--balancer", "quantile:exact"}));
  }
}

TEST_F(Route, MovesNothingWithoutABalancer) {
  Question q{.logits = random_matrix<float>(64, 8, 8), .biases = linear_biases(8)};
  const auto outcome = run_route(
      plus(files_of(q), {"--top-k", "2", "--balancer", "none", "--out", path("out"), "--json"}));
  EXPECT_EQ(outcome.code, ExitCode::pass);
  EXPECT_EQ(bits(npy_values<float>(read("out/biases.npy"), "<f4", "(8,)", 8)), bits(q.biases));
  const auto summary = nlohmann::json::parse(outcome.out);
  EXPECT_EQ(summary["metrics"]["before"], summary["metrics"]["after"]);
}

TEST_F(Route, HasNoCutoffsWhenATokenTakesAllExperts) {
  const auto logits = write("logits.npy", bytes_of(random_matrix<float>(5, 3, 9)));
  EXPECT_EQ(run_route({logits, "--top-k", "3", "--balancer", "none", "--out", path("out")}).code,
            ExitCode::pass);
  npy_values<float>(read("out/cutoffs.npy"), "<f4", "(0,)", 0);
  expect_refusal({logits, "--top-k", "3"}, ExitCode::usage,
                 "needs top_k < routed_experts, not 3 of 3");
}

// What it prints

TEST_F(Route, PrintsTimesOnlyWhenAsked) {
  const auto logits = write("logits.npy", bytes_of(random_matrix<float>(50, 6, 10)));
  const Words words = {logits, "--top-k", "2", "--json"};
  EXPECT_EQ(run_route(words).out, run_route(words).out);
  EXPECT_FALSE(nlohmann::json::parse(run_route(words).out).contains("timing"));
  const auto timing = nlohmann::json::parse(run_route(plus(words, {"--timing"})).out)["timing"];
  EXPECT_GT(timing["route_ns_per_token_expert"], 0.0);
  EXPECT_GT(timing["balance_ns_per_token_expert"], 0.0);
}

TEST_F(Route, SaysUnknownWhenNoTokenCounts) {
  const auto logits = write("logits.npy", bytes_of(random_matrix<float>(2, 6, 11)));
  const auto mask = write("mask.npy", npy_bytes<std::uint8_t>("|u1", "(2,)", {0, 0}));
  const auto outcome = run_route({logits, "--mask", mask, "--top-k", "2", "--json"});
  EXPECT_EQ(outcome.code, ExitCode::unknown);
  EXPECT_TRUE(
      nlohmann::json::parse(outcome.out)["metrics"]["after"]["e_max_violation:mean"].is_null());
  const auto none = write("none.npy", npy_bytes<float>("<f4", "(0, 6)", {}));
  EXPECT_EQ(run_route({none, "--top-k", "2", "--out", path("out")}).code, ExitCode::unknown);
  npy_values<std::int32_t>(read("out/indices.npy"), "<i4", "(0, 2)", 0);
}

TEST_F(Route, PrintsATableForPeople) {
  const auto logits = write("logits.npy", npy_bytes<float>("<f4", "(2, 2)", {1, 0, 1, 0}));
  EXPECT_EQ(run_route({logits, "--top-k", "1", "--balancer", "none"}).out,
            "2 tokens x 2 experts, top 1 by sigmoid; balancer none, 1 step\n\n"
            "metric                       before    after\n"
            "e_frac_with_tokens:mean      0.5000   0.5000\n"
            "e_frac_oversubscribed:mean   0.5000   0.5000\n"
            "e_max_violation:mean         1.0000   1.0000\n"
            "e_max_violation:max          1.0000   1.0000\n"
            "e_min_violation:mean        -1.0000  -1.0000\n");
}

// What it refuses

TEST_F(Route, TellsTheMemoryItWouldTakeAndWritesNothing) {
  const std::string logits = write("logits.npy", bytes_of(random_matrix<float>(20000, 64, 3)));
  const Words words = {logits, "--top-k", "6", "--threads", "2", "--dry-run"};
  const auto outcome = run_route(words);
  EXPECT_EQ(outcome.code, ExitCode::pass);
  EXPECT_EQ(outcome.out.substr(0, outcome.out.find("memory: about ")),
            "20000 tokens of " + logits + ", 64 experts, top-6, quantile:histogram:1000\n");
  const auto plan = [&](const Words& more) {
    return nlohmann::json::parse(run_route(plus(words, plus({"--json"}, more))).out);
  };
  const auto histogram = plan({});
  // Two threads, 2048 tokens each at a time, and a histogram of 1000 bins for each expert.
  EXPECT_EQ(histogram["memory"]["scores"], 2 * 2048 * 64 * 4);
  EXPECT_EQ(histogram["memory"]["logits"], 2 * 2048 * 64 * 4);
  EXPECT_EQ(histogram["memory"]["what the balancer observes"], 2 * 64 * 1000 * (8 + 2));
  EXPECT_EQ(histogram["memory"]["results on their way out"], 20000 * (6 * 8 + 4));
  std::int64_t sum = 0;
  for (const auto& term : histogram["memory"]) sum += term.get<std::int64_t>();
  EXPECT_EQ(histogram["memory_bytes"], sum);
  // A sample of 39 times 32 at most, or on each thread what is in brackets of 5 deviations: 2 (5
  // sqrt(n q (1 - q)) + 1) of n values, q = 6/64.
  const auto exact = plan({"--balancer", "quantile:exact"});
  const double observed = exact["memory"]["what the balancer observes"].get<double>();
  const double inside = 2.0 * (5.0 * std::sqrt(1248 * 0.09375 * 0.90625) + 1.0) / 1248;
  EXPECT_NEAR(observed, inside * 2 * 20000 * 64 * 4, 1.0);
  const auto small = nlohmann::json::parse(
      run_route({write("small.npy", bytes_of(random_matrix<float>(8192, 64, 3))), "--top-k", "1",
                 "--threads", "1", "--balancer", "quantile:exact", "--dry-run", "--json"})
          .out);
  EXPECT_EQ(small["memory"]["what the balancer observes"], 512 * 64 * 4);
  // The sample of 64 times 32 from which its windows come, of which most may be kept.
  const auto windows = nlohmann::json::parse(
      run_route({write("windows.npy", bytes_of(random_matrix<float>(32768, 64, 3))), "--top-k", "1",
                 "--balancer", "quantile:histogram:3", "--dry-run", "--json"})
          .out);
  EXPECT_EQ(windows["memory"]["what the balancer observes"], 2048 * 64 * 4);
  EXPECT_EQ(plan({"--score", "logit"})["memory"]["scores"], 2 * 2 * 2048 * 64 * 4);
  expect_refusal(plus(words, {"--out", path("out")}), ExitCode::usage, "--dry-run routes nothing");
}

TEST_F(Route, NamesTheFileAndWhatWouldBeRightForArraysItCannotUse) {
  const auto good = write("good.npy", bytes_of(random_matrix<float>(4, 3, 12)));
  const Words k = {"--top-k", "1"};
  const auto refused = [&](const std::string& bytes, const std::string& part) {
    expect_refusal(plus({write("bad.npy", bytes)}, k), ExitCode::bad_input, part);
  };
  refused(npy_bytes<double>("<f8", "(1, 2)", {1, 2}), "type '<f8'; '<f4' (float32) or '<u2'");
  refused(npy_bytes<float>(">f4", "(1, 2)", {1, 2}), "type '>f4'");
  refused(npy_bytes<float>("<f4", "(2, 1)", {1, 2}, "True"),
          "Fortran order; save numpy.ascontiguousarray(array)");
  refused(npy_bytes<float>("<f4", "(2,)", {1, 2}),
          "its shape is (2,); two dimensions (tokens, experts)");
  refused(npy_bytes<float>("<f4", "(2, 0)", {}), "its shape is (2, 0)");
  refused(npy_bytes<float>("<f4", "(2, 2)", {1, 2, 3}),
          "holds 12 bytes of values, but its shape (2, 2)");
  refused(npy_bytes<float>("<f4", "(1, 2)", {1, 2, 3}), "save one array a file");
  refused(npy_bytes<float>("<f4", "(9223372036854775807, 8)", {}), "needs more than there can be");
  refused("", "the file is empty");
  refused("hello", "does not begin as a NumPy array file does");
  expect_refusal(plus({path("absent.npy")}, k), ExitCode::bad_input,
                 "absent.npy: cannot read the logits: No such");
  expect_refusal(plus({root_.string()}, k), ExitCode::bad_input, "no regular file");

  const auto bias = write("bias.npy", bytes_of(std::vector<float>{1, 2}));
  expect_refusal(plus({good, "--bias", bias}, k), ExitCode::bad_input,
                 "its shape is (2,); one for each expert");
  const auto mask = write("mask.npy", bytes_of(std::vector<float>{1, 2, 3, 4}));
  expect_refusal(plus({good, "--mask", mask}, k), ExitCode::bad_input, "type '<f4'; '|b1' (bool)");
  expect_refusal(
      plus({"--hidden", good, "--gate", write("w.npy", npy_bytes<float>("<f4", "(1, 2)", {1, 2}))},
           k),
      ExitCode::bad_input, "(experts, 3) would go with");
  const auto infinite =
      write("inf.npy", bytes_of(std::vector<float>(3, std::numeric_limits<float>::infinity())));
  expect_refusal(plus({good, "--bias", infinite}, k), ExitCode::bad_input,
                 "inf.npy: cannot balance");
}

TEST_F(Route, NamesWhatIsWrongWithTheCommandLine) {
  const auto good = write("good.npy", bytes_of(random_matrix<float>(4, 3, 13)));
  const auto refused = [&](const Words& words, const std::string& part) {
    expect_refusal(words, ExitCode::usage, part);
  };
  refused({}, "needs LOGITS.npy");
  refused({good}, "needs --top-k");
  refused({good, "--top-k", "0"}, "not within 1..");
  refused({good, "--top-k", "4"}, "has only 3 experts");
  refused({good, good, "--top-k", "1"}, "give one");
  refused({good, "--top-k", "1", "--hidden", good}, "--hidden and --gate go together");
  refused({good, "--top-k", "1", "--hidden", good, "--gate", good}, "not both");
  refused({good, "--top-k", "1", "--score", "tanh"}, "sigmoid, softmax or logit");
  refused({good, "--top-k", "1", "--balancer", "quantile:histogram:"}, "this is no balancer");
  refused({good, "--top-k", "1", "--balancer", "quantile:histogram:1"},
          "bins from 2 to 16777216, not 1");
  refused({good, "--top-k", "1", "--renormalize", "--no-renormalize"}, "contradict");
  refused({good, "--top-k", "1", "--steps", "0"}, "--steps 0");
  refused({good, "--top-k", "1", "--out", root_.string()}, "not empty");
}

TEST_F(Route, LeavesNothingBehindWhenItFails) {
  const auto logits = write("logits.npy", npy_bytes<float>("<f4", "(1, 2)", {1, 2}));
  const auto bias =
      write("bias.npy", bytes_of(std::vector<float>(2, std::numeric_limits<float>::infinity())));
  EXPECT_EQ(run_route({logits, "--bias", bias, "--top-k", "1", "--out", path("out")}).code,
            ExitCode::bad_input);
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(root_), {}), 2);
}

}  // namespace
}  // namespace ballast::sim
