#include "sim/threads/thread_pool.h"

#include <gtest/gtest.h>

#include <atomic>
#include <stdexcept>
#include <string>
#include <vector>

namespace ballast::sim {
namespace {

TEST(ThreadPool, RunsEveryPieceOnce) {
  for (const std::size_t threads : {1u, 2u, 5u}) {
    const ThreadPool pool(threads);
    for (std::size_t count : {0u, 1u, 2u, 3u, 100u}) {
      std::vector<std::atomic<int>> runs(count);
      pool.for_each(count, [&](std::size_t i) { ++runs[i]; });
      for (const auto& n : runs) EXPECT_EQ(n, 1);
    }
  }
}

TEST(ThreadPool, PassesAnExceptionOnAndGoesOnWorking) {
  const ThreadPool pool(3);
  for (int round = 0; round < 20; ++round) {
    EXPECT_THROW(pool.for_each(50, [](std::size_t i) { if (i == 7) throw std::runtime_error("seven"); }),
                 std::runtime_error);
    std::atomic<int> done = 0;
    pool.for_each(50, [&](std::size_t) { ++done; });
    EXPECT_EQ(done, 50);
  }
}

TEST(ThreadPool, PassesTheExceptionOfTheLowestPieceOn) {
  for (const std::size_t threads : {1, 2, 5}) {
    const ThreadPool pool(threads);
    for (int again = 0; again < 200; ++again) {
      std::string what;
      try {
        pool.for_each(60, [](std::size_t i) { if (i % 7 == 5) throw std::runtime_error(std::to_string(i)); });
      } catch (const std::runtime_error& error) {
        what = error.what();
      }
      ASSERT_EQ(what, "5") << threads << " threads";
    }
  }
}

TEST(ThreadPool, NestedCallsRunWhereTheyAreMade) {
  const ThreadPool pool(2);
  std::atomic<int> done = 0;
  pool.for_each(8, [&](std::size_t) { pool.for_each(8, [&](std::size_t) { ++done; }); });
  EXPECT_EQ(done, 64);
}

}  // namespace
}  // namespace ballast::sim
