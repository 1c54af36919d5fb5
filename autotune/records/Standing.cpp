#include "autotune/records/Standing.h"

#include <algorithm>
#include <string_view>
#include <tuple>

namespace normc::tune {
namespace {

bool isBad(const Record& r) {
  if (r.kind == "verify") return r.conclusion->verdict != "won" && r.conclusion->verdict != "tie";
  return r.status != Status::Ok;
}

auto placeOf(const Record& r) {
  const double untold = r.stamp ? 0 : r.kind == "choice" ? -r.conclusion->high : double(isBad(r));
  return std::tuple(r.stamp, untold, std::string_view(r.session), r.number);
}

}  // namespace

bool newer(const Record& a, const Record& b) { return placeOf(a) > placeOf(b); }

bool sameCircumstances(const Record& a, const Record& b) {
  return a.task == b.task && a.device == b.device && a.toolchain == b.toolchain;
}

std::string reasonRejected(const Record& choice, const std::vector<Record>& all) {
  if (choice.conclusion->verdict == "tie") return {};  // the default, which always exists
  const Record *trial = nullptr, *again = nullptr;     // the newest of each
  for (const Record& r : all) {
    if (r.kind == "choice" || r.stamp < choice.stamp || r.schedule != choice.schedule ||
        r.generator != choice.generator || !sameCircumstances(r, choice))
      continue;
    // The reason may be a missing program on this machine.
    if (r.kind == "trial" && r.status == Status::Refused) continue;
    if (r.kind == "trial" && r.status == Status::Duplicate) continue;  // it is no result of the code
    const Record*& last = r.kind == "verify" ? again : trial;
    if (!last || newer(r, *last)) last = &r;
  }
  std::string found;
  if (again && isBad(*again))
    found = again->conclusion->verdict;
  else if (trial && isBad(*trial))
    found = name(trial->status);
  if (found.empty()) return found;
  const std::string how = found == "slower"                       ? "was slower than the default"
                          : found == "crashed" || found == "hung" ? found
                                                                  : "was " + found;
  return how + " when it was measured again";
}

bool isSuperseded(const Record& choice, const std::vector<Record>& all) {
  return std::any_of(all.begin(), all.end(), [&](const Record& other) {
    return other.kind == "choice" && newer(other, choice) && sameCircumstances(other, choice) &&
           reasonRejected(other, all).empty();
  });
}

}  // namespace normc::tune
