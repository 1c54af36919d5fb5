#include "codegen/dialect/Norm.h"

#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace normc::codegen;

/// Parses the word of one of `values`.
template <typename Enum>
static FailureOr<Enum> parseWord(AsmParser& parser, std::initializer_list<Enum> values) {
  const auto at = parser.getCurrentLocation();
  StringRef word;
  if (failed(parser.parseKeyword(&word))) return failure();
  for (Enum value : values)
    if (StringRef(name(value)) == word) return value;
  return parser.emitError(at, "expected one of ")
         << llvm::join(llvm::map_range(values, [](Enum value) { return name(value); }), ", ");
}

template <typename Enum>
static void printWord(AsmPrinter& printer, Enum value) {
  printer << StringRef(name(value));
}

#include "codegen/dialect/NormDialect.cpp.inc"
#include "codegen/dialect/NormEnums.cpp.inc"
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

TensorOp KernelOp::tensor(StringRef name) const {
  return cast<TensorOp>(mlir::SymbolTable::lookupSymbolIn(*this, name));
}

SmallVector<TensorOp, 4> KernelOp::tensors(ArrayAttr symbols) const {
  SmallVector<TensorOp, 4> tensors;
  for (auto symbol : symbols.getAsRange<FlatSymbolRefAttr>()) tensors.push_back(tensor(symbol.getValue()));
  return tensors;
}

const normc::TensorInfo* TensorOp::info() {
  const auto tensor = getRole() == package::Role::Tensor ? normc::tensorNamed(getSymName()) : std::nullopt;
  return tensor ? &normc::infoOf(*tensor) : nullptr;
}

LogicalResult TensorOp::verify() {
  if (hasAxis(Axis::Chunk) == getChunkOf().has_value()) return success();
  return emitOpError("must have the axis chunk exactly if it says of which phase");
}

LogicalResult FoldOp::verify() {
  const Axis axis = getAxis();
  if (getOfSegment()) {
    auto slab = getOperation()->getParentOfType<SlabOp>();
    if (axis != Axis::Chunk || !slab || !slab.isPer(Axis::Segment))
      return emitOpError("goes along the chunks of a segment only in a slab that has one");
  }
  if ((axis == Axis::Chunk && getChunkOf() && !getExtent()) ||
      (axis == Axis::Window && getExtent() && !getChunkOf()) ||
      (axis == Axis::Partial && !getExtent() && !getChunkOf() && !getReads().empty()))
    return success();
  return emitOpError("must go along the chunks of a phase, a window of an extent, or partials that it reads");
}

LogicalResult PhaseOp::verify() {
  if (!getBySegment() || (getUnits().size() == 2 && hasUnits(Axis::Segment))) return success();
  return emitOpError("is cut by segment only where its units are those of segments, with another axis");
}

int64_t PhaseOp::number() {
  int64_t n = 0;
  for (auto phase : getOperation()->getParentOfType<KernelOp>().getOps<PhaseOp>()) {
    if (phase == *this) return n;
    ++n;
  }
  return -1;
}

SmallVector<SweepOp, 4> SlabOp::sweeps() {
  SmallVector<SweepOp, 4> all;
  walk([&](SweepOp sweep) { all.push_back(sweep); });
  return all;
}
bool SlabOp::hasSweeps() { return !sweeps().empty(); }
int64_t SlabOp::groups() {
  const Axis axis = groupAxis();
  return isPer(axis) ? getOperation()->getParentOfType<KernelOp>().groupsAlong(axis) : 1;
}
bool SlabOp::isSplit() {
  return isPer(Axis::Row) && !getOperation()->getParentOfType<PhaseOp>().hasUnits(Axis::Row);
}
bool SlabOp::isOfRows() {
  return isPer(Axis::Feature) && getOperation()->getParentOfType<PhaseOp>().hasUnits(Axis::Row) &&
         !getOperation()->getParentOfType<KernelOp>().featuresLast();
}
bool SlabOp::isAcrossChannels() {
  return isPer(Axis::Row) && !isPer(Axis::Feature) &&
         !getOperation()->getParentOfType<KernelOp>().featuresLast();
}

LogicalResult SlabOp::verify() {
  for (Axis axis : getPer())
    if (axis == Axis::Window || axis == Axis::Chunk || axis == Axis::Partial || axis == Axis::Block ||
        axis == Axis::Pair)
      return emitOpError("has no axis '")
             << stringifyAxis(axis) << "'; legal: segment, row, feature, group, pre_group";
  auto kernel = getOperation()->getParentOfType<KernelOp>();
  const SlabKind kind = getKind();
  const bool column = kind == SlabKind::Column, loops = column && !hasSweeps();
  if ((kind == SlabKind::Stream) != getPer().empty())
    return emitOpError("must be a stream exactly if it is per nothing");
  // A column has a statistic for each element along the contiguous axis, a run and a block have one for all.
  if (kernel && kind != SlabKind::Stream && !loops && isPer(kernel.contiguousAxis()) != column)
    return emitOpError("cannot be a ") << stringifySlabKind(kind) << ": the contiguous axis is "
                                       << stringifyAxis(kernel.contiguousAxis());
  return success();
}

