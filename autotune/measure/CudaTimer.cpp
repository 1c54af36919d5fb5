#include "autotune/measure/CudaTimer.h"

#include <algorithm>
#include <cmath>

#include "autotune/measure/Order.h"

namespace normc::measure {

using namespace cuda;
using gate::CudaDevice;

namespace {

constexpr int kMostSets = 64, kMostCalls = 512;

/// Frees resources of a context; if the context is lost, they are already gone.
template <typename Free>
void quietly(const CudaDevice& device, Free free) {
  try {
    const CudaDevice::Current current(device);
    free();
  } catch (const gate::CudaError&) {
  }
}

}  // namespace

int coldSets(const CudaDevice& device, int64_t bytes) {
  const int64_t cache = device.attribute(CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE);
  return int(std::clamp<int64_t>(2 * cache / std::max<int64_t>(bytes, 1) + 1, 2, kMostSets));
}

Event::Event(const CudaDevice& device) : device_(device) {
  const CudaDevice::Current current(device);
  device.driver().check(device.driver().cuEventCreate(&handle_, 0), "making an event");
}

Event::~Event() {
  quietly(device_, [&] { device_.driver().cuEventDestroy_v2(handle_); });
}

void Stopwatch::start() const {
  const CudaDevice::Current current(device_);
  device_.driver().check(device_.driver().cuEventRecord(begin_.handle(), device_.stream()),
                         "recording an event");
}

double Stopwatch::seconds() const {
  const CudaDevice::Current current(device_);
  const auto& driver = device_.driver();
  driver.check(driver.cuEventRecord(end_.handle(), device_.stream()), "recording an event");
  driver.check(driver.cuEventSynchronize(end_.handle()), "waiting for an event");
  float milliseconds = 0;
  driver.check(driver.cuEventElapsedTime(&milliseconds, begin_.handle(), end_.handle()),
               "asking for the time between events");
  return milliseconds * 1e-3;
}

Graph::Graph(const CudaDevice& device, const std::function<void()>& enqueue) : device_(device) {
  const CudaDevice::Current current(device);
  const auto& driver = device.driver();
  driver.check(driver.cuStreamBeginCapture_v2(device.stream(), CU_STREAM_CAPTURE_MODE_THREAD_LOCAL),
               "beginning to capture a stream");
  CUgraph graph = nullptr;
  try {
    enqueue();
  } catch (...) {
    if (driver.cuStreamEndCapture(device.stream(), &graph) == CUDA_SUCCESS && graph)
      driver.cuGraphDestroy(graph);
    throw;
  }
  driver.check(driver.cuStreamEndCapture(device.stream(), &graph), "capturing a stream");
  const CUresult result = driver.cuGraphInstantiateWithFlags(&exec_, graph, 0);
  driver.cuGraphDestroy(graph);
  driver.check(result, "instantiating a graph");
}

Graph::~Graph() {
  quietly(device_, [&] { device_.driver().cuGraphExecDestroy(exec_); });
}

void Graph::launch() const {
  const CudaDevice::Current current(device_);
  device_.driver().check(device_.driver().cuGraphLaunch(exec_, device_.stream()), "launching a graph");
}

CudaTimer::CudaTimer(const CudaDevice& device, const Enqueue& enqueue, int sets, double sampleSeconds)
    : watch_(device) {
  for (int set = 0; set < sets; ++set) enqueue(set);  // forces lazy loading, and warms up
  watch_.start();
  for (int set = 0; set < sets; ++set) enqueue(set);
  const double once = std::max(watch_.seconds() / sets, 1e-7);
  const int turns = int(std::ceil(sampleSeconds / once / sets));
  calls_ = sets * std::clamp(turns, 1, std::max(1, kMostCalls / sets));
  graph_ = std::make_unique<Graph>(device, [&] {
    for (int call = 0; call < calls_; ++call) enqueue(call % sets);
  });
  graph_->launch();
  device.synchronize();
}

double CudaTimer::sample() const {
  watch_.start();
  graph_->launch();
  return watch_.seconds() / calls_;
}

std::vector<Samples> race(const std::vector<const CudaTimer*>& timers, int rounds) {
  std::vector<Samples> samples(timers.size());
  for (int round = 0; round < rounds; ++round)
    for (const size_t turn : orderOfRound(timers.size(), round))
      samples[turn].push_back(timers[turn]->sample());
  return samples;
}

Ratio middle(const Samples& samples) { return pairedRatio(samples, Samples(samples.size(), 1.0)); }

}  // namespace normc::measure
