// Bulk copies of the rows of later steps, from sm_90 on: the first thread of a team has a whole piece of a
// run copied by one instruction.
//
// A piece is what the team's k-th accesses read, `team * 16` bytes or what is left of the run. It goes to the
// places of shared memory that AsyncCopies uses, so it is read in the same way and takes as much room.
//
// Each place of the ring has an mbarrier for each team. The first thread announces how many bytes will
// arrive, none if the team has no row, and all threads of the team wait for its phase: in the n-th round that
// of parity n mod 2. A place is written again after the barrier of the team for the sums of the step that
// read it, so every step needs a sum.
#include "codegen/targets/cuda/Ptx.h"
#include "codegen/targets/cuda/TeamAhead.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

using namespace mlir;

namespace normc::codegen::cuda {

static constexpr unsigned kSharedSpace = 3;
static constexpr int64_t kMbarrierBytes = 8;

Value TeamLowering::BulkCopies::toI32(Value index) {
  return arith::IndexCastOp::create(l_.b, l_.loc, l_.b.getI32Type(), index);
}

/// Returns the mbarrier of this team for a place of the ring.
Value TeamLowering::BulkCopies::mbarrierOf(Value place) {
  auto module = t_.k_.function->getParentOfType<gpu::GPUModuleOp>();
  const std::string name = (t_.k_.function.getName() + "_arrivals").str();
  auto memory = module.lookupSymbol<LLVM::GlobalOp>(name);
  if (!memory) {
    auto type = LLVM::LLVMArrayType::get(l_.b.getI64Type(), (s_.prefetch.depth + 1) * t_.place_.units);
    OpBuilder b(module.getBodyRegion());
    memory = LLVM::GlobalOp::create(b, l_.loc, type, /*isConstant=*/false, LLVM::Linkage::Internal, name,
                                    Attribute(),
                                    /*alignment=*/kMbarrierBytes, kSharedSpace);
    b.createBlock(&memory.getInitializerRegion());
    LLVM::ReturnOp::create(b, l_.loc, LLVM::UndefOp::create(b, l_.loc, type));
  }
  Value base = LLVM::AddressOfOp::create(l_.b, l_.loc, memory);
  Value at = l_.add(l_.mul(place, l_.index(t_.place_.units)), t_.place_.unit);
  Value word = arith::IndexCastOp::create(l_.b, l_.loc, l_.b.getI64Type(), at);
  return LLVM::GEPOp::create(l_.b, l_.loc, base.getType(), l_.b.getI64Type(), base, ValueRange{word});
}

void TeamLowering::BulkCopies::begin() {
  t_.k_.storeWhere(t_.k_.isZero(t_.place_.spanLane), [&] {
    for (int64_t place = 0; place <= s_.prefetch.depth; ++place)
      initMbarrier(l_.b, l_.loc, mbarrierOf(l_.index(place)));
  });
  t_.k_.barrier();
  AsyncCopies::begin();
}

void TeamLowering::BulkCopies::copy(ArrayRef<Replica> rows, Value first) {
  const Value zero = l_.index(0), places = l_.index(s_.prefetch.depth + 1),
              most = l_.index(s_.team * kCopiedBytes);
  t_.k_.storeWhere(t_.k_.isZero(t_.place_.spanLane), [&] {
    Value mbarrier = mbarrierOf(l_.rem(stepOf(first), places));
    Value to = place(first);
    struct Piece {
      Value offset, bytes;
    };
    SmallVector<Piece> pieces;
    Value total = zero;
    for (const Replica& row : rows)
      for (int64_t k = 0; k < s_.tile; ++k) {
        Value access = l_.add(t_.place_.lane, l_.index(k * t_.place_.team));
        Value left = l_.mul(l_.sub(t_.vectorsOfRun(), access), l_.index(kCopiedBytes));
        Value bytes = l_.select(l_.less(zero, left), l_.min(left, most), zero);
        if (row.active) bytes = l_.select(row.active, bytes, zero);
        pieces.push_back({l_.mul(access, l_.index(s_.vector)), bytes});
        total = l_.add(total, bytes);
      }
    expectBytes(l_.b, l_.loc, mbarrier, toI32(l_.mul(total, l_.index(int64_t(tensors_.size())))));
    int64_t slot = 0;
    const Piece* piece = pieces.begin();
    for (const Replica& row : rows)
      for (int64_t k = 0; k < s_.tile; ++k, ++piece) {
        t_.k_.storeWhere(l_.less(zero, piece->bytes), [&] {
          for (auto [i, t] : llvm::enumerate(tensors_))
            copyInBulk(l_.b, l_.loc, slotOf(to, slot + int64_t(i)),
                       t_.globalAddress(t, f_.address(t, t_.alongRun(row.at, {.offset = piece->offset}))),
                       mbarrier, toI32(piece->bytes));
        });
        slot += int64_t(tensors_.size());
      }
  });
}

void TeamLowering::BulkCopies::wait(Value first) {
  const Value step = stepOf(first), places = l_.index(s_.prefetch.depth + 1);
  waitForMbarrier(l_.b, l_.loc, mbarrierOf(l_.rem(step, places)),
                  toI32(l_.rem(l_.div(step, places), l_.index(2))));
}

}  // namespace normc::codegen::cuda
