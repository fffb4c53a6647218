#include "props/subjects/process_subject.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "props/protocol/answers_json.h"
#include "props/protocol/raw_member.h"
#include "props/protocol/requests_json.h"
#include "props/protocol/words.h"
#include "sim/text/printable.h"

namespace ballast::props {

namespace {

using namespace std::chrono_literals;

Json parse(const std::string& line) {
  try {
    return Json::parse(line);
  } catch (const nlohmann::json::exception& error) {
    throw ProtocolError("it is no JSON: " + sim::printable(line, 120));
  }
}

std::string label(std::size_t number, const Request& request) {
  std::string text = "request " + std::to_string(number) + " (" + word(request);
  if (const auto* forward = std::get_if<Forward>(&request)) {
    text += ", " + word(forward->mode) + ", layer " + std::to_string(forward->layer);
  } else if (const auto* collector = std::get_if<Collector>(&request)) {
    text += ", " + word(collector->action);
  }
  return text + ")";
}

std::string simple_line(std::int64_t id, const std::string& op) {
  return R"({"id":)" + std::to_string(id) + R"(,"op":")" + op + "\"";
}

}  // namespace

ProcessSubject::ProcessSubject(ProcessSettings settings) : settings_(std::move(settings)) {}

ProcessSubject::~ProcessSubject() {
  if (!child_) return;
  const auto limit = std::min<std::chrono::milliseconds>(settings_.answer_time, 1000ms);
  try {
    child_->exchange(simple_line(++id_, "close") + "}", limit);
    child_->leave(limit);
  } catch (const ChildFailure&) {
    // It is ended below, answer or not.
  }
}

void ProcessSubject::fail(const std::string& line, bool timed_out) {
  SubjectFailure failure("the subject " + line, child_ ? child_->stderr_tail() : std::string());
  failure.timed_out = timed_out;
  child_.reset();
  throw failure;
}

template <class Read>
auto ProcessSubject::converse(const std::string& line, const std::string& what, Read read) {
  try {
    const std::string answer = child_->exchange(line, settings_.answer_time);
    return read(parse(answer), answer);
  } catch (const ChildFailure& failure) {
    fail(std::string(failure.what()) + ", asked for " + what, failure.timed_out);
  } catch (const ProtocolError& error) {
    fail("gave no valid answer to " + what + ": " + error.what());
  }
}

void ProcessSubject::start() {
  child_ = std::make_unique<ChildProcess>(settings_.command, settings_.line_bytes_max);
  const std::int64_t id = ++id_;
  hello_ = converse(simple_line(id, "hello") + R"(,"protocol":1})", "hello",
                    [&](const Json& answer, const std::string&) { return read_hello(id, answer); });
}

const Hello& ProcessSubject::hello() {
  if (!child_) start();
  return hello_;
}

Answer ProcessSubject::open(const Open& open) {
  if (!child_) start();
  states_.clear();
  requests_ = 0;
  const std::int64_t id = ++id_;
  return converse(request_json(id, open).dump(), "open",
                  [&](const Json& answer, const std::string&) { return read_done(id, answer); });
}

bool ProcessSubject::has_state(const Load& load) const {
  return load.slot < states_.size() && states_[load.slot].has_value();
}

Answer ProcessSubject::ask(const Request& request) {
  const std::string what = label(requests_++, request);
  if (!child_) fail("is not running at " + what + ": a case begins with open");
  const auto* const load = std::get_if<Load>(&request);
  if (load != nullptr && !has_state(*load))
    return Refusal{.code = "invalid", .message = "there is no state from this save to load"};
  const std::int64_t id = ++id_;
  const std::string line =
      load != nullptr ? simple_line(id, "load") + ",\"state\":" + *states_[load->slot] + "}"
                      : request_json(id, request).dump();
  return converse(line, what, [&](const Json& json, const std::string& text) {
    Answer answer = read_answer(id, request, json);
    if (std::holds_alternative<Save>(request)) {
      // As it came: it may hold numbers that no type of ours does.
      const bool saved = std::holds_alternative<Done>(answer);
      states_.push_back(saved ? std::optional(raw_member(text, "state")) : std::nullopt);
    }
    return answer;
  });
}

std::string ProcessSubject::last_lines() {
  return child_ ? child_->stderr_tail() : std::string();
}

}  // namespace ballast::props
