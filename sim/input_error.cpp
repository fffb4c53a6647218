#include "sim/input_error.h"

#include "sim/text/printable.h"

namespace ballast::sim {
namespace {

constexpr std::size_t max_part_bytes = 1000;

std::string one_line(const InputFault& fault) {
  std::string line;
  if (!fault.where.empty()) line += printable(fault.where, max_part_bytes) + ": ";
  line += printable(fault.what, max_part_bytes);
  if (!fault.why.empty()) line += ": " + printable(fault.why, max_part_bytes);
  if (!fault.right.empty()) line += "; " + printable(fault.right, max_part_bytes);
  return line;
}

}  // namespace

InputError::InputError(InputFault fault)
    : std::runtime_error(one_line(fault)), fault_(std::move(fault)) {}

}  // namespace ballast::sim
