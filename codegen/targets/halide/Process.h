// Runs normc-halide-gen: another program with another LLVM, which may crash, hang or
// eat memory without any harm to this one.
#pragma once

#include <string>

#include "llvm/Support/Error.h"

namespace normc::codegen::halide {

/// Which program, and what it may take.
struct Generator {
  std::string program;
  int seconds = 60;
  int64_t megabytes = 4096;
};

/// The program beside the running one or on the PATH. An error says how to get it.
llvm::Expected<Generator> findGenerator();

struct Answer {
  std::string output;  ///< what it wrote to its file
  std::string facts;   ///< JSON, from its standard output
  std::string log;     ///< from its standard error
};

/// Any failure, be it a refusal, a crash, too much time or memory, or an answer that is
/// none, is one error with the log of the program. What the generator does not say itself, by exit code
/// 1 or 3, is Unavailable: it says nothing of the request.
llvm::Expected<Answer> ask(const Generator&, llvm::StringRef request);

/// Which Halide it is, by starting it: the program may be there and a library that it needs may not.
llvm::Expected<std::string> versionOf(const Generator&);

}  // namespace normc::codegen::halide
