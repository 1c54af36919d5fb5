// Answers queries of a plan: its numbers, the tensors of its calls, and what its entry does with a field.
#include <algorithm>

#include "runtime/abi/DlType.h"
#include "runtime/api/Struct.h"
#include "runtime/plan/Plan.h"

namespace normc::runtime {
namespace {

normc_tensor_use useOf(const Operand& operand) {
  const bool optional = infoOf(operand.tensor).mayBeLeftOut();
  if (operand.written()) return optional ? NORMC_TENSOR_OPTIONAL : NORMC_TENSOR_WRITTEN;
  return optional ? NORMC_TENSOR_READ_IF_GIVEN : NORMC_TENSOR_READ;
}

/// Returns the shape of a tensor of the norm. Tensors whose shape the norm decides together have the same,
/// and one of them is an operand.
TensorShape shapeIn(const Kernel& kernel, const TensorInfo& tensor) {
  for (const Operand& operand : kernel.operands)
    if (operand.role == Role::Tensor &&
        (operand.tensor == tensor.tensor ||
         (tensor.shapeOf && infoOf(operand.tensor).shapeOf == tensor.shapeOf)))
      return operand.tensorShape;
  return tensor.shape;
}

normc_tensor_shape shapeOf(TensorShape shape) {
  switch (shape) {
    case TensorShape::Elements:
      break;
    case TensorShape::PerFeature:
      return NORMC_TENSOR_PER_FEATURE;
    case TensorShape::PerRow:
      return NORMC_TENSOR_PER_ROW;
    case TensorShape::PerSegment:
      return NORMC_TENSOR_PER_SEGMENT;
    case TensorShape::PerBlock:
      return NORMC_TENSOR_PER_BLOCK;
    case TensorShape::One:
      return NORMC_TENSOR_ONE;
    case TensorShape::PerPair:
      return NORMC_TENSOR_PER_PAIR;
  }
  return NORMC_TENSOR_ELEMENTS;
}

}  // namespace

normc_status Plan::describeNumber(size_t index, normc_number_info* out) const {
  const BoundKernel& general = *kernels_.back();
  const std::vector<Scalar>& scalars = general.info().scalars;
  if (index >= scalars.size())
    return fail(NORMC_OUT_OF_RANGE, "there is no number ", index, "; there are ", scalars.size());
  const Scalar& scalar = scalars[index];
  normc_number_info info = {};
  info.name = scalar.name.c_str();
  info.value = general.scalars()[index];
  info.default_value = scalar.value;
  info.least = scalar.legal.least;
  info.above = scalar.legal.above;
  info.below = scalar.legal.below;
  info.whole = scalar.legal.whole;
  info.threshold = std::find(kThresholds.begin(), kThresholds.end(), scalar.name) != kThresholds.end();
  return writeStruct(info, out, "normc_number_info");
}

normc_status Plan::describeTensor(size_t index, normc_tensor_info* out) const {
  const BoundKernel& general = *kernels_.back();
  size_t count = 0;
  for (const TensorInfo& tensor : kTensorTable) {
    const int at = general.operandOf(tensor.tensor);
    const std::optional<Tensor> same = general.same(tensor.tensor);
    if (at == BoundKernel::kUnused && !general.ignores(tensor.tensor) && !same) continue;
    if (count++ < index) continue;
    normc_tensor_info info = {};
    info.name = tensor.name.data();
    info.dtype = dlType(at != BoundKernel::kUnused ? kernel().operands[at].type
                                                   : typeOf(tensor.tensor, kernel().parts.types()));
    info.use = at != BoundKernel::kUnused ? useOf(kernel().operands[at])
               : same                     ? NORMC_TENSOR_SAME
                                          : NORMC_TENSOR_IGNORED;
    info.shape = shapeOf(shapeIn(kernel(), tensor));
    if (same) info.same_as = name(*same).data();
    if (info.shape == NORMC_TENSOR_PER_BLOCK) info.block = kernel().block;
    if (info.shape == NORMC_TENSOR_PER_PAIR) {
      info.runs = kernel().runs;
      info.pairs = kernel().turned / 2;
    }
    return writeStruct(info, out, "normc_tensor_info");
  }
  return fail(NORMC_OUT_OF_RANGE, "there is no tensor ", index, "; there are ", count);
}

int Plan::stateAccess(size_t field) const {
  int access = 0;
  if (field < kernel().state.size())
    for (const auto& kernel : kernels_) access |= kernel->stateAccess(field);
  return access;
}

int Plan::savedAccess(size_t field) const {
  int access = 0;
  if (field < kernel().saved.size())
    for (const auto& kernel : kernels_) access |= kernel->savedAccess(field);
  return access;
}

int Plan::partialAccess(size_t field) const {
  if (field >= kernel().partial.size()) return 0;
  return kernel().parts.writesPartial() ? NORMC_FIELD_WRITTEN : NORMC_FIELD_READ;
}

}  // namespace normc::runtime
