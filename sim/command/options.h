#pragma once

#include <boost/program_options/options_description.hpp>
#include <boost/program_options/positional_options.hpp>
#include <boost/program_options/variables_map.hpp>
#include <string>

#include "sim/command/verb.h"

namespace ballast::sim {

/// The options of one verb.
struct OptionSet {
  boost::program_options::options_description named;
  boost::program_options::positional_options_description positional;
};

/// These options, and words without an option, which `parse_options` gives as the list `name`.
OptionSet with_words(const boost::program_options::options_description& named,
                     const std::string& name);

/// Parses a verb's arguments. Options are never abbreviated. Throws UsageError, one line that names
/// the option, says what is wrong with it, and suggests the nearest option to one that does not
/// exist.
boost::program_options::variables_map parse_options(const OptionSet& options, Arguments arguments);

}  // namespace ballast::sim
