#include "sim/npy/npy_header.h"

#include <gtest/gtest.h>

#include <stdexcept>

#include "tests/sim/npy/npy_files.h"

namespace ballast::sim {
namespace {

using test::npy_bytes;

std::string refusal(const std::string& bytes) {
  try {
    parse_npy_header(bytes);
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "no refusal";
}

/// A version 1 file with this text as its header.
std::string with_header(const std::string& text) {
  return std::string("\x93NUMPY\x01\x00", 8) + static_cast<char>(text.size()) + '\0' + text;
}

TEST(NpyHeader, IsWrittenByteForByteAsNumPyWritesIt) {
  EXPECT_EQ(npy_header("<f4", {65536, 16}), npy_bytes<float>("<f4", "(65536, 16)", {}));
  EXPECT_EQ(npy_header("<i8", {896}), npy_bytes<float>("<i8", "(896,)", {}));
}

TEST(NpyHeader, SaysTypeOrderShapeAndWhereTheValuesBegin) {
  const NpyHeader header = parse_npy_header(npy_bytes<float>("<f4", "(3, 4)", {1.0f}, "True"));
  EXPECT_EQ(header, (NpyHeader{"<f4", true, {3, 4}, 128}));
}

TEST(NpyHeader, ReadsShapesOfAnyNumberOfDimensions) {
  EXPECT_EQ(parse_npy_header(npy_bytes<float>("<f4", "()", {})).shape,
            (std::vector<std::size_t>{}));
  EXPECT_EQ(parse_npy_header(npy_bytes<float>("<f4", "(7,)", {})).shape,
            (std::vector<std::size_t>{7}));
  EXPECT_EQ(parse_npy_header(npy_bytes<float>("<f4", "(2, 0, 5)", {})).shape,
            (std::vector<std::size_t>{2, 0, 5}));
}

TEST(NpyHeader, ReadsVersionsTwoAndThreeWhoseLengthHasFourBytes) {
  const std::string text = "{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }\n";
  for (const char version : {'\2', '\3'}) {
    const std::string bytes = std::string("\x93NUMPY") + version + '\0' +
                              static_cast<char>(text.size()) + std::string(3, '\0') + text;
    EXPECT_EQ(parse_npy_header(bytes), (NpyHeader{"<f4", false, {2}, bytes.size()}));
  }
}

TEST(NpyHeader, TakesEntriesInAnyOrderAndEitherQuote) {
  const auto header =
      parse_npy_header(with_header("{\"shape\":(1,2),\"fortran_order\":False,\"descr\":\"<u2\"}"));
  EXPECT_EQ(header.dtype, "<u2");
  EXPECT_EQ(header.shape, (std::vector<std::size_t>{1, 2}));
}

TEST(NpyHeader, SaysWhyAFileIsNone) {
  EXPECT_EQ(refusal("PK\3\4"), "it does not begin as a NumPy array file does");
  EXPECT_EQ(refusal("\x93NUMPY\1"), "it ends inside its header");
  EXPECT_EQ(refusal(std::string("\x93NUMPY\x09\x00\x10\x00", 10)),
            "its format version is 9, not 1, 2 or 3");
  EXPECT_EQ(refusal(npy_bytes<float>("<f4", "(3,)", {}).substr(0, 60)),
            "it ends inside its header");
  EXPECT_EQ(refusal(with_header("{'descr': '<f4', 'shape': (3,)}")),
            "its header lacks descr, fortran_order or shape");
  EXPECT_EQ(
      refusal(with_header("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (3,)}")),
      "its values are records, not numbers");
  EXPECT_EQ(refusal(with_header("{'descr': '<f4', 'order': 1}")),
            "its header has the unknown entry 'order'");
}

TEST(NpyHeader, RefusesEveryCutOffOrSpoiltHeaderInOneLine) {
  const std::string whole = npy_bytes<float>("<f4", "(3, 4)", {});
  for (std::size_t length = 0; length < whole.size(); ++length) {
    EXPECT_NE(refusal(whole.substr(0, length)), "no refusal") << length;
  }
  const std::string text = "{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4)}";
  for (std::size_t place = 0; place < text.size(); ++place) {
    std::string spoilt = text;
    spoilt[place] = '\n';
    EXPECT_EQ(refusal(with_header(spoilt)).find('\n'), std::string::npos) << place;
  }
}

}  // namespace
}  // namespace ballast::sim
