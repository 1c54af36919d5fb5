#include "codegen/emulator/Memory.h"

#include <algorithm>
#include <bit>
#include <cstdlib>

#include "codegen/emulator/Zone.h"

namespace normc::emulator {

static constexpr size_t kRedZone = 4096;

void Cells::Free::operator()(Cell* cells) const { std::free(cells); }

void Cells::refine(uint64_t edges, uint64_t zoneBytes) {
  int shift = std::min(shift_, std::countr_zero(edges));
  // The system zeroes pages at first access, so a large region costs only its used part.
  auto make = [&](int to) {
    auto* cells = static_cast<Cell*>(std::calloc((zoneBytes >> to) + 1, sizeof(Cell)));
    if (!cells) llvm::report_bad_alloc_error("no memory for what the emulator remembers of a region");
    return cells;
  };
  std::unique_ptr<Cell[], Free> fine(make(shift));
  if (cells_)
    for (uint64_t i = 0; i < (zoneBytes >> shift) + 1; ++i) {
      const Cell& old = cells_[i >> (shift_ - shift)];
      if (old.writer || old.reader) fine[i] = old;
    }
  cells_ = std::move(fine);
  shift_ = shift;
}

Zone* Memory::State::before(const std::byte* p) const {
  auto it = std::upper_bound(zones.begin(), zones.end(), p,
                             [](const std::byte* at, const auto& zone) { return at < zone->base; });
  return it == zones.begin() ? nullptr : std::prev(it)->get();
}

Zone* Memory::State::find(const std::byte* p, uint64_t bytes) const {
  Zone* zone = before(p);
  return zone && zone->holds(p, bytes) ? zone : nullptr;
}

Memory::Memory() : state_(std::make_unique<State>()) {}
Memory::~Memory() = default;
Memory::Memory(Memory&&) noexcept = default;
Memory& Memory::operator=(Memory&&) noexcept = default;

static Zone* insert(Memory::State& state, std::unique_ptr<Zone> zone) {
  auto at = std::upper_bound(state.zones.begin(), state.zones.end(), zone->base,
                             [](const std::byte* base, const auto& other) { return base < other->base; });
  return state.zones.insert(at, std::move(zone))->get();
}

static std::unique_ptr<Zone> newZone(void* base, size_t bytes, std::string name, Access access,
                                     Content content) {
  auto zone = std::make_unique<Zone>();
  zone->base = static_cast<std::byte*>(base);
  zone->bytes = bytes;
  zone->traffic.region = zone->name = std::move(name);
  zone->readOnly = access == Access::ReadOnly;
  if (content == Content::Uninitialised) zone->initialised.assign(bytes, 0);
  return zone;
}

llvm::Error Memory::add(void* base, size_t bytes, std::string name, Access access, Content content) {
  auto* first = static_cast<std::byte*>(base);
  if (!base || !bytes) return llvm::createStringError("region '" + name + "' is empty");
  const Zone* last = state_->before(first + bytes - 1);
  if (last && last->base + last->bytes > first)
    return llvm::createStringError("region '" + name + "' overlaps region '" + last->name + "'");
  insert(*state_, newZone(base, bytes, std::move(name), access, content));
  return llvm::Error::success();
}

void* Memory::allocate(size_t bytes, std::string name, Access access, Content content, size_t alignment) {
  std::vector<std::byte> storage(bytes + 2 * kRedZone + 2 * alignment, std::byte{0xFF});
  auto address = reinterpret_cast<uintptr_t>(storage.data()) + kRedZone;
  // A multiple of the alignment and of no larger power of two, so that code that assumes more than the
  // guaranteed alignment fails.
  uintptr_t aligned = (address + 2 * alignment - 1) / (2 * alignment) * (2 * alignment);
  aligned = aligned - alignment >= address ? aligned - alignment : aligned + alignment;
  auto zone = newZone(reinterpret_cast<void*>(aligned), bytes, std::move(name), access, content);
  zone->storage = std::move(storage);
  return insert(*state_, std::move(zone))->base;
}

static llvm::Error noRegion(const void* base, size_t bytes) {
  std::string text;
  llvm::raw_string_ostream(text) << "no region holds the " << bytes << " bytes at " << base;
  return llvm::createStringError(text);
}

llvm::Error Memory::forbid(const void* base, size_t bytes) {
  auto* first = static_cast<const std::byte*>(base);
  Zone* zone = state_->find(first, bytes);
  if (!zone) return noRegion(base, bytes);
  if (zone->forbidden.empty()) zone->forbidden.assign(zone->bytes, 0);
  std::fill_n(zone->forbidden.begin() + (first - zone->base), bytes, 1);
  return llvm::Error::success();
}

llvm::Error Memory::markInitialised(const void* base, size_t bytes) {
  auto* first = static_cast<const std::byte*>(base);
  Zone* zone = state_->find(first, bytes);
  if (!zone) return noRegion(base, bytes);
  if (!zone->initialised.empty()) std::fill_n(zone->initialised.begin() + (first - zone->base), bytes, 1);
  return llvm::Error::success();
}

static auto beginningAt(Memory::State& state, const void* base) {
  return std::find_if(state.zones.begin(), state.zones.end(),
                      [&](const auto& zone) { return zone->base == base; });
}

llvm::Error Memory::remove(const void* base) {
  auto zone = beginningAt(*state_, base);
  if (zone == state_->zones.end()) return noRegion(base, 1);
  state_->zones.erase(zone);
  return llvm::Error::success();
}

std::string Memory::describe(const void* address) const {
  auto* p = static_cast<const std::byte*>(address);
  if (const Zone* zone = state_->find(p, 0)) return zone->name + " + " + std::to_string(p - zone->base);
  std::string text;
  llvm::raw_string_ostream(text) << address;
  return text;
}

}  // namespace normc::emulator
