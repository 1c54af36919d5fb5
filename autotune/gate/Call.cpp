#include "autotune/gate/Call.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "autotune/gate/Storage.h"
#include "runtime/abi/DlType.h"

namespace normc::gate {

namespace {

/// A tensor argument: storage, and the DLTensor that names it.
struct Tensor {
  Storage storage;
  DLTensor dl{};
  std::vector<int64_t> shape, strides;
  int64_t origin = 0;  ///< where the first element lies, in elements
  bool output = false;
  const std::vector<double>* input = nullptr;

  void describe(DLDevice device, DType type) {
    dl = {static_cast<char*>(storage.address()) + origin * bytes(type),
          device,
          int32_t(shape.size()),
          dlType(type),
          shape.data(),
          strides.data(),
          0};
  }
};

}  // namespace

struct Call::Buffers {
  const normc_plan* plan;
  Problem problem;
  ReferenceCall in;
  Placement placement;
  const CudaDevice* where;
  std::map<std::string, Tensor> tensors;
  Storage stateIn, stateOut, saved, workspace;
  std::vector<normc_field> stateFields, savedFields;
  normc_args args{};
  std::string refusal;
  bool asGiven = false;  ///< nothing has run since reset()

  bool leaves(const std::string& name) const {
    return std::find(placement.leaveOut.begin(), placement.leaveOut.end(), name) != placement.leaveOut.end();
  }
  bool wide(const std::string& name) const { return name.back() == 'x' || name.back() == 'y'; }
  DType typeOf(const std::string& name) const { return wide(name) ? problem.data : problem.params; }
  DLDevice device() const { return where ? DLDevice{kDLCUDA, where->index()} : DLDevice{kDLCPU, 0}; }

