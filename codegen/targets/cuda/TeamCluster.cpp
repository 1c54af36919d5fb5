// Sums of lines that lie over the blocks of a cluster.
//
// Each warp writes its part of a sum into the shared memory of every block, then the
// cluster meets once, and each block adds all parts from its own memory, in the same
// order: there is no second hop, and all blocks have the same bits. Nobody touches
// another block's memory after the last meeting, so blocks may exit as they like.
//
// A meeting is also what the next writes to a buffer wait for. A step has its own of
// two buffers: whoever writes in step i + 2 has met all others in step i + 1, and they
// had read those of step i.
#include "codegen/targets/cuda/Ptx.h"
#include "codegen/targets/cuda/TeamLowering.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

using namespace mlir;

namespace normc::codegen::cuda {

static constexpr int64_t kWarp = 32;
static constexpr unsigned kSharedSpace = 3;

/// Shared memory that others of the cluster write. Its name is known outside of the module as far as LLVM can tell:
/// of an internal variable it would see no writer, since `mapa` is said to let no address escape.
Value TeamLowering::clusterShared(int64_t elements) {
  auto module = function_->getParentOfType<gpu::GPUModuleOp>();
  const std::string name = (function_.getName() + "_parts_" + Twine(clusterBuffers_++)).str();
  auto type = LLVM::LLVMArrayType::get(f_.statistics(), elements);
  OpBuilder b(module.getBodyRegion());
  auto memory = LLVM::GlobalOp::create(b, l_.loc, type, /*isConstant=*/false, LLVM::Linkage::External, name, Attribute(),
                                       /*alignment=*/16, kSharedSpace);
  b.createBlock(&memory.getInitializerRegion());
  LLVM::ReturnOp::create(b, l_.loc, LLVM::UndefOp::create(b, l_.loc, type));
  return LLVM::AddressOfOp::create(l_.b, l_.loc, memory);
}

/// The sums of runs, known to all threads of their teams in all blocks. Every thread of the cluster takes part.
void TeamLowering::sumOverCluster(MutableArrayRef<Value> sums) {
  OpBuilder& b = l_.b;
  mlir::Location loc = l_.loc;
  const Type type = f_.statistics();
  const int64_t blocks = launch_.cluster, warps = blockThreads() / kWarp, own = s_.team / kWarp, parts = blocks * own;
  Value memory = clusterShared(2 * int64_t(sums.size()) * blocks * warps);
  Value warp = l_.div(thread_, l_.index(kWarp)), lane = l_.rem(thread_, l_.index(kWarp));
  auto word = [&](Value index, Type integer) -> Value { return arith::IndexCastOp::create(b, loc, integer, index); };
  auto at = [&](Value memory, Value index) -> Value {
    return LLVM::GEPOp::create(b, loc, memory.getType(), type, memory, ValueRange{word(index, b.getI64Type())});
  };
  // [step's][sum][team][block][warp of the team]: what one thread adds lies in one piece.
  Value unit = l_.div(warp, l_.index(own)), member = l_.rem(warp, l_.index(own));
  auto begin = [&](size_t sum) {
    return l_.add(l_.mul(clusterStep_, l_.index(int64_t(sums.size()) * blocks * warps)),
                  l_.add(l_.mul(unit, l_.index(parts)), l_.index(int64_t(sum) * blocks * warps)));
  };
  for (Value& v : sums) v = sumOverLanes(v, kWarp);
  // Lane r tells block r; other lanes have the address of some block too, for LLVM may ask for it before it asks which lane.
  Value there = inSharedMemoryOf(b, loc, memory, word(l_.rem(lane, l_.index(blocks)), b.getI32Type()));
  l_.when(l_.less(lane, l_.index(blocks)), {}, [&] {
    Value place = l_.add(l_.mul(rank_, l_.index(own)), member);
    for (auto [i, v] : llvm::enumerate(sums)) LLVM::StoreOp::create(b, loc, v, at(there, l_.add(begin(i), place)));
    return Values();
  });
  arriveAtCluster(b, loc);
  waitForCluster(b, loc);
  auto part = [&](Value index) -> Value { return LLVM::LoadOp::create(b, loc, type, at(memory, index)); };
  for (auto [i, v] : llvm::enumerate(sums)) {
    SmallVector<Value> terms;
    if (parts <= kWarp) {
      for (int64_t p = 0; p < parts; ++p) terms.push_back(part(l_.add(begin(i), l_.index(p))));
      v = l_.tree(terms);
      continue;
    }
    for (int64_t p = 0; p < parts; p += kWarp) {
      Value index = l_.add(lane, l_.index(p)), inside = p + kWarp > parts ? l_.less(index, l_.index(parts)) : Value();
      if (inside) index = l_.min(index, l_.index(parts - 1));
      Value term = part(l_.add(begin(i), index));
      terms.push_back(inside ? l_.select(inside, term, l_.zero(type)) : term);
    }
    v = sumOverLanes(l_.tree(terms), kWarp);
  }
}

}  // namespace normc::codegen::cuda
