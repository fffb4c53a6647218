#include "sim/replay/recording_file.h"

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "core/version.h"
#include "sim/digest.h"
#include "sim/input_error.h"
#include "sim/replay/fingerprint.h"
#include "sim/scenario/json_text.h"

namespace ballast::sim {
namespace {

constexpr std::size_t longest_header = std::size_t{32} << 20;

Json header_of(const ScenarioFile& scenario) {
  return {{"ballast_recording", recording_format},
          {"version", version},
          {"numerics", numerics_fingerprint()},
          {"scenario", to_json(scenario)}};
}

}  // namespace

RecordingWriter::RecordingWriter(const std::string& name, const ScenarioFile& scenario)
    : file_("--record", name) {
  file_.write(header_of(scenario).dump() + "\n");
}

void RecordingWriter::write(std::span<const Frame> frames) {
  for (const Frame& frame : frames) file_.write(encode(frame));
}

RecordingReader::RecordingReader(const std::string& name)
    : name_(name), file_(name, std::ios::binary) {
  if (!file_) refuse(std::strerror(errno), "");
  std::error_code error;
  size_ = std::filesystem::file_size(name, error);
  if (error) refuse(error.message(), "name a recording, which 'ballast run --record' writes");
  read_header();
}

void RecordingReader::refuse(const std::string& why, const std::string& right) const {
  throw InputError(
      {.what = "cannot replay the recording", .where = name_, .why = why, .right = right});
}

void RecordingReader::read_header() {
  const std::string advice = "name a recording, which 'ballast run --record' writes";
  std::string line;
  while (line.size() < longest_header) {
    const int next = file_.get();
    if (next == std::ifstream::traits_type::eof() || next == '\n') break;
    line += static_cast<char>(next);
    // Whatever else the file is, it is not read to its end.
    if (line.size() == 2 && line != "{\"") break;
  }
  read_ = line.size() + 1;
  const Json header = Json::parse(line, nullptr, /*allow_exceptions=*/false);
  if (!header.is_object() || !header.contains("ballast_recording"))
    refuse("the file is no recording", advice);
  if (header["ballast_recording"] != recording_format) {
    refuse("it is of format " + show(header["ballast_recording"]),
           "this program reads format " + std::to_string(recording_format));
  }
  const auto text = [&](const char* key) {
    const auto found = header.find(key);
    return found != header.end() && found->is_string() ? found->get<std::string>() : "";
  };
  if (text("version") != version) {
    refuse("it was made by ballast " + text("version") + ", and this is ballast " +
               std::string(version),
           "replay it with the version that made it");
  }
  if (text("numerics") != numerics_fingerprint()) {
    refuse("it was made with other numerics (" + text("numerics") + ") than those of this build (" +
               numerics_fingerprint() + ")",
           "replay it with the program that made it");
  }
  scenario_ = read_scenario(header.value("scenario", Json()), name_, "/scenario");
}

std::optional<Frame> RecordingReader::next() {
  if (read_ >= size_) return std::nullopt;
  const auto damaged = [&](const std::string& why) {
    refuse(why + " at byte " + std::to_string(read_), "record the run again");
  };
  const auto read = [&](std::uint64_t bytes) {
    if (bytes > size_ - read_) damaged("it is cut off");
    std::string text(bytes, '\0');
    file_.read(text.data(), static_cast<std::streamsize>(bytes));
    if (!file_) damaged("it cannot be read on");
    read_ += bytes;
    return text;
  };
  if (size_ - read_ < sizeof(std::uint64_t)) damaged("it is cut off");
  const std::string length_bytes = read(sizeof(std::uint64_t));
  std::uint64_t length = 0;
  std::memcpy(&length, length_bytes.data(), sizeof length);
  const std::string body = read(length);
  Digest check;
  check.add(std::span<const char>(body));
  if (read(digest_characters) != check.hex()) damaged("it is damaged before the frame that ends");
  auto frame = decode(body);
  if (!frame) damaged("it is damaged before the frame that ends");
  return frame;
}

}  // namespace ballast::sim
