#include "codegen/targets/cuda/ClusterMeeting.h"

#include "codegen/targets/cuda/Launch.h"
#include "codegen/targets/cuda/Ptx.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

using namespace mlir;

namespace normc::codegen::cuda {

/// The most bytes of a store.
static constexpr int64_t kMostBytes = 16;

ClusterMeeting::ClusterMeeting(KernelThread& thread) : k_(thread), l_(thread.l) {
  const Type type = l_.b.getI32Type();
  Value one = LLVM::ConstantOp::create(l_.b, l_.loc, type, 1);
  Value none = LLVM::ConstantOp::create(l_.b, l_.loc, type, 0);
  count_ = LLVM::AllocaOp::create(l_.b, l_.loc, LLVM::LLVMPointerType::get(l_.b.getContext()), type, one);
  LLVM::StoreOp::create(l_.b, l_.loc, none, count_);
  mbarriers_ = k_.sharedVariable("meetings", 2, l_.b.getI64Type(), kMbarrierBytes, /*others=*/true);
  k_.storeWhere(k_.isZero(k_.thread), [&] {
    for (int64_t turn : {0, 1})
      initMbarrier(l_.b, l_.loc, k_.elementOf(mbarriers_, l_.index(turn), l_.b.getI64Type()));
  });
}

Value ClusterMeeting::memory(int64_t elements, Type element) {
  return k_.sharedVariable("parts_" + Twine(buffers_++), elements, element, kMostBytes, /*others=*/true);
}

void ClusterMeeting::begin(int64_t bytes) {
  const Type type = l_.b.getI32Type();
  Value one = LLVM::ConstantOp::create(l_.b, l_.loc, type, 1);
  Value count = LLVM::LoadOp::create(l_.b, l_.loc, type, count_);
  if (waits_) {
    Value none = LLVM::ConstantOp::create(l_.b, l_.loc, type, 0);
    l_.when(arith::CmpIOp::create(l_.b, l_.loc, arith::CmpIPredicate::eq, count, none), {}, [&] {
      waitForCluster(l_.b, l_.loc);
      return Values();
    });
  }
  Value turn = arith::AndIOp::create(l_.b, l_.loc, count, one);
  Value round = arith::ShRUIOp::create(l_.b, l_.loc, count, one);
  parity_ = arith::AndIOp::create(l_.b, l_.loc, round, one);
  turn_ = arith::IndexCastUIOp::create(l_.b, l_.loc, l_.b.getIndexType(), turn);
  mbarrier_ = k_.elementOf(mbarriers_, turn_, l_.b.getI64Type());
  k_.storeWhere(k_.isZero(k_.thread), [&] {
    expectBytes(l_.b, l_.loc, mbarrier_, LLVM::ConstantOp::create(l_.b, l_.loc, type, bytes));
  });
  LLVM::StoreOp::create(l_.b, l_.loc, arith::AddIOp::create(l_.b, l_.loc, count, one), count_);
}

ClusterMeeting::There ClusterMeeting::in(Value memory, Value rank) {
  Value block = k_.toI32(rank);
  return {inSharedMemoryOf(l_.b, l_.loc, memory, block), inSharedMemoryOf(l_.b, l_.loc, mbarrier_, block)};
}

void ClusterMeeting::send(Value part, Value to, const There& there) {
  auto vector = dyn_cast<VectorType>(part.getType());
  if (!vector) return storeAsync(l_.b, l_.loc, part, to, there.mbarrier);
  const int64_t lanes = vector.getNumElements(), bytes = vector.getElementTypeBitWidth() / 8;
  const int64_t most = std::min(lanes, kMostBytes / bytes);
  for (int64_t first = 0; first < lanes; first += most) {
    Values floats;
    for (int64_t lane = first; lane < first + most; ++lane) floats.push_back(k_.laneOf(part, lane));
    storeAsync(l_.b, l_.loc, floats, k_.elementOf(to, l_.index(first)), there.mbarrier);
  }
}

void ClusterMeeting::end() { waitForMbarrier(l_.b, l_.loc, mbarrier_, parity_); }

}  // namespace normc::codegen::cuda
