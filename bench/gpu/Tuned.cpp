#include "bench/gpu/Tuned.h"

#include "autotune/tune/Bundle.h"
#include "autotune/tune/ThisDevice.h"

namespace normc::gpu {

Choices choicesOf(const std::string& folder, const std::string& records, const std::string& driver,
                  int device) {
  Choices choices;
  const std::vector<tune::Shipped> tasks = tune::readPlan(folder);
  const auto known = tune::readDatabase(records);
  if (!known) return choices;  // nothing has been measured yet
  const tune::Device here = tune::thisCudaDevice(device, driver);
  for (const tune::Shipped& shipped : tasks) {
    tune::Setting setting = shipped.setting;
    setting.task.threads = 1;
    setting.device = here;
    setting.device.arch = shipped.setting.device.arch;
    const tune::Landscape landscape(shipped.points, 0);
    const auto [choice, point, absentWin] = tune::choiceOf(landscape, known->records, setting);
    if (!choice || absentWin || setting.task.segments != 1) continue;
    choices[setting.task.problem.withSizes(1, setting.task.rows).text()] = {
        choice->conclusion->verdict == tune::Verdict::Won, folder + "/" + shipped.made[point].package,
        choice->schedule};
  }
  return choices;
}

}  // namespace normc::gpu
