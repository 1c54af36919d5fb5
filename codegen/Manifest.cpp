#include "codegen/Manifest.h"

#include <numeric>

#include "dsl/Numbers.h"
#include "dsl/StateFields.h"

using namespace mlir;

namespace normc::codegen {

static package::Factor factorOf(Axis axis, KernelOp kernel, int64_t window, int64_t chunkPhase) {
  switch (axis) {
    case Axis::Segment:
      return package::kSegments;
    case Axis::Row:
      return package::kRows;
    case Axis::Feature:
      return package::kFeatures;
    case Axis::Group:
    case Axis::PreGroup:
      return {package::Factor::Fixed, kernel.groupsAlong(axis)};
    case Axis::Window:
      return {package::Factor::Fixed, window};
    case Axis::Chunk:
      return package::chunksOf(chunkPhase);
    case Axis::Block:  // of no workspace
    case Axis::Pair:
    case Axis::Partial:
      break;
  }
  llvm_unreachable("axis");
}

static package::Shape shapeOf(ArrayRef<Axis> axes, KernelOp kernel, int64_t window = 0,
                              int64_t chunkPhase = 0) {
  package::Shape shape;
  for (Axis axis : axes) shape.push_back(factorOf(axis, kernel, window, chunkPhase));
  return shape;
}

static DType typeOf(Type type) {
  std::string text;
  llvm::raw_string_ostream(text) << type;
  if (isa<Float8E4M3FNType>(type)) return DType::E4M3;
  if (isa<Float8E8M0FNUType>(type)) return DType::E8M0;
  if (type.isInteger(8)) return type.isSignedInteger() ? DType::I8 : DType::U8;
  return typeNamed(text).value();
}

static package::Operand operandOf(TensorOp t, KernelOp kernel) {
  StringRef name = t.getSymName();
  const package::Role role = t.getRole();
  if (role != package::Role::Tensor && role != package::Role::Workspace) name = name.split('.').second;
  package::Operand operand{role, name.str(), typeOf(t.getType()), t.getAccess()};
  if (operand.hasShape()) operand.shape = shapeOf(t.getAxes(), kernel, t.getWindow(), t.chunkPhase());
  return operand;
}

static std::vector<package::Field> fieldsOf(const std::vector<Field>& fields) {
  std::vector<package::Field> list;
  for (const Field& f : fields) {
    package::Field field{f.name, f.type, {}, f.init};
    for (Extent e : f.shape) {
      const package::Factor factors[] = {
          {package::Factor::Fixed, e.value}, package::kSegments, package::kRows, package::kFeatures};
      field.shape.push_back(factors[e.kind]);  // Extent::Kind has this order
    }
    list.push_back(std::move(field));
  }
  return list;
}

bool hasSweeps(PhaseOp phase) {
  return llvm::any_of(phase.getOps<SlabOp>(), [](SlabOp slab) { return slab.hasSweeps(); });
}

package::Shape partialsOf(PhaseOp phase) {
  package::Shape tasks;
  phase->walk([&](FoldOp fold) {
    if (tasks.empty() && fold.getChunkOf()) tasks = {package::chunksOf(*fold.getChunkOf())};
  });
  return tasks;
}

bool leavesPartials(PhaseOp phase, KernelOp kernel) {
  return llvm::any_of(kernel.getOps<TensorOp>(),
                      [&](TensorOp t) { return t.chunkPhase() == phase.number(); });
}

/// Sets what calls may do with the tensors that are no operands.
static void noteOtherTensors(const Problem& problem, package::Kernel& m) {
  if (!isBackward(problem.entry)) return;
  const Has has = hasOf(problem);
  m.ignored.emplace();
  for (const TensorInfo& each : kTensorTable) {
    const bool operand = llvm::any_of(m.operands, [&](const package::Operand& operand) {
      return operand.role == package::Role::Tensor && operand.name == each.name;
    });
    if (!operand && mayComeAlong(each, problem.entry, has)) m.ignored->emplace_back(each.name);
  }
  const std::optional<Tensor> gradient = has.gradientOfResidual();
  if (gradient && gradient != kDresidual && isTaken(infoOf(*gradient), problem.entry, has))
    m.same.emplace(name(kDresidual), name(*gradient));
}

package::Kernel manifestOf(const Problem& problem, std::string schedule, KernelOp kernel,
                           const Partition& partition) {
  package::Kernel m;
  m.problem = problem.text();
  m.parts = problem.parts();
  if (!problem.features) m.featuresMultiple = problem.featuresMultiple();
  m.block = kernel.getBlock().value_or(0);
  if (const auto& rope = problem.spec->rope) {
    m.runs = problem.groups(rope->groups);
    m.turned = rope->features.value_or(0);
  }
  m.generator = "mlir";
  m.schedule = std::move(schedule);
  for (auto t : kernel.getOps<TensorOp>()) m.operands.push_back(operandOf(t, kernel));
  noteOtherTensors(problem, m);
  for (const Number& n : numbers(*problem.spec, problem.statistics()))
    m.scalars.push_back({n.name, n.value, n.legal});
  m.state = fieldsOf(stateFields(problem));
  if (usesSaved(problem.entry)) m.saved = fieldsOf(savedFields(problem));
  m.partial = fieldsOf(partialFields(problem));
  for (auto phase : kernel.getOps<PhaseOp>()) {
    package::Phase p;
    p.symbol = (kernel.getSymName() + "_" + phase.getSymName()).str();
    p.role = stringifyPhaseRole(phase.getRole()).str();
    p.units = shapeOf(phase.getUnits(), kernel);
    p.bySegment = phase.getBySegment();
    p.when = phase.getWarmup() ? package::When::Warmup : package::When::Always;
    partition.cut(phase, p);
    m.phases.push_back(std::move(p));
  }
  m.traffic = partition.traffic(/*warmup=*/false);
  auto warm = partition.traffic(/*warmup=*/true);
  if (warm != m.traffic) m.warmupTraffic = warm;
  return m;
}

}  // namespace normc::codegen
