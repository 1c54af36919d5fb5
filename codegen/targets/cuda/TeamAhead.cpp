// Runs that are copied ahead (`prefetch` above 1): while a team computes one, cp.async
// brings the next ones from memory to shared memory, and no register waits for them.
//
// A thread copies what it will read itself, 16 bytes for each of its accesses, so
// nobody else has to be told: the thread waits for its own copies, and there is no
// barrier. A ring has a place for each step that is under way and one more: the copy
// of a step goes where the step before this one was read, whose values have been used.
//
// Groups are counted by steps. Where a step has nothing to copy (behind the last row)
// its group is empty, so the wait is the same in every step; and when a slab ends,
// nothing is under way.
#include "codegen/targets/cuda/Ptx.h"
#include "codegen/targets/cuda/TeamLowering.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

using namespace mlir;

namespace normc::codegen::cuda {

static constexpr unsigned kGlobalSpace = 1, kSharedSpace = 3;

/// The dynamic shared memory of the block: one name for all slabs, which use it one after another.
Value TeamLowering::aheadMemory() {
  auto module = function_->getParentOfType<gpu::GPUModuleOp>();
  const std::string name = (function_.getName() + "_ahead").str();
  auto memory = module.lookupSymbol<LLVM::GlobalOp>(name);
  if (!memory) {
    OpBuilder b(module.getBodyRegion());
    memory = LLVM::GlobalOp::create(b, l_.loc, LLVM::LLVMArrayType::get(b.getI8Type(), 0), /*isConstant=*/false,
                                    LLVM::Linkage::External, name, Attribute(), /*alignment=*/kCopiedBytes, kSharedSpace);
  }
  return LLVM::AddressOfOp::create(l_.b, l_.loc, memory);
}

/// Where this thread's copies of the step that begins at `first` are.
Value TeamLowering::aheadPlace(Value first, int64_t stride, int64_t slots) {
  Value step = l_.rem(l_.div(l_.sub(first, begin_), l_.index(stride)), l_.index(s_.prefetch.copiesAhead() + 1));
  Value place = l_.add(l_.mul(step, l_.index(slots * blockThreads())), thread_);
  Value bytes = arith::IndexCastOp::create(l_.b, l_.loc, l_.b.getI64Type(), l_.mul(place, l_.index(kCopiedBytes)));
  Value memory = aheadMemory();
  return LLVM::GEPOp::create(l_.b, l_.loc, memory.getType(), l_.b.getI8Type(), memory, ValueRange{bytes});
}

Value TeamLowering::aheadSlot(Value place, int64_t slot) {
  const auto offset = int32_t(slot * blockThreads() * kCopiedBytes);
  return LLVM::GEPOp::create(l_.b, l_.loc, place.getType(), l_.b.getI8Type(), place, ArrayRef<LLVM::GEPArg>{offset});
}

/// An element of a tensor in memory, as an address of the global space.
Value TeamLowering::globalAddress(TensorOp t, Value element) {
  OpBuilder& b = l_.b;
  auto generic = LLVM::LLVMPointerType::get(b.getContext()), global = LLVM::LLVMPointerType::get(b.getContext(), kGlobalSpace);
  auto word = [&](Value index) -> Value { return arith::IndexCastOp::create(b, l_.loc, b.getI64Type(), index); };
  Value base = word(memref::ExtractAlignedPointerAsIndexOp::create(b, l_.loc, f_.pointer(t)));
  Value begin = LLVM::AddrSpaceCastOp::create(b, l_.loc, global, LLVM::IntToPtrOp::create(b, l_.loc, generic, base));
  return LLVM::GEPOp::create(b, l_.loc, global, f_.stored(t), begin, ValueRange{word(element)});
}

/// Begins the copies of a step, as one group.
void TeamLowering::copyAhead(ArrayRef<TensorOp> tensors, ArrayRef<Replica> replicas, Value first, int64_t stride) {
  if (s_.prefetch.inBulk()) return copyBulk(tensors, replicas, first, stride);
  Value place = aheadPlace(first, stride, int64_t(replicas.size()) * s_.tile * int64_t(tensors.size()));
  int64_t slot = 0;
  for (const Replica& replica : replicas)
    for (int64_t k = 0; k < s_.tile; ++k) {
      Position position = tilePosition(k);
      storeWhere(both(replica.active, position.inside), [&] {
        for (auto [i, t] : llvm::enumerate(tensors))
          copyToShared(l_.b, l_.loc, aheadSlot(place, slot + int64_t(i)),
                       globalAddress(t, f_.address(t, alongRun(replica.at, position))));
      });
      slot += int64_t(tensors.size());
    }
  endCopies(l_.b, l_.loc);
}

/// Waits for the copies of this step, and reads them: what was not copied is zero.
void TeamLowering::takeAhead(ArrayRef<TensorOp> tensors, ArrayRef<Replica> replicas, Value first, int64_t stride) {
  if (s_.prefetch.inBulk()) waitBulk(first, stride);
  else waitForCopies(l_.b, l_.loc, s_.prefetch.copiesAhead());
  Value place = aheadPlace(first, stride, int64_t(replicas.size()) * s_.tile * int64_t(tensors.size()));
  int64_t slot = 0;
  for (auto [r, replica] : llvm::enumerate(replicas))
    for (int64_t k = 0; k < s_.tile; ++k) {
      Values zeros;
      for (TensorOp t : tensors) zeros.push_back(l_.zero(storedType(t, s_.vector)));
      auto loads = [&] {
        Values loaded;
        for (auto [i, t] : llvm::enumerate(tensors))
          loaded.push_back(LLVM::LoadOp::create(l_.b, l_.loc, storedType(t, s_.vector), aheadSlot(place, slot + int64_t(i)),
                                                unsigned(kCopiedBytes)));
        return loaded;
      };
      Value condition = both(replica.active, tilePosition(k).inside);
      Values stored = condition ? l_.when(condition, zeros, loads) : loads();
      for (size_t i = 0; i < tensors.size(); ++i) {
        TensorOp t = tensors[i];
        held_[{t.getOperation(), heldKey(int64_t(r), k)}] = f_.widened(t, stored[i]);
      }
      slot += int64_t(tensors.size());
    }
}

}  // namespace normc::codegen::cuda
