// An absolute value is the number without its sign bit.
// RUN: %opt expand-abs %s | %check

// CHECK:      %[[BITS:.*]] = arith.bitcast %arg0 : f32 to i32
// CHECK:      %[[MASK:.*]] = arith.constant 2147483647 : i32
// CHECK:      %[[REST:.*]] = arith.andi %[[BITS]], %[[MASK]] : i32
// CHECK-NEXT: arith.bitcast %[[REST]] : i32 to f32
func.func @f(%x: f32) -> f32 {
  %0 = math.absf %x : f32
  return %0 : f32
}
