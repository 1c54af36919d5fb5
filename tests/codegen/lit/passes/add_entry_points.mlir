// The exported function of a phase loads what runtime/abi/kernel.h describes: pointers of all tensors, strides of those
// that have some, extents, scalars and cuts. The phase itself becomes internal.
// RUN: %opt add-entry-points %s | %check

// CHECK:         llvm.func internal @k.apply(
// CHECK-NOT:       normc.strided
// CHECK:         llvm.func @k_apply(%[[ARGS:.*]]: !llvm.ptr, %[[TASK:.*]]: i64) {
// CHECK-COUNT-3:   llvm.load %{{.*}} -> !llvm.ptr
// CHECK-COUNT-6:   llvm.load %{{.*}} -> i64
// CHECK-COUNT-2:   llvm.load %{{.*}} -> !llvm.ptr
// CHECK-NEXT:      llvm.call @k.apply({{.*}}, %[[TASK]])
llvm.func @k.apply(%x: !llvm.ptr, %scale: !llvm.ptr, %s: i64, %r: i64, %t: i64, %segments: i64, %rows: i64,
                   %features: i64, %scalars: !llvm.ptr, %cuts: !llvm.ptr, %task: i64)
    attributes {normc.strided = array<i1: true, false>} {
  llvm.return
}
