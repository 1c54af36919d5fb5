#include "codegen/dialect/Norm.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace normc::codegen;

#include "codegen/dialect/NormDialect.cpp.inc"
#define GET_ATTRDEF_CLASSES
#include "codegen/dialect/NormAttrs.cpp.inc"
#define GET_OP_CLASSES
#include "codegen/dialect/NormOps.cpp.inc"

void NormDialect::initialize() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "codegen/dialect/NormAttrs.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "codegen/dialect/NormOps.cpp.inc"
      >();
}

static bool contains(ArrayAttr names, StringRef name) {
  return llvm::any_of(names.getAsValueRange<StringAttr>(), [&](StringRef n) { return n == name; });
}

bool TensorOp::hasAxis(StringRef axis) { return contains(getAxes(), axis); }

const normc::TensorInfo* TensorOp::info() {
  const auto tensor = getRole() == "tensor" ? normc::tensorNamed(getSymName()) : std::nullopt;
  return tensor ? &normc::infoOf(*tensor) : nullptr;
}

int64_t TensorOp::chunkPhase() {
  for (StringRef axis : getAxes().getAsValueRange<StringAttr>()) {
    int64_t phase;
    if (axis.consume_front("chunk.") && !axis.getAsInteger(10, phase)) return phase;
  }
  return -1;
}

int64_t PhaseOp::number() {
  int64_t n = 0;
  for (auto phase : getOperation()->getParentOfType<KernelOp>().getOps<PhaseOp>()) {
    if (phase == *this) return n;
    ++n;
  }
  return -1;
}

bool SlabOp::isPer(StringRef axis) { return contains(getPer(), axis); }
bool SlabOp::hasSweeps() { return !getBody().getOps<SweepOp>().empty(); }

LogicalResult SlabOp::verify() {
  static constexpr StringRef known[] = {"segment", "row", "feature", "group", "pre_group"};
  for (StringRef axis : getPer().getAsValueRange<StringAttr>())
    if (!llvm::is_contained(known, axis))
      return emitOpError("has no axis '") << axis << "'; legal: segment, row, feature, group, pre_group";
  return success();
}

LogicalResult SweepOp::verify() {
  auto kernel = getOperation()->getParentOfType<KernelOp>();
  if (!kernel || !getOperation()->getParentOfType<SlabOp>())
    return emitOpError("must stand in a slab of a kernel");
  for (ArrayAttr list : {getReads(), getWrites(), getPartials()})
    for (auto symbol : list.getAsRange<FlatSymbolRefAttr>())
      if (!SymbolTable::lookupSymbolIn(kernel, symbol))
        return emitOpError("names ") << symbol << ", which the kernel does not declare";
  Block& body = getBody().front();
  if (body.getNumArguments() != getReads().size())
    return emitOpError("reads ") << getReads().size() << " tensors but its region takes "
                                 << body.getNumArguments() << " elements";
  auto yield = dyn_cast<YieldOp>(body.getTerminator());
  if (!yield) return emitOpError("must end in norm.yield");
  size_t wanted = getWrites().size() + getSums().size() + getPartials().size();
  if (yield.getValues().size() != wanted)
    return emitOpError("must yield ")
           << wanted << " values (writes, sums, partials), not " << yield.getValues().size();
  return success();
}
