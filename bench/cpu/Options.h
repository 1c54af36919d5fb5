// The command line of normc-bench.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "autotune/measure/Contestant.h"
#include "autotune/measure/Machine.h"
#include "autotune/measure/Tensors.h"
#include "dsl/Problem.h"

namespace normc::bench {
using namespace measure;

/// The number of rows of a race.
struct Rows {
  enum Kind { Given, Cache, Memory } kind = Given;
  int64_t count = 0;  ///< Given only

  /// Rows in all. In cache: a tensor fills a quarter of the second-level cache. In memory: four times the
  /// last-level cache, but not more than 2 GiB or a tenth of the memory that is free.
  int64_t of(int64_t features, DType, const Machine&) const;
  /// "in cache", "in memory", "128 rows".
  std::string place() const;
};

struct Options {
  std::vector<std::string> norms = {"layer_norm", "rms_norm", "batch_norm", "power_norm_v", "power_norm"};
  std::vector<int64_t> features = {64, 256, 768, 1024, 4096, 16384};
  std::vector<Rows> rows = {{Rows::Cache}, {Rows::Memory}};
  std::vector<DType> types = {DType::F32};
  std::vector<int> threads;  ///< 1, and all
  std::vector<Entry> entries = {Entry::Forward, Entry::Backward};
  std::map<std::string, int64_t> bindings;  ///< `heads=16`; 16 where nothing is said
  bool channelsFirst = false;
  int64_t spatial = 0;  ///< rows of a segment; 0: all rows are one segment, or 784 with channels first
  bool segmentsIfNeeded = false;  ///< only norms that need segments have them
  bool halide = false;            ///< its kernels too
  std::string before;             ///< a package of the same problems; empty: none
  bool cliffs = false;  ///< `features` hold the aligned neighbours of each, for `cliffs` of the tables
  std::string target = "host";  ///< what kernels are compiled for
  bool oneDnn = true, torch = true;
  std::string python;        ///< that has PyTorch
  std::string command;       ///< as it was given, without the folder of the program
  std::string jsonFile;      ///< empty: none
  std::string reportFolder;  ///< empty: none
  std::string drawnFolder;   ///< of a report whose pictures are drawn again, instead of a race; empty: none
  RaceOptions race;

  /// True if the problems of the norm have three dimensions.
  bool partsIntoSegments(const Spec&) const;
  /// So many rows, in segments of `spatial`, or as one.
  Shape shapeOf(int64_t rows, int64_t features, bool segmented) const;
};

/// Reads the command line. What is not to be run is printed, and `exitCode` set.
bool readOptions(int argc, char** argv, const Machine&, Options&, int& exitCode);

}  // namespace normc::bench
