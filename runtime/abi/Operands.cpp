#include "runtime/abi/Operands.h"

namespace normc {

std::vector<Tensor> operandsOf(Entry entry, const Has& has) {
  std::vector<Tensor> tensors;
  for (const TensorInfo& each : kTensorTable)
    if (isTaken(each, entry, has)) tensors.push_back(each.tensor);
  return tensors;
}

}  // namespace normc
