#pragma once

#include <set>
#include <string>

#include "props/cases/case.h"

namespace ballast::props {

/// A case for people: the model in a line or two, then its requests, numbered from 0 as laws name them, with their matrices as
/// small tables. What `irrelevant` names (JSON pointers into `case_json(input)`) is marked with `*`.
/// Every line begins with `indent` blanks and is at most about 80 columns wide; of large tables the
/// beginning is shown.
std::string describe_case(const Case& input, const std::set<std::string>& irrelevant, std::size_t indent);

}  // namespace ballast::props
