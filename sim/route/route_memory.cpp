#include "sim/route/route_memory.h"

#include <algorithm>
#include <cmath>

#include "sim/route/batch_balancer.h"
#include "sim/route/batch_pass.h"

namespace ballast::sim {
namespace {

/// The program, its libraries, and what the standard library keeps.
constexpr std::uint64_t program = std::uint64_t{6} << 20;

/// Every thread's BracketedQuantile has room at first for what it would keep of so many tokens.
constexpr std::size_t room_at_first = 65536;

/// What a balancer has observed of all tokens, on as many threads.
std::uint64_t observations(const RouteQuestion& question, std::size_t tokens, std::size_t threads) {
  const std::uint64_t experts = question.router.routed_experts;
  const auto kept = BatchBalancer::kept(tokens, question.router, question.balancer.kind);
  switch (question.balancer.kind) {
    case BalancerChoice::Kind::histogram:
      return std::max(threads * experts * question.balancer.bins *
                          (sizeof(std::int64_t) + sizeof(std::uint16_t)),
                      kept.sampled * experts * sizeof(float));
    case BalancerChoice::Kind::exact: {
      const std::size_t most = std::max(tokens, threads * std::min(tokens, room_at_first));
      const double values =
          std::max(kept.share * static_cast<double>(most), static_cast<double>(kept.sampled));
      return static_cast<std::uint64_t>(
          std::ceil(values * static_cast<double>(experts * sizeof(float))));
    }
    default:
      return threads * experts * sizeof(std::int64_t);
  }
}

}  // namespace

MemoryEstimate estimate_memory(const RouteQuestion& question, const LogitSource& logits,
                               bool has_mask, std::size_t threads) {
  const std::size_t tokens = logits.tokens(), experts = logits.experts();
  const PassSizes sizes = pass_sizes(experts, tokens);
  const std::size_t window = std::min(sizes.window, tokens);
  const std::size_t workers = std::min(threads, (tokens + sizes.piece - 1) / sizes.piece);
  const LogitSource::Bytes read = logits.bytes(window);
  const std::uint64_t matrices = question.router.score == ScoreFunction::logit ? 2 : 1;
  const std::uint64_t slot = sizeof(std::int32_t) + sizeof(float);
  return {.terms = {
              {"the program", program},
              {"logits", read.window + workers * sizes.piece * read.token_of_buffer},
              {"scores", workers * sizes.piece * experts * matrices * sizeof(float)},
              {"results on their way out", window * (question.router.top_k * slot + sizeof(float))},
              {"what the balancer observes", observations(question, tokens, workers)},
              {"the mask", has_mask ? tokens : 0}}};
}

}  // namespace ballast::sim
