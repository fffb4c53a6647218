#pragma once

/// The files that `ballast run --out DIR` writes, of a run or of all variants.
namespace ballast::sim::result_files {

inline constexpr const char* scenario = "scenario.json";
inline constexpr const char* summary = "summary.json";
inline constexpr const char* metrics = "metrics.jsonl";          ///< a line a step
inline constexpr const char* diagnostics = "diagnostics.jsonl";  ///< a line a log interval
inline constexpr const char* evaluations = "eval.jsonl";

}  // namespace ballast::sim::result_files
