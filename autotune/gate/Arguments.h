// The arguments of a call of a plan: which tensors and buffers it takes, how each lies in memory, and the
// normc_args that name them. All by a loop over the table of operands (runtime/abi/Operands.h).
//
// Memory is the owner's: guarded where a call is judged (GuardedArguments), plain where it is timed
// (autotune/measure/Buffers.h).
#pragma once

#include <map>
#include <string>
#include <vector>

#include "autotune/gate/CudaDevice.h"
#include "dsl/StateFields.h"
#include "runtime/normc.hpp"

namespace normc::gate {

struct Placement {
  int64_t rowPadding = 0;      ///< elements between two rows (two channels where they come first)
  int64_t segmentPadding = 0;  ///< elements between two segments, beyond that
  int64_t misalign = 0;        ///< elements by which a buffer's address is off a cache line
  int64_t skew = 0;            ///< the same, of outputs beyond inputs
  bool reversed = false;       ///< inputs whose rows (channels) lie one before the other
  bool inPlace = false;        ///< outputs are the inputs that they may be: y is x, dx is dy
  bool stateInPlace = true;    ///< state_out is state_in
  /// Of the host: each buffer ends at a page that cannot be read or written, so that reading past it ends the
  /// process, too. For a process that may end.
  bool guardPages = false;
  std::vector<std::string> leaveOut;  ///< outputs that may be null: tensors, saved, state_out

  bool leavesOut(std::string_view output) const;
};

/// A tensor as it lies in memory. Sizes are in elements.
struct TensorLayout {
  DType type = DType::F32;
  std::vector<int64_t> shape, strides;
  int64_t origin = 0;    ///< position of the first element
  int64_t elements = 0;  ///< of all its memory, with what lies between rows

  /// Returns that of a compact tensor.
  static TensorLayout compact(DType type, std::vector<int64_t> shape);
  int64_t bytes() const { return elements * normc::bytes(type); }
};
using Layouts = std::map<Tensor, TensorLayout>;

/// Returns the layouts of all tensors that a call of the problem takes.
Layouts layoutsOf(const Problem&, const Extents&, const Placement& = {});

/// Names memory and owns none. Can be moved.
class Arguments {
 public:
  /// Asks the plan what it takes beside tensors; throws host::Error where it refuses the sizes. `where`: the
  /// device of the plan; null for the host.
  Arguments(const normc_plan*, Entry, const normc_sizes&, Layouts, const CudaDevice* where = nullptr);
  Arguments(const normc_plan*, const Problem&, const Extents&, const CudaDevice* where = nullptr);

  const Layouts& layouts() const { return layouts_; }
  const normc_sizes& sizes() const { return sizes_; }
  const CudaDevice* where() const { return where_; }
  const std::vector<normc_field>& stateFields() const { return stateFields_; }
  const std::vector<normc_field>& savedFields() const { return savedFields_; }
  size_t stateBytes() const { return stateBytes_; }
  size_t savedBytes() const { return savedBytes_; }
  size_t workspaceBytes() const { return workspaceBytes_; }  ///< of calls of this plan

  /// Gives a tensor the memory that begins here; null leaves it out.
  void bind(Tensor, void* memory);
  /// `out` null: the state does not change. Both are ignored where there is no state, `out` by infer.
  void bindState(void* in, void* out);
  /// Ignored where nothing is saved.
  void bindSaved(void* memory);
  void bindWorkspace(void* memory, size_t bytes);
  const normc_args& args() const { return args_; }

 private:
  Entry entry_;
  normc_sizes sizes_;
  const CudaDevice* where_;
  Layouts layouts_;
  std::map<Tensor, DLTensor>
      views_;  ///< args_ points to them, and they to layouts_: nodes of a map do not move
  std::vector<normc_field> stateFields_, savedFields_;
  size_t stateBytes_ = 0, savedBytes_ = 0, workspaceBytes_ = 0;
  normc_args args_{};
};

}  // namespace normc::gate
