// LLVM has no non-temporal store of 16-bit floats: such a store is one of words, behind a fence that LLVM does not look
// through. Ordinary stores stay.
// RUN: %opt nontemporal-words %s | %check

// CHECK:      %[[WORDS:.*]] = llvm.bitcast %arg1 : vector<16xf16> to vector<8xf32>
// CHECK-NEXT: %[[FENCE:.*]] = llvm.call_intrinsic "llvm.arithmetic.fence"(%[[WORDS]])
// CHECK-NEXT: %[[BACK:.*]] = llvm.bitcast %[[FENCE]]
// CHECK-NEXT: vector.store %[[BACK]], %{{.*}} {nontemporal = true}
// CHECK-NEXT: vector.store %arg1, %arg0[%arg2] : memref
func.func @f(%m: memref<?xf16>, %v: vector<16xf16>, %i: index) {
  vector.store %v, %m[%i] {nontemporal = true} : memref<?xf16>, vector<16xf16>
  vector.store %v, %m[%i] : memref<?xf16>, vector<16xf16>
  return
}
