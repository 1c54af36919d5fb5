// One call of a plan with its arguments in .npy files: on the CPU, or copied to the
// plan's CUDA device and back.
//
// Tensors have the types of the problem. A file may hold another float type: its values are
// rounded. bf16, which .npy does not know, is read from and written to f4, which holds it exactly.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "tools/normc/FieldFolder.h"
#include "tools/normc/PlanFlags.h"

namespace normc::cli {

/// NAME=FILE of the command line, by name.
using FileMap = std::map<std::string, std::string>;

class RunCall {
 public:
  /// Reads the inputs and makes room for every output. The sizes are those of x.
  RunCall(Planned&, const FileMap& inputs, const FileMap& outputs, Output&);
  ~RunCall();

  /// Before the call: to be filled from folders.
  FieldBuffer& state() { return state_; }
  FieldBuffer& saved() { return saved_; }
  const FieldBuffer& saved() const { return saved_; }
  /// After the call.
  const FieldBuffer& stateAfter() const { return stateAfter_; }
  bool isBackward() const { return backward_; }
  bool isInfer() const { return infer_; }

  /// What was filled in goes to the device; on the CPU it is there.
  void upload();
  /// Returns when the outputs are written, on the device.
  void execute();
  /// What came of it comes back: outputs, state and saved statistics.
  void download();

  /// Writes the outputs of the command line; what was written, for the report.
  Json write() const;
  std::string shapeText() const;
  int64_t xBytes() const;
  /// X-sized transfers of this call, as the manifest has them: those of warmup while it lasts. Columns longer than the
  /// kernel holds count as if they were read again from the first row on.
  int64_t transfers() const;

 private:
  int64_t rowsOfColumn() const;
  struct Tensor;

  void addInput(const package::Operand& operand, const std::string& file, Output&);
  void addOutput(const package::Operand& operand);
  const std::vector<int64_t>& xShape() const;
  void makeFields();
  void makeArguments();

  std::vector<gate::Storage*> storages();

  const Planned& planned_;
  std::unique_ptr<gate::CudaDevice> device_;  ///< null on the CPU; outlives the memory below
  FileMap outputs_;
  bool backward_, infer_;
  std::map<std::string, Tensor> tensors_;
  normc_sizes sizes_{};
  FieldBuffer state_, stateAfter_, saved_;
  gate::Storage workspace_;
  normc_args args_{};
};

}  // namespace normc::cli
