// Kernel time, with cold caches and without the host.
//
// A call goes to one of several sets of buffers in turn, so many that the data of
// a set has left the second-level cache when its turn comes again. The calls are
// captured into a graph, and events around a launch of the graph give the time of
// all: launching from the host is in it for nobody, gaps between kernels are in it
// for all alike. Copies are measured in the same way and interleaved, so only
// ratios of the same round have to be trusted.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "autotune/gate/CudaDevice.h"
#include "autotune/measure/Stats.h"

namespace normc::measure {

/// Enqueues one call on the device's stream, on a set of buffers. May throw.
using Enqueue = std::function<void(int set)>;

/// How many sets of `bytes` it takes to have none of them cached: more than twice the second-level cache, at
/// least 2 and at most 64.
int coldSets(const gate::CudaDevice&, int64_t bytes);

/// Two events on a stream, and the time between them.
class Stopwatch {
 public:
  explicit Stopwatch(const gate::CudaDevice&);
  ~Stopwatch();
  Stopwatch(const Stopwatch&) = delete;

  void start() const;
  double seconds() const;  ///< ends, waits, and gives the time since start()

 private:
  const gate::CudaDevice& device_;
  cuda::CUevent begin_ = nullptr, end_ = nullptr;
};

/// Work captured from the device's stream, to be launched any number of times.
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

/// One contestant: its calls, as many as make a sample long enough.
class CudaTimer {
 public:
  /// `sampleSeconds`: about how long a sample takes.
  CudaTimer(const gate::CudaDevice&, const Enqueue&, int sets, double sampleSeconds);
  double sample() const;  ///< seconds of one call
  int calls() const { return calls_; }

 private:
  Stopwatch watch_;
  int calls_ = 0;
  std::unique_ptr<Graph> graph_;
};

/// Samples of all, in turns; the order of a round is turned from round to round.
std::vector<Samples> race(const std::vector<const CudaTimer*>&, int rounds);

/// The median, and between what 95 % of bootstrapped medians lie.
Ratio middle(const Samples&);

}  // namespace normc::measure
