#include "runtime/hosts/jax/Batch.h"

#include <algorithm>
#include <stdexcept>

namespace normc::hosts {

Batch::Batch(size_t inputs, size_t outputs, DLDevice device) : inputs_(inputs), device_(device) {
  buffers_.reserve(inputs + outputs);  // tensors point to shapes in it
  tensors_.reserve(inputs + outputs);
}

void Batch::add(void* data, DLDataType type, const int64_t* shape, size_t rank) {
  if (rank > kMaxDims)
    throw std::invalid_argument("an array has " + std::to_string(rank) +
                                " dimensions; a norm takes at most " + std::to_string(kMaxDims));
  Buffer& buffer = buffers_.emplace_back();
  buffer.data = static_cast<char*>(data);
  std::copy_n(shape, rank, buffer.shape.begin());
  DLTensor& tensor = tensors_.emplace_back();
  tensor = {};
  tensor.data = data;
  tensor.device = device_;
  tensor.dtype = type;
  tensor.ndim = int32_t(rank);
  tensor.shape = buffer.shape.data();
}

bool Batch::isWhole(size_t at) const {
  return std::equal(batch_.begin(), batch_.end(), buffers_[at].shape.begin());
}
bool Batch::isSingle(size_t at) const {
  return std::all_of(buffers_[at].shape.begin(), buffers_[at].shape.begin() + batch_.size(),
                     [](int64_t size) { return size == 1; });
}

void Batch::strip(size_t at, int lead) {
  Buffer& buffer = buffers_[at];
  DLTensor& tensor = tensors_[at];
  int64_t step = tensor.dtype.bits / 8;
  for (int i = tensor.ndim; i-- > 0; step *= buffer.shape[i])
    if (i < lead) buffer.step[i] = buffer.shape[i] == 1 ? 0 : step;
  tensor.shape += lead;
  tensor.ndim -= lead;
}

void Batch::split(int64_t rank, const Operands* rows, bool segmented) {
  const int64_t lead = int64_t(tensors_[0].ndim) - rank;
  if (rank < 1 || lead < 0 || tensors_.size() == inputs_)
    throw std::invalid_argument("x has " + std::to_string(tensors_[0].ndim) + " dimensions, not " +
                                std::to_string(rank));
  if (lead > 0) {
    for (const DLTensor& tensor : tensors_)
      if (tensor.ndim < lead) throw std::invalid_argument("an array lacks the dimensions of the batch");
    const auto& shape = buffers_[inputs_].shape;
    batch_.assign(shape.begin(), shape.begin() + lead);
    for (size_t i = 0; i < buffers_.size(); ++i)
      for (int64_t axis = 0; axis < lead; ++axis)
        if (buffers_[i].shape[axis] != 1 && buffers_[i].shape[axis] != batch_[axis])
          throw std::invalid_argument("arrays have batches of different sizes");

    // Scale and bias are those of all rows, and everything else has rows.
    const auto isParameter = [&](size_t i) {
      return rows && i >= rows->firstParameter && i < rows->firstRow;
    };
    bool merged = rows && !rows->sums;
    for (size_t i = 0; i < buffers_.size(); ++i)
      merged = merged && (isParameter(i) ? isSingle(i) : isWhole(i));
    for (size_t i = 0; i < buffers_.size(); ++i) {
      if (!merged || isParameter(i)) {
        strip(i, int(lead));
      } else if (segmented) {
        int64_t segments = 1;
        for (int64_t axis = 0; axis <= lead && axis < tensors_[i].ndim; ++axis)
          segments *= tensors_[i].shape[axis];
        if (tensors_[i].ndim > lead) {
          tensors_[i].shape += lead;
          tensors_[i].ndim -= int32_t(lead);
          tensors_[i].shape[0] = segments;
        }
      }
    }
    if (!merged)
      for (const int64_t size : batch_) count_ *= size;
  }
  for (DLTensor& tensor : tensors_)
    if (tensor.dtype.code == kDLUInt && tensor.dtype.bits == 32 && tensor.ndim == 1 && tensor.shape[0] == 2) {
      tensor.dtype = {kDLInt, 64, 1};
      tensor.ndim = 0;
    }
}

void Batch::select(int64_t index) {
  for (size_t i = 0; i < buffers_.size(); ++i) {
    const Buffer& buffer = buffers_[i];
    char* data = buffer.data;
    int64_t left = index;
    for (size_t axis = batch_.size(); count_ > 1 && axis-- > 0; left /= batch_[axis])
      data += left % batch_[axis] * buffer.step[axis];
    tensors_[i].data = data;
  }
}

}  // namespace normc::hosts