LogicalResult BlocksOp::verify() {
  auto slab = cast<SlabOp>(getOperation()->getParentOp());
  auto kernel = getOperation()->getParentOfType<KernelOp>();
  if (slab.getKind() != SlabKind::Run) return emitOpError("must stand in a slab of runs");
  if (!kernel || !kernel.getBlock()) return emitOpError("needs a kernel that has the size of a block");
  return success();
}

SmallVector<StringRef, 2> ProbeOp::tensors() {
  return llvm::map_to_vector<2>(getReads().getAsRange<FlatSymbolRefAttr>(),
                                [](FlatSymbolRefAttr symbol) { return symbol.getValue(); });
}

LogicalResult ProbeOp::verify() {
  auto kernel = getOperation()->getParentOfType<KernelOp>();
  bool xSized = false;
  for (StringRef name : tensors()) {
    auto tensor = kernel ? dyn_cast_or_null<TensorOp>(SymbolTable::lookupSymbolIn(kernel, name)) : TensorOp();
    if (!tensor) return emitOpError("reads @") << name << ", which the kernel does not declare";
    xSized |= tensor.isXSized();
    if (getBody().empty() && !tensor.isXSized())
      return emitOpError("reads @") << name << ", which is not X-sized";
  }
  if (!xSized) return emitOpError("reads no X-sized tensor");
  if (getBody().empty()) {
    if (getReads().size() == 1) return success();
    return emitOpError("reads ") << getReads().size() << " tensors without a region that computes one value";
  }
  Block& body = getBody().front();
  auto yield = body.empty() ? YieldOp() : dyn_cast<YieldOp>(body.back());
  if (!yield || yield.getValues().size() != 1 || body.getNumArguments() != getReads().size())
    return emitOpError("needs a region that takes one element of each tensor and yields one value");
  return success();
}

static bool turnsSome(SweepOp sweep) {
  return sweep.getMates() && sweep->getParentOfType<KernelOp>().getRope()->getTurned();
}

Value SweepOp::isTurned() { return turnsSome(*this) ? getBody().getArguments().back() : Value(); }

LogicalResult SweepOp::verify() {
  auto kernel = getOperation()->getParentOfType<KernelOp>();
  if (!kernel || !getOperation()->getParentOfType<SlabOp>())
    return emitOpError("must stand in a slab of a kernel");
  for (ArrayAttr list : {getReads(), getWrites(), getPartials()})
    for (auto symbol : list.getAsRange<FlatSymbolRefAttr>())
      if (!SymbolTable::lookupSymbolIn(kernel, symbol))
        return emitOpError("names ") << symbol << ", which the kernel does not declare";
  const ArrayAttr mates = getMatesAttr();
  if (mates && !kernel.getRope()) return emitOpError("has mates in a kernel without rope");
  for (Attribute symbol : mates ? mates.getValue() : ArrayRef<Attribute>())
    if (!llvm::is_contained(getReads(), symbol))
      return emitOpError("has the mate ") << symbol << ", which it does not read";
  Block& body = getBody().front();
  const size_t elements = getReads().size() + (mates ? mates.size() : 0);
  const bool flag = turnsSome(*this);
  if (body.getNumArguments() != elements + flag)
    return emitOpError("reads ") << elements << " elements" << (flag ? " and whether each is turned" : "")
                                 << " but its region takes " << body.getNumArguments();
  auto yield = dyn_cast<YieldOp>(body.getTerminator());
  if (!yield) return emitOpError("must end in norm.yield");
  size_t wanted = getWrites().size() + getSums().size() + getPartials().size();
  if (yield.getValues().size() != wanted)
    return emitOpError("must yield ")
           << wanted << " values (writes, sums, partials), not " << yield.getValues().size();
  if (!getCombiners()) return success();
  const size_t reductions = getSums().size() + getPartials().size();
  if (getCombiners()->size() != reductions)
    return emitOpError("must have ") << reductions << " combiners (sums, partials), not "
                                     << getCombiners()->size();
  for (auto [symbol, combiner] : llvm::zip(getPartials(), getCombiners()->drop_front(getSums().size())))
    if (combiner != Combiner::Add)
      return emitOpError("cannot reduce ") << symbol << " by " << stringifyCombiner(combiner)
                                           << ": partials are added to a workspace that is cleared to 0";
  return success();
}
