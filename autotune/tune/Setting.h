// The conditions that all measurements of one task share.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "autotune/gate/CudaDevice.h"
#include "autotune/records/Record.h"

namespace normc::tune {

/// The most elements of x in a task.
inline constexpr int64_t kMostElements = int64_t(1) << 33;
/// Returns why `what`, a task or a call, has too many elements; empty: it does not.
std::string whyTooLarge(const std::string& what, int64_t segments, int64_t rows, int64_t features);
std::string whyTooLarge(const Task&);
/// The most threads of a task. No machine has as many, and each takes memory of a worker.
inline constexpr int64_t kMostThreads = 1 << 16;

/// The share of a budget for waiting for a core without other load.
inline constexpr double kQuietShare = 0.2;

/// The least seconds of a sample on a CUDA device: long beside what an event can tell apart.
inline constexpr double kCudaSampleSeconds = 1e-3;

struct Setting {
  Task task;
  std::string spec;  ///< text of the norm
  Device device;
  std::map<std::string, std::string> toolchain;
  std::string session;
  int64_t stamp = 0;       ///< stamp of its records
  double begun = 0;        ///< measure::secondsNow() when the work on the task began; 0: when its lab is made
  int64_t screenRows = 0;  ///< the rows that are screened (screeningRows()); 0: those of the task
  double sampleSeconds = 200e-6;
  int deviceIndex = 0;  ///< index of a CUDA device
  std::string cudaLibrary = gate::CudaDriver::kLibrary;
  double patience = 60;  ///< seconds for the first gate, which computes the reference; later gates have less
  double quietPatience = 8;  ///< seconds in total to wait for a core without other load
  double quietShare = 1e9;   ///< and the share of the time so far that this wait may have taken
};

/// Returns the rows to screen for a task on a CPU if fewer than those of the task are out of the caches too:
/// its tensors together have at least the bytes of the last cache, so that two sets in turn find nothing in
/// it, and x has 1.5 kLargeBytes, so that kernels take the call for a large one. 0: those of the task; always
/// for `pipeline`, which has one set and reads its output: that of fewer rows would be in the caches. `spec`:
/// the text of the norm.
int64_t screeningRows(const Task&, const std::string& spec, int64_t lastCache);

/// Returns why a task cannot be measured on a CPU with `free` bytes of memory; empty if it can. A race has
/// two sets of tensors. `spec`: the text of the norm.
std::string whyOutOfMemory(const Task&, const std::string& spec, int64_t free);

}  // namespace normc::tune
