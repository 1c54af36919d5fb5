// Reports the result of a tuning, for people and for programs.
#pragma once

#include <string>
#include <vector>

#include "autotune/search/Search.h"
#include "dsl/Result.h"
#include "tools/normc/Output.h"

namespace normc::cli {

/// One task, and how it ended.
struct Tuned {
  tune::Task task;
  tune::Outcome outcome;
  tune::Landscape landscape;
  tune::Samples defaultSamples;  ///< of the race
  double copySeconds = 0;        ///< of a copy that moves each X-sized tensor once; 0: none
  int64_t disturbed = 0;         ///< samples that were thrown away, since the core was not ours alone
  bool patient = true;           ///< there was time to wait for it to the end
  bool named = false;            ///< its schedules were named: each is compared with the default
  std::string norms,
      place;  ///< of the command line: files of norms, and the flags that say where and for what
};

/// Returns the first line of a reason, and the line after "it said:".
std::string shortOf(const std::string& reason);

/// The closing table, what was rejected and why, and where the records are. `whole`: it was not interrupted.
/// `undone`: the tasks that were not begun when the total time was over. `errors`: what ended it in a later
/// task; with --json they are a part of the document.
void report(const std::vector<Tuned>&, bool whole, const std::string& records, Output&,
            const std::vector<tune::Task>& undone = {}, const std::vector<Diagnostic>& errors = {});

/// Returns the candidates of a task that a dry run shows.
enum class Shown { All, Seeds };

/// The candidates of a task in the order of the model, the seeds marked; as JSON where that is wanted.
Json dryRunReport(const tune::Task&, const tune::Landscape&, const std::vector<size_t>& seeds, Shown,
                  Output&);

}  // namespace normc::cli
