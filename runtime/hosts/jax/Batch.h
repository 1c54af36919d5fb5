// The buffers of a custom call as tensors of one call of a norm, or of one for each member of a batch: vmap
// puts the same number of dimensions in front of all buffers, of size 1 where a buffer has no batch.
#pragma once

#include <span>
#include <vector>

#include "runtime/hosts/common/Arguments.h"

namespace normc::hosts {

class Batch {
 public:
  Batch(size_t inputs, size_t outputs, DLDevice);

  /// Adds a dense buffer: all inputs first. Two words of 32 bits are a number of 64, which JAX has not by
  /// default: the step of a state.
  void add(void* data, DLDataType, const int64_t* shape, size_t rank);
  /// Takes the dimensions of the batch away from all tensors; `rank` is that of x without them. With `rows`,
  /// a batch of x, and of what has its rows, becomes more rows of one call, or more segments if the norm is
  /// `segmented`. Throws std::invalid_argument if a buffer has another batch than the first output.
  void split(int64_t rank, const Operands* rows, bool segmented);

  std::span<DLTensor> inputs() { return {tensors_.data(), inputs_}; }
  std::span<DLTensor> outputs() { return {tensors_.data() + inputs_, tensors_.size() - inputs_}; }
  /// Returns the number of calls to make.
  int64_t count() const { return count_; }
  /// Makes the tensors those of call `index`.
  void select(int64_t index);

 private:
  static constexpr int kMaxDims = NORMC_MAX_DIMS;
  struct Buffer {
    char* data = nullptr;
    std::array<int64_t, kMaxDims> shape;
    std::array<int64_t, kMaxDims> step = {};  ///< in bytes, along each dimension of the batch
  };
  void strip(size_t at, int lead);
  bool isWhole(size_t at) const;
  bool isSingle(size_t at) const;

  size_t inputs_;
  DLDevice device_;
  std::vector<Buffer> buffers_;
  std::vector<DLTensor> tensors_;
  std::vector<int64_t> batch_;  ///< sizes
  int64_t count_ = 1;
};

}  // namespace normc::hosts
