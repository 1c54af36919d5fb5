// One call of a plan with its arguments in .npy files: on the CPU, or copied to the
// plan's CUDA device and back.
//
// Tensors have the types of the problem. A file may hold another float type: its values are
// rounded. bf16, which .npy does not know, is read from and written to f4, which holds it exactly.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "tools/normc/FieldFolder.h"
#include "tools/normc/Npy.h"
#include "tools/normc/PlanFlags.h"

namespace normc::cli {

/// NAME=FILE of the command line, by name.
using FileMap = std::map<std::string, std::string>;

class RunCall {
 public:
  /// Reads the inputs and makes room for every output. The sizes are those of the first input with rows and
  /// features.
  RunCall(Planned&, const FileMap& inputs, const FileMap& outputs, Output&);

  /// Before the call: to be filled from folders.
  FieldBuffer& state() { return arguments_->state; }
  FieldBuffer& saved() { return arguments_->saved; }
  const FieldBuffer& saved() const { return arguments_->saved; }
  /// After the call.
  const FieldBuffer& stateAfter() const { return arguments_->stateOut; }
  bool writesState() const { return parts_.writesState(); }
  bool writesSaved() const { return parts_.writesSaved(); }
  bool readsSaved() const { return parts_.readsSaved(); }

  /// Copies the inputs to the device; on the CPU there is nothing to do.
  void upload();
  /// Returns when the outputs are written, on the device.
  void execute();
  /// Copies outputs, state and saved statistics from the device.
  void download();

  /// Writes the outputs of the command line; what was written, for the report.
  Json write() const;
  std::string shapeText() const;
  /// Returns the bytes of an X-sized tensor; the mean of all, since their types may differ.
  int64_t bytesOfTransfer() const;
  /// X-sized transfers of this call, as the manifest has them: those of warmup while it lasts. Columns longer
  /// than the kernel holds count as if they were read again from the first row on.
  int64_t transfers() const;

 private:
  DType typeOf(Tensor) const;
  normc_sizes sizes() const;
  std::vector<int64_t> shapeOf(Tensor output, const normc_sizes&) const;
  int64_t rowsOfColumn() const;
  void makeArguments(const std::map<Tensor, NpyArray>& inputs, const std::vector<Tensor>& outputs);

  const Planned& planned_;
  std::unique_ptr<gate::CudaDevice> device_;  ///< null on the CPU; outlives the memory below
  FileMap outputs_;
  ProblemText parts_;
  Tensor x_ = kX;  ///< the tensor that gives the sizes
  std::vector<int64_t> xShape_;
  std::optional<gate::GuardedArguments> arguments_;
};

}  // namespace normc::cli
