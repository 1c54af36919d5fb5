#include "codegen/targets/cpu/AttachSchedule.h"

#include "codegen/dialect/Norm.h"

using namespace mlir;

namespace normc::codegen::cpu {

PassPtr attachSchedule(const Schedule& schedule) {
  return modulePass("norm-attach-schedule", [schedule](ModuleOp module) {
    for (auto kernel : module.getOps<KernelOp>()) {
      Builder b(module.getContext());
      kernel.setScheduleAttr(schedule.attribute(module.getContext()));
      if (!schedule.stream) continue;
      SmallVector<Attribute> numbers(kernel.getNumbers().begin(), kernel.getNumbers().end());
      for (std::string_view number : kThresholds) numbers.push_back(b.getStringAttr(number));
      kernel.setNumbersAttr(b.getArrayAttr(numbers));
    }
  });
}

}  // namespace normc::codegen::cpu
