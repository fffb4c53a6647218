#include "sim/output/run_results.h"

#include "sim/input_error.h"
#include "sim/output/result_files.h"
#include "sim/output/run_json.h"

namespace ballast::sim {

namespace {

/// File systems end at 255 bytes.
constexpr std::size_t longest_folder_name = 200;

void write_json(OutputDirectory& directory, const std::string& path, const Json& json) {
  directory.write(path, json.dump(2) + "\n");
}

void write_run(OutputDirectory& directory, const std::string& folder, const Simulation& run) {
  write_json(directory, folder + result_files::scenario, to_json(run.scenario()));
  directory.write(folder + result_files::metrics, metrics_lines(run));
  directory.write(folder + result_files::diagnostics, diagnostics_lines(run));
  directory.write(folder + result_files::evaluations, evaluation_lines(run));
  write_json(directory, folder + result_files::summary, summary_json(run));
}

}  // namespace

void check_result_folders(const ScenarioFile& file, const std::string& origin) {
  for (std::size_t i = 0; i < file.variants.size(); ++i) {
    const std::string& name = file.variants[i].name;
    const bool taken = name == result_files::scenario || name == result_files::summary;
    if (!taken && name.size() <= longest_folder_name) continue;
    throw InputError(
        {.what = "the variant's results cannot have a folder of its name",
         .where = origin + "#/variants/" + std::to_string(i) + "/name",
         .why = taken ? "'" + name + "' is a file of the results of all variants"
                      : "it has more than " + std::to_string(longest_folder_name) + " bytes",
         .right = "give the variant another name"});
  }
}

void write_results(OutputDirectory& directory, const ScenarioFile& file,
                   const std::vector<const Simulation*>& runs) {
  if (file.variants.empty()) {
    write_run(directory, "", *runs.front());
  } else {
    for (const Simulation* run : runs) write_run(directory, run->scenario().name + "/", *run);
    write_json(directory, result_files::scenario, to_json(file));
    write_json(directory, result_files::summary, summary_json(file, runs));
  }
  directory.commit();
}

}  // namespace ballast::sim
