// Records as one page of HTML: for each problem the candidates, the race, what was rejected and why, and the
// choice.
#pragma once

#include <iosfwd>
#include <string>
#include <vector>

#include "autotune/records/Database.h"
#include "tools/normc/ExitCode.h"
#include "tools/normc/Files.h"
#include "tools/normc/Output.h"

namespace normc::cli {

/// Returns the page; the same set of records gives the same bytes. Empty if there is nothing to show.
std::string recordsPage(const tune::Database&);

/// Writes it to `path`. `read`: the files of the records. `said`: for the line that says where it is.
ExitCode reportRecords(const tune::Database&, const std::string& path, const std::vector<NamedFile>& read,
                       std::ostream& said, Output&);

}  // namespace normc::cli
