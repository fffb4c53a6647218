#pragma once

#include <iosfwd>
#include <string>
#include <vector>

#include "props/campaign/campaign.h"
#include "props/laws/law.h"
#include "props/protocol/json.h"

namespace ballast::props {

/// What a report says beside the result itself.
struct ReportContext {
  std::span<const Law> laws;       ///< those of the campaign
  std::string subject_options;     ///< of the line that reproduces: "--subject 'python3 router.py'"; or empty
  bool colour = false;
};

/// {"verdict": "..", "laws": [{"id", "verdict", "cases", "replayed", "discarded", "unsupported", "edges", and
/// "reason" (unknown) or "failure" (fail)}]}
Json report_json(const CampaignResult& result, const ReportContext& context);

/// A table with a line for every law, 80 columns wide, then every failure: the law in a sentence, where,
/// what was expected and seen, the smallest case, the last lines on stderr, and the line that reproduces
/// it.
void write_report(const CampaignResult& result, const ReportContext& context, std::ostream& out);

/// The same as JUnit's XML, for build servers: a test case a law.
std::string junit_xml(const CampaignResult& result, const ReportContext& context);

/// The failure of a law, as the report shows it.
std::string describe_failure(const LawResult& law, const ReportContext& context);

/// A word of a shell command line, quoted where it has to be.
std::string shell_quoted(const std::string& word);

}  // namespace ballast::props
