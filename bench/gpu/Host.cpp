#include "bench/gpu/Host.h"

#include <algorithm>
#include <barrier>
#include <memory>
#include <set>
#include <thread>

#include "autotune/measure/CudaTimer.h"
#include "bench/kit/Text.h"
#include "bench/kit/TrainingCall.h"

namespace normc::gpu {
namespace {

using gate::CudaDevice;

constexpr int kCalls = 200;  ///< fewer than a stream takes before the host has to wait
constexpr size_t kCaptured = 100;
constexpr int64_t kRows = 8;

/// Samples of all threads together; they begin each sample at once.
measure::Samples enqueueOn(int threads, const std::string& driver, const Kernels& kernels,
                           const ProblemText& shape, int samplesOfEach) {
  std::vector<std::unique_ptr<CudaDevice>> devices;
  std::vector<std::unique_ptr<TrainingCall>> calls;
  for (int i = 0; i < threads; ++i) {
    devices.push_back(std::make_unique<CudaDevice>(kernels.device(), driver));
    calls.push_back(std::make_unique<TrainingCall>(*devices.back(), kernels, shape, 1));
  }
  std::vector<measure::Samples> samples(static_cast<size_t>(threads));
  std::vector<std::string> errors(static_cast<size_t>(threads));
  std::barrier together(threads);
  std::vector<std::thread> workers;
  for (size_t t = 0; t < size_t(threads); ++t)
    workers.emplace_back([&, t] {
      for (int i = 0; i <= samplesOfEach; ++i) {
        together.arrive_and_wait();
        try {
          // The context is current, as in a framework: what is timed is execute alone.
          const CudaDevice::Current current(*devices[t]);
          samples[t].push_back(timed(kCalls, [&] { calls[t]->enqueue(0); }) / kCalls);
          devices[t]->synchronize();
        } catch (const std::exception& error) {
          errors[t] = error.what();
        }
      }
    });
  for (std::thread& worker : workers) worker.join();
  measure::Samples all;
  for (size_t t = 0; t < size_t(threads); ++t) {
    if (!errors[t].empty()) throw std::runtime_error(errors[t]);
    all.insert(all.end(), samples[t].begin() + 1, samples[t].end());  // the first one warms up
  }
  return all;
}

}  // namespace

std::vector<ProblemText> smallShapes(const Kernels& kernels) {
  std::vector<ProblemText> shapes;
  std::set<std::string> seen;
  for (const package::Kernel& kernel : kernels.kernels()) {
    const ProblemText& parts = kernel.parts;
    const bool plain = !parts.channelsFirst() && !parts.mask && !parts.segmented && parts.bindings.empty();
    if (!plain || parts.data != DType::F32 || !parts.usesSaved()) continue;
    if (!parts.features || *parts.features > 8192) continue;
    if (seen.insert(parts.head()).second) shapes.push_back(parts.withSizes(1, kRows));
  }
  return shapes;
}

void benchEnqueue(const std::string& driver, const Kernels& kernels, const std::vector<ProblemText>& shapes,
                  int samples, const std::function<void(const Json&)>& record) {
  for (const ProblemText& shape : shapes)
    for (const int threads : {1, 8}) {
      Json json = {{"kind", "enqueue"}, {"shape", shape.text()}, {"threads", threads}};
      try {
        json["us"] = inMicroseconds(enqueueOn(threads, driver, kernels, shape, samples));
        json["phases"] = kernels.kernels().at(kernels.plan(shape.text()).kernel()).phases.size();
      } catch (const std::runtime_error& error) {
        json["error"] = error.what();
      }
      record(json);
    }
}

Json testGraph(const CudaDevice& device, const Kernels& kernels, const std::vector<ProblemText>& shapes) {
  Json json = {{"kind", "graph"}, {"calls", kCaptured}, {"plans", shapes.size()}};
  if (shapes.empty()) {
    json["error"] = "the package has no kernel for a capture";
    return json;
  }
  try {
    std::vector<std::unique_ptr<TrainingCall>> calls;
    for (const ProblemText& shape : shapes)
      calls.push_back(std::make_unique<TrainingCall>(device, kernels, shape, 1));
    const auto enqueueAll = [&] {
      for (size_t i = 0; i < kCaptured; ++i) calls[i % calls.size()]->enqueue(0);
    };
    for (const auto& call : calls) call->startAfresh();  // so that two runs of the same calls have to agree
    enqueueAll();
    std::vector<std::vector<std::vector<char>>> expected;
    for (const auto& call : calls) {
      expected.push_back(call->outputs(0));
      const std::vector<char>& wide = expected.back().front();
      if (std::ranges::all_of(wide, [](char c) { return uint8_t(c) == TrainingCall::kPoison; }))
        throw std::runtime_error(shapes[expected.size() - 1].text() + " wrote nothing");
    }

    const Graph graph(device, enqueueAll);
    json["equal"] = true;
    for (int replay = 0; replay < 3; ++replay) {
      for (const auto& call : calls) call->startAfresh();
      graph.launch();
      for (size_t i = 0; i < calls.size(); ++i) {
        if (calls[i]->outputs(0) == expected[i]) continue;
        json["equal"] = false;
        json["differs"] = shapes[i].text();
      }
    }
  } catch (const std::runtime_error& error) {
    json["error"] = error.what();
  }
  return json;
}

}  // namespace normc::gpu
