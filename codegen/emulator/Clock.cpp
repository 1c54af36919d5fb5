#include "codegen/emulator/Clock.h"

#include <algorithm>

namespace normc::emulator {

static constexpr auto kBefore = [](const std::pair<uint32_t, uint32_t>& entry, uint32_t key) {
  return entry.first < key;
};

uint32_t Clock::find(const Entries& entries, uint32_t key) {
  auto it = std::lower_bound(entries.begin(), entries.end(), key, kBefore);
  return it != entries.end() && it->first == key ? it->second : 0;
}

void Clock::raise(Entries& entries, uint32_t key, uint32_t count) {
  auto it = std::lower_bound(entries.begin(), entries.end(), key, kBefore);
  if (it != entries.end() && it->first == key)
    it->second = std::max(it->second, count);
  else
    entries.insert(it, {key, count});
}

void Clock::join(Entries& to, const Entries& from) {
  if (from.empty()) return;
  if (to.empty()) {
    to = from;
    return;
  }
  Entries both;
  both.reserve(to.size() + from.size());
  auto a = to.begin();
  for (const auto& entry : from) {
    while (a != to.end() && a->first < entry.first) both.push_back(*a++);
    if (a != to.end() && a->first == entry.first)
      both.emplace_back(entry.first, std::max(entry.second, (a++)->second));
    else
      both.push_back(entry);
  }
  both.insert(both.end(), a, to.end());
  to = std::move(both);
}

void Clock::join(const Clock& other) {
  join(blocks_, other.blocks_);
  join(threads_, other.threads_);
}

SharedClock joined(const SharedClock& a, const SharedClock& b) {
  if (!a || a == b) return b;
  if (!b) return a;
  auto both = std::make_shared<Clock>(*a);
  both->join(*b);
  return both;
}

}  // namespace normc::emulator
