// A candidate of a bundle, as a package of the kernels in plain C++.
#pragma once

#include <fstream>
#include <string>

#include "autotune/tune/Bundle.h"
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

/// Adds the candidates `default` and `other`, and writes the plan of a bundle of this task alone.
inline void packTwo(const std::string& folder, tune::Shipped& task) {
  for (const char* schedule : {"default", "other"}) {
    task.points.push_back({"hand", schedule, 1, {0, int(task.points.size())}});
    task.made.push_back(packed(folder, schedule));
  }
  std::ofstream(folder + "/plan.json") << tune::planText({task});
}

}  // namespace normc::test
