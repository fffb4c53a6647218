#pragma once

#include <gtest/gtest.h>

#include <filesystem>

#include "tests/support/paths.h"

/// Ends a test that reads third-party data where there are none.
#define SKIP_WITHOUT_SHARED_DATA()                                                              \
  if (!std::filesystem::is_directory(ballast::test::shared_data_dir()))                         \
  GTEST_SKIP() << "the recordings by others are not at " << ballast::test::shared_data_dir()    \
               << "; BALLAST_SHARED_DATA may name their folder"