  void add(const std::string& name, const std::vector<double>* input);
  void addMask();
  int64_t position(const Tensor&, int64_t segment, int64_t row, int64_t feature) const;
  template <typename Visit>
  void forRows(const std::string& name, Visit visit) const;
  void writeTensor(const std::string& name);
  void writeFields(Storage&, const std::vector<normc_field>&, const std::map<std::string, std::vector<double>>&);
  void readFields(const Storage&, const std::vector<normc_field>&, const char* prefix, CallResult&) const;
  std::vector<Storage*> storages();
  void prepare();
  void reset();
  void fetch();
};

void Call::Buffers::add(const std::string& name, const std::vector<double>* input) {
  Tensor& t = tensors[name];
  t.output = !input;
  t.input = input;
  const Extents& e = in.extents;
  bool last = problem.layout == Layout::FeaturesLast;
  if (!wide(name)) {
    t.shape = {e.features}, t.strides = {1};
  } else {
    int64_t outer = last ? e.rows : e.features, inner = last ? e.features : e.rows;
    int64_t pitch = inner + placement.rowPadding, block = outer * pitch + placement.segmentPadding;
    t.shape = {e.segments, outer, inner}, t.strides = {block, pitch, 1};
    if (placement.reversed && input && outer > 0) t.strides[1] = -pitch, t.origin = (outer - 1) * pitch;
    if (!problem.segmented) t.shape.erase(t.shape.begin()), t.strides.erase(t.strides.begin());
  }
  int64_t size = bytes(typeOf(name)), elements = t.shape.empty() ? 0 : t.shape[0] * std::abs(t.strides[0]);
  if (!wide(name)) elements = e.features;
  t.storage = Storage(elements * size, (placement.misalign + (t.output ? placement.skew : 0)) * size, where, placement.guardPages);
  t.describe(device(), typeOf(name));
}

void Call::Buffers::addMask() {
  Tensor& t = tensors["mask"];
  const Extents& e = in.extents;
  t.shape = {e.segments, e.rows}, t.strides = {e.rows, 1};
  if (!problem.segmented) t.shape.erase(t.shape.begin()), t.strides.erase(t.strides.begin());
  t.storage = Storage(e.totalRows(), placement.misalign, where, placement.guardPages);
  t.describe(device(), DType::U8);
}

int64_t Call::Buffers::position(const Tensor& t, int64_t segment, int64_t row, int64_t feature) const {
  bool last = problem.layout == Layout::FeaturesLast;
  const auto& s = t.strides;
  return t.origin + (problem.segmented ? segment * s[0] : 0) + (last ? row * s[s.size() - 2] + feature : feature * s[s.size() - 2] + row);
}

/// Calls `visit(element, place, stride)` with where each row begins, among the elements and in memory.
template <typename Visit>
void Call::Buffers::forRows(const std::string& name, Visit visit) const {
  const Tensor& t = tensors.at(name);
  const Extents& e = in.extents;
  if (!wide(name)) return visit(0, 0, 1);
  const int64_t stride = position(t, 0, 0, 1) - t.origin;
  for (int64_t s = 0; s < e.segments; ++s)
    for (int64_t r = 0; r < e.rows; ++r) visit((s * e.rows + r) * e.features, position(t, s, r, 0), stride);
}

void Call::Buffers::writeTensor(const std::string& name) {
  Tensor& t = tensors.at(name);
  t.storage.poison();
  if (!t.input) return;
  forRows(name, [&](int64_t element, int64_t place, int64_t stride) {
    t.storage.put(typeOf(name), place, stride, std::span(*t.input).subspan(size_t(element), size_t(in.extents.features)));
  });
}

void Call::Buffers::writeFields(Storage& to, const std::vector<normc_field>& fields,
                                const std::map<std::string, std::vector<double>>& values) {
  for (const normc_field& f : fields) {
    const auto& from = values.at(f.name);
    for (size_t i = 0; i < from.size(); ++i) to.putField(typeOfField(f.type), f.offset, i, from[i]);
  }
}

void Call::Buffers::readFields(const Storage& from, const std::vector<normc_field>& fields, const char* prefix,
                               CallResult& result) const {
  for (const normc_field& f : fields) {
    auto& values = result.outputs[std::string(prefix) + f.name];
    const DType type = typeOfField(f.type);
    for (size_t i = 0; i < f.bytes / bytes(type); ++i) values.push_back(from.getField(type, f.offset, i));
  }
}

template <typename Query>
static std::vector<normc_field> fieldsOf(Query query, const normc_plan* plan, const normc_sizes& sizes) {
  std::vector<normc_field> fields;
  for (size_t i = 0;; ++i) {
    normc_field field{};
    field.struct_size = sizeof field;
    if (query(plan, &sizes, i, &field) != NORMC_OK) return fields;
    fields.push_back(field);
  }
}

void Call::Buffers::prepare() {
  const Spec& spec = *problem.spec;
  bool backward = problem.entry == Entry::Backward;
  add("x", &in.x);
  if (backward) {
    add("dy", &in.dy);
    add("dx", nullptr);
    if (spec.scale) add("scale", &in.scale), add("dscale", nullptr);
    if (spec.bias) add("dbias", nullptr);
  } else {
    add("y", nullptr);
    if (spec.scale) add("scale", &in.scale);
    if (spec.bias) add("bias", &in.bias);
  }
  if (problem.mask) addMask();
  normc_sizes sizes{sizeof sizes, in.extents.segments, in.extents.rows, in.extents.features};
  size_t stateBytes = 0, savedBytes = 0, workspaceBytes = 0;
  bool asked = normc_plan_state_bytes(plan, &sizes, &stateBytes) == NORMC_OK &&
               normc_plan_saved_bytes(plan, &sizes, &savedBytes) == NORMC_OK &&
               normc_plan_workspace_bytes(plan, &sizes, &workspaceBytes) == NORMC_OK;
  if (!asked) {
    refusal = normc_last_error();
    return;
  }
  stateFields = fieldsOf(normc_plan_state_field, plan, sizes);
  savedFields = fieldsOf(normc_plan_saved_field, plan, sizes);
  const auto storage = [&](size_t bytes) { return Storage(bytes, 0, where, placement.guardPages); };
  stateIn = storage(stateBytes), stateOut = storage(stateBytes);
  saved = storage(savedBytes), workspace = storage(workspaceBytes);

  if (placement.inPlace) {
    Tensor& out = tensors.at(backward ? "dx" : "y");
    out.dl.data = tensors.at(backward ? "dy" : "x").storage.address();
  }
  auto tensor = [&](const char* name) -> const DLTensor* {
    auto at = tensors.find(name);
    return at == tensors.end() || leaves(name) ? nullptr : &at->second.dl;
  };
  args.struct_size = sizeof args;
  args.x = tensor("x"), args.y = tensor("y"), args.dy = tensor("dy"), args.dx = tensor("dx");
  args.scale = tensor("scale"), args.bias = tensor("bias");
  args.dscale = tensor("dscale"), args.dbias = tensor("dbias"), args.mask = tensor("mask");
  bool state = stateBytes > 0;
  if (state) {
    args.state_in = stateIn.address(), args.state_in_bytes = stateBytes;
    if (problem.entry != Entry::Infer && !leaves("state_out"))
      args.state_out = (placement.stateInPlace ? stateIn : stateOut).address(), args.state_out_bytes = stateBytes;
  }
  if (!savedFields.empty() && problem.entry != Entry::Infer && !leaves("saved"))
    args.saved = saved.address(), args.saved_bytes = savedBytes;
  args.workspace = workspace.address(), args.workspace_bytes = workspaceBytes;
  if (where) args.stream = where->stream();
}

void Call::Buffers::reset() {
  if (asGiven) return;
  for (auto& [name, t] : tensors)
    if (name != "mask") writeTensor(name);
  if (problem.mask) std::copy(in.mask.begin(), in.mask.end(), static_cast<uint8_t*>(tensors.at("mask").storage.data()));
  stateOut.poison(), saved.poison(), workspace.poison();
  writeFields(stateIn, stateFields, in.state);
  if (problem.entry == Entry::Backward) writeFields(saved, savedFields, in.saved);
  for (Storage* s : storages()) s->upload();
  asGiven = true;
}

std::vector<Storage*> Call::Buffers::storages() {
  std::vector<Storage*> all = {&stateIn, &stateOut, &saved, &workspace};
  for (auto& [name, t] : tensors) all.push_back(&t.storage);
  return all;
}

/// The device's memory as the call left it; an error of the kernel shows here.
void Call::Buffers::fetch() {
  if (!where) return;
  for (Storage* s : storages()) s->download();
  where->synchronize();
}

Call::Call(const normc_plan* plan, const Problem& problem, const ReferenceCall& arguments, const Placement& placement,
           const CudaDevice* where)
    : buffers_(new Buffers{plan, problem, arguments, placement, where, {}, {}, {}, {}, {}, {}, {}, {}, {}}) {
  try {
    buffers_->prepare();
    buffers_->reset();
  } catch (const CudaError& error) {
    buffers_->refusal = error.what();
  }
}
Call::~Call() = default;

normc_status Call::execute() {
  buffers_->asGiven = false;
  return normc_execute(buffers_->plan, &buffers_->args);
}

CallResult Call::run() {
  Buffers& b = *buffers_;
  CallResult result;
  if (!b.refusal.empty()) {
    result.fault = b.refusal;
    return result;
  }
  try {
    b.reset();
    if (execute() != NORMC_OK) result.fault = normc_last_error();
    b.fetch();
  } catch (const CudaError& error) {
    result.fault += (result.fault.empty() ? "" : "; ") + std::string(error.what());
  }
  if (!result.fault.empty()) return result;
  bool backward = b.problem.entry == Entry::Backward;
  for (auto& [name, t] : b.tensors) {
    if (!t.storage.guardsIntact()) result.fault += "memory around " + name + " was written; ";
    if (!t.output || b.leaves(name)) continue;
    bool shared = b.placement.inPlace && b.wide(name);
    const Storage& from = shared ? b.tensors.at(backward ? "dy" : "x").storage : t.storage;
    auto& values = result.outputs[name];
    const auto features = size_t(b.in.extents.features);
    values.resize(b.wide(name) ? size_t(b.in.extents.totalRows()) * features : features);
    b.forRows(name, [&](int64_t element, int64_t place, int64_t stride) {
      from.get(b.typeOf(name), place, stride, std::span(values).subspan(size_t(element), features));
    });
    if (!from.gapsIntact(t.shape, t.strides, bytes(b.typeOf(name)))) result.fault += "memory between rows of " + name + " was written; ";
  }
  for (Storage* s : {&b.stateIn, &b.stateOut, &b.saved, &b.workspace})
    if (!s->guardsIntact()) result.fault += "memory around state, saved statistics or workspace was written; ";
  if (b.args.state_out) b.readFields(b.placement.stateInPlace ? b.stateIn : b.stateOut, b.stateFields, "state.", result);
  if (b.args.saved && !backward) b.readFields(b.saved, b.savedFields, "saved.", result);
  return result;
}

}  // namespace normc::gate
