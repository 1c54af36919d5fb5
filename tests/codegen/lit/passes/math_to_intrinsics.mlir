// Roots and fused products are LLVM's, which NVPTX has instructions for: no call of CUDA's device library.
// RUN: %opt math-to-intrinsics %s | %check

// CHECK-NOT:  math.
// CHECK:      %[[ROOT:.*]] = llvm.call_intrinsic "llvm.sqrt"(%arg0) : (f32) -> f32
// CHECK-NEXT: llvm.call_intrinsic "llvm.fma"(%[[ROOT]], %arg0, %arg0)
func.func @f(%x: f32) -> f32 {
  %0 = math.sqrt %x : f32
  %1 = math.fma %0, %x, %x : f32
  return %1 : f32
}
