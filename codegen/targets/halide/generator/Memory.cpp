#include "codegen/targets/halide/generator/Memory.h"

#include <algorithm>
#include <cstddef>

#include "runtime/abi/Operands.h"
#include "runtime/abi/kernel.h"

using namespace Halide;
using namespace Halide::Internal;

namespace normc::halide {
namespace {

std::string identifier(std::string name) {
  std::replace(name.begin(), name.end(), '.', '_');
  return name;
}

Type storedType(const std::string& type) {
  if (type == "f32") return Float(32);
  if (type == "f64") return Float(64);
  if (type == "f16") return Float(16);
  if (type == "bf16") return UInt(16);  // its conversions are written out below
  return type == "i64" ? Int(64) : UInt(8);
}

}  // namespace

int64_t bytes(const Tensor& t) { return storedType(t.type).bytes(); }

namespace {

Expr fromBF16(Expr bits) { return reinterpret<float>(cast<uint32_t>(bits) << 16); }

/// Rounds to nearest even, and keeps a NaN.
Expr toBF16(Expr value) {
  Expr bits = reinterpret<uint32_t>(value);
  Expr up = bits + make_const(UInt(32), 0x7fff) + ((bits >> 16) & make_const(UInt(32), 1));
  Expr chosen = select(value == value, up, bits | make_const(UInt(32), 0x400000));
  return cast<uint16_t>(chosen >> 16);
}

constexpr int64_t kWord = 8, kOperandWords = sizeof(normc_operand) / kWord,
                  kCutWords = sizeof(normc_cut) / kWord;
enum CutField { kUnits, kChunkUnits, kChunks };
static_assert(offsetof(normc_kernel_args, operand) == 0 && offsetof(normc_kernel_args, scalar) == 1 * kWord &&
              offsetof(normc_kernel_args, cut) == 2 * kWord &&
              offsetof(normc_kernel_args, segments) == 3 * kWord &&
              offsetof(normc_kernel_args, rows) == 4 * kWord &&
              offsetof(normc_kernel_args, features) == 5 * kWord);
static_assert(offsetof(normc_operand, segment_stride) == 1 * kWord &&
              offsetof(normc_operand, row_stride) == 2 * kWord &&
              offsetof(normc_operand, task_stride) == 3 * kWord);

}  // namespace

Expr rawLoad(const std::string& buffer, Type type, Expr index, Expr there) {
  return Load::make(type, buffer, std::move(index), Buffer<>(), Parameter(), std::move(there),
                    ModulusRemainder());
}
Expr writeCall(const std::vector<Write>& writes, const Exprs& after) {
  Exprs args{static_cast<int>(writes.size())};
  for (const Write& w : writes) {
    args.push_back(w.buffer);
    args.insert(args.end(), {w.index, w.value, w.there});
  }
  args.insert(args.end(), after.begin(), after.end());
  return Call::make(Int(32), kWriteCall, args, Call::Extern);
}
Exprs allFromOld(Exprs values, const Exprs& old) {
  if (values.size() < 2) return values;
  for (Expr& value : values) {
    Exprs args{value};
    args.insert(args.end(), old.begin(), old.end());
    value = Call::make(value.type(), kKeepCall, args, Call::Extern);
  }
  return values;
}
Expr doneCall(const Exprs& values) { return Call::make(Int(32), kDoneCall, values, Call::Extern); }

Memory::Memory(const Kernel& kernel, int phase)
    : kernel_(kernel), phase_(phase), statistics_(kernel.statistics == "f64" ? Float(64) : Float(32)) {}

//===-- Numbers of the task -----------------------------------------------------===//

Expr Memory::bind(const std::string& name, Expr value) {
  auto [at, added] = bound_.try_emplace(name);
  if (added) {
    bindings_.push_back({name, value});
    Type type = value.type();
    Parameter parameter(type, false, 0, name);
    arguments_.emplace_back(name, Argument::InputScalar, type, 0, ArgumentEstimates{});
    at->second = Variable::make(type, name, parameter);
  }
  return at->second;
}
Expr Memory::once(const std::string& name, Expr value) { return bind(name, value); }

/// Returns a 64-bit word of a struct.
Expr Memory::field(const std::string& base, int64_t words) { return rawLoad(base, Int(64), wide(words)); }

static Expr asPointer(Expr word) { return reinterpret(Handle(), cast<uint64_t>(word)); }

Expr Memory::segments() { return kernel_.segmentsAreOne ? wide(1) : bind("segments", field("args", 3)); }
Expr Memory::rows() { return bind("rows", field("args", 4)); }
Expr Memory::features() {
  return kernel_.features ? wide(*kernel_.features) : bind("features", field("args", 5));
}
Expr Memory::task() {
  static constexpr const char* name = "task";  // an argument of the function
  auto [at, added] = bound_.try_emplace(name);
  if (added) {
    arguments_.emplace_back(name, Argument::InputScalar, Int(64), 0, ArgumentEstimates{});
    at->second = Variable::make(Int(64), name, Parameter(Int(64), false, 0, name));
  }
  return at->second;
}
Expr Memory::chunkUnits() {
  bind("cuts", asPointer(field("args", 2)));
  return bind("chunk_units", field("cuts", phase_ * kCutWords + kChunkUnits));
}
Expr Memory::units() { return bind("units", field("cuts", phase_ * kCutWords + kUnits)); }
/// Returns one past the last unit of the task's segment.
Expr Memory::segmentEnd() {
  Expr parts = bind("segment_chunks", max(chunksOfSegment(phase_), wide(1)));
  Expr length = bind("segment_units", units() / max(segments(), wide(1)));
  return bind("segment_end", (task() / parts + wide(1)) * length);
}
Expr Memory::begin() {
  Expr size = chunkUnits();
  if (!phase().bySegment) return bind("begin", task() * size);
  Expr end = segmentEnd();
  return bind("begin", end - bind("segment_units", Expr()) + task() % bind("segment_chunks", Expr()) * size);
}
Expr Memory::end() {
  Expr first = begin();
  return bind("end", min(first + chunkUnits(), phase().bySegment ? segmentEnd() : units()));
}
Expr Memory::chunksOfSegment(int64_t phase) { return chunks(phase) / max(segments(), wide(1)); }
Expr Memory::chunks(int64_t phase) {
  bind("cuts", asPointer(field("args", 2)));
  return bind("chunks_" + std::to_string(phase), field("cuts", phase * kCutWords + kChunks));
}
Expr Memory::groups(const std::string& axis) const {
  return wide(axis == "group" ? kernel_.groups : kernel_.preGroups);
}
Expr Memory::groupWidth(const std::string& axis) {
  const int64_t n = axis == "group" ? kernel_.groups : kernel_.preGroups;
  if (n == 1) return features();
  if (kernel_.features) return wide(*kernel_.features / n);
  return bind(axis + "_width", features() / wide(n));
}
Expr Memory::scalar(const std::string& number) {
  auto at = std::find(kernel_.numbers.begin(), kernel_.numbers.end(), number);
  if (at == kernel_.numbers.end()) throw BadRequest("the kernel has no number '" + number + "'");
  bind("numbers", asPointer(field("args", 1)));
  return bind("number_" + identifier(number),
              rawLoad("numbers", Float(64), wide(at - kernel_.numbers.begin())));
}

//===-- Elements ------------------------------------------------------------------===//

Expr Memory::pointer(const Tensor& t) {
  bind("operands", asPointer(field("args", 0)));
  const int64_t i = &t - kernel_.tensors.data();
  return bind(identifier(t.name), asPointer(field("operands", i * kOperandWords)));
}

std::string Memory::aliasKey(const Tensor& t) const {
  if (t.role == "state_out") return "state_in" + t.name.substr(t.name.find('.'));
  const std::optional<normc::Tensor> tensor = t.role == "tensor" ? tensorNamed(t.name) : std::nullopt;
  return std::string(tensor && infoOf(*tensor).mayBe ? normc::name(*infoOf(*tensor).mayBe) : t.name);
}

/// An output that may be the memory of an input is addressed from that input: one
/// name is one memory to Halide and LLVM, so accesses keep their order.
Memory::Place Memory::place(const Tensor& t) {
  Expr own = pointer(t);
  const std::string key = aliasKey(t);
  const Tensor* base = key == t.name ? nullptr : kernel_.find(key);
  if (!base) return {identifier(t.name), {}};
  Expr distance = reinterpret<int64_t>(own) - reinterpret<int64_t>(pointer(*base));
  return {identifier(base->name), bind(identifier(t.name) + "_distance", distance / wide(bytes(t)))};
}

Expr Memory::index(const Tensor& t, const Coordinates& at) {
  Expr position = wide(0);
  const std::string name = identifier(t.name);
  if (t.strided()) {
    const int64_t first = (&t - kernel_.tensors.data()) * kOperandWords;
    auto stride = [&](const char* which, int64_t word) {
      return bind(name + which, field("operands", first + word));
    };
    pointer(t);
    if (!kernel_.segmentsAreOne) position = at.segment * stride("_segment_stride", 1);
    if (!t.xSized()) return position + at.row;
    const Expr &pitched = kernel_.featuresLast ? at.row : at.feature,
               &unit = kernel_.featuresLast ? at.feature : at.row;
    position = position + pitched * stride("_row_stride", 2);
    if (t.written) position = position + bind(name + "_task_offset", task() * stride("_task_stride", 3));
    return position + unit;
  }
  for (const std::string& axis : t.axes) {
    Expr extent = wide(1), here;
    if (axis == "segment") {
      extent = segments();
      here = at.segment;
    } else if (axis == "row") {
      extent = rows();
      here = at.row;
    } else if (axis == "feature") {
      extent = features();
      here = at.feature;
    } else if (axis == "group") {
      extent = wide(kernel_.groups);
      here = at.group;
    } else if (axis == "window") {
      extent = wide(t.window);
      here = at.window;
    } else
      here = t.chunkPhase() == phase_ ? task() : at.chunk;
    if (!here.defined())
      throw Refusal("'" + t.name + "' has an axis '" + axis + "' that its slab does not have");
    position = is_const_zero(position) ? here : position * extent + here;
  }
  return position;
}

Expr Memory::load(const Tensor& t, const Coordinates& at) {
  Place p = place(t);
  Expr position = index(t, at);
  const bool some = at.there.defined() && expr_uses_var(position, kLane);
  Expr value = rawLoad(p.buffer, storedType(t.type), p.offset.defined() ? position + p.offset : position,
                       some ? at.there : const_true());
  if (t.type == "i8") return value != make_const(UInt(8), 0);
  if (t.type == "i64") return value;
  if (t.type == "bf16") value = fromBF16(value);
  return cast(statistics_, value);
}

Write Memory::write(const Tensor& t, const Coordinates& at, Expr value) {
  Place p = place(t);
  Expr position = index(t, at);
  if (t.type == "bf16") value = toBF16(cast<float>(value));
  // Halide would merge the two casts into one, for which processors have no instruction.
  else if (t.type == "f16")
    value = cast(Float(16), Call::make(Float(32), kKeepCall, {cast<float>(value)}, Call::PureExtern));
  else
    value = cast(storedType(t.type), value);
  auto known = std::find(buffers_.begin(), buffers_.end(), p.buffer);
  const int buffer = static_cast<int>(known - buffers_.begin());
  if (known == buffers_.end()) buffers_.push_back(p.buffer);
  Write write{buffer, p.offset.defined() ? position + p.offset : position, value};
  if (at.there.defined() && expr_uses_var(position, kLane)) write.there = at.there;
  return write;
}

}  // namespace normc::halide
