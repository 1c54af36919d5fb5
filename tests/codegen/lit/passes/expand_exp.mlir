// An exponential is a polynomial in its own type, scaled by a power of two made from bits. Its products and sums may
// contract. The results for large and small numbers are chosen last.
// RUN: %opt expand-exp %s | %check

// CHECK-NOT:     math.exp
// CHECK-NOT:     f64
// CHECK:         arith.mulf %arg0, %{{.*}} fastmath<contract> : vector<4xf32>
// CHECK:         arith.shli %{{.*}} : vector<4xi32>
// CHECK-COUNT-4: arith.select
// CHECK-NEXT:    return
func.func @f(%x: vector<4xf32>) -> vector<4xf32> {
  %0 = math.exp %x : vector<4xf32>
  return %0 : vector<4xf32>
}
