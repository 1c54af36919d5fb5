// An exponential and a quotient that are marked become instructions of f32, one for each lane. Those of f64, and those
// that are not marked, stay.
// RUN: %opt approximate-functions %s | %check

// CHECK:         func.func @marked
// CHECK:         arith.maximumf
// CHECK:         arith.shli %{{.*}} : vector<2xi32>
// CHECK-COUNT-2: llvm.call_intrinsic "llvm.nvvm.ex2.approx.ftz.f32"
// CHECK-COUNT-2: llvm.call_intrinsic "llvm.nvvm.rcp.approx.ftz.f"
// CHECK:         arith.mulf
// CHECK-NEXT:    return
func.func @marked(%x: vector<2xf32>, %y: vector<2xf32>) -> vector<2xf32> {
  %0 = math.exp %x {normc.approximate} : vector<2xf32>
  %1 = arith.divf %0, %y {normc.approximate} : vector<2xf32>
  return %1 : vector<2xf32>
}

// CHECK:         func.func @others
// CHECK-NEXT:    math.exp
// CHECK-NEXT:    arith.divf
// CHECK-NEXT:    math.exp
// CHECK-NEXT:    return
func.func @others(%x: f64, %y: f64, %z: f32) -> (f64, f32) {
  %0 = math.exp %x {normc.approximate} : f64
  %1 = arith.divf %0, %y {normc.approximate} : f64
  %2 = math.exp %z : f32
  return %1, %2 : f64, f32
}
