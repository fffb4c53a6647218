#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace ballast::sim {

/// A number with at most `digits` digits after the point and at most `width` characters: fewer
/// digits where the number is large ("123.4"), then powers of ten ("5.6e+12"). NaN is "nan". Only
/// an exponent can be wider than `width`.
std::string compact(double value, std::size_t width, int digits);

/// The shortest text that reads as exactly this number: "2", "0.9", "1e+30".
std::string shortest(double value);
/// At most so many digits that say something, without zeros at the end: "1.5233".
std::string significant(double value, int digits);

/// A count in words: "512", "54 thousand", "1.2 million".
std::string in_words(std::uint64_t count);
/// "1 layer", "3 layers".
std::string counted(std::uint64_t count, const std::string& noun);

}  // namespace ballast::sim
