#include "tests/runtime/CudaSupport.h"

#include <algorithm>
#include <iterator>

namespace normc::test {
namespace {

using namespace cuda;

void need(CUresult result) {
  if (result == CUDA_SUCCESS) return;
  const char* name = nullptr;
  cuGetErrorName(result, &name);
  throw std::runtime_error(std::string("the test's own call failed: ") + (name ? name : "?"));
}

size_t wordsOf(const package::Kernel& kernel) {
  size_t words = kernel.operands.size() + 3 + kernel.scalars.size() + 3 * kernel.phases.size();
  for (const package::Operand& operand : kernel.operands) words += hasStrides(operand) ? 2 : 0;
  return words;
}

std::vector<std::string> symbolsOf(const package::Kernel& kernel) {
  std::vector<std::string> symbols;
  for (const package::Phase& phase : kernel.phases) {
    symbols.push_back(phase.symbol);
    if (phase.unaligned) symbols.push_back(*phase.unaligned);
  }
  return symbols;
}

}  // namespace

bool hasStrides(const package::Operand& operand) {
  static const std::string strided[] = {"x",    "y",        "dy",           "dx",
                                        "mask", "residual", "residual_out", "dresidual_out"};
  return operand.role == package::Role::Tensor &&
         std::find(std::begin(strided), std::end(strided), operand.name) != std::end(strided);
}

package::Kernel forCuda(package::Kernel kernel, const std::string& isa) {
  kernel.device = "cuda";
  kernel.isa = isa;
  kernel.alignment = 16;
  int64_t threads = 64;
  for (package::Phase& phase : kernel.phases) {
    phase.launch = package::Launch{.threads = threads++};
    phase.unaligned = phase.symbol + "_any";
  }
  return kernel;
}

std::string ptxOf(const package::Kernel& kernel) {
  std::string text = ".version 8.0\n.target " + kernel.isa + "\n.address_size 64\n";
  for (const std::string& symbol : symbolsOf(kernel)) {
    text += ".visible .entry " + symbol + "(";
    for (size_t i = 0; i < wordsOf(kernel); ++i)
      text += std::string(i ? "," : "") + "\n\t.param .u64 " + symbol + "_param_" + std::to_string(i);
    text += "\n)\n{\n\tret;\n}\n";
  }
  return text;
}

std::string cubinOf(const package::Kernel& kernel) {
  std::string text = kernel.isa;
  for (const std::string& symbol : symbolsOf(kernel)) text += " " + symbol;
  return text;
}

package::Writer cudaPackage(const std::vector<package::Kernel>& kernels) {
  package::Writer writer({{"normc", "test"}});
  for (package::Kernel kernel : kernels) {
    const std::string norm = kernel.problem.substr(0, kernel.problem.find(':'));
    kernel.norm = writer.addNorm(norm, "hash-of-" + norm, "norm " + norm + " {}\n");
    kernel.blob = kernel.device == "cuda" ? writer.addBlob(ptxOf(kernel), "ptx", kernel.isa)
                                          : writer.addBlob(kernelObject(), "elf", kernel.isa);
    if (kernel.cubin) kernel.cubin = writer.addBlob(cubinOf(kernel), "cubin", kernel.isa);
    writer.addKernel(std::move(kernel));
  }
  return writer;
}

normc_context_options fakeDriver() {
  normc_context_options options = oneThread();
  options.cuda_library = NORMC_FAKE_CUDA;
  return options;
}

std::vector<Launched> launches() {
  std::vector<Launched> result;
  fake_cuda_launch launch;
  for (size_t i = 0; fake_cuda_launch_at(i, &launch); ++i) {
    Launched& one = result.emplace_back();
    one.function = launch.function;
    one.grid.assign(launch.grid, launch.grid + 3);
    one.block.assign(launch.block, launch.block + 3);
    one.cluster.assign(launch.cluster, launch.cluster + 3);
    one.shared = launch.shared_bytes;
    one.device = launch.device;
    one.stream = launch.stream;
    one.dependent = launch.dependent != 0;
    one.cooperative = launch.cooperative != 0;
    one.words.resize(launch.parameter_bytes / sizeof(uint64_t));
    std::memcpy(one.words.data(), launch.parameters, launch.parameter_bytes);
  }
  return result;
}

std::string launchedFunctions() {
  std::string text;
  for (const Launched& launch : launches()) text += (text.empty() ? "" : " ") + launch.function;
  return text;
}

std::string driverCalls() {
  std::string text;
  for (size_t i = 0; const char* call = fake_cuda_call_at(i); ++i)
    if (std::strncmp(call, "cuCtx", 5) != 0) text += (text.empty() ? "" : " ") + std::string(call);
  return text;
}

Current::Current(int device) : device_(device) {
  CUcontext context = nullptr;  // a failure here appears in the calls under it
  cuInit(0);
  cuDevicePrimaryCtxRetain(&context, device);
  cuCtxPushCurrent_v2(context);
}

Current::~Current() {
  CUcontext context;
  cuCtxPopCurrent_v2(&context);
  cuDevicePrimaryCtxRelease_v2(device_);
}

DeviceBuffer::DeviceBuffer(size_t bytes, int device) : bytes_(bytes), device_(device) {
  const Current current(device);
  need(cuMemAlloc_v2(&address_, std::max<size_t>(bytes, 1)));
}

DeviceBuffer::~DeviceBuffer() {
  const Current current(device_);
  cuMemFree_v2(address_);
}

Stream::Stream(int device) : device_(device) {
  const Current current(device);
  need(cuStreamCreate(&stream_, CU_STREAM_NON_BLOCKING));
}

Stream::~Stream() {
  const Current current(device_);
  cuStreamDestroy_v2(stream_);
}

CudaLayerNorm::CudaLayerNorm(int64_t rows, int64_t features)
    : rows(rows),
      features(features),
      x(rows * features * 4),
      dy(rows * features * 4),
      y(rows * features * 4),
      dx(rows * features * 4),
      scale(features * 4),
      bias(features * 4),
      dscale(features * 4),
      dbias(features * 4),
      saved(2 * ((rows * 4 + 63) / 64 * 64)),
      workspace(1 << 16) {}

Call CudaLayerNorm::forward() const {
  Call call;
  call.x = matrix(x), call.y = matrix(y), call.scale = vector(scale), call.bias = vector(bias);
  call.saved = saved.buffer();
  return call;
}

Call CudaLayerNorm::backward() const {
  Call call;
  call.x = matrix(x), call.dy = matrix(dy), call.dx = matrix(dx), call.scale = vector(scale);
  call.dscale = vector(dscale), call.dbias = vector(dbias);
  call.saved = saved.buffer(), call.workspace = workspace.buffer();
  return call;
}

}  // namespace normc::test
