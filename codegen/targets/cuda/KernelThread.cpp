// The thread that a kernel's code is emitted for: indices, conditions, and the memory and barrier of its
// block.
#include "codegen/targets/cuda/KernelThread.h"

#include "codegen/targets/cuda/Launch.h"
#include "codegen/targets/cuda/Traits.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;

namespace normc::codegen::cuda {

/// Bytes of the widest access to shared memory.
static constexpr int64_t kWidestAccess = 16;

Value blockIn(Loops& l, PhaseOp phase, gpu::Dimension dimension) {
  Value block = gpu::BlockIdOp::create(l.b, l.loc, dimension);
  if (!readsAgain(phase)) return block;
  Value blocks = gpu::GridDimOp::create(l.b, l.loc, dimension);
  return l.sub(l.sub(blocks, l.index(1)), block);
}

static Value rankOf(Loops& l, const Launch& launch) {
  if (launch.cluster > 1) return gpu::ClusterBlockIdOp::create(l.b, l.loc, gpu::Dimension::x);
  if (launch.grid == 1) return l.index(0);
  return l.rem(gpu::BlockIdOp::create(l.b, l.loc, gpu::Dimension::x), l.index(launch.grid));
}

KernelThread::KernelThread(Loops& loops, AccessLowering& frame, const Schedule& schedule,
                           const Launch& launch, gpu::GPUFuncOp function)
    : l(loops),
      f(frame),
      s(schedule),
      launch(launch),
      function(function),
      thread(gpu::ThreadIdOp::create(l.b, l.loc, gpu::Dimension::x)),
      columnBlock(launch.columns ? blockIn(l, f.phase(), gpu::Dimension::y) : l.index(0)),
      rank(rankOf(l, launch)) {}

//===-- Places ----------------------------------------------------------------------===//

Value KernelThread::indexInTask() { return l.add(l.mul(rank, l.index(threads())), thread); }

Place KernelThread::placeOf(int64_t team, int64_t groups) {
  Place p{.team = team, .span = team * groups};
  p.units = threads() / p.span;
  p.unit = p.units == 1 ? l.index(0) : l.div(thread, l.index(p.span));
  // LLVM would turn `thread % 32 + 96` into `thread | 96`, which is no immediate offset of an access.
  auto inWarp = [&]() -> Value { return gpu::LaneIdOp::create(l.b, l.loc, l.b.getIndexAttr(32)); };
  p.spanLane = p.units == 1 ? thread : p.span == 32 ? inWarp() : l.rem(thread, l.index(p.span));
  p.lane = groups == 1 ? p.spanLane : l.rem(p.spanLane, l.index(team));
  p.lane = l.add(l.mul(rank, l.index(team)), p.lane);
  p.team = team * taskBlocks();
  return p;
}

//===-- Values and conditions -------------------------------------------------------===//

Type KernelThread::vectorType() const {
  return s.vector > 1 ? Type(VectorType::get({s.vector}, f.statistics())) : f.statistics();
}

Type KernelThread::storedType(TensorOp t, int64_t lanes) const {
  return lanes ? Type(VectorType::get({lanes}, f.stored(t))) : f.stored(t);
}

Value KernelThread::lanesOf(llvm::function_ref<Value(int64_t)> lane) {
  SmallVector<Value> lanes;
  for (int64_t e = 0; e < s.vector; ++e) lanes.push_back(lane(e));
  if (s.vector == 1) return lanes[0];
  return vector::FromElementsOp::create(l.b, l.loc, VectorType::get({s.vector}, lanes[0].getType()), lanes);
}

Value KernelThread::laneOf(Value v, int64_t lane) {
  return isa<VectorType>(v.getType()) ? Value(vector::ExtractOp::create(l.b, l.loc, v, lane)) : v;
}

Value KernelThread::isZero(Value index) {
  if (auto known = Loops::constant(index)) return l.less(l.index(-1), index);
  return arith::CmpIOp::create(l.b, l.loc, arith::CmpIPredicate::eq, index, l.index(0));
}

void KernelThread::storeWhere(Value condition, llvm::function_ref<void()> store) {
  if (!condition) return store();
  l.when(condition, {}, [&] {
    store();
    return Values();
  });
}

Values KernelThread::loadWhere(Value condition, ArrayRef<Type> types, llvm::function_ref<Values()> load) {
  if (!condition || types.empty()) return load();
  Values zeros;
  for (Type type : types) zeros.push_back(l.zero(type));
  return l.when(condition, zeros, load);
}

Values KernelThread::identities(Combiners combiners, Type type) {
  return llvm::map_to_vector<16>(combiners, [&](Combiner combiner) { return l.identity(combiner, type); });
}

Value KernelThread::toI32(Value index) {
  return arith::IndexCastOp::create(l.b, l.loc, l.b.getI32Type(), index);
}

Value KernelThread::toI64(Value index) {
  return arith::IndexCastOp::create(l.b, l.loc, l.b.getI64Type(), index);
}

//===-- The block -------------------------------------------------------------------===//

Value KernelThread::elementOf(Value pointer, Value index, Type type) {
  return LLVM::GEPOp::create(l.b, l.loc, pointer.getType(), type ? type : f.statistics(), pointer,
                             ValueRange{toI64(index)});
}

Value KernelThread::shared(int64_t elements, Type element) {
  auto space = gpu::AddressSpaceAttr::get(l.b.getContext(), gpu::AddressSpace::Workgroup);
  if (!element) element = f.statistics();
  // Neighbouring elements may be read by one access, and three of them by one of four: NVPTX joins them.
  const int64_t bytes = elementBytes(element);
  elements = int64_t(llvm::alignTo(elements * bytes, kWidestAccess)) / bytes;
  auto type = MemRefType::get({elements}, element, MemRefLayoutAttrInterface(), space);
  Value memory = function.addWorkgroupAttribution(type, l.loc);
  function.setWorkgroupAttributionAttr(function.getNumWorkgroupAttributions() - 1, "llvm.align",
                                       l.b.getI64IntegerAttr(kWidestAccess));
  return memory;
}

Value KernelThread::sharedVariable(const Twine& name, int64_t elements, Type element, int64_t alignment,
                                   bool others) {
  auto module = function->getParentOfType<gpu::GPUModuleOp>();
  const std::string symbol = (function.getName() + "_" + name).str();
  auto variable = module.lookupSymbol<LLVM::GlobalOp>(symbol);
  if (!variable) {
    auto type = LLVM::LLVMArrayType::get(element, elements);
    OpBuilder b(module.getBodyRegion());
    variable = LLVM::GlobalOp::create(b, l.loc, type, /*isConstant=*/false,
                                      others ? LLVM::Linkage::External : LLVM::Linkage::Internal, symbol,
                                      Attribute(), alignment, kSharedSpace);
    b.createBlock(&variable.getInitializerRegion());
    LLVM::ReturnOp::create(b, l.loc, LLVM::UndefOp::create(b, l.loc, type));
  }
  return LLVM::AddressOfOp::create(l.b, l.loc, variable);
}

void KernelThread::barrier() {
  gpu::BarrierOp::create(l.b, l.loc);
  ++barriers_;
}

void KernelThread::uncounted(llvm::function_ref<void()> code) {
  const int64_t before = barriers_;
  code();
  barriers_ = before;
}

}  // namespace normc::codegen::cuda
