// bf16 that is held as i16 is widened by a shift, and narrowed by integer arithmetic that rounds to even; or by the one
// instruction that fills a register from two.
// RUN: %opt expand-bf16 %s | %check
// RUN: %opt expand-bf16-by-instruction %s | %check --check-prefix=ONE

// CHECK-NOT:   bf16
// CHECK:       %[[WORD:.*]] = arith.extui %arg0 : vector<32xi16> to vector<32xi32>
// CHECK:       arith.shli %[[WORD]]
// CHECK:       arith.cmpi ugt
// CHECK:       arith.select %{{.*}} : vector<32xi1>, vector<32xi16>
// ONE:         vector.shuffle %arg0, %arg0 [0, 16, 1, 17
// ONE:         llvm.call_intrinsic "llvm.x86.avx512bf16.cvtne2ps2bf16.512"
func.func @f(%x: vector<32xi16>, %y: vector<32xf32>) -> (vector<32xf32>, vector<32xi16>) {
  %0 = arith.bitcast %x : vector<32xi16> to vector<32xbf16>
  %1 = arith.extf %0 : vector<32xbf16> to vector<32xf32>
  %2 = arith.truncf %y : vector<32xf32> to vector<32xbf16>
  %3 = arith.bitcast %2 : vector<32xbf16> to vector<32xi16>
  return %1, %3 : vector<32xf32>, vector<32xi16>
}
