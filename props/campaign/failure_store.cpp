#include "props/campaign/failure_store.h"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>
#include <system_error>

#include "props/campaign/failure_json.h"
#include "props/protocol/node.h"
#include "props/protocol/requests_json.h"
#include "sim/input_error.h"
#include "sim/read_file.h"

namespace ballast::props {

namespace fs = std::filesystem;

namespace {

constexpr std::size_t file_bytes_max = std::size_t{64} << 20;

void write_whole(const fs::path& path, const std::string& text) {
  fs::create_directories(path.parent_path());
  fs::path partial = path;
  partial += "." + std::to_string(getpid()) + ".partial";
  errno = 0;
  std::ofstream file(partial, std::ios::binary);
  file << text;
  file.close();
  if (!file) {
    const int reason = errno != 0 ? errno : EIO;
    std::error_code ignored;
    fs::remove(partial, ignored);
    throw std::system_error(reason, std::generic_category(), "cannot write " + path.string());
  }
  fs::rename(partial, path);
}

Json identity_json(const Reproduction& reproduction) {
  Json out;
  out["law"] = reproduction.law;
  out["seed"] = std::to_string(reproduction.seed);
  out["index"] = reproduction.index;
  return out;
}

std::uint64_t read_seed(const Node& node) {
  const auto parsed = parse_reproduction("law:" + read_text(node) + ":0");
  if (!parsed) node.refuse("a string of digits, below 2^64");
  return parsed->seed;
}

StoredCase read_stored(const fs::path& path) {
  const std::string text = sim::read_file(path.string(), "cannot replay the stored case", file_bytes_max);
  try {
    const Json json = Json::parse(text);
    const Node node(json);
    return {.reproduction = {.law = read_text(node.member("law")),
                             .seed = read_seed(node.member("seed")),
                             .index = read_size(node.member("index"))},
            .input = read_case(node.member("case").value()),
            .file = path.string()};
  } catch (const std::exception& error) {
    throw sim::InputError({.what = "cannot replay the stored case",
                           .where = path.string(),
                           .why = error.what(),
                           .right = "a file as ballast check writes it; remove it if it is of no use"});
  }
}

std::vector<fs::path> files_in(const fs::path& folder) {
  std::vector<fs::path> out;
  std::error_code none;
  for (const auto& entry : fs::directory_iterator(folder, none)) {
    if (entry.path().extension() == ".json") out.push_back(entry.path());
  }
  std::ranges::sort(out);
  return out;
}

/// The process that wrote a file of running cases: "PID-SUBJECT.json".
std::optional<pid_t> writer_of(const fs::path& path) {
  const std::string name = path.stem().string();
  pid_t pid = 0;
  const auto result = std::from_chars(name.data(), name.data() + name.size(), pid);
  if (result.ec != std::errc() || *result.ptr != '-' || pid <= 0) return std::nullopt;
  return pid;
}

bool is_alive(pid_t pid) {
  return kill(pid, 0) == 0 || errno == EPERM;
}

}  // namespace

FailureStore::FailureStore(fs::path failures)
    : failures_(std::move(failures)), running_(failures_.parent_path() / "running") {}

std::string FailureStore::write(const Law& law, const Failure& failure) const {
  const Reproduction& which = failure.reproduction;
  Json out = identity_json(which);
  out["statement"] = law.statement;
  out["reproduce"] = which.text();
  const Json told = failure_json(failure);
  for (const auto& [key, value] : told.items()) out[key] = value;
  const fs::path path = failures_ / (which.law + "-" + std::to_string(which.seed) + "-" +
                                     std::to_string(which.index) + ".json");
  write_whole(path, out.dump(1, ' ', false, Json::error_handler_t::replace) + "\n");
  return path.string();
}

std::vector<StoredCase> FailureStore::read() const {
  std::vector<StoredCase> out;
  for (const fs::path& path : files_in(failures_)) out.push_back(read_stored(path));
  for (const fs::path& path : files_in(running_)) {
    const auto writer = writer_of(path);
    if (!writer || is_alive(*writer)) continue;
    out.push_back(read_stored(path));
    out.back().unfinished = true;
  }
  return out;
}

fs::path FailureStore::running_file(std::size_t subject) const {
  return running_ / (std::to_string(getpid()) + "-" + std::to_string(subject) + ".json");
}

void FailureStore::note_running(std::size_t subject, const Reproduction& reproduction, const Case& input) const {
  Json out = identity_json(reproduction);
  out["case"] = case_json(input);
  write_whole(running_file(subject), out.dump() + "\n");
}

void FailureStore::forget_running(std::size_t subjects) const {
  std::error_code ignored;
  for (std::size_t subject = 0; subject < subjects; ++subject) fs::remove(running_file(subject), ignored);
  fs::remove(running_, ignored);  // if it is empty
}

void FailureStore::forget(const StoredCase& stored) const {
  std::error_code ignored;
  if (stored.unfinished) fs::remove(stored.file, ignored);
}

}  // namespace ballast::props
