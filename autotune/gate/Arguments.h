// The arguments of a call of a plan: its tensors and buffers, their layouts in memory, and the normc_args
// that point to them. All follow from the table of operands (runtime/abi/Operands.h).
//
// The caller owns the memory: it is guarded if a call is judged (GuardedArguments), and plain if a call is
// timed (autotune/measure/Buffers.h).
#pragma once

#include <map>
#include <string>
#include <vector>

#include "autotune/gate/CudaDevice.h"
#include "dsl/StateFields.h"
#include "runtime/normc.hpp"

namespace normc::gate {

struct Placement {
  int64_t rowPadding = 0;      ///< elements between two rows (two channels if channels come first)
  int64_t segmentPadding = 0;  ///< elements between two segments, in addition to rowPadding
  int64_t misalign = 0;        ///< elements between a buffer's address and a cache line
  int64_t skew = 0;            ///< elements by which outputs are misaligned in addition
  bool reversed = false;       ///< inputs have rows (channels) at descending addresses
  bool inPlace = false;        ///< outputs share memory with the inputs that permit it: y with x, dx with dy
  bool stateInPlace = true;    ///< state_out is state_in
  /// Host only. Each buffer ends at a page without access, so that a read past the end of the buffer also
  /// ends the process. Only for a process that may end.
  bool guardPages = false;
  std::vector<std::string> leaveOut;  ///< what may be null: tensors, saved, state_out

  bool leavesOut(std::string_view name) const;
};

/// The layout of a tensor in memory. Sizes are in elements.
struct TensorLayout {
  DType type = DType::F32;
  std::vector<int64_t> shape, strides;
  int64_t origin = 0;    ///< position of the first element
  int64_t elements = 0;  ///< all its memory, with the gaps between rows

  /// Returns the layout of a compact tensor.
  static TensorLayout compact(DType type, std::vector<int64_t> shape);
  int64_t bytes() const { return elements * normc::bytes(type); }
};
using Layouts = std::map<Tensor, TensorLayout>;

/// Returns the layouts of all tensors that a call of the problem takes.
Layouts layoutsOf(const Problem&, const Extents&, const Placement& = {});

/// Pointers to the memory of a call. Owns none of it. Movable.
class Arguments {
 public:
  /// Reads from the plan which buffers it needs in addition to tensors. Throws host::Error if the plan
  /// refuses the sizes. `where`: the device of the plan; null for the host.
  Arguments(const normc_plan*, Entry, const normc_sizes&, Layouts, const CudaDevice* where = nullptr);
  Arguments(const normc_plan*, const Problem&, const Extents&, const CudaDevice* where = nullptr);

  Entry entry() const { return entry_; }
  const Layouts& layouts() const { return layouts_; }
  const normc_sizes& sizes() const { return sizes_; }
  const CudaDevice* where() const { return where_; }
  const std::vector<normc_field>& stateFields() const { return stateFields_; }
  const std::vector<normc_field>& savedFields() const { return savedFields_; }
  const std::vector<normc_field>& partialFields() const { return partialFields_; }
  size_t stateBytes() const { return stateBytes_; }
  size_t savedBytes() const { return savedBytes_; }
  size_t partialBytes() const { return partialBytes_; }      ///< of one partial
  size_t workspaceBytes() const { return workspaceBytes_; }  ///< for calls of this plan

  /// Sets the memory of a tensor, from its first byte; null leaves the tensor out.
  void bind(Tensor, void* memory);
  /// Sets the state. If `out` is null, the state does not change. Both are ignored if the problem has no
  /// state; infer ignores `out`.
  void bindState(void* in, void* out);
  /// Sets the memory of saved statistics; ignored if nothing is saved.
  void bindSaved(void* memory);
  /// Sets the memory of the partial that the entry writes, or of the `count` partials that it adds up;
  /// ignored if it has none.
  void bindPartials(void* memory, size_t count);
  void bindWorkspace(void* memory, size_t bytes);
  const normc_args& args() const { return args_; }

 private:
  Entry entry_;
  normc_sizes sizes_;
  const CudaDevice* where_;
  Layouts layouts_;
  std::map<Tensor, DLTensor>
      views_;  ///< args_ points to them, and they point to layouts_: the nodes of a map keep their addresses
  std::vector<normc_field> stateFields_, savedFields_, partialFields_;
  size_t stateBytes_ = 0, savedBytes_ = 0, partialBytes_ = 0, workspaceBytes_ = 0;
  normc_args args_{};
};

}  // namespace normc::gate
