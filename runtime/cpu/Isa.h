// The instruction sets that packages hold kernels for, and which of them this
// processor and its operating system can run.
#pragma once

#include <string_view>

namespace normc::runtime {

/// A set that packages know. Sets of one machine are ordered: a higher level includes the lower ones.
struct Isa {
  std::string_view name;
  std::string_view machine;  ///< "x86_64", "aarch64"
  int level;
  bool roundsBF16 = false;  ///< by an instruction, which takes denormals for zeros whatever the mode
  std::string_view wants = {};  ///< of the lowest of a machine what its name does not tell
};

/// Null for a name that this runtime does not know.
const Isa* findIsa(std::string_view name);

/// All names, for errors: "x86-64-v3, x86-64-v4, ...".
std::string_view isaNames();

/// The newest set that code can use here; null on a processor older than all of them.
const Isa* cpuIsa();

}  // namespace normc::runtime
