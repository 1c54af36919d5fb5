// The memory that all contestants of a race share.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "dsl/Problem.h"

namespace normc::measure {

/// Page-aligned memory of the process's own, given back when it goes.
class Memory {
 public:
  Memory() = default;
  explicit Memory(int64_t bytes);
  Memory(Memory&&) noexcept;
  Memory& operator=(Memory&&) noexcept;
  ~Memory();
  void* data() const { return data_; }
  int64_t bytes() const { return bytes_; }

 private:
  void* data_ = nullptr;
  int64_t bytes_ = 0;
};

/// The same content on pages that were taken in an order by `seed`: neighbours in it are none in the machine, as in a
/// process that has run for long. How many pages a core finds without a walk, and how caches share them, depends on it.
Memory scattered(const Memory&, uint64_t seed);

/// The sizes of a tensor like x, and how it lies in memory.
struct Shape {
  int64_t segments = 1, rows = 0, features = 0;
  Layout layout = Layout::FeaturesLast;

  int64_t totalRows() const { return segments * rows; }
  int64_t elements() const { return totalRows() * features; }
  /// "128 x 768", and "32 x 256 x 784, channels first" as it lies in memory.
  std::string text() const;
};

/// The X-sized tensors and the parameters of one shape, every page touched. x and dy look like
/// activations: about N(0,1), nothing subnormal.
struct Tensors {
  /// `gradients`: dy and dx too.
  Tensors(DType data, const Shape&, bool gradients);

  DType data, params;
  Shape shape;
  Memory x, y, dy, dx;                ///< of the shape, compact
  Memory scale, bias, dscale, dbias;  ///< features, of type params

  int64_t bytes() const { return shape.elements() * normc::bytes(data); }
};

/// Writes `count` numbers that look normal; none of them is subnormal.
void fill(Memory&, DType type, int64_t count, uint64_t seed, float mean, float sigma);

/// Writes `values`, rounded, as elements of `type`.
void store(const std::vector<float>& values, DType type, void* to);

}  // namespace normc::measure
