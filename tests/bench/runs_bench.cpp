// Whole runs: optimizer steps of scenarios, trained and of routers alone, on one and on two
// threads.
#include <benchmark/benchmark.h>

#include <memory>
#include <string_view>

#include "sim/scenario/embedded.h"
#include "sim/scenario/scenario_file.h"
#include "sim/simulation/simulation.h"
#include "sim/threads/thread_pool.h"

namespace ballast::bench {
namespace {

constexpr const char* wide_layer = R"({"ballast": 1,
  "model": {"layers": 1, "hidden": 256, "latent": 128, "routed_experts": 896, "top_k": 16,
            "expert_inner": 32},
  "training": {"steps": 10, "sequences": 16, "evaluate_every": 0, "log_every": 0}})";

constexpr const char* routers_alone = R"({"ballast": 1, "mode": "router_only",
  "model": {"layers": 4, "routed_experts": 896, "top_k": 16},
  "scores": {"preference": "log_normal", "sigma": 0.42},
  "training": {"steps": 20, "sequences": 64, "evaluate_every": 0, "log_every": 0}})";

/// One step each of the last variant; a run that has come to its end begins anew.
void steps(benchmark::State& state, std::string_view scenario) {
  const auto runs = sim::expand(sim::parse_scenario(scenario, "benchmark"));
  const sim::ThreadPool pool(static_cast<std::size_t>(state.range(0)));
  std::unique_ptr<sim::Simulation> simulation;
  for (auto _ : state) {
    if (!simulation || simulation->done()) {
      state.PauseTiming();
      simulation = std::make_unique<sim::Simulation>(runs.back(), pool);
      state.ResumeTiming();
    }
    simulation->advance();
  }
}

BENCHMARK_CAPTURE(steps, quickstart, sim::quickstart_text())->Arg(1)->Arg(2)->UseRealTime();
BENCHMARK_CAPTURE(steps, wide_layer, wide_layer)->Arg(1)->Arg(2)->UseRealTime();
BENCHMARK_CAPTURE(steps, routers_alone, routers_alone)->Arg(1)->Arg(2)->UseRealTime();

}  // namespace
}  // namespace ballast::bench
