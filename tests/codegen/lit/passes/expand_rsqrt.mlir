// A reciprocal root is a root and a division. Those of a vector marked afn are products, with the root and the division
// only where an element is not an ordinary number.
// RUN: %opt expand-rsqrt %s | %check

// CHECK:      %[[ROOT:.*]] = math.sqrt %arg1 : f32
// CHECK-NEXT: arith.divf %{{.*}}, %[[ROOT]] : f32
// CHECK:      arith.cmpi ult, %{{.*}} : vector<8xi32>
// CHECK:      vector.reduction <and>
// CHECK-NOT:  math.sqrt
// CHECK:      scf.if
// CHECK:        math.sqrt %arg0 : vector<8xf32>
func.func @f(%x: vector<8xf32>, %s: f32) -> (f32, vector<8xf32>) {
  %0 = math.rsqrt %s : f32
  %1 = math.rsqrt %x fastmath<afn> : vector<8xf32>
  return %0, %1 : f32, vector<8xf32>
}
