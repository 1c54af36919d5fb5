#include "tests/fuzz/Target.h"

#include <ctime>

namespace normc::fuzz {
namespace {

/// Processor time that a target may take: of any input, and for each of its bytes; a slow one may take twice
/// that. Generous, since a sanitizer costs a factor of ten, and still a bound that an exponential or cubic
/// algorithm exceeds, and a quadratic one on the longest inputs of scripts/fuzz.
constexpr double kSeconds = 0.5, kSecondsOfByte = 5e-5;

double processorSeconds() {
  timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return double(now.tv_sec) + 1e-9 * double(now.tv_nsec);
}

constexpr Target kTargets[] = {
    {"texts", texts, seedsOfTexts},
    {"problems", problems, seedsOfProblems},
    {"packages", packages, seedsOfPackages},
    {"records", records, seedsOfRecords},
    {"bundles", bundles, seedsOfBundles, /*slow=*/true},
    {"requests", requests, seedsOfRequests},
    {"answers", answers, seedsOfAnswers, /*slow=*/true},
    {"calls", calls, seedsOfCalls},
#ifdef NORMC_WITH_COMPILER
    {"schedules", schedules, seedsOfSchedules},
#endif
};

}  // namespace

std::span<const Target> targets() { return kTargets; }

void run(const Target& target, std::string_view bytes) {
  const double begin = processorSeconds();
  target.run(bytes);
  const double taken = processorSeconds() - begin;
  const double most = (kSeconds + kSecondsOfByte * double(bytes.size())) * (target.slow ? 2 : 1);
  require(taken <= most, std::string(target.name) + " took " + std::to_string(taken) + " s for " +
                             std::to_string(bytes.size()) + " bytes");
}

}  // namespace normc::fuzz
