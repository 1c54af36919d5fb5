// A division by one number for all lanes, marked normc.products: one division of scalars, then a product and a correction by the
// rest. Any other division stays.
// RUN: %opt expand-division %s | %check

// CHECK:      %[[RECIPROCAL:.*]] = arith.divf %{{.*}}, %arg1 : f32
// CHECK:      %[[ALL:.*]] = vector.broadcast %[[RECIPROCAL]]
// CHECK:      %[[QUOTIENT:.*]] = arith.mulf %arg0, %[[ALL]]
// CHECK:      %[[REST:.*]] = math.fma
// CHECK:      %[[KNOWN:.*]] = arith.cmpf ord, %[[REST]], %[[REST]]
// CHECK:      arith.select %[[KNOWN]], %{{.*}}, %[[QUOTIENT]]
// CHECK:      arith.divf %arg0, %{{.*}} : vector<8xf32>
func.func @f(%x: vector<8xf32>, %n: f32) -> (vector<8xf32>, vector<8xf32>) {
  %all = vector.broadcast %n : f32 to vector<8xf32>
  %products = arith.divf %x, %all {normc.products} : vector<8xf32>
  %division = arith.divf %x, %all : vector<8xf32>
  return %products, %division : vector<8xf32>, vector<8xf32>
}
