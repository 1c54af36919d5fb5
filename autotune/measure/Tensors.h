// The memory that all contestants of a race share.
#pragma once

#include <cstdint>
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

/// The X-sized tensors and the parameters of one shape, every page touched. x and dy look like
/// activations: about N(0,1), nothing subnormal.
struct Tensors {
  /// `gradients`: dy and dx too.
  Tensors(DType data, int64_t rows, int64_t features, bool gradients);

  DType data, params;
  int64_t rows, features;
  Memory x, y, dy, dx;                ///< rows x features, compact
  Memory scale, bias, dscale, dbias;  ///< features, of type params

  int64_t bytes() const { return rows * features * normc::bytes(data); }
};

/// Writes `count` numbers that look normal; none of them is subnormal.
void fill(Memory&, DType type, int64_t count, uint64_t seed, float mean, float sigma);

/// Writes `values`, rounded, as elements of `type`.
void store(const std::vector<float>& values, DType type, void* to);

}  // namespace normc::measure
