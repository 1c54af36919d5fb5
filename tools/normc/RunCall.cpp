#include "tools/normc/RunCall.h"

#include <algorithm>
#include <cstring>

#include "dsl/Nearest.h"
#include "tools/normc/Npy.h"
#include "tools/normc/Translated.h"
#include "tools/normc/Values.h"

namespace normc::cli {

namespace {

/// The type of a file that holds the tensor exactly.
DType fileType(DType type) { return type == DType::BF16 ? DType::F32 : type; }

/// Writes an array to a tensor's memory, rounded where their float types differ.
void store(const NpyArray& from, DType to, gate::Storage& memory) {
  if (from.type == to) {
    std::memcpy(memory.data(), from.data.data(), from.data.size());
    return;
  }
  gate::Storage source(int64_t(from.data.size()), 0);
  std::memcpy(source.data(), from.data.data(), from.data.size());
  for (int64_t i = 0; i < from.elements(); ++i) memory.put(to, i, source.get(from.type, i));
}

/// Reads the file of an input. Throws unless its values are of the tensor's type, or can be rounded to it.
NpyArray readInput(Tensor tensor, DType type, const std::string& file, Output& out) {
  NpyArray array = readNpy(file);
  if (array.type == type) return array;
  const DType exact = fileType(type);
  if (!isFloat(array.type) || !isFloat(type))
    throw refused(file + " holds " + npyName(array.type) + "; " + std::string(name(tensor)) + " is " +
                      std::string(name(type)),
                  "save it as " + npyName(exact));
  if (array.type != exact)
    out.note(file + " holds " + npyName(array.type) + "; its values are rounded to " +
             std::string(name(type)));
  return array;
}

/// The operand of a tensor; null if the kernel has none.
const package::Operand* operandOf(const package::Kernel& kernel, Tensor tensor) {
  for (const package::Operand& operand : kernel.operands)
    if (operand.role == package::Role::Tensor && operand.tensor == tensor) return &operand;
  return nullptr;
}

/// The tensors of a kernel that it writes, or reads, in the order of the table.
std::vector<Tensor> tensorsOf(const package::Kernel& kernel, bool written) {
  std::vector<Tensor> tensors;
  for (const TensorInfo& each : kTensorTable)
    if (const package::Operand* operand = operandOf(kernel, each.tensor);
        operand && operand->written() == written)
      tensors.push_back(each.tensor);
  return tensors;
}

/// Refuses an output that has no file of its own because it is equal to another tensor.
void refuseSame(const FileMap& outputs, const package::Kernel& kernel) {
  for (const auto& [of, other] : kernel.same)
    if (outputs.contains(of))
      throw usage(
          kernel.problem + " does not write " + inQuotes(of) + ", because it is equal to " + inQuotes(other),
          "leave out --out " + of);
}

std::vector<std::string> namesOf(const std::vector<Tensor>& tensors) {
  std::vector<std::string> names;
  for (const Tensor each : tensors) names.emplace_back(name(each));
  return names;
}

void refuseUnknown(const FileMap& files, const std::vector<std::string>& known, const std::string& flag,
                   const std::string& problem) {
  for (const auto& [name, file] : files)
    if (std::find(known.begin(), known.end(), name) == known.end())
      throw usage(problem + " has no " + flag.substr(2) + "put " + inQuotes(name),
                  didYouMean(name, known, "it has " + joined(known)));
}

/// Calls `body`, for which the flags are right: what the runtime refuses is in the files.
template <typename Body>
void withFiles(Body&& body) {
  try {
    body();
  } catch (const host::Error& error) {
    throw refused(error.what());
  }
}

}  // namespace

RunCall::RunCall(Planned& planned, const FileMap& inputs, const FileMap& outputs, Output& out)
    : planned_(planned), device_(planned.place.open()), outputs_(outputs) {
  const package::Kernel& kernel = planned.kernel();
  const std::string& problem = kernel.problem;
  parts_ = parseProblemText(problem).value();
  if (parts_.isOverRanks())
    throw refused(problem + " exchanges sums with other calls",
                  "call it through the C API; docs/many-ranks.md shows how");
  const std::vector<Tensor> reads = tensorsOf(kernel, false), writes = tensorsOf(kernel, true);
  std::vector<std::string> known = namesOf(reads);
  for (const std::string& ignored : kernel.ignored.value_or(std::vector<std::string>{}))
    if (inputs.contains(ignored)) {
      known.push_back(ignored);
      out.note(problem + " does not read " + ignored);
    }
  refuseUnknown(inputs, known, "--in", problem);
  refuseSame(outputs, kernel);
  refuseUnknown(outputs, namesOf(writes), "--out", problem);
  std::map<Tensor, NpyArray> arrays;
  for (const Tensor tensor : reads) {
    const auto file = inputs.find(std::string(name(tensor)));
    if (file != inputs.end())
      arrays[tensor] = readInput(tensor, typeOf(tensor), file->second, out);
    else if (!infoOf(tensor).mayBeLeftOut())
      throw usage(problem + " needs --in " + std::string(name(tensor)) + "=FILE.npy",
                  "its inputs are " + joined(namesOf(reads)));
  }
  const auto wide = std::find_if(reads.begin(), reads.end(), [&](Tensor tensor) {
    return operandOf(kernel, tensor)->tensorShape == TensorShape::Elements;
  });
  if (wide == reads.end()) throw refused("the kernel reads no tensor with rows and features");
  x_ = *wide;
  xShape_ = arrays.at(x_).shape;
  withFiles([&] {
    makeArguments(arrays, writes);
    planned.callOf(arguments_->sizes());
  });
}

DType RunCall::typeOf(Tensor tensor) const {
  const package::Operand* const operand = operandOf(planned_.kernel(), tensor);
  return operand ? operand->type : normc::typeOf(tensor, parts_.types());
}

normc_sizes RunCall::sizes() const {
  const bool segmented = parts_.segmented, channelsFirst = parts_.channelsFirst();
  if (xShape_.size() < (segmented ? 3 : 2))
    throw refused(std::string(name(x_)) + " has the shape " + shapeText() + "; " + parts_.text() +
                  " takes at least " + (segmented ? "three" : "two") + " dimensions");
  const int64_t features = channelsFirst ? xShape_[1] : xShape_.back();
  if (parts_.features && *parts_.features != features)
    throw refused(std::string(name(x_)) + " has " + counted(features, "feature") + "; " + parts_.text() +
                  " is for " + std::to_string(*parts_.features));
  int64_t rows = 1;
  const auto first = xShape_.begin() + (channelsFirst ? 2 : segmented ? 1 : 0);
  for (auto size = first; size != xShape_.end() - (channelsFirst ? 0 : 1); ++size) rows *= *size;
  return host::Plan::sizes(segmented ? xShape_[0] : 1, rows, features);
}

/// MemoryBlock for all, the inputs filled, and a fresh state.
void RunCall::makeArguments(const std::map<Tensor, NpyArray>& inputs, const std::vector<Tensor>& outputs) {
  const normc_sizes sizes = this->sizes();
  gate::Layouts layouts;
  for (const auto& [tensor, array] : inputs)
    layouts[tensor] = gate::TensorLayout::compact(typeOf(tensor), array.shape);
  for (const Tensor tensor : outputs)
    layouts[tensor] = gate::TensorLayout::compact(typeOf(tensor), shapeOf(tensor, sizes));
  arguments_.emplace(
      gate::Arguments(planned_.plan.get(), parts_.entry, sizes, std::move(layouts), device_.get()),
      gate::Placement{.stateInPlace = false});
  if (!state().empty())
    host::check(normc_plan_state_init(planned_.plan.get(), &sizes, state().memory.address(),
                                      arguments_->stateBytes()));
  state().memory.download();
  if (device_) device_->synchronize();
  for (const auto& [tensor, array] : inputs) store(array, typeOf(tensor), (*arguments_)[tensor]);
}

std::vector<int64_t> RunCall::shapeOf(Tensor output, const normc_sizes& sizes) const {
  const TensorShape shape = operandOf(planned_.kernel(), output)->tensorShape;
  if (shape == TensorShape::PerFeature) return {sizes.features};
  if (shape == TensorShape::PerBlock) {
    std::vector<int64_t> leading(xShape_.begin(), xShape_.end() - 1);
    if (planned_.kernel().block) leading.push_back(planned_.kernel().blocks(sizes.features));
    return leading;
  }
  // Only inputs have the shape PerPair.
  return shape == TensorShape::PerSegment ? std::vector{sizes.segments, sizes.features} : xShape_;
}

void RunCall::upload() { arguments_->upload(); }

void RunCall::execute() {
  translated([&] {
    withFiles([&] { host::check(normc_execute(planned_.plan.get(), &arguments_->args())); });
    if (device_) device_->synchronize();
  });
}

void RunCall::download() { arguments_->download(); }

Json RunCall::write() const {
  Json written = Json::array();
  for (const auto& [name, file] : outputs_) {
    const Tensor tensor = tensorNamed(name).value();
    const gate::TensorLayout& layout = arguments_->layouts().at(tensor);
    const gate::Storage& memory = (*arguments_)[tensor];
    NpyArray array{fileType(layout.type), layout.shape, {}};
    if (layout.type == DType::BF16) {
      for (int64_t i = 0; i < layout.elements; ++i) {
        const float value = float(memory.get(DType::BF16, i));
        array.data.append(reinterpret_cast<const char*>(&value), sizeof value);
      }
    } else {
      array.data.assign(static_cast<const char*>(memory.data()), memory.bytes());
    }
    writeNpy(file, array);
    written.push_back(
        {{"name", name}, {"file", file}, {"type", npyName(array.type)}, {"shape", array.shape}});
  }
  return written;
}

int64_t RunCall::transfers() const {
  const package::Kernel& kernel = planned_.kernel();
  const bool fromSaved = readsSaved();  // the step of the forward that wrote it
  const auto step = (fromSaved ? arguments_->saved : arguments_->state).scalar("step");
  const auto warms = [&] { return *step - fromSaved < planned_.plan.number("warmup_steps"); };
  const bool warming = kernel.warmupTraffic && step && warms();
  const package::Traffic& traffic = warming ? *kernel.warmupTraffic : kernel.traffic;
  return (rowsOfColumn() <= traffic.heldRows ? traffic.least() : traffic.reads) + traffic.writes;
}

int64_t RunCall::rowsOfColumn() const {
  const normc_sizes& sizes = arguments_->sizes();
  for (const package::Phase& phase : planned_.kernel().phases)
    for (const package::Factor& unit : phase.units)
      if (unit == package::kSegments) return sizes.rows;
  return sizes.segments * sizes.rows;
}

std::string RunCall::shapeText() const {
  std::vector<std::string> sizes;
  for (const int64_t size : xShape_) sizes.push_back(std::to_string(size));
  return joined(sizes, "x");
}

int64_t RunCall::bytesOfTransfer() const {
  int64_t ofElement = 0, tensors = 0, elements = 1;
  for (const package::Operand& operand : planned_.kernel().operands)
    if (operand.role == package::Role::Tensor && operand.tensorShape == TensorShape::Elements) {
      ofElement += bytes(operand.type);
      ++tensors;
    }
  for (const int64_t size : xShape_) elements *= size;
  return elements * ofElement / tensors;
}

}  // namespace normc::cli
