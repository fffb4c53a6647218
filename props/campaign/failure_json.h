#pragma once

#include "props/campaign/failure.h"
#include "props/protocol/json.h"

namespace ballast::props {

/// {"where", "expected", "seen", "subject_failed", "flaky", "case", "irrelevant", "answers", "stderr"}
Json failure_json(const Failure& failure);

}  // namespace ballast::props
