// Runs that are copied ahead in bulk (`prefetch` above 4): as in TeamAhead.cpp, but the first
// thread of a team has a whole piece of the run copied by one instruction, from sm_90 on.
//
// A piece is what the team's k-th accesses read, `team * 16` bytes or what is left of the
// run, and lies in shared memory where the team's own copies would have put it. So it is
// read alike, and takes as much room.
//
// Each place of the ring has an mbarrier for each team. The first thread tells it how many
// bytes are to come, none where the team has no row, and all threads of the team wait for
// its phase: the n-th time round, parity n mod 2. A place is written again when the team has
// met for the sums of the step that read it; so every step of a run needs a sum.
#include "codegen/targets/cuda/Ptx.h"
#include "codegen/targets/cuda/TeamLowering.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

using namespace mlir;

namespace normc::codegen::cuda {

static constexpr unsigned kSharedSpace = 3;
static constexpr int64_t kMbarrierBytes = 8;

Value TeamLowering::toI32(Value index) { return arith::IndexCastOp::create(l_.b, l_.loc, l_.b.getI32Type(), index); }

/// The mbarrier of this team and place.
Value TeamLowering::mbarrierOf(Value place) {
  auto module = function_->getParentOfType<gpu::GPUModuleOp>();
  const std::string name = (function_.getName() + "_arrivals").str();
  auto memory = module.lookupSymbol<LLVM::GlobalOp>(name);
  if (!memory) {
    auto type = LLVM::LLVMArrayType::get(l_.b.getI64Type(), (s_.prefetch.copiesAhead() + 1) * place_.units);
    OpBuilder b(module.getBodyRegion());
    memory = LLVM::GlobalOp::create(b, l_.loc, type, /*isConstant=*/false, LLVM::Linkage::Internal, name, Attribute(),
                                    /*alignment=*/kMbarrierBytes, kSharedSpace);
    b.createBlock(&memory.getInitializerRegion());
    LLVM::ReturnOp::create(b, l_.loc, LLVM::UndefOp::create(b, l_.loc, type));
  }
  Value base = LLVM::AddressOfOp::create(l_.b, l_.loc, memory);
  Value at = l_.add(l_.mul(place, l_.index(place_.units)), place_.unit);
  Value word = arith::IndexCastOp::create(l_.b, l_.loc, l_.b.getI64Type(), at);
  return LLVM::GEPOp::create(l_.b, l_.loc, base.getType(), l_.b.getI64Type(), base, ValueRange{word});
}

void TeamLowering::beginBulk() {
  storeWhere(isZero(place_.spanLane), [&] {
    for (int64_t place = 0; place <= s_.prefetch.copiesAhead(); ++place) initMbarrier(l_.b, l_.loc, mbarrierOf(l_.index(place)));
  });
  barrier();
}

/// Which step it is that begins at `first`.
Value TeamLowering::stepAt(Value first, int64_t stride) { return l_.div(l_.sub(first, begin_), l_.index(stride)); }

/// Begins the copies of a step.
void TeamLowering::copyBulk(ArrayRef<TensorOp> tensors, ArrayRef<Replica> replicas, Value first, int64_t stride) {
  const Value zero = l_.index(0), places = l_.index(s_.prefetch.copiesAhead() + 1), most = l_.index(s_.team * kCopiedBytes);
  storeWhere(isZero(place_.spanLane), [&] {
    Value arrival = mbarrierOf(l_.rem(stepAt(first, stride), places));
    Value to = aheadPlace(first, stride, int64_t(replicas.size()) * s_.tile * int64_t(tensors.size()));
    struct Piece {
      Value offset, bytes;
    };
    SmallVector<Piece> pieces;
    Value all = zero;
    for (const Replica& replica : replicas)
      for (int64_t k = 0; k < s_.tile; ++k) {
        Value access = l_.add(place_.lane, l_.index(k * place_.team));
        Value left = l_.mul(l_.sub(vectorsOfRun(), access), l_.index(kCopiedBytes));
        Value bytes = l_.select(l_.less(zero, left), l_.min(left, most), zero);
        if (replica.active) bytes = l_.select(replica.active, bytes, zero);
        pieces.push_back({l_.mul(access, l_.index(s_.vector)), bytes});
        all = l_.add(all, bytes);
      }
    expectBytes(l_.b, l_.loc, arrival, toI32(l_.mul(all, l_.index(int64_t(tensors.size())))));
    int64_t slot = 0;
    const Piece* piece = pieces.begin();
    for (const Replica& replica : replicas)
      for (int64_t k = 0; k < s_.tile; ++k, ++piece) {
        storeWhere(l_.less(zero, piece->bytes), [&] {
          for (auto [i, t] : llvm::enumerate(tensors))
            copyInBulk(l_.b, l_.loc, aheadSlot(to, slot + int64_t(i)),
                       globalAddress(t, f_.address(t, alongRun(replica.at, {.offset = piece->offset}))), arrival,
                       toI32(piece->bytes));
        });
        slot += int64_t(tensors.size());
      }
  });
}

/// Waits until what was copied for this step is there.
void TeamLowering::waitBulk(Value first, int64_t stride) {
  const Value step = stepAt(first, stride), places = l_.index(s_.prefetch.copiesAhead() + 1);
  waitForMbarrier(l_.b, l_.loc, mbarrierOf(l_.rem(step, places)), toI32(l_.rem(l_.div(step, places), l_.index(2))));
}

}  // namespace normc::codegen::cuda
