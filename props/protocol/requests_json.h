#pragma once

#include <cstdint>

#include "props/cases/case.h"
#include "props/protocol/json.h"

/// Requests as the protocol writes them, and cases as they are stored: the lines of the conversation.
namespace ballast::props {

/// {"id": 1, "op": "open", "model": {..}, "balancer": {..}, "ranks": n, "biases": [[..]] or null}
Json request_json(std::int64_t id, const Open& open);
/// {"id": n, "op": "..", ..}. A `load` has the `slot` of its save in place of the state, which only
/// the subject knows.
Json request_json(std::int64_t id, const Request& request);

/// {"salt": "digits", "requests": [the open, the history]}: every request is a line that can be sent
/// to a subject by hand.
Json case_json(const Case& input);

/// Read what the functions above wrote. Unknown members are ignored. Errors: ProtocolError.
Open read_open(const Json& json);
Request read_request(const Json& json);
Case read_case(const Json& json);

}  // namespace ballast::props
