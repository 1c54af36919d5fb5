#include "tools/normc/RunCall.h"

#include <algorithm>
#include <cstring>

#include "dsl/Nearest.h"
#include "runtime/abi/DlType.h"
#include "tools/normc/Npy.h"
#include "tools/normc/Values.h"

namespace normc::cli {

struct RunCall::Tensor {
  DType type = DType::F32;
  std::vector<int64_t> shape;
  gate::Storage memory;
  DLTensor view{};

  int64_t elements() const {
    int64_t count = 1;
    for (const int64_t size : shape) count *= size;
    return count;
  }
  void allocate(const gate::CudaDevice* device) {
    memory = gate::Storage(elements() * bytes(type), 0, device);
    view = {memory.address(),
            device ? DLDevice{kDLCUDA, device->index()} : DLDevice{kDLCPU, 0},
            int32_t(shape.size()),
            dlType(type),
            shape.data(),
            nullptr,
            0};
  }
};

namespace {

/// The type of a file that holds the tensor exactly.
DType fileType(DType type) { return type == DType::BF16 ? DType::F32 : type; }

std::string shapeOf(const std::vector<int64_t>& shape) {
  std::vector<std::string> sizes;
  for (const int64_t size : shape) sizes.push_back(std::to_string(size));
  return joined(sizes, "x");
}

/// Values of one float type rounded to another.
void convert(const NpyArray& from, DType to, gate::Storage& memory) {
  gate::Storage source(int64_t(from.data.size()), 0);
  std::memcpy(source.data(), from.data.data(), from.data.size());
  for (int64_t i = 0; i < from.elements(); ++i) memory.put(to, i, source.get(from.type, i));
}

/// True if an operand is a tensor that the kernel reads, or writes.
bool isTensor(const package::Operand& operand, package::Access access) {
  return operand.role == package::Role::Tensor && operand.access == access;
}

/// The tensors of a kernel that it reads, or writes, in the order of the C API.
std::vector<std::string> tensorNames(const package::Kernel& kernel, package::Access access) {
  std::vector<std::string> names;
  for (const std::string_view name : package::kTensorNames)
    for (const package::Operand& operand : kernel.operands)
      if (isTensor(operand, access) && operand.name == name) names.push_back(operand.name);
  return names;
}

void refuseUnknown(const FileMap& files, const std::vector<std::string>& known, const std::string& flag,
                   const std::string& problem) {
  for (const auto& [name, file] : files)
    if (std::find(known.begin(), known.end(), name) == known.end())
      throw usage(problem + " has no " + flag.substr(2) + "put " + inQuotes(name),
                  didYouMean(name, known, "it has " + joined(known)));
}

template <typename Query>
std::vector<normc_field> fieldsOf(Query query, const host::Plan& plan, const normc_sizes& sizes) {
  std::vector<normc_field> fields;
  for (;;) {
    normc_field field{};
    field.struct_size = sizeof field;
    const normc_status status = query(plan.get(), &sizes, fields.size(), &field);
    if (status == NORMC_OUT_OF_RANGE) return fields;
    host::check(status);
    fields.push_back(field);
  }
}

}  // namespace

RunCall::RunCall(Planned& planned, const FileMap& inputs, const FileMap& outputs, Output& out)
    : planned_(planned),
      device_(planned.place.open()),
      outputs_(outputs),
      backward_(planned.kernel().parts.isBackward()),
      infer_(planned.kernel().parts.isInfer()) {
  using package::Access;
  const package::Kernel& kernel = planned.kernel();
  const std::string problem = kernel.problem;
  const std::vector<std::string> reads = tensorNames(kernel, Access::Read);
  refuseUnknown(inputs, reads, "--in", problem);
  refuseUnknown(outputs, tensorNames(kernel, Access::Write), "--out", problem);
  for (const std::string& name : reads)
    if (!inputs.contains(name))
      throw usage(problem + " needs --in " + name + "=FILE.npy", "its inputs are " + joined(reads));
  for (const package::Operand& operand : kernel.operands)
    if (isTensor(operand, Access::Read)) addInput(operand, inputs.at(operand.name), out);
  translated([&] { makeFields(); });
  translated([&] { planned.callOf(sizes_); });
  for (const package::Operand& operand : planned.kernel().operands)
    if (isTensor(operand, Access::Write)) addOutput(operand);
  makeArguments();
}

RunCall::~RunCall() = default;

void RunCall::addInput(const package::Operand& operand, const std::string& file, Output& out) {
  const std::string& name = operand.name;
  Tensor& tensor = tensors_[name];
  tensor.type = operand.type;
  const NpyArray array = readNpy(file);
  tensor.shape = array.shape;
  translated([&] { tensor.allocate(device_.get()); });
  const DType exact = fileType(tensor.type);
  if (array.type == tensor.type) {
    std::memcpy(tensor.memory.data(), array.data.data(), array.data.size());
  } else if (isFloat(array.type) && isFloat(tensor.type)) {
    convert(array, tensor.type, tensor.memory);
    if (array.type != exact)
      out.note(file + " holds " + npyName(array.type) + "; its values are rounded to " +
               std::string(normc::name(tensor.type)));
  } else {
    throw refused(
        file + " holds " + npyName(array.type) + "; " + name + " is " + std::string(normc::name(tensor.type)),
        "save it as " + npyName(exact));
  }
}

void RunCall::addOutput(const package::Operand& operand) {
  const std::string& name = operand.name;
  Tensor& tensor = tensors_[name];
  tensor.type = operand.type;
  tensor.shape = isXSized(operand.tensor) ? xShape() : std::vector<int64_t>{sizes_.features};
  translated([&] { tensor.allocate(device_.get()); });
}

const std::vector<int64_t>& RunCall::xShape() const {
  for (const char* name : {"x", "dy"})
    if (const auto at = tensors_.find(name); at != tensors_.end()) return at->second.shape;
  throw refused("the kernel reads neither x nor dy");
}

/// The sizes of the call; state, saved statistics and workspace of these sizes.
void RunCall::makeFields() {
  const package::Kernel& kernel = planned_.kernel();
  const std::vector<int64_t>& shape = xShape();
  const bool segmented = kernel.parts.segmented, channelsFirst = kernel.parts.channelsFirst();
  if (shape.size() < (segmented ? 3 : 2))
    throw refused("x has the shape " + shapeOf(shape) + "; " + kernel.problem + " takes at least " +
                  (segmented ? "three" : "two") + " dimensions");
  sizes_ = {sizeof sizes_, segmented ? shape[0] : 1, 1, channelsFirst ? shape[1] : shape.back()};
  if (const auto features = kernel.parts.features; features && *features != sizes_.features)
    throw refused("x has " + counted(sizes_.features, "feature") + "; " + kernel.problem + " is for " +
                  std::to_string(*features));
  const auto first = shape.begin() + (channelsFirst ? 2 : segmented ? 1 : 0);
  for (auto size = first; size != shape.end() - (channelsFirst ? 0 : 1); ++size) sizes_.rows *= *size;

  const normc_plan* plan = planned_.plan.get();
  size_t stateBytes = 0, savedBytes = 0, workspaceBytes = 0;
  host::check(normc_plan_state_bytes(plan, &sizes_, &stateBytes));
  host::check(normc_plan_saved_bytes(plan, &sizes_, &savedBytes));
  host::check(normc_plan_workspace_bytes(plan, &sizes_, &workspaceBytes));
  const auto storage = [&](size_t bytes) { return gate::Storage(int64_t(bytes), 0, device_.get()); };
  state_ = {fieldsOf(normc_plan_state_field, planned_.plan, sizes_), storage(stateBytes)};
  saved_ = {fieldsOf(normc_plan_saved_field, planned_.plan, sizes_), storage(savedBytes)};
  stateAfter_ = {state_.fields, storage(stateBytes)};
  workspace_ = storage(workspaceBytes);
  if (!stateBytes) return;
  host::check(normc_plan_state_init(plan, &sizes_, state_.memory.address(), stateBytes));
  state_.memory.download();
  if (device_) device_->synchronize();
}

void RunCall::makeArguments() {
  const auto view = [&](const char* name) -> const DLTensor* {
    const auto at = tensors_.find(name);
    return at == tensors_.end() ? nullptr : &at->second.view;
  };
  args_.struct_size = sizeof args_;
  args_.x = view("x"), args_.y = view("y"), args_.dy = view("dy"), args_.dx = view("dx");
  args_.scale = view("scale"), args_.bias = view("bias");
  args_.dscale = view("dscale"), args_.dbias = view("dbias"), args_.mask = view("mask");
  if (!state_.empty()) {
    args_.state_in = state_.memory.address(), args_.state_in_bytes = state_.memory.bytes();
    if (!infer_)
      args_.state_out = stateAfter_.memory.address(), args_.state_out_bytes = stateAfter_.memory.bytes();
  }
  if (!saved_.empty() && !infer_)
    args_.saved = saved_.memory.address(), args_.saved_bytes = saved_.memory.bytes();
  args_.workspace = workspace_.address(), args_.workspace_bytes = workspace_.bytes();
  if (device_) args_.stream = device_->stream();
}

std::vector<gate::Storage*> RunCall::storages() {
  std::vector<gate::Storage*> all{&state_.memory, &stateAfter_.memory, &saved_.memory};
  for (auto& [name, tensor] : tensors_) all.push_back(&tensor.memory);
  return all;
}

void RunCall::upload() {
  translated([&] {
    for (const gate::Storage* storage : storages()) storage->upload();
  });
}

void RunCall::execute() {
  translated([&] {
    host::check(normc_execute(planned_.plan.get(), &args_));
    if (device_) device_->synchronize();
  });
}

void RunCall::download() {
  if (!device_) return;
  translated([&] {
    for (gate::Storage* storage : storages()) storage->download();
    device_->synchronize();
  });
}

Json RunCall::write() const {
  Json written = Json::array();
  for (const auto& [name, file] : outputs_) {
    const Tensor& tensor = tensors_.at(name);
    NpyArray array{fileType(tensor.type), tensor.shape, {}};
    if (tensor.type == DType::BF16) {
      for (int64_t i = 0; i < tensor.elements(); ++i) {
        const float value = float(tensor.memory.get(DType::BF16, i));
        array.data.append(reinterpret_cast<const char*>(&value), sizeof value);
      }
    } else {
      array.data.assign(static_cast<const char*>(tensor.memory.data()), tensor.memory.bytes());
    }
    writeNpy(file, array);
    written.push_back(
        {{"name", name}, {"file", file}, {"type", npyName(array.type)}, {"shape", array.shape}});
  }
  return written;
}

int64_t RunCall::transfers() const {
  const package::Kernel& kernel = planned_.kernel();
  const auto step = (backward_ ? saved_ : state_).scalar("step");
  const auto warmup = planned_.number("warmup_steps");
  // Forward reads the step before it, backward that of its forward.
  const bool warming = kernel.warmupTraffic && step && warmup && *step - backward_ < *warmup;
  const package::Traffic& traffic = warming ? *kernel.warmupTraffic : kernel.traffic;
  return (rowsOfColumn() <= traffic.heldRows ? traffic.least() : traffic.reads) + traffic.writes;
}

int64_t RunCall::rowsOfColumn() const {
  for (const package::Phase& phase : planned_.kernel().phases)
    for (const package::Factor& unit : phase.units)
      if (unit == package::kSegments) return sizes_.rows;
  return sizes_.segments * sizes_.rows;
}

std::string RunCall::shapeText() const { return shapeOf(xShape()); }

int64_t RunCall::xBytes() const {
  return sizes_.segments * sizes_.rows * sizes_.features * bytes(planned_.kernel().parts.data);
}

}  // namespace normc::cli
