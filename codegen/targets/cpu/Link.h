// One shared object of many kernels, by lld as a library: a program of its own takes 12 ms to start, as long
// as a small kernel takes to compile.
#pragma once

#include <string>

#include "codegen/targets/cpu/CpuIsa.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/Support/Error.h"

namespace normc::codegen::cpu {

/// Links the objects to one freestanding shared object: no constructors, nothing undefined, no dependency.
/// The error is Unavailable if a file could not be read or written, or if lld crashed. Threads may call it at
/// the same time; they wait for each other, since lld has global state.
llvm::Expected<std::string> linkShared(llvm::ArrayRef<std::string> objects, const Isa&);

}  // namespace normc::codegen::cpu
