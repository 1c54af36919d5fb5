// Which kernels of a package serve a request, which is the best, and why not the others.
//
// The rule is that of docs/package-format.md: the best that the device can run, as
// its platform ranks it, then features exact before any, then the narrower limits,
// then the order of the manifest. It looks at nothing else and never measures.
//
// Where the request leaves sizes open, the kernel that serves them all is the best one
// for all of them; those that would come before it but serve only some are narrower.
//
// Whether a device really takes a kernel, its driver says when the code is loaded:
// then the next in the order has its turn, and the plan tells.
#pragma once

#include <string>
#include <vector>

#include "runtime/plan/Backend.h"

namespace normc::runtime {

/// The problem that a caller asks for.
struct ProblemRequest {
  std::string text;  ///< as the caller wrote it
  ProblemText parts;
};

class Selection {
 public:
  /// Fails where no kernel serves the request here, with a line for each that is related.
  static normc_status make(const Manifest& manifest, const ProblemRequest& request, const Platform& platform,
                           Selection& selection);

  size_t count() const { return able_.size(); }
  size_t kernel() const { return able_[refusals_.size()].index; }  ///< the best that nobody has refused
  /// Goes on to the next, since this one could not be loaded; false where there is none.
  bool refuse(std::string why);

  /// Those that serve some of the sizes that the request leaves open, and come before kernel(): the best first.
  std::vector<size_t> narrower() const;
  /// Does without one of those.
  void leaveOut(size_t kernel, const std::string& why);

  std::string reason() const;    ///< why this one
  std::string rejected() const;  ///< one line for each other kernel of this norm and entry
  /// The lines of those that could not be loaded.
  std::string refused() const;

 private:
  /// A kernel that serves the request here.
  struct Candidate {
    size_t index;
    const Kernel* kernel;
    int rank;
    std::string advantage;  ///< over a lower rank
  };
  static std::string edge(const Candidate& better, const Candidate& other);
  static bool precedes(const Candidate& first, const Candidate& second);

  std::vector<Candidate> able_;        ///< the best first
  std::vector<Candidate> some_;        ///< that serve some of the open sizes: the best first
  std::vector<std::string> refusals_;  ///< of the first of them
  std::string unable_;                 ///< lines of those that cannot serve
};

/// The sizes it serves: "0 to 64 rows", "segments of 8 to 16 rows", or both.
std::string limitsText(const Kernel& kernel);

}  // namespace normc::runtime
