#include "autotune/candidates/CallTime.h"

#include "autotune/measure/Subject.h"
#include "codegen/Target.h"

namespace normc::tune {
namespace {

/// Returns seconds, or 0 if no target of this build knows the kernel and can compile its schedule.
double predictedFor(const package::Kernel& kernel, const Problem& problem,
                    const codegen::Workload& workload) {
  auto targets = codegen::findGenerators(kernel.isa);
  if (!targets) {
    llvm::consumeError(targets.takeError());
    return 0;
  }
  for (const auto& target : *targets) {
    if (target->generator() != kernel.generator) continue;
    if (auto bound = target->bind(problem, kernel.schedule))
      return (*bound)->whyIllegal() ? 0 : (*bound)->predict(workload) * 1e-9;
    else
      llvm::consumeError(bound.takeError());
  }
  return 0;
}

}  // namespace

CallTime timeOf(host::Plan plan, const package::Kernel& kernel, const Problem& problem,
                const Extents& extents, const measure::Machine& machine, int64_t threads) {
  CallTime time;
  time.traffic = {int(kernel.traffic.reads), int(kernel.traffic.writes)};
  const measure::Buffers buffers(plan, problem, extents);
  time.transferBytes = buffers.bytesOfTransfer();
  measure::Subject subject(std::move(plan), buffers);
  const measure::TensorSet& call = buffers.tensors(0);
  const measure::CopyTensors tensors(call.inputs().size(), call.outputs().size(), time.transferBytes);
  std::vector<std::unique_ptr<measure::Contestant>> copies;
  std::vector<measure::Contestant*> all{&subject};
  for (const measure::Stores stores : {measure::Stores::Cached, measure::Stores::Streaming}) {
    copies.push_back(measure::makeCopy(tensors.inputs, tensors.outputs, time.transferBytes, time.traffic,
                                       stores, int(threads)));
    all.push_back(copies.back().get());
  }
  const auto samples = measure::race(all, measure::RaceOptions{});
  time.seconds = measure::median(samples[0]);
  const bool cached = measure::median(samples[1]) < measure::median(samples[2]);
  time.toCopy = measure::pairedRatio(samples[0], samples[cached ? 1 : 2]);
  time.predicted = predictedFor(
      kernel, problem,
      {extents.segments, extents.rows, extents.features, threads, machine.secondCache, machine.lastCache});
  return time;
}

}  // namespace normc::tune
