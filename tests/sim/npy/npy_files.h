#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <span>
#include <string>
#include <vector>

namespace ballast::sim::test {

/// The bytes of a version 1 array file, put together here and not by the code under test.
template <class T>
std::string npy_bytes(const std::string& dtype, const std::string& shape,
                      const std::vector<T>& values, const std::string& fortran = "False") {
  std::string header =
      "{'descr': '" + dtype + "', 'fortran_order': " + fortran + ", 'shape': " + shape + ", }";
  while ((10 + header.size() + 1) % 64 != 0) header += ' ';
  header += '\n';
  std::string bytes("\x93NUMPY\x01\x00", 8);
  bytes += static_cast<char>(header.size() & 0xff);
  bytes += static_cast<char>(header.size() >> 8);
  bytes += header;
  bytes.append(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T));
  return bytes;
}

/// The values of an array file whose header is as the shape and type say, taken from its end.
template <class T>
std::vector<T> npy_values(const std::string& bytes, const std::string& dtype,
                          const std::string& shape, std::size_t count) {
  EXPECT_NE(bytes.find("'descr': '" + dtype + "'"), std::string::npos) << dtype;
  EXPECT_NE(bytes.find("'shape': " + shape), std::string::npos) << shape << "\n"
                                                                << bytes.substr(0, 128);
  std::vector<T> values(count);
  if (bytes.size() < count * sizeof(T) || (bytes.size() - count * sizeof(T)) % 64 != 0) {
    ADD_FAILURE() << "the file has " << bytes.size() << " bytes";
    return values;
  }
  if (count == 0) return values;  // whose data may be null, which memcpy must not have
  std::memcpy(values.data(), bytes.data() + bytes.size() - count * sizeof(T), count * sizeof(T));
  return values;
}

/// A test with a folder of its own.
class FolderTest : public testing::Test {
 protected:
  void SetUp() override {
    const auto* test = testing::UnitTest::GetInstance()->current_test_info();
    root_ = std::filesystem::temp_directory_path() /
            (std::string("ballast-") + test->test_suite_name() + "-" + test->name() + "-" +
             std::to_string(getpid()));
    std::filesystem::remove_all(root_);
    std::filesystem::create_directory(root_);
  }
  void TearDown() override { std::filesystem::remove_all(root_); }

  std::string path(const std::string& name) const { return (root_ / name).string(); }
  std::string write(const std::string& name, const std::string& bytes) const {
    std::ofstream(root_ / name, std::ios::binary) << bytes;
    return path(name);
  }
  std::string read(const std::string& name) const {
    std::ifstream file(root_ / name, std::ios::binary);
    EXPECT_TRUE(file) << name;
    return {std::istreambuf_iterator<char>(file), {}};
  }

  std::filesystem::path root_;
};

}  // namespace ballast::sim::test
