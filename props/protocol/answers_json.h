#pragma once

#include <cstdint>
#include <string>

#include "props/cases/requests.h"
#include "props/protocol/json.h"
#include "props/subjects/subject.h"

/// Answers as the protocol writes them. Reading checks everything but shapes, which laws judge:
/// ProtocolError says what is missing, of another type, or answers another request.
namespace ballast::props {

/// {"id": n, "ok": true, ..} or {"id": n, "ok": false, "error": {"code": "..", "message": ".."}}
Json answer_json(std::int64_t id, const Answer& answer);

/// The answer to `hello`. A capability that this version does not know is passed over.
Hello read_hello(std::int64_t id, const Json& json);
/// The answer to `open` or `close`: Done, or a Refusal.
Answer read_done(std::int64_t id, const Json& json);
/// The answer to a request. Of the answer to `save`, the state is left where it is.
Answer read_answer(std::int64_t id, const Request& request, const Json& json);

}  // namespace ballast::props
