#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "props/subjects/subject.h"

namespace ballast::props {

/// A faulty variant of the built-in subject, to be told from a correct one by the laws.
struct Mutant {
  std::string name;         ///< "counts-padding"
  std::string description;  ///< what it does wrong, one sentence
  std::string law;          ///< id of the law that it is made for
  /// The faults seen in the wild that it repeats ("M05"), or the places that warn of it
  /// ("algorithms 2.9", "protocol").
  std::vector<std::string> faults;
  std::function<std::unique_ptr<Subject>()> make;
  /// Nobody can tell it from a correct subject by asking; the comment at its class proves it.
  bool equivalent = false;
};

/// All mutants, in the order of their families. Names are unique.
const std::vector<Mutant>& all_mutants();

/// A mutant that is a subject of type S, made from the arguments.
template <class S, class... Args>
Mutant mutant(std::string name, std::string law, std::vector<std::string> faults,
              std::string description, Args... args) {
  return {.name = std::move(name),
          .description = std::move(description),
          .law = std::move(law),
          .faults = std::move(faults),
          .make = [=] { return std::make_unique<S>(args...); },
          .equivalent = false};
}

/// The same, marked as equivalent.
template <class S>
Mutant equivalent(std::string name, std::string law, std::vector<std::string> faults,
                  std::string description) {
  Mutant out =
      mutant<S>(std::move(name), std::move(law), std::move(faults), std::move(description));
  out.equivalent = true;
  return out;
}

}  // namespace ballast::props
