#include "autotune/gate/Call.h"

#include <algorithm>
#include <optional>

namespace normc::gate {

struct Call::Buffers {
  const normc_plan* plan;
  Problem problem;
  ReferenceCall in;
  Placement placement;
  const CudaDevice* where;
  std::optional<GuardedArguments> arguments;  ///< absent after a refusal
  std::string refusal;
  bool asGiven = false;  ///< nothing has run since reset()
  /// The bytes of what a call leaves as it was given, by name.
  std::map<std::string, std::pair<const Storage*, std::vector<uint8_t>>> given;

  template <typename Visit>
  void forRows(Tensor, Visit visit) const;
  void writeTensor(Tensor);
  void readTensor(Tensor, CallResult&) const;
  void writeFields(FieldBuffer&, const std::map<std::string, std::vector<double>>& values, size_t offset = 0);
  void readFields(const FieldBuffer&, const char* prefix, CallResult&) const;
  void readPartial(CallResult&) const;
  void prepare();
  void reset();
  void keepGiven();
  void collect(CallResult&) const;
};

/// Calls `visit(element, place, stride, count)` for each row of elements: its first element in logical order
/// and in memory. A tensor that is neither X-sized nor of pairs is one row.
template <typename Visit>
void Call::Buffers::forRows(Tensor tensor, Visit visit) const {
  const TensorLayout& t = arguments->layouts().at(tensor);
  const TensorShape shape = shapeOf(tensor, hasOf(problem));
  Extents e = in.extents;
  if (shape == TensorShape::PerPair) e.features = problem.pairs(e.features);
  if (shape != TensorShape::Elements && shape != TensorShape::PerPair) {
    visit(0, 0, 1, size_t(t.elements));
    return;
  }
  const bool last = problem.layout == Layout::FeaturesLast;
  const int64_t pitch = t.strides[t.strides.size() - 2], ofRow = last ? pitch : 1,
                ofFeature = last ? 1 : pitch;
  const int64_t ofSegment = problem.segmented ? t.strides[0] : 0;
  for (int64_t s = 0; s < e.segments; ++s)
    for (int64_t r = 0; r < e.rows; ++r)
      visit((s * e.rows + r) * e.features, t.origin + s * ofSegment + r * ofRow, ofFeature,
            size_t(e.features));
}

void Call::Buffers::writeTensor(Tensor tensor) {
  Storage& to = (*arguments)[tensor];
  to.poison();
  if (infoOf(tensor).written(problem.entry) || placement.leavesOut(name(tensor))) return;
  const std::vector<double>* from = valuesOf(in, tensor);
  if (!from) {
    std::copy(in.mask.begin(), in.mask.end(), static_cast<uint8_t*>(to.data()));
    return;
  }
  const DType type = arguments->layouts().at(tensor).type;
  forRows(tensor, [&](int64_t element, int64_t place, int64_t stride, size_t count) {
    to.put(type, place, stride, std::span(*from).subspan(size_t(element), count));
  });
}

void Call::Buffers::readTensor(Tensor tensor, CallResult& result) const {
  const TensorLayout& t = arguments->layouts().at(tensor);
  const Storage& from = arguments->written(tensor);
  std::vector<double>& values = result.outputs[std::string(name(tensor))];
  size_t elements = 0;
  forRows(tensor, [&](int64_t, int64_t, int64_t, size_t count) { elements += count; });
  values.resize(elements);
  forRows(tensor, [&](int64_t element, int64_t place, int64_t stride, size_t count) {
    from.get(t.type, place, stride, std::span(values).subspan(size_t(element), count));
  });
  if (!from.gapsIntact(t.shape, t.strides, bytes(t.type)))
    result.fault += "memory between rows of " + std::string(name(tensor)) + " was written; ";
}

void Call::Buffers::writeFields(FieldBuffer& to, const std::map<std::string, std::vector<double>>& values,
                                size_t offset) {
  for (const normc_field& f : to.fields) {
    const auto& from = values.at(f.name);
    for (size_t i = 0; i < from.size(); ++i)
      to.memory.putField(typeOfField(f.type), offset + f.offset, i, from[i]);
  }
}

void Call::Buffers::readFields(const FieldBuffer& from, const char* prefix, CallResult& result) const {
  for (const normc_field& f : from.fields) {
    auto& values = result.outputs[std::string(prefix) + f.name];
    const DType type = typeOfField(f.type);
    for (size_t i = 0; i < f.bytes / bytes(type); ++i)
      values.push_back(from.memory.getField(type, f.offset, i));
  }
}

/// Reads the partial, and computes the moment that follows from it alone: the digits that the sums of one
/// rank have to keep show only there.
void Call::Buffers::readPartial(CallResult& result) const {
  readFields(arguments->partials, "partial.", result);
  if (!result.outputs.contains("partial.rows") || problem.spec->moment != Moment::Central) return;
  const std::vector<double>&sum = result.outputs["partial.sum"], &squares = result.outputs["partial.squares"];
  const double rows = std::max(result.outputs["partial.rows"][0], 1.0);
  std::vector<double>& moment = result.outputs["partial.moment"];
  for (size_t i = 0; i < sum.size(); ++i) {
    const double mean = sum[i] / rows, central = squares[i] / rows - mean * mean;
    moment.push_back(central < 0 ? 0 : central);
  }
}

void Call::Buffers::prepare() {
  const Extents& e = in.extents;
  arguments.emplace(Arguments(plan, problem.entry, host::Plan::sizes(e.segments, e.rows, e.features),
                              layoutsOf(problem, e, placement), where),
                    placement, std::max<size_t>(in.partials.size(), 1));
}

void Call::Buffers::reset() {
  if (asGiven) return;
  for (const auto& [tensor, layout] : arguments->layouts()) writeTensor(tensor);
  for (Storage* memory : {&arguments->stateOut.memory, &arguments->saved.memory, &arguments->partials.memory,
                          &arguments->workspace})
    memory->poison();
  for (size_t i = 0; i < in.partials.size(); ++i)
    writeFields(arguments->partials, in.partials[i], i * arguments->partialBytes());
  writeFields(arguments->state, in.state);
  if (readsSaved(problem.entry)) writeFields(arguments->saved, in.saved);
  keepGiven();
  arguments->upload();
  asGiven = true;
}

void Call::Buffers::keepGiven() {
  const GuardedArguments& a = *arguments;
  given.clear();
  const auto keep = [&](std::string_view what, const Storage& memory) {
    const std::span<const uint8_t> content = memory.content();
    given.try_emplace(std::string(what), &memory, std::vector<uint8_t>(content.begin(), content.end()));
  };
  for (const auto& [tensor, layout] : a.layouts())
    if (a.staysAsGiven(tensor)) keep(name(tensor), a[tensor]);
  if (!a.args().state_out || !placement.stateInPlace) keep("the state before the call", a.state.memory);
  if (!writesSaved(problem.entry)) keep("what the forward saved", a.saved.memory);
  if (!writesPartial(problem.entry)) keep("the sums of other calls", a.partials.memory);
}

void Call::Buffers::collect(CallResult& result) const {
  const GuardedArguments& a = *arguments;
  for (const auto& [tensor, layout] : a.layouts()) {
    if (!a[tensor].guardsIntact())
      result.fault += "memory around " + std::string(name(tensor)) + " was written; ";
    if (infoOf(tensor).written(problem.entry) && !placement.leavesOut(name(tensor)))
      readTensor(tensor, result);
  }
  for (const Storage* s :
       {&a.state.memory, &a.stateOut.memory, &a.saved.memory, &a.partials.memory, &a.workspace})
    if (!s->guardsIntact())
      result.fault += "memory around state, saved statistics, partials or workspace was written; ";
  for (const auto& [what, memory] : given)
    if (!std::ranges::equal(memory.first->content(), memory.second))
      result.fault += what + " was written, which is an input; ";
  if (a.args().state_out) readFields(placement.stateInPlace ? a.state : a.stateOut, "state.", result);
  if (a.args().saved && writesSaved(problem.entry)) readFields(a.saved, "saved.", result);
  if (writesPartial(problem.entry)) readPartial(result);
}

Call::Call(const normc_plan* plan, const Problem& problem, const ReferenceCall& arguments,
           const Placement& placement, const CudaDevice* where)
    : buffers_(new Buffers{plan, problem, arguments, placement, where, {}, {}, false, {}}) {
  try {
    buffers_->prepare();
    buffers_->reset();
  } catch (const std::runtime_error& error) {  // from the runtime or the device
    buffers_->refusal = error.what();
  }
}
Call::~Call() = default;

normc_status Call::execute() {
  if (!buffers_->arguments) return NORMC_FAILED_PRECONDITION;
  buffers_->asGiven = false;
  return normc_execute(buffers_->plan, &buffers_->arguments->args());
}

CallResult Call::run(const Execute& execute) {
  Buffers& b = *buffers_;
  CallResult result;
  if (!b.refusal.empty()) {
    result.fault = b.refusal;
    return result;
  }
  try {
    b.reset();
    b.asGiven = false;
    if (execute(b.plan, &b.arguments->args()) != NORMC_OK) result.fault = normc_last_error();
    b.arguments->download();
  } catch (const CudaError& error) {
    result.fault += (result.fault.empty() ? "" : "; ") + std::string(error.what());
  }
  if (result.fault.empty()) b.collect(result);
  return result;
}

}  // namespace normc::gate
