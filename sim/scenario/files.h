#pragma once

#include <string>
#include <vector>

#include "sim/scenario/givens.h"
#include "sim/scenario/scenario.h"

namespace ballast::sim {

/// The value of a field as it is kept: the name of a file made absolute, a relative one taken from
/// `folder` (empty: the current directory), so that it means the same from everywhere. Any other
/// value as it is.
Json resolved(const FieldType& type, Json value, const std::string& folder);

/// All values of scenario fields resolved so.
void resolve_files(Givens& givens, const std::string& folder);

/// The folder of a file, as `resolved` wants it.
std::string folder_of(const std::string& file);

/// The files that a scenario reads, in the order of its fields; those its schedule names as well.
std::vector<std::string> files_of(const Scenario& scenario);

/// A digest over what these files hold; one that cannot be read has none. Empty for no files.
std::string content_digest(const std::vector<std::string>& files);

}  // namespace ballast::sim
