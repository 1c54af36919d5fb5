// Tables of measured schedules, whose lines are JSON objects, behind a first line that says what was
// measured.
#pragma once

#include <string>

#include "dsl/Problem.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/JSON.h"

namespace normc::codegen {

/// Calls `add` with each object. `lines` begin behind the first line of the file. An error names the line and
/// what is wrong with it.
llvm::Error forEachTableLine(llvm::StringRef lines,
                             llvm::function_ref<llvm::Error(const llvm::json::Object&)> add);

/// Returns the text of a key; empty if there is none.
std::string textAt(const llvm::json::Object& line, llvm::StringRef key);

/// Returns the problem of a line.
llvm::Expected<Problem> problemAt(const llvm::json::Object& line);

}  // namespace normc::codegen
