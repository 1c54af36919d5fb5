// The operands of a phase, as a Halide pipeline sees them.
//
// Kernels are called with abi/kernel.h, not with Halide's buffers: 64-bit strides,
// outputs that may be the memory of an input, no metadata. So tensors are raw
// loads, and a write is a call in the value of a Func that Finish.h turns into the
// store it stands for. What a task is told (pointers, strides, extents) are
// parameters here and loads from the argument structs at the top of the function.
#pragma once

#include <Halide.h>

#include <map>
#include <set>
#include <string>
#include <vector>

#include "codegen/targets/halide/generator/Request.h"
#include "runtime/abi/Numbers.h"

namespace normc::halide {

using Halide::Expr;
using Exprs = std::vector<Expr>;

/// Indices of one element along the axes, 64-bit; what a tensor does not have is ignored.
struct Coordinates {
  Expr segment, row, feature, group, window, chunk;
  Expr there;  ///< of features in lanes: which of them are; undefined: all
};

/// A value on its way to memory; `buffer` is an index of Memory::buffers().
struct Write {
  int buffer;
  Expr index, value;
  Expr past = 0;  ///< whether vectors of it may go past the caches
  Expr there = Halide::Internal::const_true();  ///< lanes that are stored
};

/// A name that is set at the top of the function.
struct Binding {
  std::string name;
  Expr value;
};

/// The variable of vectors.
inline constexpr const char* kLane = "v";
/// Bytes that leave a core together.
inline constexpr int64_t kLine = 64;
/// Of an element.
int64_t bytes(const Tensor&);

inline constexpr const char *kWriteCall = "normc.write", *kDoneCall = "normc.done", *kKeepCall = "normc.keep";
/// Functions that nobody defines: stores of vectors between (past) and () may go past the caches. Halide 21
/// has no such store, nor a call that takes a vector; the caller makes it
/// (codegen/targets/halide/Streaming.h).
inline constexpr const char *kPastCall = "normc_past", *kPastEndCall = "normc_past_end";

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
  Expr groups(const std::string& axis) const;
  Expr groupWidth(const std::string& axis);
  Expr scalar(const std::string& number);  ///< f64
  /// 1 where x has `large_bytes` or more, else 0: the order of sums depends on it.
  Expr large();
  /// Whether what the phase writes goes past the caches: it has `stream_bytes` or more and begins at lines.
  Expr past();
  /// `value` computed once, at the top; it may load what does not change during the task.
  Expr once(const std::string& name, Expr value);

  //===-- Elements ------------------------------------------------------------===//
  Expr index(const Tensor&, const Coordinates&);
  /// In the statistics type; a mask as a condition, an i64 as it is. Where the element depends on the lane
  /// only lanes that are `there` are loaded, and stored.
  Expr load(const Tensor&, const Coordinates&);
  Write write(const Tensor&, const Coordinates&, Expr value);
  /// Tensors with the same key may share memory.
  std::string aliasKey(const Tensor&) const;

  /// Names of what is written.
  const std::vector<std::string>& buffers() const { return buffers_; }
  /// In order; each may use the ones before.
  const std::vector<Binding>& bindings() const { return bindings_; }
  const std::vector<Halide::Argument>& arguments() const { return arguments_; }

 private:
  Expr bytesReach(std::string_view number);
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
/// Stands for the writes, in their order; what it comes `after` is computed before.
Expr writeCall(const std::vector<Write>&, const Exprs& after);
/// New values of a Tuple that each mention all old ones. Halide 21 stores an element before
/// another has read its old value, unless they depend on each other in a circle.
Exprs allFromOld(Exprs values, const Exprs& old);
/// A value that only keeps what it names alive and before.
Expr doneCall(const Exprs&);

}  // namespace normc::halide
