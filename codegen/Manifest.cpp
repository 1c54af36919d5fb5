#include "codegen/Manifest.h"

#include <numeric>

#include "codegen/targets/cpu/lower/PhaseLowering.h"
#include "codegen/plan/Plan.h"
#include "codegen/targets/cuda/Dependence.h"
#include "codegen/targets/cuda/FusePhases.h"
#include "codegen/targets/cuda/LowerToGpu.h"
#include "dsl/Fields.h"
#include "dsl/Numbers.h"

using namespace mlir;

namespace normc::codegen {

/// Rows of a statistics or apply phase: enough chunks for many threads, few enough
/// that folding their partials costs nothing beside the sweep.
static constexpr int64_t kMaxChunks = 256;
/// Channels of a task, and tasks of a phase, whose channels are whole: one begins with what costs as much as hundreds of elements.
static constexpr int64_t kChannels = 4, kMaxChannelChunks = 64;
/// Elements of one task of a phase over vectors. Of one that adds up what each task of rows left, they are the partials:
/// half of those lie in another core's caches, which two fetch sooner than one.
static constexpr int64_t kVectorGrain = 4096;
/// Rows of a task that leaves partials, which are as long as a row, and written and read once for each task.
static constexpr int64_t kRowsOfPartials = 64;
/// Features of a task that has a piece of every row: shorter pieces begin and end too often.
static constexpr int64_t kPieceOfRow = 1024;
/// Blocks of a launch whose tasks leave no partials.
static constexpr int64_t kMaxBlocks = 1 << 30;
/// Steps a block of a tile of columns does at least: they share what belongs to the columns.
static constexpr int64_t kStepsOfTile = 4;

static package::Shape shapeOf(ArrayAttr axes, KernelOp kernel, int64_t window) {
  package::Shape shape;
  for (StringRef axis : axes.getAsValueRange<StringAttr>()) {
    int64_t phase;
    if (axis == "segment") shape.emplace_back("segments");
    else if (axis == "row") shape.emplace_back("rows");
    else if (axis == "feature") shape.emplace_back("features");
    else if (axis == "group") shape.emplace_back(int64_t(kernel.getGroups()));
    else if (axis == "window") shape.emplace_back(window);
    else if (axis.consume_front("chunk.") && !axis.getAsInteger(10, phase)) shape.emplace_back("chunks." + std::to_string(phase));
  }
  return shape;
}

static std::string typeName(Type type) {
  std::string text;
  llvm::raw_string_ostream(text) << type;
  return text == "i8" ? "u8" : text;
}

static package::Operand operandOf(TensorOp t, KernelOp kernel) {
  StringRef name = t.getSymName(), role = t.getRole();
  if (role != "tensor" && role != "workspace") name = name.split('.').second;
  package::Operand operand{role.str(), name.str(), typeName(t.getType()), t.getAccess().str(), {}};
  if (role == "workspace") operand.shape = shapeOf(t.getAxes(), kernel, t.getWindow());
  return operand;
}

static std::vector<package::Field> fieldsOf(const std::vector<Field>& fields) {
  std::vector<package::Field> list;
  for (const Field& f : fields) {
    package::Field field{f.name, f.type == FieldType::I64 ? "i64" : f.type == FieldType::F64 ? "f64" : "f32", {}, f.init};
    for (Extent e : f.shape) {
      switch (e.kind) {
        case Extent::Fixed: field.shape.emplace_back(e.value); break;
        case Extent::Segments: field.shape.emplace_back("segments"); break;
        case Extent::Rows: field.shape.emplace_back("rows"); break;
        case Extent::Features: field.shape.emplace_back("features"); break;
      }
    }
    list.push_back(std::move(field));
  }
  return list;
}

static bool hasSweeps(PhaseOp phase) {
  return llvm::any_of(phase.getOps<SlabOp>(), [](SlabOp slab) { return slab.hasSweeps(); });
}

/// The tasks whose partials a feature of the phase adds up.
static package::Shape partialsOf(PhaseOp phase, KernelOp kernel) {
  package::Shape tasks;
  phase->walk([&](FoldOp fold) {
    if (tasks.empty() && fold.getAxis().starts_with("chunk.")) tasks = shapeOf(Builder(fold.getContext()).getArrayAttr(fold.getAxisAttr()), kernel, 0);
  });
  return tasks;
}

static bool leavesPartials(PhaseOp phase, KernelOp kernel) {
  return llvm::any_of(kernel.getOps<TensorOp>(), [&](TensorOp t) { return t.chunkPhase() == phase.number(); });
}

/// How units are cut into tasks on a CPU.
static void cut(PhaseOp phase, KernelOp kernel, const cpu::Schedule& s, const cpu::Isa&, package::Phase& result) {
  SmallVector<StringRef> axes(phase.getUnits().getAsValueRange<StringAttr>());
  result.maxChunks = kMaxChunks;
  if (axes.size() == 2 && axes[1] == "row") {
    result.minUnits = s.grain;
    result.multiple = kernel.featuresLast() ? s.rows : kLine;  // of any type whole lines
    if (kernel.featuresLast() && s.stream > s.rows) result.group = s.stream;
    if (kernel.featuresLast() && s.grain < kRowsOfPartials && leavesPartials(phase, kernel)) result.enoughUnits = kRowsOfPartials;
    // Of partials a task has as many as features: rows enough to be worth them are not fewer where rows are longer.
    if (!kernel.getFeatures() && !leavesPartials(phase, kernel)) result.minUnits *= cpu::kUnknownFeatures, result.weight = {"features"};
  } else if (axes.size() == 1 && axes[0] == "feature" && !hasSweeps(phase)) {
    result.minUnits = kVectorGrain;
    result.weight = partialsOf(phase, kernel);
    result.multiple = s.vector;
  } else if (axes.size() == 1 && axes[0] == "feature" && kernel.featuresLast()) {
    result.minUnits = result.multiple = s.vector * s.tile;
    if (s.strategy == Strategy::Split) {
      result.multiple = llvm::alignTo(std::min(s.grain, kPieceOfRow), result.multiple);
      result.minUnits = s.grain, result.weight = {"segments", "rows"};
    }
  } else if (!axes.empty() && axes.back() == "feature" && !kernel.featuresLast()) {
    result.multiple = std::max(s.rows, s.stream);
    result.minUnits = std::max(result.multiple, kChannels);
    result.maxChunks = kMaxChannelChunks;
  }
}

/// How units become blocks of threads.
static void cut(PhaseOp phase, KernelOp kernel, const cuda::Schedule& s, const cuda::Arch& arch, package::Phase& result) {
  SmallVector<StringRef> axes(phase.getUnits().getAsValueRange<StringAttr>());
  cuda::Launch launch = cuda::launchOf(phase, s);
  result.launch = package::Launch{.threads = launch.threads, .columns = launch.columns, .cluster = launch.cluster,
                                  .cooperative = launch.grid};
  result.launch->dependent = cuda::isDependent(phase, arch);
  if (auto least = phase->getAttrOfType<IntegerAttr>(cuda::leastBlocksAttrName())) result.launch->least = least.getInt();
  result.launch->shared = launch.shared;
  cuda::EntryNames names = cuda::entryNames(kernel, phase, s);
  if (!names.unaligned.empty()) result.unaligned = names.unaligned;
  result.maxChunks = leavesPartials(phase, kernel) || cuda::readsAgain(phase) ? s.chunks : kMaxBlocks / launch.cluster;
  if (launch.grid > 1) result.maxChunks = cuda::tasksTogether(s, arch);
  bool runs = axes.size() == 2 && axes[1] == "row";
  if (!hasSweeps(phase)) {
    result.minUnits = result.multiple = axes.empty() ? 1 : launch.threads;
  } else if (runs || cuda::formOf(kernel).lines) {
    int64_t together = cuda::unitsPerStep(phase, s);
    result.minUnits = launch.columns ? kStepsOfTile * together : together;
    result.multiple = together;
  } else if (axes.size() == 1 && axes[0] == "feature" && kernel.featuresLast()) {
    result.minUnits = result.multiple = cuda::columnsOf(s);
  }
}

/// What a CPU keeps it keeps in caches: every slab that is planned so is read once from memory.
static package::Traffic moved(KernelOp kernel, const cpu::Schedule&, bool warmup) {
  const Traffic t = trafficOf(kernel, warmup);
  return {t.reads, t.writes};
}

static package::Traffic moved(KernelOp kernel, const cuda::Schedule& s, bool warmup) {
  const Traffic least = trafficOf(kernel, warmup);
  const Traffic t = trafficOf(kernel, warmup, [&](SlabOp slab) { return cuda::keeps(slab, s); });
  if (t.reads == least.reads) return {t.reads, t.writes};
  return {t.reads, t.writes, least.reads, cuda::heldRows(s)};
}

/// What the number of features has to be a multiple of, so that every group has as many.
static int64_t groupsOf(const Problem& problem) {
  const Spec& spec = *problem.spec;
  return std::lcm(problem.groups(spec.groups), spec.pre ? problem.groups(spec.pre->groups) : 1);
}

template <typename Schedule, typename Machine>
static package::Kernel manifestOf(const Problem& problem, const Schedule& schedule, const Machine& machine, KernelOp kernel) {
  package::Kernel m;
  m.problem = problem.text();
  m.entry = name(problem.entry);
  m.data = name(problem.data);
  m.params = name(problem.params);
  m.layout = name(problem.layout);
  m.mask = problem.mask;
  m.segmented = problem.segmented;
  m.features = problem.features;
  if (!problem.features) m.featuresMultiple = groupsOf(problem);
  m.bindings = problem.bindings;
  m.generator = "mlir";
  m.schedule = schedule.text();
  for (auto t : kernel.getOps<TensorOp>()) m.operands.push_back(operandOf(t, kernel));
  for (const Number& n : numbers(*problem.spec)) m.scalars.push_back({n.name, n.value, n.legal});
  m.state = fieldsOf(stateFields(problem));
  if (problem.entry != Entry::Infer) m.saved = fieldsOf(savedFields(problem));
  for (auto phase : kernel.getOps<PhaseOp>()) {
    package::Phase p;
    p.symbol = (kernel.getSymName() + "_" + phase.getSymName()).str();
    p.role = phase.getRole().str();
    p.units = shapeOf(phase.getUnits(), kernel, 0);
    p.when = phase.getWarmup() ? "warmup" : "always";
    cut(phase, kernel, schedule, machine, p);
    m.phases.push_back(std::move(p));
  }
  m.traffic = moved(kernel, schedule, /*warmup=*/false);
  auto warm = moved(kernel, schedule, /*warmup=*/true);
  if (warm != m.traffic) m.warmupTraffic = warm;
  return m;
}

package::Kernel kernelManifest(const Problem& problem, const cpu::Schedule& schedule, const cpu::Isa& isa,
                               KernelOp kernel) {
  package::Kernel m = manifestOf(problem, schedule, isa, kernel);
  if (schedule.stream) {
    m.scalars.push_back({largeNumber().str(), cpu::kLargeBytes});
    m.scalars.push_back({streamNumber().str(), cpu::kStreamBytes});
  }
  m.isa = isa.name;
  return m;
}

package::Kernel kernelManifest(const Problem& problem, const cuda::Schedule& schedule, const cuda::Arch& arch,
                               KernelOp kernel) {
  package::Kernel m = manifestOf(problem, schedule, arch, kernel);
  m.device = "cuda";
  m.isa = arch.name;
  m.alignment = cuda::accessBytes(kernel, schedule);
  return m;
}

}  // namespace normc::codegen
