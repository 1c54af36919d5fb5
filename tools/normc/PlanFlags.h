// The flags of verbs that ask the runtime for a plan, and the plan they lead to.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "autotune/gate/PackageFile.h"
#include "tools/normc/Failure.h"
#include "tools/normc/Place.h"

namespace normc::cli {

struct PlanFlags {
  std::string file, problem, isaCap;
  PlaceFlags place;
  std::vector<std::string> numbers;
  int64_t threads = 0;
  bool keepDenormals = false;

  void declare(CLI::App&);
};

/// A plan, with the package it came from.
struct Planned {
  Place place;
  gate::PackageFile file;
  host::Plan plan;
  size_t index;  ///< of the kernel that serves any call; after callOf, of the one that this call runs

  Planned(const PlanFlags&, const std::string& verb);
  const package::Kernel& kernel() const { return file.kernels().at(index); }
  /// From here on the kernel is that of calls of these sizes.
  void callOf(const normc_sizes& sizes) { index = plan.kernel(sizes); }
};

}  // namespace normc::cli
