// Runs normc-halide-gen: another program with another LLVM, which may crash, hang or
// exhaust memory without harm to this one.
#pragma once

#include <string>

#include "llvm/Support/Error.h"

namespace normc::codegen::halide {

/// The program, and the limits of its time and memory.
struct Generator {
  std::string program;
  int seconds = 60;
  int64_t megabytes = 4096;
};

/// Finds the program in the folder of the running one or on the PATH. An error says how to get it.
llvm::Expected<Generator> findGenerator();

struct Answer {
  std::string output;  ///< the contents of its file
  std::string facts;   ///< JSON, from its standard output
  std::string log;     ///< from its standard error
};

/// Any failure (a refusal, a crash, too much time or memory, an answer that cannot be
/// read) is one error with the log of the program. It is Unavailable unless the generator itself reports it
/// by an exit code that follows from the request (generator/Protocol.h).
llvm::Expected<Answer> ask(const Generator&, llvm::StringRef request);

/// Returns the version of Halide. It starts the program, because a library that it needs may be missing.
llvm::Expected<std::string> versionOf(const Generator&);

}  // namespace normc::codegen::halide
