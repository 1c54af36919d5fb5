#include "bench/gpu/Tuned.h"

#include "autotune/tune/Bundle.h"
#include "autotune/tune/ThisDevice.h"

namespace normc::gpu {

Tuned::Tuned(const std::string& folder, const std::string& records, const std::string& driver, int device) {
  const std::vector<tune::Shipped> tasks = tune::readPlan(folder);
  const auto known = tune::readDatabase(records);
  if (!known) return;  // nothing has been measured yet
  const tune::Device here = tune::thisCudaDevice(device, driver);
  for (const tune::Shipped& shipped : tasks) {
    tune::Setting setting = shipped.setting;
    setting.task.threads = 1;
    setting.device = here, setting.device.arch = shipped.setting.device.arch;
    const tune::Landscape landscape(shipped.points, 0);
    const auto [choice, point] = tune::choiceOf(landscape, known->records, setting);
    if (!choice) continue;
    if (setting.task.segments != 1) continue;
    choices_[setting.task.problem.withSizes(1, setting.task.rows).text()] = {
        choice->conclusion->verdict == "won", folder + "/" + shipped.made[point].package, choice->schedule};
  }
}

std::string Tuned::scheduleOf(const std::string& shape) const {
  const auto at = choices_.find(shape);
  return at == choices_.end() ? "" : at->second.schedule;
}

std::optional<Choice> Tuned::find(const Shape& shape) const {
  const auto at = choices_.find(shape.text());
  return at == choices_.end() ? std::nullopt : std::optional(at->second);
}

}  // namespace normc::gpu
