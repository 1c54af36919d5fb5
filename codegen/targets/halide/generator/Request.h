// The request of normc-halide-gen: a planned kernel, a schedule and a target, as
// JSON on standard input (docs/halide.md has the schema).
//
// This is the norm dialect without MLIR: the two programs bring different LLVMs and
// share nothing but text. Names and meaning of operations are those of
// codegen/dialect/NormOps.td; values are numbered.
#pragma once

#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "codegen/targets/halide/generator/Protocol.h"

namespace normc::halide {

/// The request is at fault; what() says where and why.
struct BadRequest : std::runtime_error {
  using std::runtime_error::runtime_error;
};
/// The request is valid, but this generator cannot express it.
struct Refusal : std::runtime_error {
  using std::runtime_error::runtime_error;
};

struct Tensor {
  std::string name, type;  ///< f32, f64, f16, bf16, i64, i8
  std::vector<std::string> axes;
  std::string role;
  bool written = false;  ///< an output, whose task stride counts
  int64_t window = 0;
  bool has(const std::string& axis) const;
  bool xSized() const { return has("row") && has("feature"); }
  bool strided() const { return role == "tensor" && has("row"); }
  int chunkPhase() const;  ///< N of the axis `chunk.N`, or -1
};

/// Where the contiguous axis of a slab is, as the planner decided (codegen/dialect/NormOps.td).
enum class Kind { Run, Block, Column, Stream };

/// How the terms of a reduction become one value (codegen/dialect/NormDialect.td).
enum class Combiner { Add, Max };

/// Any operation. Its name decides which fields are used.
struct Op {
  std::string name;              ///< "addf", "load", "sweep", ...
  std::vector<int> in, out;      ///< values
  std::string type;              ///< of the result
  std::string text;              ///< a tensor, a predicate, a scope, an axis, a number's name
  double number = 0;             ///< of a constant of floating point
  int64_t integer = 0;           ///< of another; the extent of a fold
  int64_t head = 0;              ///< of a slab or a count; 0: none
  bool contract = false;         ///< may be fused with what follows
  bool inSegment = false;        ///< a fold along the chunks of the slab's segment
  int condition = -1;            ///< of a sweep
  int window = -1;               ///< position of a load or a store along the window
  Kind kind = Kind::Stream;      ///< of a slab
  std::vector<std::string> per;  ///< of a slab
  std::vector<std::string> reads, writes, partials;
  std::vector<Combiner> combiners;  ///< of a sweep's sums and partials
  std::vector<int> args, yield;     ///< of the region
  std::vector<Op> body;
  bool isPer(const std::string& axis) const;
};

struct Phase {
  std::string name;
  std::vector<std::string> units;
  bool bySegment = false;  ///< no task has units of two segments
  std::vector<Op> body;
};

struct Kernel {
  std::string symbol, problem;
  bool featuresLast = true, segmentsAreOne = true;
  std::string statistics;
  int64_t groups = 1, preGroups = 1;
  std::optional<int64_t> features;
  std::vector<std::string> numbers;
  std::vector<Tensor> tensors;
  std::vector<Phase> phases;
  bool hasMask() const { return find("mask"); }
  const Tensor* find(const std::string& name) const;
  const Tensor& tensor(const std::string& name) const;
};

/// The knobs, as the caller prints them (codegen/targets/halide/Schedule.h).
struct Schedule {
  int64_t vector = 8, rows = 4, unroll = 1, tile = 2, columns = 1024;
  bool scalarTail = false;  ///< the rest of a run element by element
};

struct Request {
  std::string target;  ///< x86-64-v3, x86-64-v4, aarch64
  std::string emit;    ///< object, halide, stmt, asm
  Schedule schedule;
  Kernel kernel;
  /// Count traffic for a shape: segments, rows, features. Empty: do not.
  std::vector<int> count;
};

/// Throws BadRequest.
Request parseRequest(const std::string& text);

}  // namespace normc::halide
