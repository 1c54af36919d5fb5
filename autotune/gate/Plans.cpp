#include "autotune/gate/Plans.h"

#include "runtime/abi/Numbers.h"

namespace normc::gate {

std::vector<normc_number> numbersOfLargeCalls(const normc_plan* plan) {
  double bytes;
  if (normc_plan_number(plan, kLargeNumber.data(), &bytes) != NORMC_OK) return {};
  return {{kLargeNumber.data(), 0}, {kStreamNumber.data(), 0}};
}

Plans::Plans(Make make) : make_(std::move(make)) { pair({}); }

const host::Plan* Plans::large() const {
  const std::optional<host::Plan>& large = byNumbers_.at({}).large;
  return large ? &*large : nullptr;
}

std::vector<const normc_plan*> Plans::of(const Trial& trial) {
  const Pair& both = pair(trial.numbers);
  std::vector<const normc_plan*> plans{both.small.get()};
  if (both.large) plans.push_back(both.large->get());
  return plans;
}

const Plans::Pair& Plans::pair(const Numbers& of) {
  if (const auto made = byNumbers_.find(of); made != byNumbers_.end()) return made->second;
  std::vector<normc_number> numbers;
  for (const auto& [name, value] : of) numbers.push_back({name.c_str(), value});
  Pair both{make_(numbers), std::nullopt};
  if (const auto large = numbersOfLargeCalls(both.small.get()); !large.empty()) {
    numbers.insert(numbers.end(), large.begin(), large.end());
    both.large = make_(numbers);
  }
  return byNumbers_.emplace(of, std::move(both)).first->second;
}

}  // namespace normc::gate
