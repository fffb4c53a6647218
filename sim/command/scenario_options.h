#pragma once

#include <boost/program_options/options_description.hpp>
#include <boost/program_options/variables_map.hpp>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "sim/scenario/scenario_file.h"

/// What the verbs that run scenarios have in common on the command line.
namespace ballast::sim {

/// --set PATH=VALUE and --seed N, in the order of the command line, where the last word counts;
/// --seed after all. Throws UsageError for what is no assignment.
std::vector<Override> overrides_of(const boost::program_options::variables_map& given);

/// The value of an option that is a number from 1 to `most`; `otherwise` when it is not given.
/// Throws UsageError.
std::size_t count_option(const boost::program_options::variables_map& given,
                         const std::string& name, std::size_t most, std::size_t otherwise);

/// Processors of the machine, at least 1.
std::size_t processors();

inline constexpr std::size_t most_threads = 1024;

/// Calls `read`. What the command line set wrongly is its own fault, not that of the file: an
/// InputError at the place of an override becomes a UsageError.
void blaming_overrides(const std::vector<Override>& overrides, const std::function<void()>& read);

/// The only word of a positional option, "" without any. Throws UsageError with `advice` when there
/// are several, or when it is empty.
std::string only_file(const boost::program_options::variables_map& given, const std::string& name,
                      const std::string& advice);

}  // namespace ballast::sim
