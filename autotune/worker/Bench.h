// What a worker does: loads candidates, judges them, takes their times.
//
// It answers one request at a time, in JSON:
//
//   {"do": "task", "problem", "spec", "segments", "rows", "features", "threads", "policy", "sample_seconds",
//    "device": "cpu" or "cuda", "index", "cuda_library"}
//                                                    -> {"protocol"}
//   {"do": "load", "name", "package"}                a package that holds one kernel, for this problem
//   {"do": "gate", "name"}                           -> {"trials", "worst", "failure"}: no failure, no word
//   {"do": "sample", "names", "rounds"}              -> {"samples": [[...], ...], "disturbed", "loops",
//   "patience"}, in turns;
//                                                    "first": how many rounds of a race have been, 0 if it is
//                                                    left out
//   {"do": "copy", "reads", "writes"}                -> {"seconds"}: of a copy with so many transfers
//
// An answer with "error" says what could not be done. Nothing here protects against a
// candidate: who asks does so from another process.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "autotune/gate/Gate.h"
#include "autotune/measure/Copy.h"
#include "autotune/measure/CudaRoof.h"
#include "autotune/measure/Machine.h"
#include "autotune/measure/QuietCoreSampler.h"
#include "autotune/measure/Subject.h"

namespace normc::tune {

using Json = nlohmann::json;

class Bench {
 public:
  /// Never throws.
  Json answer(const Json& request);

 private:
  struct Candidate {
    std::unique_ptr<host::Package> package;
    std::unique_ptr<host::Plan> plan,
        large;  ///< that the gate runs; large: takes every call for a large one, or null
    std::unique_ptr<measure::Subject> subject;
    std::function<double()> take;  ///< takes a sample; made when it is first timed
  };

  void begin(const Json&);
  void load(const Json&);
  Json gate(const Json&);
  Json sample(const Json&);
  Json copy(const Json&);
  host::Plan plan(const host::Package&, const std::vector<normc_number>& numbers = {}) const;
  measure::Roof& roof();
  /// Made at the first sample.
  measure::QuietCoreSampler& quietCore();
  double roofSeconds(const measure::Traffic&);
  Candidate& candidate(const Json& name);
  std::function<double()> sampler(Candidate&);
  void makeQuestions();
  void limitMemory(int64_t forBuffers) const;

  Problem problem_;
  Extents extents_;
  int threads_ = 1;
  uint64_t scatter_ = 0;
  double patience_ = 0;  ///< with who computes beside us
  measure::Loops known_;
  measure::Policy policy_ = measure::Policy::Warm;
  double sampleSeconds_ = 0;
  measure::Machine machine_ = measure::thisMachine();
  std::unique_ptr<host::Context> context_;
  std::unique_ptr<gate::CudaDevice> device_;  ///< null on the CPU
  std::vector<gate::Question> questions_;
  std::unique_ptr<measure::Buffers> buffers_;  ///< made with the first plan
  std::unique_ptr<measure::Contestant> reader_;
  std::unique_ptr<measure::Roof> roof_;  ///< of a device; reads outputs, too, where a policy says so
  std::optional<measure::RoofLaunch> read_;
  std::unique_ptr<measure::QuietCoreSampler> quiet_;
  std::map<std::string, Candidate> candidates_;
};

}  // namespace normc::tune
