#pragma once

#include <string>

#include "props/cases/requests.h"
#include "props/subjects/subject.h"

/// The words that stand for the values of an enumeration in the protocol.
namespace ballast::props {

std::string word(ScoreFunction value);
std::string word(BalancerKind value);
std::string word(Estimator value);
std::string word(Update value);
std::string word(Mode value);
std::string word(CollectorAction value);
std::string word(Capability value);
std::string word(OnOverflow value);
/// The `op` of a request.
std::string word(const Request& request);

/// The value a word stands for. Throws std::invalid_argument that lists the words there are.
template <class Value>
Value value_of(const std::string& word);

/// Whether the word is a capability of this version of the protocol.
bool is_capability(const std::string& word);

}  // namespace ballast::props
