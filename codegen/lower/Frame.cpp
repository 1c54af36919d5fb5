#include "codegen/lower/Frame.h"

#include "llvm/ADT/STLExtras.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;

namespace normc::codegen {

/// The type of a tensor's elements in memory.
static Type stored(TensorOp t) {
  return t.getType().isBF16() ? IntegerType::get(t.getContext(), 16) : t.getType();
}

Parameters::Parameters(KernelOp kernel) {
  Builder b(kernel.getContext());
  for (auto t : kernel.getOps<TensorOp>()) {
    tensors.push_back(t);
    if (isStrided(t)) strided.push_back(t);
    types.push_back(MemRefType::get({}, stored(t)));
  }
  stridesBegin = types.size();
  types.append(3 * strided.size(), b.getIndexType());
  extentsBegin = types.size();
  types.append(3, b.getIndexType());
  scalars = types.size();
  types.push_back(MemRefType::get({}, b.getF64Type()));
  cuts = types.size();
  types.push_back(MemRefType::get({}, b.getI64Type()));
  task = types.size();
  types.push_back(b.getIndexType());
}

static Value flat(Loops& l, Value pointer, Type element) {
  auto type = MemRefType::get({ShapedType::kDynamic}, element);
  Value size = l.index(int64_t(1) << 60);
  return memref::ReinterpretCastOp::create(l.b, l.loc, type, pointer, OpFoldResult(l.b.getIndexAttr(0)),
                                           ArrayRef<OpFoldResult>{size},
                                           ArrayRef<OpFoldResult>{l.b.getIndexAttr(1)});
}

Frame::Frame(Loops& loops, KernelOp kernel, PhaseOp phase, func::FuncOp function)
    : l_(loops), kernel_(kernel), phase_(phase), function_(function), parameters_(kernel),
      featuresLast_(kernel.featuresLast()), statistics_(kernel.getStatistics()) {
  segments_ = kernel.getSegmentsAreOne() ? l_.index(1) : Value(function.getArgument(parameters_.extentsBegin));
  rows_ = function.getArgument(parameters_.extentsBegin + 1);
  features_ = kernel.getFeatures() ? l_.index(*kernel.getFeatures())
                                   : Value(function.getArgument(parameters_.extentsBegin + 2));
  task_ = function.getArgument(parameters_.task);
  scalars_ = flat(l_, function.getArgument(parameters_.scalars), l_.b.getF64Type());
  cuts_ = flat(l_, function.getArgument(parameters_.cuts), l_.b.getI64Type());
  for (auto [i, t] : llvm::enumerate(parameters_.tensors))
    buffers_[t.getSymName()] = flat(l_, function.getArgument(i), stored(t));
}

int64_t Frame::groups(StringRef axis) {
  return axis == "group" ? kernel_.getGroups() : kernel_.getPreGroups();
}
Value Frame::groupWidth(StringRef axis) { return l_.div(features_, l_.index(groups(axis))); }

Value Frame::scalar(StringRef number) {
  auto names = kernel_.getNumbers().getAsValueRange<StringAttr>();
  auto at = llvm::find(names, number);
  assert(at != names.end() && "the spec has no such number");
  return memref::LoadOp::create(l_.b, l_.loc, scalars_, l_.index(std::distance(names.begin(), at)));
}

Value Frame::chunks(int64_t phase) {
  Value n = memref::LoadOp::create(l_.b, l_.loc, cuts_, l_.index(3 * phase + 2));
  return arith::IndexCastOp::create(l_.b, l_.loc, l_.b.getIndexType(), n);
}

std::pair<Value, Value> Frame::range() {
  auto cut = [&](int64_t field) -> Value {
    Value n = memref::LoadOp::create(l_.b, l_.loc, cuts_, l_.index(3 * phase_.number() + field));
    return arith::IndexCastOp::create(l_.b, l_.loc, l_.b.getIndexType(), n);
  };
  Value units = cut(0), size = cut(1);
  Value begin = l_.mul(task_, size);
  return {begin, l_.min(l_.add(begin, size), units)};
}

Value Frame::laneMask(Value count, int64_t lanes) {
  if (auto features = kernel_.getFeatures()) {
    Value argument = function_.getArgument(parameters_.extentsBegin + 2);
    count = l_.add(count, l_.sub(argument, l_.index(*features)));
  }
  return l_.laneMask(count, lanes);
}

TensorOp Frame::tensor(StringRef name) {
  return cast<TensorOp>(SymbolTable::lookupSymbolIn(kernel_, name));
}

Value Frame::address(TensorOp t, const Coordinates& at) {
  if (Parameters::isStrided(t)) {
    unsigned i = llvm::find(parameters_.strided, t) - parameters_.strided.begin();
    auto stride = [&](unsigned k) -> Value { return function_.getArgument(parameters_.stridesBegin + 3 * i + k); };
    Value position = kernel_.getSegmentsAreOne() ? l_.index(0) : l_.mul(at.segment, stride(0));
    if (!t.isXSized()) return l_.add(position, at.row);
    Value pitched = featuresLast_ ? at.row : at.feature, unit = featuresLast_ ? at.feature : at.row;
    position = l_.add(position, l_.mul(pitched, stride(1)));
    if (t.getAccess() == "write") position = l_.add(position, l_.mul(task_, stride(2)));
    return l_.add(position, unit);
  }
  Value position = l_.index(0);
  for (StringRef axis : t.getAxes().getAsValueRange<StringAttr>()) {
    Value extent, here;
    if (axis == "segment") extent = segments_, here = at.segment;
    else if (axis == "row") extent = rows_, here = at.row;
    else if (axis == "feature") extent = features_, here = at.feature;
    else if (axis == "group") extent = l_.index(kernel_.getGroups()), here = at.group;
    else if (axis == "window") extent = l_.index(t.getWindow()), here = at.window;
    else extent = l_.index(1), here = t.chunkPhase() == phase_.number() ? task_ : at.chunk;  // always the first axis
    assert(here && "a coordinate that this slab does not have");
    position = l_.add(l_.mul(position, extent), here);
  }
  return position;
}

Value Frame::load(TensorOp t, Value address, int64_t lanes, Value mask) {
  OpBuilder& b = l_.b;
  Value buffer = buffers_[t.getSymName()];
  Type element = stored(t);
  Value value;
  if (!lanes) {
    value = memref::LoadOp::create(b, l_.loc, buffer, address);
  } else {
    auto type = VectorType::get({lanes}, element);
    if (mask) {
      Value none = arith::ConstantOp::create(b, l_.loc, b.getZeroAttr(type));
      value = vector::MaskedLoadOp::create(b, l_.loc, type, buffer, address, mask, none);
    } else {
      value = vector::LoadOp::create(b, l_.loc, type, buffer, ValueRange{address});
    }
  }
  if (element.isInteger(8)) {
    Value none = arith::ConstantOp::create(b, l_.loc, b.getZeroAttr(value.getType()));
    return arith::CmpIOp::create(b, l_.loc, arith::CmpIPredicate::ne, value, none);
  }
  if (t.getType().isBF16()) return l_.fromBF16(value, statistics_);
  return element.isInteger(64) ? value : l_.convert(value, statistics_);
}

void Frame::store(TensorOp t, Value address, Value value, Value mask) {
  OpBuilder& b = l_.b;
  Value buffer = buffers_[t.getSymName()];
  if (t.getType().isBF16()) value = l_.toBF16(value);
  else if (!t.getType().isInteger(64)) value = l_.convert(value, t.getType());
  if (!isa<VectorType>(value.getType())) {
    memref::StoreOp::create(b, l_.loc, value, buffer, address);
  } else if (mask) {
    vector::MaskedStoreOp::create(b, l_.loc, buffer, ValueRange{address}, mask, value);
  } else {
    vector::StoreOp::create(b, l_.loc, value, buffer, ValueRange{address});
  }
}

}  // namespace normc::codegen
