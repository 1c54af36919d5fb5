#include "codegen/lower/AccessLowering.h"

#include "codegen/lower/Codes.h"
#include "llvm/ADT/STLExtras.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "runtime/abi/MemoryUnits.h"

using namespace mlir;

namespace normc::codegen {

Type Access::stored(TensorOp t) const {
  if (isQuantized(t)) return IntegerType::get(t.getContext(), 8);
  return t.getType().isBF16() && !conversions ? IntegerType::get(t.getContext(), 16) : t.getType();
}

llvm::MaybeAlign Access::alignmentOf(TensorOp t, VectorType type) const {
  if (isPacked(t)) return {};
  return llvm::MaybeAlign(
      std::min<int64_t>(alignment, type.getNumElements() * type.getElementTypeBitWidth() / 8));
}

// y may be in the memory of x, dx in that of dy, and state_out in that of state_in.
bool isUnshared(TensorOp t) {
  if (t.getRole() == package::Role::StateIn || t.getRole() == package::Role::StateOut) return false;
  const TensorInfo* info = t.info();
  auto kernel = t->getParentOfType<KernelOp>();
  auto shared = [&](const TensorInfo& of) { return mayShare(of.tensor, bool(kernel.getRope())); };
  return !info || (!shared(*info) && llvm::none_of(kernel.getOps<TensorOp>(), [&](TensorOp other) {
    return other.info() && shared(*other.info()) == info->tensor;
  }));
}

AccessLowering::AccessLowering(Loops& loops, KernelOp kernel, PhaseOp phase, Arguments arguments,
                               Access access)
    : l_(loops),
      kernel_(kernel),
      phase_(phase),
      arguments_(std::move(arguments)),
      access_(access),
      tensors_(kernel.getOps<TensorOp>()),
      featuresLast_(kernel.featuresLast()),
      statistics_(kernel.getStatistics()) {
  llvm::copy_if(tensors_, std::back_inserter(strided_), isStrided);
  segments_ = kernel.getSegmentsAreOne() ? l_.index(1) : arguments_.segments;
  features_ = kernel.getFeatures() ? l_.index(*kernel.getFeatures()) : arguments_.features;
}

Value AccessLowering::pointer(TensorOp t) {
  return arguments_.pointers[llvm::find(tensors_, t) - tensors_.begin()];
}

static Value elementBytes(Loops& l, TensorOp t) { return l.index(elementBytes(t.getType())); }

Value AccessLowering::bytesOf(TensorOp t) {
  return l_.mul(l_.mul(l_.mul(rows(), features_), segments_), elementBytes(l_, t));
}

Value AccessLowering::isAligned(TensorOp t, int64_t alignment) {
  const Arguments::Strides& stride = stridesOf(t);
  Value all = memref::ExtractAlignedPointerAsIndexOp::create(l_.b, l_.loc, pointer(t));
  // The address and both strides, or-ed: every row is aligned if none of them has a low bit set.
  for (Value s : {stride.segment, stride.row})
    all = arith::OrIOp::create(l_.b, l_.loc, all, l_.mul(s, elementBytes(l_, t)));
  Value odd = arith::AndIOp::create(l_.b, l_.loc, all, l_.index(alignment - 1));
  Value aligned = arith::CmpIOp::create(l_.b, l_.loc, arith::CmpIPredicate::eq, odd, l_.index(0));
  return arith::AndIOp::create(l_.b, l_.loc, aligned, l_.less(l_.index(0), stride.row));
}

Value AccessLowering::beginAlike(TensorOp a, TensorOp b, int64_t alignment) {
  const auto first = [&](TensorOp t) -> Value {
    return memref::ExtractAlignedPointerAsIndexOp::create(l_.b, l_.loc, pointer(t));
  };
  Value all = l_.sub(first(a), first(b));
  for (Value Arguments::Strides::* stride : {&Arguments::Strides::segment, &Arguments::Strides::row}) {
    Value apart = l_.sub(stridesOf(a).*stride, stridesOf(b).*stride);
    all = arith::OrIOp::create(l_.b, l_.loc, all, l_.mul(apart, elementBytes(l_, a)));
  }
  Value odd = arith::AndIOp::create(l_.b, l_.loc, all, l_.index(alignment - 1));
  return arith::CmpIOp::create(l_.b, l_.loc, arith::CmpIPredicate::eq, odd, l_.index(0));
}

Value AccessLowering::isDense(TensorOp t) {
  const Arguments::Strides& stride = stridesOf(t);
  return arith::CmpIOp::create(l_.b, l_.loc, arith::CmpIPredicate::eq, stride.row,
                               featuresLast_ ? features_ : rows());
}

Value AccessLowering::addressOf(TensorOp t, Value element) {
  Value first = memref::ExtractAlignedPointerAsIndexOp::create(l_.b, l_.loc, pointer(t));
  return l_.add(first, l_.mul(element, elementBytes(l_, t)));
}

// A view of unknown length, made once, at the beginning of the function.
Value AccessLowering::buffer(TensorOp t) {
  Value& buffer = buffers_[t.getSymName()];
  if (!buffer) {
    OpBuilder::InsertionGuard guard(l_.b);
    Value base = pointer(t);
    l_.b.setInsertionPointToStart(cast<BlockArgument>(base).getOwner());
    auto type = MemRefType::get({ShapedType::kDynamic}, access_.stored(t));
    buffer = memref::ReinterpretCastOp::create(l_.b, l_.loc, type, base, OpFoldResult(l_.b.getIndexAttr(0)),
                                               ArrayRef<OpFoldResult>{l_.b.getIndexAttr(int64_t(1) << 60)},
                                               ArrayRef<OpFoldResult>{l_.b.getIndexAttr(1)});
  }
  return buffer;
}

Value AccessLowering::groupWidth(Axis axis) { return l_.div(features_, l_.index(groups(axis))); }
Value AccessLowering::blockWidth() { return kernel_.getBlock() ? l_.index(*kernel_.getBlock()) : features_; }

Value AccessLowering::scalar(StringRef number) {
  auto names = kernel_.getNumbers().getAsValueRange<StringAttr>();
  auto at = llvm::find(names, number);
  assert(at != names.end() && "the spec has no such number");
  return arguments_.scalar(std::distance(names.begin(), at));
}

Value AccessLowering::chunks(int64_t phase) { return arguments_.cut(phase, Arguments::Chunks); }

Value AccessLowering::units() { return arguments_.cut(phase_.number(), Arguments::Units); }
Value AccessLowering::chunkUnits() { return arguments_.cut(phase_.number(), Arguments::ChunkUnits); }

std::pair<Value, Value> AccessLowering::range() {
  Value size = chunkUnits();
  if (phase_.getBySegment()) {
    Value one = l_.index(1);
    Value parts = l_.max(chunksOfSegment(phase_.number()), one), segment = l_.div(task(), parts);
    Value length = l_.div(units(), l_.max(segments_, one)), first = l_.mul(segment, length);
    Value begin = l_.add(first, l_.mul(l_.rem(task(), parts), size));
    const Value end = l_.min(l_.add(first, length), units());  // a GPU may have tasks without units
    return {begin, l_.min(l_.add(begin, size), end)};
  }
  Value begin = l_.mul(task(), size);
  return {begin, l_.min(l_.add(begin, size), units())};
}

Value AccessLowering::chunksOfSegment(int64_t phase) {
  return l_.div(chunks(phase), l_.max(segments_, l_.index(1)));
}

Value AccessLowering::laneMask(Value count, int64_t lanes) {
  // Adds 0, which only the run time knows. In a loop over blocks LLVM knows that there are features.
  if (auto features = kernel_.getFeatures())
    count = l_.add(count, l_.sub(arguments_.features, l_.index(*features)));
  else if (kernel_.getBlock())
    count = l_.add(count, l_.min(task(), l_.index(0)));
  return l_.laneMask(count, lanes);
}

// The strides of a partial have a meaning of their own (runtime/abi/kernel.h).
Value AccessLowering::partials(TensorOp t) { return stridesOf(t).segment; }

Value AccessLowering::address(TensorOp t, const Coordinates& at) {
  if (isStrided(t)) {
    const Arguments::Strides& stride = stridesOf(t);
    if (t.hasAxis(Axis::Partial)) {
      Value first = l_.mul(at.partial, stride.row);
      return t.hasAxis(Axis::Feature) ? l_.add(first, at.feature) : first;
    }
    Value position = kernel_.getSegmentsAreOne() ? l_.index(0) : l_.mul(at.segment, stride.segment);
    if (t.hasAxis(Axis::Pair)) return l_.add(l_.add(position, l_.mul(at.row, stride.row)), at.pair);
    if (!t.isXSized()) return l_.add(position, at.row);
    Value pitched = featuresLast_ ? at.row : at.feature, unit = featuresLast_ ? at.feature : at.row;
    // The features of a step are a number apart, whose distance is computed once, outside of loops.
    if (auto sum = pitched.getDefiningOp<arith::AddIOp>();
        sum && !featuresLast_ && Loops::constant(sum.getRhs())) {
      position = l_.add(position, l_.mul(sum.getRhs(), stride.row));
      pitched = sum.getLhs();
    }
    position = l_.add(position, l_.mul(pitched, stride.row));
    // An output that the caller leaves out has scratch for each task.
    if (t.getAccess() == package::Access::Write && stride.task)
      position = l_.add(position, l_.mul(task(), stride.task));
    return l_.add(position, unit);
  }
  Value position = l_.index(0);
  auto extentAndIndex = [&](Axis axis) -> std::pair<Value, Value> {
    switch (axis) {
      case Axis::Segment:
        return {segments_, at.segment};
      case Axis::Row:
        return {rows(), at.row};
      case Axis::Feature:
        return {features_, at.feature};
      case Axis::Group:
      case Axis::PreGroup:
        return {l_.index(groups(axis)), at.group};
      case Axis::Window:
        return {l_.index(t.getWindow()), at.window};
      case Axis::Block:
        return {l_.div(features_, blockWidth()), kernel_.getBlock() ? at.block : l_.index(0)};
      case Axis::Partial:  // these have strides
      case Axis::Pair:
        break;
      case Axis::Chunk:  // always the first axis
        return {l_.index(1), t.chunkPhase() == phase_.number() ? task() : at.chunk};
    }
    llvm_unreachable("axis");
  };
  for (Axis axis : t.getAxes()) {
    const auto [extent, here] = extentAndIndex(axis);
    assert(here && "a coordinate that this slab does not have");
    position = l_.add(l_.mul(position, extent), here);
  }
  return position;
}

Value AccessLowering::loadStored(TensorOp t, Value address, int64_t lanes, std::optional<int64_t> alignment) {
  Value memory = buffer(t);
  if (!lanes) return memref::LoadOp::create(l_.b, l_.loc, memory, address);
  auto type = VectorType::get({lanes}, access_.stored(t));
  return vector::LoadOp::create(l_.b, l_.loc, type, memory, ValueRange{address}, nonTemporal_.contains(t),
                                alignment ? llvm::MaybeAlign(*alignment) : access_.alignmentOf(t, type));
}

Value AccessLowering::widened(TensorOp t, Value value) {
  OpBuilder& b = l_.b;
  Type element = access_.stored(t);
  if (element.isInteger(8)) {
    Value none = arith::ConstantOp::create(b, l_.loc, b.getZeroAttr(value.getType()));
    return arith::CmpIOp::create(b, l_.loc, arith::CmpIPredicate::ne, value, none);
  }
  if (element.isInteger(16)) return l_.fromBF16(value, statistics_);
  return element.isInteger(64) || t.hasAxis(Axis::Partial) ? value : l_.convert(value, statistics_);
}

Value AccessLowering::narrowed(TensorOp t, Value value) {
  if (isQuantized(t)) return quantized(l_, t.getType(), value, access_.conversions);
  if (access_.stored(t).isInteger(16)) return l_.toBF16(value);
  return t.getType().isInteger(64) ? value : l_.convert(value, t.getType());
}

Value AccessLowering::load(TensorOp t, Value address, int64_t lanes, Value mask) {
  if (!lanes || !mask) return widened(t, loadStored(t, address, lanes));
  OpBuilder& b = l_.b;
  auto type = VectorType::get({lanes}, access_.stored(t));
  Value none = arith::ConstantOp::create(b, l_.loc, b.getZeroAttr(type));
  return widened(t, vector::MaskedLoadOp::create(b, l_.loc, type, buffer(t), address, mask, none));
}

Value AccessLowering::gather(TensorOp t, Value address, Value offsets, Value mask) {
  OpBuilder& b = l_.b;
  const int64_t lanes = cast<VectorType>(offsets.getType()).getDimSize(0);
  auto type = VectorType::get({lanes}, access_.stored(t));
  if (!mask) mask = l_.laneMask(l_.index(lanes), lanes);
  Value none = arith::ConstantOp::create(b, l_.loc, b.getZeroAttr(type));
  return widened(
      t, vector::GatherOp::create(b, l_.loc, type, buffer(t), ValueRange{address}, offsets, mask, none));
}

void AccessLowering::store(TensorOp t, Value address, Value value, Value mask,
                           std::optional<int64_t> alignment, bool nonTemporal) {
  value = narrowed(t, value);
  if (mask && isa<VectorType>(value.getType()))
    vector::MaskedStoreOp::create(l_.b, l_.loc, buffer(t), ValueRange{address}, mask, value);
  else
    storeStored(t, address, value, alignment, nonTemporal);
}

void AccessLowering::storeStored(TensorOp t, Value address, Value value, std::optional<int64_t> alignment,
                                 bool nonTemporal) {
  OpBuilder& b = l_.b;
  Value memory = buffer(t);
  if (!isa<VectorType>(value.getType())) {
    memref::StoreOp::create(b, l_.loc, value, memory, address);
  } else {
    auto type = cast<VectorType>(value.getType());
    if (nonTemporal)
      alignment = std::min<int64_t>(type.getNumElements() * type.getElementTypeBitWidth() / 8, kCacheLine);
    vector::StoreOp::create(b, l_.loc, value, memory, ValueRange{address},
                            nonTemporal || nonTemporal_.contains(t),
                            alignment ? llvm::MaybeAlign(*alignment) : access_.alignmentOf(t, type));
  }
}

void AccessLowering::prefetch(TensorOp t, Value address, bool nonTemporal) {
  constexpr unsigned kNonTemporal = 0, kSecondLevel = 2;
  memref::PrefetchOp::create(l_.b, l_.loc, buffer(t), ValueRange{address}, /*isWrite=*/false,
                             nonTemporal ? kNonTemporal : kSecondLevel, /*isDataCache=*/true);
}

}  // namespace normc::codegen
