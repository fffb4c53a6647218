#include "sim/command/options.h"

#include <boost/program_options/errors.hpp>
#include <boost/program_options/parsers.hpp>

#include "sim/text/nearest.h"
#include "sim/usage_error.h"

namespace ballast::sim {
namespace {

namespace po = boost::program_options;

constexpr int style = po::command_line_style::unix_style & ~po::command_line_style::allow_guessing;

std::vector<std::string> names(const OptionSet& options) {
  std::vector<std::string> words;
  for (const auto& option : options.named.options()) words.push_back("--" + option->long_name());
  return words;
}

}  // namespace

OptionSet with_words(const po::options_description& named, const std::string& name) {
  OptionSet options{.named = named, .positional = {}};
  options.named.add_options()(name.c_str(), po::value<std::vector<std::string>>(), "");
  options.positional.add(name.c_str(), -1);
  return options;
}

po::variables_map parse_options(const OptionSet& options, Arguments arguments) {
  try {
    const std::vector<std::string> words(arguments.begin(), arguments.end());
    po::variables_map values;
    po::store(po::command_line_parser(words)
                  .options(options.named)
                  .positional(options.positional)
                  .style(style)
                  .run(),
              values);
    if (!values.contains("help")) po::notify(values);
    return values;
  } catch (const po::unknown_option& error) {
    const std::string& name = error.get_option_name();
    throw UsageError("there is no option '" + name + "'." + did_you_mean(name, names(options)) +
                     " '--help' lists the options");
  } catch (const po::error& error) {
    throw UsageError(std::string(error.what()) + "; '--help' explains the options");
  }
}

}  // namespace ballast::sim
