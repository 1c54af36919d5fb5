#include "tests/runtime/TestPackage.h"

#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <iterator>

#include "runtime/normc.h"

namespace normc::test {
namespace {

using package::Access;
using package::chunksOf;
using package::Kernel;
using package::kFeatures;
using package::kRows;
using package::kSegments;
using package::Operand;
using package::Phase;
using package::Role;
using package::Shape;
using package::When;

const Shape kAllRows = {kSegments, kRows};
const Shape kPartials = {chunksOf(0), kFeatures};
const Shape kOne = {};

Operand tensor(const char* name, bool written = false) {
  return {Role::Tensor, name, std::string(name) == "mask" ? DType::U8 : DType::F32,
          written ? Access::Write : Access::Read};
}
Operand field(Role role, const char* name, DType type = DType::F32, bool written = false) {
  return {role, name, type, written ? Access::Write : Access::Read};
}
Operand partials(const char* name) { return {Role::Workspace, name, DType::F32, Access::Both, kPartials}; }

/// Returns a kernel with the members that all kernels here have in common.
Kernel kernel(const std::string& norm, const std::string& entry, std::optional<int64_t> features) {
  Kernel result;
  result.problem = norm + ":" + entry + "@f32[*x" + (features ? std::to_string(*features) : "*") + "]";
  result.parts.entry = entryNamed(entry).value();
  result.parts.features = features;
  result.isa = hostIsa();
  result.generator = "hand";
  result.schedule = "scalar";
  return result;
}

Phase overRows(const char* symbol) { return {symbol, "apply", kAllRows, 4, 2, 8}; }
Phase overFeatures(const char* symbol) { return {symbol, "finish", {kFeatures}, 4, 1, 4}; }

std::string normOf(const Kernel& kernel) { return kernel.problem.substr(0, kernel.problem.find(':')); }

void add(package::Writer& writer, Kernel kernel) {
  const std::string norm = normOf(kernel);
  kernel.norm = writer.addNorm(norm, "hash-of-" + norm, "norm " + norm + " {}\n");
  kernel.blob = writer.addBlob(kernelObject(), "elf", kernel.isa);
  writer.addKernel(std::move(kernel));
}

}  // namespace

std::string kernelObject() {
  std::ifstream file(NORMC_TEST_KERNELS, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::string hostIsa() { return normc_cpu_isa(); }

Kernel layerNorm(const std::string& entry, std::optional<int64_t> features) {
  Kernel result = kernel("layer_norm", entry, features);
  result.saved = {{"mean", DType::F32, kAllRows}, {"rstd", DType::F32, kAllRows}};
  if (entry == "forward") {
    result.operands = {tensor("x"),
                       tensor("scale"),
                       tensor("bias"),
                       tensor("y", true),
                       field(Role::Saved, "mean", DType::F32, true),
                       field(Role::Saved, "rstd", DType::F32, true)};
    result.scalars = {{"epsilon", 1e-5}};
    result.phases = {overRows("layer_norm_forward")};
    result.traffic = {1, 1};
  } else {
    result.operands = {tensor("x"),
                       tensor("dy"),
                       tensor("scale"),
                       field(Role::Saved, "mean"),
                       field(Role::Saved, "rstd"),
                       tensor("dx", true),
                       tensor("dscale", true),
                       tensor("dbias", true),
                       partials("partial_scale"),
                       partials("partial_bias")};
    result.scalars = {{"epsilon", 1e-5}};
    result.phases = {overRows("layer_norm_backward"), overFeatures("layer_norm_finish")};
    result.traffic = {2, 1};
  }
  return result;
}

Kernel powerNorm(const std::string& entry, std::optional<int64_t> features) {
  Kernel result = kernel("power_norm", entry, features);
  result.state = {
      {"step", DType::I64}, {"psi2", DType::F32, {kFeatures}, 1}, {"nu", DType::F32, {kFeatures}, 0}};
  result.saved = {{"rstd", DType::F32, {kFeatures}, 0}, {"second_moment", DType::F32, {kFeatures}, 0}};
  if (entry == "forward") {
    result.operands = {tensor("x"),
                       tensor("scale"),
                       tensor("bias"),
                       field(Role::StateIn, "psi2"),
                       field(Role::StateIn, "step", DType::I64),
                       tensor("y", true),
                       field(Role::Saved, "rstd", DType::F32, true),
                       field(Role::Saved, "second_moment", DType::F32, true),
                       field(Role::StateOut, "psi2", DType::F32, true),
                       field(Role::StateOut, "step", DType::I64, true),
                       partials("partial")};
    result.scalars = {{"epsilon", 1e-5, {.above = 0}}, {"decay", 0.9, {.least = 0, .below = 1}}};
    result.phases = {overRows("power_norm_forward"), overFeatures("power_norm_finish")};
  } else {
    result.operands = {tensor("x"),
                       tensor("dy"),
                       tensor("scale"),
                       field(Role::StateIn, "nu"),
                       field(Role::Saved, "rstd"),
                       field(Role::Saved, "second_moment"),
                       tensor("dx", true),
                       tensor("dscale", true),
                       tensor("dbias", true),
                       field(Role::StateOut, "nu", DType::F32, true),
                       partials("partial_scale"),
                       partials("partial_bias")};
    result.scalars = {{"backward_decay", 0.9}};
    result.phases = {overRows("power_norm_backward"), overFeatures("power_norm_backward_finish")};
  }
  return result;
}

Kernel probe(const std::string& layout, bool segmented, bool mask) {
  Kernel result = kernel("probe", "forward", {});
  const bool channelsFirst = layout == "channels_first";
  result.parts.layout = channelsFirst ? Layout::ChannelsFirst : Layout::FeaturesLast;
  result.parts.segmented = segmented;
  result.parts.mask = mask;
  result.problem = std::string("probe:forward@f32[*x*") + (segmented ? "x*]" : "]");
  if (channelsFirst || mask)
    result.problem += std::string("{") + (channelsFirst ? "layout=channels_first" : "") +
                      (channelsFirst && mask ? "," : "") + (mask ? "mask" : "") + "}";
  result.operands = {tensor("x"), tensor("y", true)};
  if (mask) result.operands.push_back(tensor("mask"));
  result.scalars = {
      {"factor", 2}, {"masked", mask ? 1.0 : 0.0}, {"channels_first", channelsFirst ? 1.0 : 0.0}};
  const Shape lines = {kSegments, channelsFirst ? kFeatures : kRows};
  result.phases = {{"probe_forward", "apply", lines, 1, 1, 16}};
  return result;
}

Kernel warmup(const std::string& entry) {
  Kernel result = kernel("warmup", entry, {});
  result.state = {{"step", DType::I64}, {"warmed", DType::F32}};
  if (entry == "backward") result.saved = {{"step", DType::I64}};
  const bool forward = entry == "forward";
  result.operands = {
      tensor(forward ? "x" : "dy"),
      forward ? field(Role::StateIn, "step", DType::I64) : field(Role::Saved, "step", DType::I64),
      tensor(forward ? "y" : "dx", true), field(Role::StateOut, "warmed", DType::F32, true)};
  result.scalars = {{"warmup_steps", 3, {.whole = true}}};
  result.phases = {{"warmup_statistics", "statistics", kOne, 1, 1, 1, When::Warmup},
                   overRows("warmup_apply")};
  return result;
}

Kernel sums(const std::string& entry, std::optional<int64_t> features) {
  Kernel result = kernel("sums", entry, features);
  result.partial = {{"rows", DType::F64}, {"squares", DType::F64, {kFeatures}}};
  if (entry == "forward_reduce") {
    result.operands = {tensor("x"), field(Role::Partial, "rows", DType::F64, true),
                       field(Role::Partial, "squares", DType::F64, true)};
  } else {
    result.state = {{"psi2", DType::F32, {kFeatures}, 1}};
    result.operands = {field(Role::Partials, "rows", DType::F64),
                       field(Role::Partials, "squares", DType::F64),
                       field(Role::StateOut, "psi2", DType::F32, true)};
  }
  const bool reduces = entry == "forward_reduce";
  result.phases = {{reduces ? "sums_forward_reduce" : "sums_commit", "statistics", kOne, 1, 1, 1}};
  return result;
}

Kernel around(const std::string& entry) {
  Kernel result = kernel("around", entry, {});
  result.problem = "around:" + entry + "@f32[*x*x*]";
  result.parts.segmented = true;
  const auto shaped = [](const char* name, Shape shape, bool written = false) {
    Operand operand = tensor(name, written);
    operand.shape = std::move(shape);
    return operand;
  };
  const Shape segments = {kSegments, kFeatures};
  if (entry == "forward") {
    result.operands = {tensor("x"),
                       tensor("residual"),
                       shaped("gate", {kFeatures}),
                       shaped("mod_scale", segments),
                       shaped("mod_shift", segments),
                       tensor("residual_out", true),
                       tensor("y", true)};
    result.phases = {overRows("around_forward")};
  } else {
    result.operands = {tensor("dy"),
                       tensor("residual_out"),
                       shaped("gate", {kFeatures}),
                       shaped("mod_scale", segments),
                       shaped("mod_shift", segments),
                       tensor("dresidual_out"),
                       tensor("dx", true),
                       shaped("dgate", {kFeatures}, true),
                       shaped("dmod_scale", segments, true),
                       shaped("dmod_shift", segments, true),
                       partials("partial_gate")};
    result.ignored = {"x", "residual"};
    result.same = {{"dresidual", "dx"}};
    result.phases = {{"around_backward", "apply", {kSegments}, 1, 1, 8}, overFeatures("around_finish")};
  }
  return result;
}

package::Writer packageOf(std::vector<Kernel> kernels) {
  package::Writer writer({{"normc", "test"}});
  for (Kernel& one : kernels) add(writer, std::move(one));
  return writer;
}

package::Writer packageOf(Kernel kernel) { return packageOf(std::vector<Kernel>{std::move(kernel)}); }

package::Writer standardPackage() {
  return packageOf({layerNorm("forward"), layerNorm("backward"), powerNorm("forward"), powerNorm("backward"),
                    probe("features_last", false, false), probe("features_last", false, true),
                    probe("features_last", true, false), probe("features_last", true, true),
                    probe("channels_first", true, false), probe("channels_first", true, true),
                    warmup("forward"), warmup("backward")});
}

std::string temporaryPath(const std::string& name) {
  const char* folder = std::getenv("TMPDIR");
  return std::string(folder ? folder : "/tmp") + "/normc-test-" + std::to_string(getpid()) + "-" + name;
}

}  // namespace normc::test
