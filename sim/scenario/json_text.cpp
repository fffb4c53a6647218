#include "sim/scenario/json_text.h"

#include <algorithm>
#include <set>
#include <utility>

#include "sim/input_error.h"

namespace ballast::sim {
namespace {

constexpr std::size_t max_depth = 32;

/// Follows the parser through a document: where it is, and which keys each open object had so far.
class Watcher {
 public:
  explicit Watcher(std::string_view origin) : origin_(origin) {}

  bool operator()(int, Json::parse_event_t event, Json& value) {
    using Event = Json::parse_event_t;
    switch (event) {
      case Event::object_start:
      case Event::array_start:
        open(event == Event::array_start);
        break;
      case Event::key:
        enter(value.get<std::string>());
        break;
      case Event::object_end:
      case Event::array_end:
        open_.pop_back();
        break;
      case Event::value:
        next_item();
        break;
    }
    return true;
  }

 private:
  struct Container {
    bool list = false;
    std::size_t index = 0;  ///< of the next item of a list
    std::string pointer;
    std::string key;  ///< the last one of an object
    std::set<std::string> keys;
  };

  void open(bool list) {
    if (open_.size() == max_depth) {
      throw InputError({.what = "cannot read the JSON",
                        .where = place(origin_, open_.back().pointer),
                        .why = "it is nested more than " + std::to_string(max_depth) + " deep",
                        .right = ""});
    }
    std::string pointer = open_.empty() ? "" : next_item();
    open_.push_back(
        {.list = list, .index = 0, .pointer = std::move(pointer), .key = {}, .keys = {}});
  }

  void enter(std::string key) {
    Container& object = open_.back();
    if (!object.keys.insert(key).second) {
      throw InputError({.what = "the key '" + key + "' is there twice",
                        .where = place(origin_, pointer_to(object.pointer, key)),
                        .why = "only one of the values can be meant",
                        .right = "remove one of them"});
    }
    object.key = std::move(key);
  }

  /// The pointer of the value that begins here.
  std::string next_item() {
    if (open_.empty()) return "";
    Container& parent = open_.back();
    return parent.list ? pointer_to(parent.pointer, parent.index++)
                       : pointer_to(parent.pointer, parent.key);
  }

  std::string origin_;
  std::vector<Container> open_;
};

struct Position {
  std::size_t line = 1, column = 1;
};

/// Line and column of the byte before `end`, the last one that the parser read.
Position position_of(std::string_view text, std::size_t end) {
  Position at;
  const std::size_t last = std::min(end, text.size() + 1);
  for (std::size_t i = 0; i + 1 < last; ++i) {
    if (text[i] == '\n') {
      ++at.line;
      at.column = 1;
    } else {
      ++at.column;
    }
  }
  return at;
}

/// The parser's own words for what is wrong, without its preamble and its echo of the input.
std::string grammar_problem(const std::string& message) {
  const auto begin = message.find("syntax error");
  if (begin == std::string::npos) return message;
  std::string problem = message.substr(begin);
  const auto echo = problem.find("; last read: ");
  const auto expected = problem.find("; expected ");
  if (echo == std::string::npos) return problem;
  return problem.substr(0, echo) + (expected == std::string::npos ? "" : problem.substr(expected));
}

}  // namespace

Json parse_json(std::string_view text, std::string_view origin) {
  try {
    return Json::parse(text, Watcher(origin));
  } catch (const Json::parse_error& error) {
    const auto [line, column] = position_of(text, error.byte);
    throw InputError(
        {.what = "the file is not JSON",
         .where = std::string(origin) + ":" + std::to_string(line) + ":" + std::to_string(column),
         .why = grammar_problem(error.what()),
         .right = ""});
  } catch (const Json::out_of_range&) {
    throw InputError({.what = "the file holds a number that no double can hold",
                      .where = std::string(origin),
                      .why = "its magnitude is above 1.8e308",
                      .right = ""});
  }
}

std::string place(std::string_view origin, std::string_view pointer) {
  return std::string(origin) + (pointer.empty() ? "" : "#") + std::string(pointer);
}

std::string pointer_to(std::string_view pointer, std::string_view key) {
  std::string out(pointer);
  out += '/';
  for (const char c : key) {
    if (c == '~') {
      out += "~0";
    } else if (c == '/') {
      out += "~1";
    } else {
      out += c;
    }
  }
  return out;
}

std::string pointer_to(std::string_view pointer, std::size_t index) {
  return pointer_to(pointer, std::to_string(index));
}

}  // namespace ballast::sim
