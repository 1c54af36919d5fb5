// The hash by which the package of a candidate is known.
#pragma once

#include <string>

namespace normc::tune {

/// Returns a hash of what distinguishes two kernels: their code, and how they are launched; not the text of
/// the schedule. `package`: the bytes of a package that the writer made. Throws std::runtime_error if its
/// manifest is not one that normc writes.
std::string objectOf(const std::string& package);

/// The kernel of a candidate, as its package describes it.
struct PackedKernel {
  std::string object, generator, schedule;
};
/// Reads a file; all is empty if it is no whole package, or its code is not what its manifest says.
PackedKernel packedKernelOf(const std::string& path);

}  // namespace normc::tune
