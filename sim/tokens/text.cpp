#include "sim/tokens/text.h"

#include "core/random/distributions.h"
#include "sim/input_error.h"
#include "sim/read_file.h"
#include "sim/tokens/sequence_stream.h"

namespace ballast::sim {
namespace {

constexpr std::size_t max_file_bytes = std::size_t{1} << 30;
constexpr const char* what = "cannot take tokens from the text";

}  // namespace

TextSource::TextSource(const std::string& file, std::size_t length, std::uint64_t seed)
    : bytes_(read_file(file, what, max_file_bytes)), length_(length), seed_(seed) {
  if (bytes_.size() / 10 > length_) return;
  throw InputError({.what = what,
                    .where = file,
                    .why = "it has " + std::to_string(bytes_.size()) +
                           " bytes, and its last tenth has to hold a sequence of " +
                           std::to_string(length_) + " and one more",
                    .right = "give a longer file, or make tokens.sequence_length smaller"});
}

Sequence TextSource::sequence(const SequenceKey& key) const {
  const bool training = key.split == Split::training;
  const std::size_t begin = training ? 0 : training_bytes();
  const std::size_t end = training ? training_bytes() : bytes_.size();
  Stream stream = sequence_stream(seed_, key).child("start");
  const std::size_t start = begin + uniform_index(stream, end - begin - length_);

  Sequence out{.tokens = std::vector<std::int32_t>(length_ + 1), .valid = length_};
  for (std::size_t i = 0; i <= length_; ++i) {
    out.tokens[i] = static_cast<unsigned char>(bytes_[start + i]);
  }
  return out;
}

}  // namespace ballast::sim
