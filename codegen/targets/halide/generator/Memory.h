// The operands of a phase, as a Halide pipeline sees them.
//
// Kernels are called with abi/kernel.h, not with Halide's buffers: 64-bit strides,
// outputs that may be the memory of an input, no metadata. So tensors are raw
// loads, and a write is a call in the value of a Func, which Finish.h turns into a
// store. The arguments of a task (pointers, strides, extents) are
// parameters here, and loads from the argument structs at the top of the function.
#pragma once

#include <Halide.h>

#include <map>
#include <string>
#include <vector>

#include "codegen/targets/halide/generator/Request.h"
#include "runtime/abi/MemoryUnits.h"

namespace normc::halide {

using Halide::Expr;
using Exprs = std::vector<Expr>;

/// Indices of one element along the axes, 64-bit. Axes that a tensor does not have are ignored.
struct Coordinates {
  Expr segment, row, feature, group, window, chunk;
  Expr there;  ///< the lanes whose features exist; undefined: all
};

/// A value to be written; `buffer` is an index of Memory::buffers().
struct Write {
  int buffer;
  Expr index, value;
  Expr there = Halide::Internal::const_true();  ///< lanes that are stored
};

/// A name that the top of the function sets.
struct Binding {
  std::string name;
  Expr value;
};

/// The variable that is vectorised.
inline constexpr const char* kLane = "v";
/// Returns the bytes of an element.
int64_t bytes(const Tensor&);

inline constexpr const char *kWriteCall = "normc.write", *kDoneCall = "normc.done", *kKeepCall = "normc.keep";

class Memory {
 public:
  Memory(const Kernel&, int phase);

  const Kernel& kernel() const { return kernel_; }
  const Phase& phase() const { return kernel_.phases[phase_]; }
  Halide::Type statistics() const { return statistics_; }

  //===-- Numbers of the task, all 64-bit -------------------------------------===//
  Expr segments(), rows(), features(), task();
  Expr begin(), end();  ///< units of this task
  Expr chunks(int64_t phase);
  Expr chunksOfSegment(int64_t phase);  ///< of a phase that is cut by segment
  Expr groups(const std::string& axis) const;
  Expr groupWidth(const std::string& axis);
  Expr scalar(const std::string& number);  ///< f64
  /// Computes `value` once, at the top. It may load memory that does not change during the task.
  Expr once(const std::string& name, Expr value);

  //===-- Elements ------------------------------------------------------------===//
  Expr index(const Tensor&, const Coordinates&);
  /// Returns the element in the statistics type; a mask as a condition, an i64 as it is. If the element
  /// depends on the lane, only lanes that are `there` are loaded, and stored.
  Expr load(const Tensor&, const Coordinates&);
  Write write(const Tensor&, const Coordinates&, Expr value);
  /// Tensors with the same key may share memory.
  std::string aliasKey(const Tensor&) const;

  /// Names of the buffers that are written.
  const std::vector<std::string>& buffers() const { return buffers_; }
  /// In order: each may use the ones before.
  const std::vector<Binding>& bindings() const { return bindings_; }
  const std::vector<Halide::Argument>& arguments() const { return arguments_; }

 private:
  Expr chunkUnits(), units(), segmentEnd();
  Expr bind(const std::string& name, Expr value);
  Expr field(const std::string& base, int64_t words);
  Expr pointer(const Tensor&);
  struct Place {
    std::string buffer;
    Expr offset;  ///< undefined: none
  };
  Place place(const Tensor&);

  const Kernel& kernel_;
  int phase_;
  Halide::Type statistics_;
  std::vector<Binding> bindings_;
  std::vector<std::string> buffers_;
  std::map<std::string, Expr> bound_;
  std::vector<Halide::Argument> arguments_;
};

/// 64-bit indices.
inline Expr wide(int64_t n) { return Halide::Internal::make_const(Halide::Int(64), n); }
inline Expr wide(Expr e) { return Halide::cast<int64_t>(std::move(e)); }

Expr rawLoad(const std::string& buffer, Halide::Type, Expr index,
             Expr there = Halide::Internal::const_true());
/// Returns a call that stands for the writes, in their order. The values of `after` are computed before it.
Expr writeCall(const std::vector<Write>&, const Exprs& after);
/// Returns new values of a Tuple that each mention all old ones. Halide 21 stores an element before
/// another has read its old value, unless the elements depend on each other in a circle.
Exprs allFromOld(Exprs values, const Exprs& old);
/// Returns a value that keeps its arguments alive, and computed before it.
Expr doneCall(const Exprs&);

}  // namespace normc::halide
