#include "runtime/hosts/common/Arguments.h"

#include <stdexcept>

namespace normc::hosts {
namespace {

size_t count(const std::vector<normc_field>& fields, normc_field_access access) {
  size_t result = 0;
  for (const normc_field& field : fields) result += (field.access & access) != 0;
  return result;
}

}  // namespace

Operands::Operands(const Prepared& plan) {
  const Entry entry = plan.request.entry;
  const bool backward = takesGradient(entry);
  firstParameter = 1 + backward;
  firstRow = firstParameter + plan.readsScale + plan.readsBias;
  const size_t made = count(plan.state, NORMC_FIELD_WRITTEN) + (backward ? plan.dscale + plan.dbias : 0);
  sums = made > 0;
  inputs = firstRow + plan.request.mask + (entry == Entry::Backward ? plan.saved.size() : 0) +
           count(plan.state, NORMC_FIELD_READ);
  outputs = 1 + made + (entry == Entry::Forward ? plan.saved.size() : 0);
}

Arguments::Arguments(const Prepared& plan, std::span<DLTensor> inputs, std::span<DLTensor> outputs)
    : plan_(plan) {
  const Entry entry = plan.request.entry;
  const Operands wanted(plan);
  const auto check = [&](size_t given, size_t right, const char* what) {
    if (given != right)
      throw std::invalid_argument(plan.text.name + ":" + std::string(kEntries[size_t(entry)]) + " has " +
                                  std::to_string(right) + " " + what + ", not " + std::to_string(given));
  };
  check(inputs.size(), wanted.inputs, "inputs");
  check(outputs.size(), wanted.outputs, "outputs");
  args_.struct_size = sizeof args_;
  DLTensor* in = inputs.data();
  DLTensor* out = outputs.data();
  args_.x = elements(*in++);
  if (takesGradient(entry)) {
    args_.dy = elements(*in++);
    args_.dx = elements(*out++);
    if (plan.dscale) args_.dscale = out++;
    if (plan.dbias) args_.dbias = out++;
  } else {
    args_.y = elements(*out++);
  }
  if (plan.readsScale) args_.scale = in++;
  if (plan.readsBias) args_.bias = in++;
  if (plan.request.mask) args_.mask = in++;
  if (entry == Entry::Forward || entry == Entry::Backward) {
    DLTensor*& from = entry == Entry::Forward ? out : in;
    for (size_t i = 0; i < plan.saved.size(); ++i) saved_[i] = from++;
    args_.saved_fields = plan.saved.empty() ? nullptr : saved_.data();
    args_.saved_field_count = plan.saved.size();
  }
  for (size_t i = 0; i < plan.state.size(); ++i) {
    if (plan.state[i].access & NORMC_FIELD_READ) stateIn_[i] = in++;
    if (plan.state[i].access & NORMC_FIELD_WRITTEN) stateOut_[i] = out++;
  }
  if (plan.readsState) args_.state_in_fields = stateIn_.data();
  if (plan.writesState) args_.state_out_fields = stateOut_.data();
  if (plan.readsState || plan.writesState) args_.state_field_count = plan.state.size();
}

const DLTensor* Arguments::elements(DLTensor& tensor) {
  if (tensor.ndim == 1) {
    OneRow& row = oneRows_[oneRowsUsed_++];
    row = {{1, tensor.shape[0]}, {tensor.shape[0], tensor.strides ? tensor.strides[0] : 1}};
    tensor.ndim = 2, tensor.shape = row.shape, tensor.strides = row.strides;
  }
  return &tensor;
}

normc_sizes Arguments::sizes() const {
  const DLTensor& x = *args_.x;
  const int feature = plan_.request.channelsFirst ? 1 : x.ndim - 1;
  int64_t segments = 1, rows = 1;
  for (int i = 0; i < x.ndim; ++i)
    if (i != feature) (plan_.text.segmented && i == 0 ? segments : rows) *= x.shape[i];
  return host::Plan::sizes(segments, rows, plan_.text.features);
}

size_t Arguments::workspaceBytes() const { return plan_.plan.workspaceBytes(sizes()); }

void Arguments::run(void* workspace, size_t workspaceBytes, void* stream) {
  args_.workspace = workspace, args_.workspace_bytes = workspaceBytes;
  args_.stream = stream;
  host::check(normc_execute(plan_.plan.get(), &args_));
}

}  // namespace normc::hosts
