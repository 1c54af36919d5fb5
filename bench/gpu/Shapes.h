// What is measured: every family on the shapes that others have published figures
// for, and on feature counts where kernels are known to fall down.
//
// The list is the only place that knows; `normc-gpu problems` prints the kernels
// that it needs, and bench/gpu/prepare compiles them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/abi/ProblemText.h"

namespace normc::gpu {

struct Shape {
  std::string norm, entry, dtype;
  int64_t rows = 0, features = 0;

  ProblemText parts() const;    ///< without the rows
  std::string problem() const;  ///< its kernel: "rms_norm:forward@bf16[*x4096]"
  std::string text() const;     ///< with the rows: "rms_norm:forward@bf16[16384x4096]"
  int64_t tensorBytes() const;  ///< of x
};

/// The most telling first, since time may run out. `quick`: a few small ones, for a dry run.
std::vector<Shape> allShapes(bool quick);

/// What `normc tune export` is asked for: problems whose candidates are measured in turn, as time allows, and
/// how large they are. Their sizes are among allShapes(), so that what is found stands beside the default.
std::vector<std::string> argumentsToExport(bool quick);

/// The kernels to compile: those of all shapes, a backward's forward, and one for any number of features of
/// every built-in norm and entry, in f32 and bf16.
std::vector<std::string> problemsToCompile(bool quick);

}  // namespace normc::gpu
