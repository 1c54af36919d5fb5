#include "autotune/measure/Order.h"

#include <algorithm>
#include <numeric>
#include <random>

namespace normc::measure {

std::vector<size_t> orderOfRound(size_t contestants, int round) {
  std::vector<size_t> order(contestants);
  std::iota(order.begin(), order.end(), size_t(0));
  std::mt19937 random(static_cast<unsigned>(round) + 1);
  std::ranges::shuffle(order, random);
  return order;
}

}  // namespace normc::measure
