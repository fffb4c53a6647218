#pragma once

#include <string>
#include <string_view>

namespace ballast::props {

/// The text of a member of a JSON object, as it stands there: numbers of any size and precision pass
/// through unread. `object` is valid JSON; the last of several members of this name counts, and "null"
/// stands for none. Keys written with escapes are not found. Linear in the text.
std::string raw_member(std::string_view object, std::string_view key);

}  // namespace ballast::props
