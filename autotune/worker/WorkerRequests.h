// The work of a worker: loads candidates, judges them, and times them, as requests (Protocol.h) say.
//
// This class gives no protection against a candidate's code: it must run in another process than the search.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "autotune/gate/Gate.h"
#include "autotune/gate/Plans.h"
#include "autotune/measure/Copy.h"
#include "autotune/measure/CudaRoof.h"
#include "autotune/measure/Machine.h"
#include "autotune/measure/QuietCoreSampler.h"
#include "autotune/measure/Subject.h"
#include "autotune/worker/Protocol.h"

namespace normc::tune {

/// One task of a worker and its candidates.
class WorkerRequests {
 public:
  /// Returns the answer to a request, an object. Never throws.
  Json answer(const Json& request);

 private:
  struct Candidate {
    std::unique_ptr<host::Package> package;
    std::unique_ptr<gate::Plans> plans;  ///< for the gate
    std::unique_ptr<measure::Subject> subject;
    std::function<double()> take;  ///< takes a sample; made when the candidate is first timed
  };

  void begin(const TaskRequest&);
  void load(const LoadRequest&);
  GateAnswer gate(const GateRequest&);
  SampleAnswer sample(const SampleRequest&);
  CopyAnswer copy(const CopyRequest&);
  host::Plan plan(const host::Package&, const std::vector<normc_number>& numbers = {}) const;
  measure::Roof& roof();
  /// Returns the sampler, made at the first sample.
  measure::QuietCoreSampler& quietCore();
  double roofSeconds(const measure::Traffic&);
  Candidate& candidate(const std::string& name);
  std::function<double()> sampler(Candidate&);
  std::vector<gate::Trial> trials() const;  ///< of the gate
  void makeQuestions();
  bool isFirst(const gate::Question&) const;
  void limitMemory(int64_t forBuffers) const;

  Problem problem_;
  Extents extents_;
  int threads_ = 1;
  uint64_t scatter_ = 0;
  double patience_ = 0;  ///< remaining seconds to wait for a core without other load
  measure::Loops known_;
  measure::Policy policy_ = measure::Policy::Warm;
  double sampleSeconds_ = 0;
  measure::Machine machine_;
  std::unique_ptr<host::Context> context_;
  std::unique_ptr<gate::CudaDevice> device_;  ///< null on the CPU
  std::vector<gate::Question> questions_;
  std::unique_ptr<measure::Buffers> buffers_;  ///< made with the first plan
  std::unique_ptr<measure::Contestant> reader_;
  std::unique_ptr<measure::Roof> roof_;  ///< for a device; also reads outputs if the policy requires it
  std::optional<measure::RoofLaunch> read_;
  std::unique_ptr<measure::QuietCoreSampler> quiet_;
  std::map<std::string, Candidate> candidates_;
};

}  // namespace normc::tune
