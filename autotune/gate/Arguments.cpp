#include "autotune/gate/Arguments.h"

#include <algorithm>
#include <cstdlib>

#include "runtime/abi/DlType.h"
#include "runtime/core/TensorArguments.h"

namespace normc::gate {
namespace {

/// Returns the layout of an X-sized tensor: segments x rows x features in the order of the problem's layout;
/// or of one with pairs in place of features.
TensorLayout elementsOf(const Problem& problem, DType type, const Extents& e, const Placement& placement,
                        bool reversed) {
  const bool last = problem.layout == Layout::FeaturesLast;
  const int64_t outer = last ? e.rows : e.features, inner = last ? e.features : e.rows;
  const int64_t pitch = inner + placement.rowPadding, block = outer * pitch + placement.segmentPadding;
  TensorLayout t{type, {e.segments, outer, inner}, {block, pitch, 1}};
  t.elements = problem.segmented ? e.segments * block : outer * pitch;
  if (reversed && outer > 0) {
    t.strides[1] = -pitch;
    t.origin = (outer - 1) * pitch;
  }
  if (!problem.segmented) {
    t.shape.erase(t.shape.begin());
    t.strides.erase(t.strides.begin());
  }
  return t;
}

TensorLayout layoutOf(Tensor tensor, const Problem& problem, const Extents& e, const Placement& placement) {
  const DType type = typeOf(tensor, problem.types());
  switch (shapeOf(tensor, hasOf(problem))) {
    case TensorShape::Elements:
      return elementsOf(problem, type, e, placement,
                        placement.reversed && !infoOf(tensor).written(problem.entry));
    case TensorShape::PerPair:
      return elementsOf(problem, type, {e.segments, e.rows, problem.pairs(e.features)}, placement,
                        placement.reversed);
    case TensorShape::PerFeature:
      return TensorLayout::compact(type, {e.features});
    case TensorShape::PerSegment:
      return TensorLayout::compact(type, {e.segments, e.features});
    case TensorShape::One:
      return TensorLayout::compact(type, {1});
    case TensorShape::PerRow:
    case TensorShape::PerBlock:
      break;
  }
  std::vector<int64_t> shape{e.rows};
  if (problem.segmented) shape.insert(shape.begin(), e.segments);
  if (tensor == kQuantScaleOut && problem.spec->isQuantizedPer(QuantizePer::Block))
    shape.push_back(e.features / problem.spec->quantize->size);
  return TensorLayout::compact(type, std::move(shape));
}

template <typename Query>
std::vector<normc_field> fieldsOf(Query query, const normc_plan* plan, const normc_sizes& sizes) {
  return host::detail::all<normc_field>(
      [&](size_t index, normc_field* field) { return query(plan, &sizes, index, field); });
}

}  // namespace

bool Placement::leavesOut(std::string_view name) const {
  return std::find(leaveOut.begin(), leaveOut.end(), name) != leaveOut.end();
}

TensorLayout TensorLayout::compact(DType type, std::vector<int64_t> shape) {
  TensorLayout t{type, std::move(shape), {}, 0, 1};
  t.strides.resize(t.shape.size());
  for (size_t i = t.shape.size(); i-- > 0; t.elements *= t.shape[i]) t.strides[i] = t.elements;
  return t;
}

Layouts layoutsOf(const Problem& problem, const Extents& extents, const Placement& placement) {
  Layouts layouts;
  for (const Tensor tensor : operandsOf(problem))
    layouts[tensor] = layoutOf(tensor, problem, extents, placement);
  return layouts;
}

Arguments::Arguments(const normc_plan* plan, Entry entry, const normc_sizes& sizes, Layouts layouts,
                     const CudaDevice* where)
    : entry_(entry), sizes_(sizes), where_(where), layouts_(std::move(layouts)) {
  host::check(normc_plan_state_bytes(plan, &sizes_, &stateBytes_));
  host::check(normc_plan_saved_bytes(plan, &sizes_, &savedBytes_));
  host::check(normc_plan_partial_bytes(plan, &sizes_, &partialBytes_));
  host::check(normc_plan_workspace_bytes(plan, &sizes_, &workspaceBytes_));
  stateFields_ = fieldsOf(normc_plan_state_field, plan, sizes_);
  savedFields_ = fieldsOf(normc_plan_saved_field, plan, sizes_);
  partialFields_ = fieldsOf(normc_plan_partial_field, plan, sizes_);
  args_.struct_size = sizeof args_;
  if (where) args_.stream = where->stream();
}

Arguments::Arguments(const normc_plan* plan, const Problem& problem, const Extents& e,
                     const CudaDevice* where)
    : Arguments(plan, problem.entry, host::Plan::sizes(e.segments, e.rows, e.features), layoutsOf(problem, e),
                where) {}

void Arguments::bind(Tensor tensor, void* memory) {
  const DLTensor*& argument = args_.*kTensorArguments[tensor];
  argument = nullptr;
  if (!memory) return;
  TensorLayout& layout = layouts_.at(tensor);
  DLTensor& view = views_[tensor];
  view.data = static_cast<char*>(memory) + layout.origin * bytes(layout.type);
  view.device = where_ ? DLDevice{kDLCUDA, where_->index()} : DLDevice{kDLCPU, 0};
  view.ndim = int32_t(layout.shape.size());
  view.dtype = dlType(layout.type);
  view.shape = layout.shape.data();
  view.strides = layout.strides.data();
  argument = &view;
}

void Arguments::bindState(void* in, void* out) {
  if (stateBytes_ == 0) return;
  args_.state_in = in;
  args_.state_in_bytes = stateBytes_;
  if (!writesState(entry_) || !out) return;
  args_.state_out = out;
  args_.state_out_bytes = stateBytes_;
}

void Arguments::bindSaved(void* memory) {
  if (savedFields_.empty() || !usesSaved(entry_) || !memory) return;
  args_.saved = memory;
  args_.saved_bytes = savedBytes_;
}

void Arguments::bindPartials(void* memory, size_t count) {
  if (partialBytes_ == 0) return;
  if (writesPartial(entry_)) {
    args_.partial = memory;
    args_.partial_bytes = partialBytes_;
  } else {
    args_.partials = memory;
    args_.partials_bytes = count * partialBytes_;
    args_.partial_count = count;
  }
}

void Arguments::bindWorkspace(void* memory, size_t bytes) {
  args_.workspace = memory;
  args_.workspace_bytes = bytes;
}

}  // namespace normc::gate
