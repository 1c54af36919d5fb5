// The packages of a process and the plans that its operators made. One registry serves all threads of a host:
// an operator is a free function, so what it needs has to be found by its text.
//
// Plans live as long as the process. Every function is thread-safe. Failures are exceptions whose text is for
// the user of the host: normc::host::Error of the runtime, std::invalid_argument, std::runtime_error.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "runtime/hosts/common/Around.h"
#include "runtime/hosts/common/NormText.h"
#include "runtime/normc.hpp"

namespace normc::hosts {

enum class Entry : uint8_t {
  Forward,
  Backward,
  Infer,
  InferBackward,
  ForwardReduce,
  ForwardApply,
  BackwardReduce,
  BackwardApply,
  Commit,
};
/// The names of the entries in a problem, in their order.
inline constexpr std::string_view kEntries[] = {
    "forward",       "backward",        "infer",          "infer_backward", "forward_reduce",
    "forward_apply", "backward_reduce", "backward_apply", "commit",
};

/// Returns the entry of a name. Throws std::invalid_argument for any other.
Entry entryNamed(std::string_view);

/// What a plan is made for, beside the text.
struct Request {
  Entry entry = Entry::Forward;
  DLDataType data = {kDLFloat, 32, 1};
  DLDataType params = {};  ///< bits 0: a norm without parameters
  bool mask = false;
  bool channelsFirst = false;  ///< the layout in memory
  DLDevice device = {kDLCPU, 0};
};

/// A plan, and what an operator asks of it at every call.
struct Prepared {
  Prepared(NormText, Request, host::Plan);

  NormText text;
  Request request;
  host::Plan plan;
  std::vector<normc_field> state, saved;
  /// Tensors that the plan takes.
  bool scale = false, bias = false, y = false, dx = false, dscale = false, dbias = false;
  std::optional<DLDataType> codes;  ///< the type of quantized outputs, which stand for y
  bool readsX = false, readsScale = false, readsBias = false;  ///< others may be given, and are ignored
  std::vector<Around> around;  ///< the tensors around the norm, in the order of kAround
  bool readsState = false, writesState = false;
  double neutralScale = 1;  ///< the scale whose factor is 1
  size_t partialBytes = 0;  ///< of the sums of one rank
};

class Registry {
 public:
  /// Returns the registry of this library. Its norms that are built in are those of the packages in the
  /// folder `packages` beside the library's folder, which the first plan opens.
  static Registry& get();

  /// Returns the plan of a text. The first call of a text and request makes it: from the packages, or, where
  /// none has a kernel for this number of features, by the compiler, if one is set.
  const Prepared& prepared(std::string_view text, const Request&);

  /// Adds a package for norms of a source; an empty source stands for the norms that are built in.
  void addPackage(const std::string& source, const std::string& path);
  /// Says which .norm file a source is, so that the compiler can compile it.
  void addNorm(const std::string& source, const std::string& path);
  /// Sets the program `normc`, which compiles problems that no package has, and the folder where it keeps
  /// them. An empty program sets none.
  void setCompiler(const std::string& program, const std::string& cache);
  /// Sets what receives one line for people at each compilation and each missing kernel. Null: nothing.
  void setLog(normc_log);
  /// Sets how calls find threads. Before the first plan.
  void setThreads(normc_parallel_for);

 private:
  Registry();
  ~Registry() = delete;
  struct State;
  State& state_;
};

}  // namespace normc::hosts
