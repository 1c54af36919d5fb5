#include "runtime/hosts/common/Arguments.h"

#include <stdexcept>

namespace normc::hosts {
namespace {

size_t count(const std::vector<normc_field>& fields, normc_field_access access) {
  size_t result = 0;
  for (const normc_field& field : fields) result += (field.access & access) != 0;
  return result;
}

bool isBackward(Entry entry) {
  return entry == Entry::Backward || entry == Entry::BackwardReduce || entry == Entry::BackwardApply;
}
bool isForward(Entry entry) {
  return entry == Entry::Forward || entry == Entry::ForwardReduce || entry == Entry::ForwardApply;
}
bool takesPartials(Entry entry) {
  return entry == Entry::ForwardApply || entry == Entry::BackwardApply || entry == Entry::Commit;
}
bool makesPartial(Entry entry) { return entry == Entry::ForwardReduce || entry == Entry::BackwardReduce; }

size_t bytesOf(const DLTensor& tensor) {
  size_t bytes = tensor.dtype.bits / 8;
  for (int i = 0; i < tensor.ndim; ++i) bytes *= size_t(tensor.shape[i]);
  return bytes;
}

}  // namespace

bool takesGradient(Entry entry) { return isBackward(entry) || entry == Entry::InferBackward; }

Operands::Operands(const Prepared& plan) {
  const Entry entry = plan.request.entry;
  firstParameter = (entry != Entry::Commit) + takesGradient(entry);
  firstRow = firstParameter + plan.readsScale + plan.readsBias;
  const size_t made = count(plan.state, NORMC_FIELD_WRITTEN) + plan.dscale + plan.dbias + makesPartial(entry);
  sums = made > 0;
  for (const Around& each : plan.around) {
    inputs += each.isRead();
    outputs += each.isWritten();
  }
  inputs += firstRow + plan.request.mask + (isBackward(entry) ? plan.saved.size() : 0) +
            takesPartials(entry) + count(plan.state, NORMC_FIELD_READ);
  outputs += plan.y + plan.codes.has_value() + plan.dx + made + (isForward(entry) ? plan.saved.size() : 0);
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
  oneRow_ = entry != Entry::Commit && in->ndim == 1;
  if (entry != Entry::Commit) args_.x = ofRows(*in++);
  if (takesGradient(entry)) args_.dy = ofRows(*in++);
  if (plan.readsScale) args_.scale = in++;
  if (plan.readsBias) args_.bias = in++;
  if (plan.request.mask) {
    args_.mask = in->ndim ? in : ofRows(*in);
    ++in;
  }
  if (plan.y) args_.y = ofRows(*out++);
  if (plan.codes) args_.codes = ofRows(*out++);
  if (plan.dx) args_.dx = ofRows(*out++);
  for (const Around& each : plan.around) {
    if (!each.isRead() && !each.isWritten()) continue;
    DLTensor& tensor = each.isRead() ? *in++ : *out++;
    args_.*each.row->argument = each.isOfRows() ? ofRows(tensor) : &tensor;
  }
  if (isForward(entry) || isBackward(entry)) {
    DLTensor*& from = isForward(entry) ? out : in;
    for (size_t i = 0; i < plan.saved.size(); ++i) saved_[i] = from++;
    args_.saved_fields = plan.saved.empty() ? nullptr : saved_.data();
    args_.saved_field_count = plan.saved.size();
  }
  if (plan.dscale) args_.dscale = out++;
  if (plan.dbias) args_.dbias = out++;
  if (takesPartials(entry)) partials_ = in++;
  for (size_t i = 0; i < plan.state.size(); ++i) {
    if (plan.state[i].access & NORMC_FIELD_READ) stateIn_[i] = in++;
    if (plan.state[i].access & NORMC_FIELD_WRITTEN) stateOut_[i] = out++;
  }
  if (makesPartial(entry)) partial_ = out++;
  if (plan.readsState) args_.state_in_fields = stateIn_.data();
  if (plan.writesState) args_.state_out_fields = stateOut_.data();
  if (plan.readsState || plan.writesState) args_.state_field_count = plan.state.size();
}

const DLTensor* Arguments::ofRows(DLTensor& tensor) {
  if (!oneRow_ || tensor.ndim > 1) return &tensor;
  OneRow& row = oneRows_[oneRowsUsed_++];
  const int64_t width = tensor.ndim ? tensor.shape[0] : 1;
  row = {{1, width}, {width, tensor.strides ? tensor.strides[0] : 1}};
  tensor.ndim += 1;
  tensor.shape = row.shape;
  tensor.strides = row.strides;
  return &tensor;
}

normc_sizes Arguments::sizes() const {
  if (!args_.x) return host::Plan::sizes(1, 0, plan_.text.features);
  const DLTensor& x = *args_.x;
  const int feature = plan_.request.channelsFirst ? 1 : x.ndim - 1;
  int64_t segments = 1, rows = 1;
  for (int i = 0; i < x.ndim; ++i)
    if (i != feature) (plan_.text.segmented && i == 0 ? segments : rows) *= x.shape[i];
  return host::Plan::sizes(segments, rows, plan_.text.features);
}

size_t Arguments::workspaceBytes() const { return plan_.plan.workspaceBytes(sizes()); }

void Arguments::run(void* workspace, size_t workspaceBytes, void* stream) {
  args_.workspace = workspace;
  args_.workspace_bytes = workspaceBytes;
  args_.stream = stream;
  if (partial_) {
    args_.partial = partial_->data;
    args_.partial_bytes = bytesOf(*partial_);
  }
  if (partials_) {
    args_.partials = partials_->data;
    args_.partials_bytes = bytesOf(*partials_);
    args_.partial_count = plan_.partialBytes ? args_.partials_bytes / plan_.partialBytes : 0;
  }
  host::check(normc_execute(plan_.plan.get(), &args_));
}

}  // namespace normc::hosts
