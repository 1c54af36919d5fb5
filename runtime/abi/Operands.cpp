#include "runtime/abi/Operands.h"

namespace normc {

std::vector<Tensor> operandsOf(Entry entry, const Has& has) {
  const TakenBy other = entry == Entry::Backward ? TakenBy::Forward : TakenBy::Backward;
  std::vector<Tensor> tensors;
  for (const TensorInfo& each : kTensorTable)
    if (each.takenBy != other && (!each.needs || has.*each.needs)) tensors.push_back(each.tensor);
  return tensors;
}

}  // namespace normc
