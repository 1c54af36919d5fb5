// The requests to a worker and its answers, in JSON, each on one line. A worker answers one request at a
// time:
//
//   {"do": "task", "problem", "spec", "segments", "rows", "features", "threads", "policy", "sample_seconds",
//    "device": "cpu" or "cuda", "index", "cuda_library", "scatter": where memory lies (TensorMaker),
//    "patience": seconds to wait for a quiet core, "loops": the best times of its calibration so far}
//                                                    -> {"protocol"}
//   {"do": "load", "name", "package"}                a package that holds one kernel, for this problem -> {}
//   {"do": "gate", "name", "part"}                   -> {"trials", "worst", "failure"}: no failure, no word;
//                                                    "part": "first", "rest", or "all" trials
//   {"do": "sample", "names", "rounds"}              -> {"samples": [[...], ...], "disturbed", "accepted",
//                                                    "loops", "patience"}, in turns; "first": the rounds of
//                                                    the race before these, else 0; "patience": seconds to
//                                                    wait for a quiet core; "seconds": ends after the last
//                                                    round that fits, but one
//   {"do": "copy", "reads", "writes"}                -> {"seconds"}: of a copy with so many transfers,
//                                                    measured for "seconds" at most, but once
//
// An answer with "error" has the reason of a failure; "may_pass": true if memory, descriptors or a file were
// missing, which says nothing about the candidate.
//
// `json()` writes, `from()` reads. Reading a request throws Json::exception if it is none. Reading an answer
// throws Json::exception or std::length_error if it has another shape, as a worker of another version may
// give, and ImpossibleNumber for a number that no measurement gives.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "autotune/gate/CudaDevice.h"
#include "autotune/measure/Copy.h"
#include "autotune/measure/QuietCoreSampler.h"
#include "autotune/measure/Stats.h"

namespace normc::tune {

using Json = nlohmann::json;

/// The version of the requests and answers; part of the answer to a task.
inline constexpr int kProtocol = 1;

/// A candidate may write anywhere in the worker, so also over an answer. Records do not hold such a number.
struct ImpossibleNumber {};

struct TaskRequest {
  std::string problem;
  std::string spec;  ///< text of the norm
  int64_t segments = 1, rows = 1, features = 1, threads = 1;
  std::string policy;
  double sampleSeconds = 0;
  uint64_t scatter = 0;
  std::string device = "cpu";
  int index = 0;
  std::string cudaLibrary = gate::CudaDriver::kLibrary;
  double patience = 0;
  std::optional<measure::Loops> loops = {};

  Json json() const;
  static TaskRequest from(const Json&);
};
/// Returns the answer to a task.
Json taskAnswer();
/// True if a worker of this version gave the answer to a task.
bool isOfThisVersion(const Json& taskAnswer);

struct LoadRequest {
  std::string name, package;

  Json json() const;
  static LoadRequest from(const Json&);
};

/// Which trials of the gate: those before a candidate is screened, the others, or all.
enum class GatePart { First, Rest, All };

struct GateRequest {
  std::string name;
  GatePart part = GatePart::All;

  Json json() const;
  static GateRequest from(const Json&);
};
struct GateAnswer {
  int64_t trials = 0;
  double worst = 0;
  std::string failure = {};  ///< empty: it passed

  Json json() const;
  static GateAnswer from(const Json&);
};

struct SampleRequest {
  std::vector<std::string> names;
  int first = 0, rounds = 0;
  std::optional<double> patience = {}, seconds = {};

  Json json() const;
  static SampleRequest from(const Json&);
};
struct SampleAnswer {
  std::vector<measure::Samples> samples;  ///< for each name; all of one length
  int64_t disturbed = 0, accepted = 0;
  measure::Loops loops = {};
  double patience = 0;  ///< seconds that are left

  Json json() const;
  /// Reads the answer to `request`: its samples are as many as were asked for.
  static SampleAnswer from(const Json&, const SampleRequest& request);
};

struct CopyRequest {
  measure::Traffic traffic;
  std::optional<double> seconds = {};

  Json json() const;
  static CopyRequest from(const Json&);
};
struct CopyAnswer {
  double seconds = 0;

  Json json() const;
  static CopyAnswer from(const Json&);
};

/// The answer to a request that failed.
struct ErrorAnswer {
  std::string error;     ///< empty: the answer is no error
  bool mayPass = false;  ///< the same request may succeed later: the candidate is not the cause

  Json json() const;
  static ErrorAnswer from(const Json&);
};

}  // namespace normc::tune
