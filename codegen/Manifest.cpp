#include "codegen/Manifest.h"

#include <numeric>

#include "dsl/Numbers.h"
#include "dsl/StateFields.h"

using namespace mlir;

namespace normc::codegen {

static package::Shape shapeOf(ArrayAttr axes, KernelOp kernel, int64_t window) {
  package::Shape shape;
  for (StringRef axis : axes.getAsValueRange<StringAttr>()) {
    int64_t phase;
    if (axis == "segment")
      shape.push_back(package::kSegments);
    else if (axis == "row")
      shape.push_back(package::kRows);
    else if (axis == "feature")
      shape.push_back(package::kFeatures);
    else if (axis == "group")
      shape.push_back({package::Factor::Fixed, int64_t(kernel.getGroups())});
    else if (axis == "window")
      shape.push_back({package::Factor::Fixed, window});
    else if (axis.consume_front("chunk.") && !axis.getAsInteger(10, phase))
      shape.push_back(package::chunksOf(phase));
  }
  return shape;
}

static DType typeOf(Type type) {
  std::string text;
  llvm::raw_string_ostream(text) << type;
  return text == "i8" ? DType::U8 : typeNamed(text).value();
}

/// Returns the enumerator of a name; the dialect has checked the name.
template <typename Enum>
static Enum named(StringRef name, std::initializer_list<Enum> legal) {
  return *llvm::find_if(legal, [&](Enum each) { return StringRef(package::name(each)) == name; });
}

static package::Operand operandOf(TensorOp t, KernelOp kernel) {
  StringRef name = t.getSymName();
  const auto role = named(t.getRole(), package::kRoles);
  if (role != package::Role::Tensor && role != package::Role::Workspace) name = name.split('.').second;
  package::Operand operand{role, name.str(), typeOf(t.getType()), named(t.getAccess(), package::kAccesses)};
  if (role == package::Role::Workspace) operand.shape = shapeOf(t.getAxes(), kernel, t.getWindow());
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

package::Shape partialsOf(PhaseOp phase, KernelOp kernel) {
  package::Shape tasks;
  phase->walk([&](FoldOp fold) {
    if (tasks.empty() && fold.getAxis().starts_with("chunk."))
      tasks = shapeOf(Builder(fold.getContext()).getArrayAttr(fold.getAxisAttr()), kernel, 0);
  });
  return tasks;
}

bool leavesPartials(PhaseOp phase, KernelOp kernel) {
  return llvm::any_of(kernel.getOps<TensorOp>(),
                      [&](TensorOp t) { return t.chunkPhase() == phase.number(); });
}

/// Returns the number that divides every legal number of features, so that all groups have the same size.
static int64_t groupsOf(const Problem& problem) {
  const Spec& spec = *problem.spec;
  return std::lcm(problem.groups(spec.groups), spec.pre ? problem.groups(spec.pre->groups) : 1);
}

package::Kernel manifestOf(const Problem& problem, std::string schedule, KernelOp kernel,
                           const Partition& partition) {
  package::Kernel m;
  m.problem = problem.text();
  m.parts = problem.parts();
  if (!problem.features) m.featuresMultiple = groupsOf(problem);
  m.generator = "mlir";
  m.schedule = std::move(schedule);
  for (auto t : kernel.getOps<TensorOp>()) m.operands.push_back(operandOf(t, kernel));
  for (const Number& n : numbers(*problem.spec)) m.scalars.push_back({n.name, n.value, n.legal});
  m.state = fieldsOf(stateFields(problem));
  if (problem.entry != Entry::Infer) m.saved = fieldsOf(savedFields(problem));
  for (auto phase : kernel.getOps<PhaseOp>()) {
    package::Phase p;
    p.symbol = (kernel.getSymName() + "_" + phase.getSymName()).str();
    p.role = phase.getRole().str();
    p.units = shapeOf(phase.getUnits(), kernel, 0);
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
