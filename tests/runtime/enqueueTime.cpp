// Measures the host's time to enqueue a call on CUDA, without the driver's part: the fake driver returns at
// once.
//
//   normc_enqueue_time [REPEATS]
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>

#include "tests/runtime/CudaSupport.h"

namespace {

using namespace normc;
using namespace normc::test;

/// The median over batches, in microseconds a call.
template <typename Action>
double microseconds(int repeats, Action&& action) {
  constexpr int kBatches = 51;
  std::vector<double> times;
  for (int batch = 0; batch < kBatches; ++batch) {
    const auto begin = std::chrono::steady_clock::now();
    for (int i = 0; i < repeats; ++i) action();
    const std::chrono::duration<double, std::micro> spent = std::chrono::steady_clock::now() - begin;
    times.push_back(spent.count() / repeats);
  }
  std::sort(times.begin(), times.end());
  return times[kBatches / 2];
}

void report(const char* what, const host::Package& package, const char* problem, normc_args args,
            int repeats) {
  const Plan plan(package, problem, host::onCuda());
  fake_cuda_set_recording(0);
  args.struct_size = sizeof args;
  if (normc_execute(plan.get(), &args) != NORMC_OK) std::puts(normc_last_error());
  std::printf("%-44s %6.3f us\n", what, microseconds(repeats, [&] { normc_execute(plan.get(), &args); }));
  fake_cuda_set_recording(1);
}

}  // namespace

int main(int argc, char** argv) {
  const int repeats = argc > 1 ? std::max(1, std::atoi(argv[1])) : 2000;
  fake_cuda_reset();
  const host::Package package =
      openInMemory(cudaPackage({forCuda(layerNorm("forward")), forCuda(layerNorm("backward"))}),
                   host::Context(fakeDriver()));
  const CudaLayerNorm norm(32, 8);
  const host::Tensor tensors[] = {norm.matrix(norm.x),      norm.matrix(norm.y),     norm.matrix(norm.dy),
                                  norm.matrix(norm.dx),     norm.vector(norm.scale), norm.vector(norm.bias),
                                  norm.vector(norm.dscale), norm.vector(norm.dbias)};
  DLTensor views[8];
  for (int i = 0; i < 8; ++i) views[i] = tensors[i].dlpack();
  const Stream stream;
  normc_args forward = {}, backward = {};
  forward.x = &views[0], forward.y = &views[1], forward.scale = &views[4], forward.bias = &views[5];
  backward.x = &views[0], backward.dy = &views[2], backward.dx = &views[3], backward.scale = &views[4];
  backward.dscale = &views[6], backward.dbias = &views[7];
  for (normc_args* args : {&forward, &backward}) {
    args->saved = norm.saved.data(), args->saved_bytes = norm.saved.buffer().bytes;
    args->workspace = norm.workspace.data(), args->workspace_bytes = norm.workspace.buffer().bytes;
    args->stream = stream.get();
  }
  {
    const Current current;
    report("layer_norm forward, one launch", package, "layer_norm:forward@f32[*x*]", forward, repeats);
    report("layer_norm backward, two launches", package, "layer_norm:backward@f32[*x*]", backward, repeats);
  }
}
