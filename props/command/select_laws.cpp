#include "props/command/select_laws.h"

#include "props/command/select.h"

namespace ballast::props {

std::vector<Law> select_laws(std::span<const Law> laws, const std::vector<std::string>& patterns) {
  std::vector<std::string> ids;
  for (const Law& law : laws) ids.push_back(law.id);
  const Choice choice{.option = "laws",
                      .noun = "law has such an id",
                      .listed_by = "'ballast laws' lists them; * stands for anything, as in 'selection.*'"};
  std::vector<Law> out;
  for (const std::size_t i : select(ids, patterns, choice)) out.push_back(laws[i]);
  return out;
}

}  // namespace ballast::props
