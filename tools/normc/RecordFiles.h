// Files of records as the command line names them.
#pragma once

#include <string>

#include "autotune/records/Database.h"
#include "tools/normc/Failure.h"
#include "tools/normc/Files.h"
#include "tools/normc/Output.h"

namespace normc::cli {

/// The records of a file, or of the standard input for "-"; a Failure where it holds something else.
inline tune::Database recordsIn(const std::string& file) {
  return valueOf(
      file == "-" ? tune::databaseOf(readFile(file), "the standard input") : tune::readDatabase(file),
      ExitCode::Refused);
}

/// Returns the counts of lines as JSON.
inline Json countsJson(const tune::Counts& counts) {
  return {{"records", counts.records},
          {"duplicates", counts.duplicates},
          {"damaged", counts.damaged},
          {"newer", counts.newer},
          {"torn", counts.torn}};
}

/// Tells of lines that are passed over.
inline void noteFlaws(const std::string& file, const tune::Counts& counts, Output& out) {
  if (counts.damaged || counts.newer || counts.torn) out.note(file + ": " + counts.text());
}

/// The Failure of records without a measurement. `use`: "draw".
inline Failure nothingTo(const std::string& use) {
  return refused("the records hold nothing to " + use, "normc tune NORM --records FILE makes some");
}

}  // namespace normc::cli
