// A few steps of training through the compiled kernels, each judged by the reference.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "bench/kit/Kernels.h"
#include "dsl/Problem.h"

namespace normc::quickstart {

struct Errors {
  double relative = 0;  ///< the largest error, relative to the sum of the terms it is made of
  double allowed = 0;   ///< the largest error as a share of the tolerance; above 1 is wrong
};

struct Training {
  Errors forward, backward;  ///< over all outputs: y, dx, dscale, dbias, state, saved statistics
  double firstLoss = 0, lastLoss = 0;
  std::string failure;  ///< the first output that was wrong, empty where all is right
};

struct Batches {
  const std::vector<float>& rows;  ///< tokens x features
  int64_t features, batchRows, steps;
};

/// Task: make of each token the next one. Step by step: forward, loss, backward, then scale and bias follow
/// their gradients. State and saved statistics are handed on as a host would; the reference starts every call
/// from what the kernel was given.
Training train(const bench::Kernels&, const Problem& forward, const Batches&);

}  // namespace normc::quickstart
