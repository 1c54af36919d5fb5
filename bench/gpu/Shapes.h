// The shapes that are measured: those with published figures, for every family of norms,
// and feature counts at which kernels are known to be slow.
//
// Only this list has them. `normc-gpu problems` prints the kernels
// that it needs, and bench/gpu/prepare compiles them.
#pragma once

#include <string>
#include <vector>

#include "runtime/abi/ProblemText.h"

namespace normc::gpu {

/// Returns the calls, problems with rows and features, the most important first, because time may run out.
/// `quick`: a few small ones, for a dry run.
std::vector<ProblemText> allShapes(bool quick);

/// Returns the arguments of `normc tune export`: problems whose candidates are measured in this order, as
/// time allows, and their sizes. allShapes() has the sizes, too, so that results can be compared with the
/// default.
std::vector<std::string> argumentsToExport(bool quick);

/// Returns the kernels to compile: those of all shapes, a backward's forward, and one for any number of
/// features of every built-in norm and entry, in f32 and bf16.
std::vector<std::string> problemsToCompile(bool quick);

}  // namespace normc::gpu
