#include "codegen/Manifest.h"

#include "codegen/plan/Plan.h"
#include "dsl/Fields.h"
#include "dsl/Numbers.h"

using namespace mlir;

namespace normc::codegen {

/// Rows of a statistics or apply phase: enough chunks for many threads, few enough
/// that folding their partials costs nothing beside the sweep.
static constexpr int64_t kMaxChunks = 256;
/// Features of one task of a phase over vectors.
static constexpr int64_t kVectorGrain = 4096;

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

static package::Phase phaseOf(PhaseOp phase, KernelOp kernel, const cpu::Schedule& s) {
  package::Phase result;
  result.symbol = (kernel.getSymName() + "_" + phase.getSymName()).str();
  result.role = phase.getRole().str();
  result.units = shapeOf(phase.getUnits(), kernel, 0);
  result.maxChunks = kMaxChunks;
  result.when = phase.getWarmup() ? "warmup" : "always";
  bool sweeps = llvm::any_of(phase.getOps<SlabOp>(), [](SlabOp slab) { return slab.hasSweeps(); });
  SmallVector<StringRef> axes(phase.getUnits().getAsValueRange<StringAttr>());
  if (axes.size() == 2 && axes[1] == "row") {
    result.minUnits = s.grain;
    result.multiple = s.rows;
  } else if (axes.size() == 1 && axes[0] == "feature" && !sweeps) {
    result.minUnits = kVectorGrain;
    result.multiple = s.vector;
  } else if (axes.size() == 1 && axes[0] == "feature" && kernel.featuresLast()) {
    result.minUnits = result.multiple = s.vector * s.tile;
  }
  return result;
}

package::Kernel kernelManifest(const Problem& problem, const cpu::Schedule& schedule, const cpu::Isa& isa,
                               KernelOp kernel) {
  package::Kernel m;
  m.problem = problem.text();
  m.entry = name(problem.entry);
  m.data = name(problem.data);
  m.params = name(problem.params);
  m.layout = name(problem.layout);
  m.mask = problem.mask;
  m.segmented = problem.segmented;
  m.features = problem.features;
  m.bindings = problem.bindings;
  m.isa = isa.name;
  m.generator = "mlir";
  m.schedule = schedule.text();
  for (auto t : kernel.getOps<TensorOp>()) m.operands.push_back(operandOf(t, kernel));
  for (const Number& n : numbers(*problem.spec)) m.scalars.push_back({n.name, n.value});
  m.state = fieldsOf(stateFields(problem));
  m.saved = fieldsOf(savedFields(problem));
  for (auto phase : kernel.getOps<PhaseOp>()) m.phases.push_back(phaseOf(phase, kernel, schedule));
  Traffic steady = trafficOf(kernel), warm = trafficOf(kernel, /*warmup=*/true);
  m.traffic = {steady.reads, steady.writes};
  if (warm.total() != steady.total()) m.warmupTraffic = package::Traffic{warm.reads, warm.writes};
  return m;
}

}  // namespace normc::codegen
