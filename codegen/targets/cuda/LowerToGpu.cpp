#include "codegen/targets/cuda/LowerToGpu.h"

#include "codegen/Manifest.h"
#include "codegen/targets/cuda/Dependence.h"
#include "codegen/targets/cuda/Launch.h"
#include "codegen/targets/cuda/Ptx.h"
#include "codegen/targets/cuda/TeamLowering.h"
#include "codegen/targets/cuda/Traits.h"
#include "codegen/targets/cuda/Variants.h"
#include "llvm/ADT/SetVector.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

using namespace mlir;

namespace normc::codegen::cuda {

EntryNames entryNames(KernelOp kernel, PhaseOp phase, const Schedule& schedule) {
  std::string name = (kernel.getSymName() + "_" + phase.getSymName()).str();
  // Scalar code, single elements and runs that are always peeled require no alignment.
  bool any = schedule.vector == 1 || !hasSweeps(phase) || alwaysPeels(traitsOf(kernel), schedule);
  return {name, any ? "" : name + "_unaligned"};
}

static SmallVector<Type> parameterTypes(KernelOp kernel, const Access& access) {
  Builder b(kernel.getContext());
  SmallVector<Type> types;
  unsigned strided = 0, phases = llvm::range_size(kernel.getOps<PhaseOp>());
  for (auto t : kernel.getOps<TensorOp>()) {
    types.push_back(MemRefType::get({}, access.stored(t)));
    strided += isStrided(t);
  }
  types.append(2 * strided + 3, b.getIndexType());
  types.append(kernel.getNumbers().size(), b.getF64Type());
  types.append(3 * phases, b.getIndexType());
  return types;
}

static Arguments argumentsOf(Loops& l, KernelOp kernel, PhaseOp phase, gpu::GPUFuncOp function,
                             const Launch& launch) {
  Arguments a;
  unsigned next = 0, strided = 0;
  auto take = [&]() -> Value { return function.getArgument(next++); };
  for (auto t : kernel.getOps<TensorOp>()) {
    a.pointers.push_back(take());
    strided += isStrided(t);
  }
  for (unsigned i = 0; i < strided; ++i) {
    Value segment = take(), row = take();
    a.strides.push_back({segment, row, {}});
  }
  a.segments = take();
  a.rows = take();
  a.features = take();
  unsigned scalars = next, cuts = next + kernel.getNumbers().size();
  a.scalar = [function, scalars](unsigned i) mutable -> Value { return function.getArgument(scalars + i); };
  a.cut = [function, cuts](unsigned phase, Arguments::CutField field) mutable -> Value {
    return function.getArgument(cuts + 3 * phase + field);
  };
  a.task = launch.cluster > 1 ? Value(gpu::ClusterIdOp::create(l.b, l.loc, gpu::Dimension::x))
                              : l.div(blockIn(l, phase, gpu::Dimension::x), l.index(launch.grid));
  return a;
}

static void lowerPhase(OpBuilder& b, KernelOp kernel, PhaseOp phase, StringRef name, const Schedule& schedule,
                       const Access& access, const Arch& arch) {
  auto function =
      gpu::GPUFuncOp::create(b, phase.getLoc(), name, b.getFunctionType(parameterTypes(kernel, access), {}));
  function->setAttr(gpu::GPUDialect::getKernelFuncAttrName(), b.getUnitAttr());
  Launch launch = launchOf(phase, schedule);
  function.setKnownBlockSizeAttr(b.getDenseI32ArrayAttr({int32_t(launch.threads), 1, 1}));
  if (launch.cluster > 1)
    function.setKnownClusterSizeAttr(b.getDenseI32ArrayAttr({int32_t(launch.cluster), 1, 1}));
  if (launch.blocks) function->setAttr(minBlocksAttrName(), b.getI32IntegerAttr(launch.blocks));
  const auto changing = changingIn(phase, arch);
  for (auto [i, t] : llvm::enumerate(kernel.getOps<TensorOp>())) {
    int64_t element = elementBytes(t.getType());
    bool wide = t.info() && t.info()->type != TypeRule::Mask;
    // One with narrower elements is aligned to as many of them as the widest.
    const int64_t vector = t.isXSized() ? access.alignment * element / widestBytes(kernel) : access.alignment;
    int64_t alignment = t.isWorkspace() ? 64 : wide && vector && !access.peeled ? vector : element;
    function.setArgAttr(i, LLVM::LLVMDialect::getAlignAttrName(), b.getI64IntegerAttr(alignment));
    if (!isUnshared(t) || changing.contains(t.getSymName())) continue;
    function.setArgAttr(i, LLVM::LLVMDialect::getNoAliasAttrName(), b.getUnitAttr());
    function.setArgAttr(i, LLVM::LLVMDialect::getReadonlyAttrName(), b.getUnitAttr());
  }
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(&function.getBody().front());
  beginPhase(b, phase, arch);
  Loops loops(b, phase.getLoc());
  AccessLowering frame(loops, kernel, phase, argumentsOf(loops, kernel, phase, function, launch), access);
  for (TensorOp t : lastAccessed(phase, schedule)) frame.markNonTemporal(t);
  TeamLowering lowering(loops, frame, schedule, launch, function);  // its variables are in the entry block
  if (const auto brief = briefUnits(phase, schedule, arch)) {
    const auto [begin, end] = frame.range();
    loops.when(loops.less(loops.sub(end, begin), loops.index(*brief)), {}, [&] {
      letNextLaunchBegin(b, phase.getLoc());
      return Values();
    });
  }
  if (endsEarly(phase, arch)) lowering.letNextBegin();
  lowering.run();
  gpu::ReturnOp::create(b, phase.getLoc());
}

/// Returns the schedule for congruent rows. Before sm_90 16-bit elements are widened one by one, and two
/// tensors of them fill registers.
static Schedule congruentOn(KernelOp kernel, PhaseOp phase, const Schedule& schedule, const Arch& arch) {
  const KernelTraits traits = traitsOf(kernel);
  Schedule s = congruent(spread(traits, schedule), cuda::partialsOf(phase));
  if (!arch.clusters() && s.vector >= 8 && traits.backward) s.blocks = std::min<int64_t>(s.blocks, 1);
  return s;
}

static void lowerToGpu(KernelOp kernel, const Schedule& schedule, const Arch& arch) {
  OpBuilder b(kernel);
  auto module = gpu::GPUModuleOp::create(b, kernel.getLoc(), (kernel.getSymName() + "_module").str());
  b.setInsertionPointToStart(module.getBody());
  const Access aligned{.conversions = true, .alignment = accessBytes(kernel, schedule)};
  for (auto phase : kernel.getOps<PhaseOp>()) {
    EntryNames names = entryNames(kernel, phase, schedule);
    bool wide = !names.unaligned.empty();
    if (wide) lowerPhase(b, kernel, phase, names.aligned, schedule, aligned, arch);
    const std::string& name = wide ? names.unaligned : names.aligned;
    if (takesCongruentRows(phase, schedule))
      lowerPhase(b, kernel, phase, name, congruentOn(kernel, phase, schedule, arch),
                 {.conversions = true, .peeled = true}, arch);
    else if (!peels(phase, schedule))
      lowerPhase(b, kernel, phase, name, unaligned(schedule), {.conversions = true}, arch);
    else
      lowerPhase(b, kernel, phase, name, peeled(schedule),
                 {.conversions = true, .alignment = aligned.alignment, .peeled = true}, arch);
  }
  kernel.erase();
}

PassPtr normToGpu(const Schedule& schedule, const Arch& arch) {
  return modulePass("norm-to-gpu", [schedule, arch](ModuleOp module) {
    for (auto kernel : llvm::to_vector(module.getOps<KernelOp>())) lowerToGpu(kernel, schedule, arch);
  });
}

}  // namespace normc::codegen::cuda
