#include "autotune/measure/Neighbours.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <string>

#include "autotune/measure/Clock.h"

namespace normc::measure {
namespace {

double seconds(const timeval& time) { return double(time.tv_sec) + 1e-6 * double(time.tv_usec); }

/// Returns the processor time of all programs since the machine started, from /proc/stat: user, nice, system,
/// irq, softirq.
double machineSeconds() {
  std::ifstream stream("/proc/stat");
  std::string cpu;
  double user = 0, nice = 0, system = 0, idle = 0, wait = 0, irq = 0, softIrq = 0;
  if (!(stream >> cpu >> user >> nice >> system >> idle >> wait >> irq >> softIrq)) return 0;
  return (user + nice + system + irq + softIrq) / double(sysconf(_SC_CLK_TCK));
}

}  // namespace

Neighbours::Neighbours() : begin_(now()) {}

Neighbours::Clock Neighbours::now() {
  Clock clock;
  clock.machine = machineSeconds();
  for (int usageOf : {RUSAGE_SELF, RUSAGE_CHILDREN}) {
    rusage usage = {};
    getrusage(usageOf, &usage);
    clock.own += seconds(usage.ru_utime) + seconds(usage.ru_stime);
  }
  clock.wall = secondsNow();
  return clock;
}

double Neighbours::busyCores(double alsoOurs) const {
  const Clock end = now();
  const double others = (end.machine - begin_.machine) - (end.own - begin_.own) - alsoOurs,
               wall = end.wall - begin_.wall;
  return wall > 0 ? std::max(0.0, others / wall) : 0;
}

}  // namespace normc::measure
