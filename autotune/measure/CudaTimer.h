// Kernel time with cold caches.
//
// Calls rotate over several sets of buffers, enough that the data of a set has left the L2 cache before its
// next use. The calls are captured into a graph, and events around a launch of the graph give their total
// time. It includes the gaps between kernels, and once in a sample the latency of the graph's launch, because
// the stream is idle when the first event is recorded; no call has a launch of its own. Copies are measured
// in the same way in the same rounds, so only ratios within a round have to be trusted.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "autotune/gate/CudaDevice.h"
#include "autotune/measure/Stats.h"

namespace normc::measure {

/// Enqueues one call on the device's stream, for one set of buffers. May throw.
using Enqueue = std::function<void(int set)>;

/// Returns the number of sets of `bytes` so that none stays cached: more than twice the L2 cache in total, at
/// least 2 and at most 64.
int coldSets(const gate::CudaDevice&, int64_t bytes);

/// An event of a device, of which the object is the owner.
class Event {
 public:
  explicit Event(const gate::CudaDevice&);
  ~Event();
  Event(const Event&) = delete;
  cuda::CUevent handle() const { return handle_; }

 private:
  const gate::CudaDevice& device_;
  cuda::CUevent handle_ = nullptr;
};

/// Two events on a stream and the time between them.
class Stopwatch {
 public:
  explicit Stopwatch(const gate::CudaDevice& device) : device_(device), begin_(device), end_(device) {}

  void start() const;
  double seconds() const;  ///< records the end, waits, returns the time since start()

 private:
  const gate::CudaDevice& device_;
  const Event begin_, end_;
};

/// Work captured from the device's stream; it can be launched repeatedly.
class Graph {
 public:
  Graph(const gate::CudaDevice&, const std::function<void()>& enqueue);
  ~Graph();
  Graph(const Graph&) = delete;
  void launch() const;

 private:
  const gate::CudaDevice& device_;
  cuda::CUgraphExec exec_ = nullptr;
};

/// One contestant: a graph of enough calls for a sample.
class CudaTimer {
 public:
  /// `sampleSeconds`: approximate length of a sample.
  CudaTimer(const gate::CudaDevice&, const Enqueue&, int sets, double sampleSeconds);
  double sample() const;  ///< seconds of one call
  int calls() const { return calls_; }

 private:
  Stopwatch watch_;
  int calls_ = 0;
  std::unique_ptr<Graph> graph_;
};

/// Returns the samples of all timers, one of each in a round, in the order of Order.h.
std::vector<Samples> race(const std::vector<const CudaTimer*>&, int rounds);

/// Returns the median and its 95 % interval by bootstrap.
Ratio middle(const Samples&);

}  // namespace normc::measure
