// A candidate of a bundle, as a package of the kernels in plain C++.
#pragma once

#include <fstream>
#include <string>

#include "autotune/tune/LiveLab.h"
#include "autotune/tune/Object.h"
#include "tests/gpu/CpuKernels.h"

namespace normc::test {

/// Writes the package of the candidate `schedule` into the folder. Candidates differ in their producer, so
/// that none counts as the same code as another.
inline tune::BuiltCandidate packed(const std::string& folder, const std::string& schedule) {
  const std::string bytes = layerNormPackage(0, schedule).bytes();
  std::ofstream(folder + "/" + schedule + ".npk", std::ios::binary) << bytes;
  return {schedule + ".npk", tune::objectOf(bytes), ""};
}

}  // namespace normc::test
