#include "bench/gpu/Host.h"

#include <algorithm>
#include <barrier>
#include <chrono>
#include <memory>
#include <set>
#include <thread>

#include "autotune/measure/CudaTimer.h"
#include "bench/gpu/Subject.h"

namespace normc::gpu {
namespace {

using gate::CudaDevice;

constexpr int kCalls = 200;  ///< fewer than a stream takes before the host has to wait
constexpr int kCaptured = 100;
constexpr int64_t kRows = 8;

double secondsOfOneCall(const Subject& subject) {
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < kCalls; ++i) subject.enqueue(0);
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count() / kCalls;
}

/// Samples of all threads together; they begin each sample at once.
measure::Samples enqueueOn(int threads, const std::string& driver, const Kernels& kernels, const Shape& shape,
                           int samplesOfEach) {
  std::vector<std::unique_ptr<CudaDevice>> devices;
  std::vector<std::unique_ptr<Subject>> subjects;
  for (int i = 0; i < threads; ++i) {
    devices.push_back(std::make_unique<CudaDevice>(kernels.device(), driver));
    subjects.push_back(std::make_unique<Subject>(*devices.back(), kernels, shape, 1));
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
          samples[t].push_back(secondsOfOneCall(*subjects[t]));
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

/// Subjects that begin anew, so that two runs of the same calls have to agree.
void startAfresh(const std::vector<std::unique_ptr<Subject>>& subjects) {
  for (const auto& subject : subjects) {
    subject->resetState();
    subject->poison(0);
  }
}

}  // namespace

std::vector<Shape> smallShapes(const Kernels& kernels) {
  std::vector<Shape> shapes;
  std::set<std::string> seen;
  for (const package::Kernel& kernel : kernels.kernels()) {
    const ProblemText& parts = kernel.parts;
    const bool plain = !parts.channelsFirst() && !parts.mask && !parts.segmented && parts.bindings.empty();
    if (!plain || parts.data != DType::F32 || parts.isInfer()) continue;
    if (!parts.features || *parts.features > 8192) continue;
    if (seen.insert(parts.head()).second)
      shapes.push_back({parts.norm, std::string(name(parts.entry)), std::string(name(parts.data)), kRows,
                        *parts.features});
  }
  return shapes;
}

void benchEnqueue(const std::string& driver, const Kernels& kernels, const std::vector<Shape>& shapes,
                  int samples, const std::function<void(const Json&)>& record) {
  for (const Shape& shape : shapes)
    for (const int threads : {1, 8}) {
      Json json = {{"kind", "enqueue"}, {"shape", shape.text()}, {"threads", threads}};
      try {
        const measure::Ratio us = middle(enqueueOn(threads, driver, kernels, shape, samples));
        json["us"] = {{"median", us.value * 1e6}, {"low", us.low * 1e6}, {"high", us.high * 1e6}};
        json["phases"] = kernels.kernels().at(kernels.plan(shape.text()).kernel()).phases.size();
      } catch (const std::runtime_error& error) {
        json["error"] = error.what();
      }
      record(json);
    }
}

Json testGraph(const CudaDevice& device, const Kernels& kernels, const std::vector<Shape>& shapes) {
  Json json = {{"kind", "graph"}, {"calls", kCaptured}, {"plans", shapes.size()}};
  if (shapes.empty()) {
    json["error"] = "the package has no kernel for a capture";
    return json;
  }
  try {
    std::vector<std::unique_ptr<Subject>> subjects;
    for (const Shape& shape : shapes)
      subjects.push_back(std::make_unique<Subject>(device, kernels, shape, 1));
    const auto enqueueAll = [&] {
      for (int call = 0; call < kCaptured; ++call) subjects[size_t(call) % subjects.size()]->enqueue(0);
    };
    startAfresh(subjects);
    enqueueAll();
    std::vector<std::vector<std::vector<char>>> expected;
    for (const auto& subject : subjects) {
      expected.push_back(subject->outputs(0));
      const std::vector<char>& wide = expected.back().front();
      if (std::ranges::all_of(wide, [](char c) { return uint8_t(c) == Subject::kPoison; }))
        throw std::runtime_error(shapes[expected.size() - 1].text() + " wrote nothing");
    }

    const Graph graph(device, enqueueAll);
    json["equal"] = true;
    for (int replay = 0; replay < 3; ++replay) {
      startAfresh(subjects);
      graph.launch();
      for (size_t i = 0; i < subjects.size(); ++i) {
        if (subjects[i]->outputs(0) == expected[i]) continue;
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
