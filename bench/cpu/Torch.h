// PyTorch as a contestant, in a process of its own (torch_peer.py), where a Python with it is found.
#pragma once

#include <cstdio>
#include <memory>
#include <string>

#include "autotune/measure/Contestant.h"
#include "autotune/measure/Tensors.h"
#include "dsl/Problem.h"

namespace normc::bench {
using namespace measure;

class TorchPeer {
 public:
  /// `python`: a program. Never fails: version() is empty where there is no PyTorch, and whyMissing() says
  /// why.
  TorchPeer(const std::string& python, const std::string& script);
  ~TorchPeer();
  TorchPeer(const TorchPeer&) = delete;

  const std::string& version() const { return version_; }  ///< "PyTorch 2.15.0"
  const std::string& whyMissing() const { return whyMissing_; }

  /// The same computation on tensors of its own, by operators or, of norms with something around them,
  /// `compiled` as one. Null where there is none, and `why` says so. Valid until clear().
  std::unique_ptr<Contestant> make(const Problem&, const Shape&, int threads, bool compiled,
                                   std::string& why);
  /// Processor time that the peer has used so far, in seconds.
  double seconds();
  /// Frees the tensors of everything made so far.
  void clear();

 private:
  class Peer;
  /// One command, one answer, both JSON; an {"error": ...} where the process is gone.
  std::string ask(const std::string& command);

  int pid_ = -1, toPeer_ = -1;
  FILE* fromPeer_ = nullptr;
  std::string version_, whyMissing_;
};

}  // namespace normc::bench
