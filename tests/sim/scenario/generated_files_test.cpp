#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>

#include "sim/scenario/reference.h"
#include "sim/scenario/schema.h"
#include "tests/sim/scenario/data_files.h"

namespace ballast::sim {
namespace {

/// With BALLAST_WRITE_GENERATED set in the environment the file is written instead of compared.
void expect_generated(const std::string& name, const std::string& text) {
  if (std::getenv("BALLAST_WRITE_GENERATED")) std::ofstream(source_file(name)) << text;
  EXPECT_TRUE(source_text(name) == text)
      << name
      << " is not what the registry of fields makes: run test_sim with BALLAST_WRITE_GENERATED=1";
}

TEST(GeneratedFiles, TheSchemaIsThatOfTheRegistry) {
  expect_generated("scenarios/scenario.schema.json", scenario_schema().dump(2) + "\n");
}

TEST(GeneratedFiles, TheReferenceIsThatOfTheRegistry) {
  expect_generated("scenarios/fields.md", field_reference());
}

}  // namespace
}  // namespace ballast::sim
