#pragma once

#include <string>

/// Where things are on the machine that built the tests.
namespace ballast::test {

/// The root of the project's sources.
std::string source_dir();
/// The built `ballast` command.
std::string command_file();
/// The folder of third-party data beside the project (or where BALLAST_SHARED_DATA says); tests that read it
/// skip when it is not there.
std::string shared_data_dir();

}  // namespace ballast::test
