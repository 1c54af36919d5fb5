// Nothing but LLVM is left: a tensor is a pointer that keeps its attribute, a horizontal sum is a tree, and a block that
// no branch reaches is gone.
// RUN: %opt blocks-to-llvm %s | %check

// CHECK:      llvm.func @k(%[[X:.*]]: !llvm.ptr {llvm.noalias}, %[[AT:.*]]: i64, %[[COUNT:.*]]: i64)
// CHECK-SAME:   normc.strided = array<i1: true>
// CHECK-NOT:  unrealized_conversion_cast
// CHECK:      llvm.intr.masked.load
// CHECK:      "llvm.intr.vector.reduce.fadd"{{.*}}fastmathFlags = #llvm.fastmath<reassoc>
// CHECK-NEXT: llvm.br ^bb1(
// CHECK-NEXT: ^bb1(%[[SUM:.*]]: f32):  // pred: ^bb0
// CHECK:      llvm.store %[[SUM]]
// CHECK-NEXT: llvm.return
func.func @k(%x: memref<f32> {llvm.noalias}, %at: index, %count: index) attributes {normc.strided = array<i1: true>} {
  %all = memref.reinterpret_cast %x to offset: [0], sizes: [1152921504606846976], strides: [1] : memref<f32> to memref<?xf32>
  %zero = arith.constant 0.0 : f32
  %zeros = vector.broadcast %zero : f32 to vector<8xf32>
  %mask = vector.create_mask %count : vector<8xi1>
  %part = vector.maskedload %all[%at], %mask, %zeros : memref<?xf32>, vector<8xi1>, vector<8xf32> into vector<8xf32>
  %sum = vector.reduction <add>, %part fastmath<reassoc> : vector<8xf32> into f32
  cf.br ^last(%sum : f32)
^dead:
  cf.br ^last(%zero : f32)
^last(%result: f32):
  memref.store %result, %all[%at] : memref<?xf32>
  func.return
}
