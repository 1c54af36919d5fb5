// Roots and fused products of a GPU.
#pragma once

#include "codegen/Pass.h"

namespace normc::codegen::cuda {

/// math-to-intrinsics: replaces math.sqrt and math.fma, which the hardware rounds correctly, by LLVM's
/// intrinsics. convert-gpu-to-nvvm would turn them into calls of CUDA's device library.
PassPtr mathToIntrinsics();

}  // namespace normc::codegen::cuda
