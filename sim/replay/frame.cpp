#include "sim/replay/frame.h"

#include <bit>
#include <cstring>

#include "sim/digest.h"

namespace ballast::sim {
namespace {

// x86-64 and arm64, which the project supports, both keep numbers so.
static_assert(std::endian::native == std::endian::little);

constexpr std::size_t head_bytes = 1 + sizeof(std::uint32_t) + sizeof(std::uint64_t);

template <class T>
std::string bytes_of(T value) {
  return {reinterpret_cast<const char*>(&value), sizeof value};
}

template <class T>
T value_at(std::string_view bytes, std::size_t offset) {
  T value;
  std::memcpy(&value, bytes.data() + offset, sizeof value);
  return value;
}

}  // namespace

std::string encode(const Frame& frame) {
  std::string body;
  body += static_cast<char>(frame.kind);
  body += bytes_of(frame.run) + bytes_of(frame.step) + frame.digest;
  body += frame.layers;
  Digest check;
  check.add(std::span<const char>(body));
  return bytes_of(static_cast<std::uint64_t>(body.size())) + body + check.hex();
}

std::optional<Frame> decode(std::string_view bytes) {
  if (bytes.size() < head_bytes + digest_characters) return std::nullopt;
  const char kind = bytes.front();
  if (kind != 'S' && kind != 'E' && kind != 'Z') return std::nullopt;
  return Frame{.kind = static_cast<Frame::Kind>(kind),
               .run = value_at<std::uint32_t>(bytes, 1),
               .step = value_at<std::uint64_t>(bytes, 1 + sizeof(std::uint32_t)),
               .digest = std::string(bytes.substr(head_bytes, digest_characters)),
               .layers = std::string(bytes.substr(head_bytes + digest_characters))};
}

StepLayers::StepLayers(const Scenario& scenario, std::string_view bytes)
    : bytes_(bytes),
      layers_(scenario.model.layers),
      experts_(scenario.model.moe.router.routed_experts),
      tokens_(scenario.training.ranks * scenario.training.micro_batches *
              scenario.training.sequences * scenario.tokens.sequence_length) {
  const std::size_t head = digest_characters + sizeof(std::uint32_t);
  const std::size_t slot_bytes = tokens_ * (choice_bytes(experts_) + sizeof(std::uint16_t));
  std::size_t begin = 0;
  for (std::size_t layer = 0; layer < layers_; ++layer) {
    if (bytes.size() - begin < head) return;
    const auto slots = value_at<std::uint32_t>(bytes, begin + digest_characters);
    if (slots > experts_) return;
    const std::size_t length = head + experts_ * sizeof(float) + slots * slot_bytes;
    if (bytes.size() - begin < length) return;
    at_.push_back({.begin = begin, .bytes = length, .slots = slots});
    begin += length;
  }
  fits_ = begin == bytes.size();
}

std::size_t StepLayers::choice_bytes(std::size_t experts) {
  return experts < 256 ? 1 : experts < 65536 ? 2 : 4;
}

std::uint16_t StepLayers::mark(float weight) {
  const auto bits = std::bit_cast<std::uint32_t>(weight);
  return static_cast<std::uint16_t>((bits >> 16) ^ (bits & 0xFFFFu));
}

std::size_t StepLayers::choices_at(std::size_t layer) const {
  return at_[layer].begin + digest_characters + sizeof(std::uint32_t) + experts_ * sizeof(float);
}

std::size_t StepLayers::marks_at(std::size_t layer) const {
  return choices_at(layer) + tokens_ * slots(layer) * choice_bytes(experts_);
}

std::string_view StepLayers::whole(std::size_t layer) const {
  return bytes_.substr(at_[layer].begin, at_[layer].bytes);
}

std::string_view StepLayers::digest(std::size_t layer) const {
  return bytes_.substr(at_[layer].begin, digest_characters);
}

std::string_view StepLayers::biases(std::size_t layer) const {
  const std::size_t bytes = experts_ * sizeof(float);
  return bytes_.substr(choices_at(layer) - bytes, bytes);
}

std::string_view StepLayers::choices(std::size_t layer) const {
  return bytes_.substr(choices_at(layer), marks_at(layer) - choices_at(layer));
}

std::string_view StepLayers::marks(std::size_t layer) const {
  return bytes_.substr(marks_at(layer), tokens_ * slots(layer) * sizeof(std::uint16_t));
}

float StepLayers::bias(std::size_t layer, std::size_t expert) const {
  return value_at<float>(bytes_, choices_at(layer) - (experts_ - expert) * sizeof(float));
}

std::uint32_t StepLayers::choice(std::size_t layer, std::size_t token, std::size_t slot) const {
  const std::size_t width = choice_bytes(experts_), place = token * slots(layer) + slot;
  std::uint32_t value = 0;
  std::memcpy(&value, bytes_.data() + choices_at(layer) + place * width, width);
  return value;
}

std::uint16_t StepLayers::mark(std::size_t layer, std::size_t token, std::size_t slot) const {
  const std::size_t place = token * slots(layer) + slot;
  return value_at<std::uint16_t>(bytes_, marks_at(layer) + place * sizeof(std::uint16_t));
}

}  // namespace ballast::sim
