#pragma once

#include <string>

#include "sim/scenario/field_type.h"
#include "sim/signature/signature.h"

namespace ballast::sim {

/// A signature as `ballast signature --json` prints it: format, version, numerics, the one digest,
/// and with `entries` every place and its digest. Nothing in it depends on the build or the
/// machine.
Json signature_json(const Signature& signature, bool entries);

/// The entries of such a file. Throws InputError for a file that is none, or has no entries.
Signature load_signature(const std::string& file);

}  // namespace ballast::sim
