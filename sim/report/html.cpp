#include "sim/report/html.h"

#include "sim/text/printable.h"

namespace ballast::sim {

std::string escaped(std::string_view text, std::size_t max_bytes) {
  std::string safe;
  for (const char c : printable(text, max_bytes)) {
    switch (c) {
      case '<':
        safe += "&lt;";
        break;
      case '>':
        safe += "&gt;";
        break;
      case '&':
        safe += "&amp;";
        break;
      case '"':
        safe += "&quot;";
        break;
      case '\'':
        safe += "&#39;";
        break;
      default:
        safe += c;
    }
  }
  return safe;
}

std::string escaped_lines(std::string_view text) {
  std::string safe;
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    const std::string_view line = text.substr(0, end);
    safe += escaped(line, line.size());
    if (end == std::string_view::npos) break;
    safe += '\n';
    text.remove_prefix(end + 1);
  }
  return safe;
}

std::string element(std::string_view opening, std::string_view content) {
  std::string text = "<";
  text.append(opening).append(">").append(content).append("</");
  text.append(opening.substr(0, opening.find(' '))).append(">");
  return text;
}

std::string table(const std::vector<std::string>& headers, const std::string& rows) {
  std::string row;
  for (const std::string& header : headers) row += element("th scope=\"col\"", header);
  return element("div class=\"wide\"",
                 element("table", element("thead", element("tr", row)) + element("tbody", rows))) +
         "\n";
}

}  // namespace ballast::sim
