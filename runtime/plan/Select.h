// Selection: which kernels of a package serve a request, which one is the best, and why not the others.
//
// docs/package-format.md gives the rule: the best that the device can run, as its platform ranks it; then
// exact features before any; then the core of this processor, and no core before another one; then the
// narrower limits; then the order of the manifest. Selection uses nothing else and never measures.
//
// If the request leaves sizes open, the kernel that serves all of them is the best one for all of them.
// Kernels that are better but serve only some sizes are "narrower".
//
// The driver may refuse a kernel when its code is loaded. Then the next kernel in the order is used, and the
// plan's description says so.
#pragma once

#include <string>
#include <vector>

#include "runtime/plan/Backend.h"

namespace normc::runtime {

/// The problem that a caller requests.
struct ProblemRequest {
  std::string text;  ///< as the caller wrote it
  ProblemText parts;
};

class Selection {
 public:
  /// Fails if no kernel serves the request here, with a line for each kernel of the same norm.
  static normc_status make(const Manifest& manifest, const ProblemRequest& request, const Platform& platform,
                           Selection& selection);

  size_t count() const { return able_.size(); }
  size_t kernel() const { return able_[refusals_.size()].index; }  ///< the best that was not refused
  /// Replaces the kernel by the next one, because it could not be loaded; false if there is no other.
  bool refuse(std::string why);

  /// Returns the kernels that serve some of the open sizes and are better than kernel(): the best first.
  std::vector<size_t> narrower() const;
  /// Removes one of the narrower kernels.
  void leaveOut(size_t kernel, const std::string& why);

  std::string reason() const;    ///< why kernel() was chosen
  std::string rejected() const;  ///< one line for each other kernel of this norm and entry
  /// Returns a line for each kernel that could not be loaded.
  std::string refused() const;

 private:
  /// A kernel that serves the request here.
  struct Candidate {
    size_t index;
    const Kernel* kernel;
    int rank;
    std::string advantage;  ///< over a kernel of lower rank
    Platform::Verdict::Fit fit;
  };
  static std::string edge(const Candidate& better, const Candidate& other);
  static bool precedes(const Candidate& first, const Candidate& second);

  std::vector<Candidate> able_;        ///< the best first
  std::vector<Candidate> some_;        ///< kernels that serve some of the open sizes: the best first
  std::vector<std::string> refusals_;  ///< reasons for the first of able_
  std::string unable_;                 ///< lines of the kernels that cannot serve
};

/// Returns the sizes that the kernel serves: "0 to 64 rows", "segments of 8 to 16 rows", or both.
std::string limitsText(const Kernel& kernel);

}  // namespace normc::runtime
