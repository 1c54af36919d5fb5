// A logarithm of f32 is evaluated in f64: exponent and mantissa from the bits, a polynomial of odd powers by fused
// products; the values at 0, infinity, below zero and of NaN are found in f32.
// RUN: %opt expand-log %s | %check

// CHECK:          %[[WIDE:.*]] = arith.extf %arg0 : f32 to f64
// CHECK:          arith.bitcast %[[WIDE]] : f64 to i64
// CHECK:          arith.divf
// CHECK-COUNT-12: math.fma
// CHECK:          %[[LOG:.*]] = arith.truncf %{{.*}} : f64 to f32
// CHECK:          arith.cmpf oeq, %arg0
// CHECK-COUNT-3:  arith.select {{.*}} : f32
// CHECK-NOT:      math.log
func.func @f(%x: f32) -> f32 {
  %0 = math.log %x : f32
  return %0 : f32
}
