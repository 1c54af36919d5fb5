// What a package says about one kernel, read off the IR (docs/package-format.md).
#pragma once

#include "codegen/dialect/Norm.h"
#include "codegen/package/Writer.h"
#include "codegen/targets/cpu/Schedule.h"
#include "codegen/targets/cuda/Schedule.h"

namespace normc::codegen {

/// Everything but `blob` and `norm`, which the package as a whole decides.
package::Kernel kernelManifest(const Problem&, const cpu::Schedule&, const cpu::Isa&, KernelOp);
package::Kernel kernelManifest(const Problem&, const cuda::Schedule&, const cuda::Arch&, KernelOp);

}  // namespace normc::codegen
