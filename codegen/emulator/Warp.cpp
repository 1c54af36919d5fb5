// Instructions that the lanes of a warp execute together: shuffles, votes, reductions. The last lane to
// arrive computes the results of all lanes in the mask.
#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "codegen/emulator/Hooks.h"
#include "codegen/emulator/Scheduler.h"

namespace normc::emulator {

namespace {
/// The participating lanes, by number.
struct Lanes {
  Block& block;
  uint32_t first, mask;

  Thread& operator[](uint32_t lane) const { return block.threads[first + lane]; }
  template <typename F>
  void each(F f) const {
    for (uint32_t rest = mask; rest; rest &= rest - 1) f((*this)[std::countr_zero(rest)]);
  }
};
using Work = void (*)(const Lanes&);
}  // namespace

static std::string hex(uint32_t mask) {
  std::string text;
  llvm::raw_string_ostream(text) << llvm::format_hex(mask, 10);
  return text;
}

/// Waits until every lane of the mask is at this instruction, with this mask.
static uint64_t together(Thread& t, uint32_t mask, uint64_t given, uint32_t control, uint32_t site,
                         Work work) {
  Run& run = *t.run;
  step(t, site);
  Block& block = *t.block;
  uint32_t number = t.index / 32;
  Warp& warp = block.warps[number];
  auto refuse = [&](const std::string& what) { run.scheduler->fail(t, Fault::Divergence, what, site); };
  if (!(mask >> t.lane & 1))
    refuse("mask " + hex(mask) + " does not name lane " + std::to_string(t.lane) + ", which executes it");
  if (uint32_t missing = mask & ~warp.members)
    refuse("mask " + hex(mask) + " names lane " + std::to_string(std::countr_zero(missing)) +
           ", but the warp has only " + std::to_string(std::popcount(warp.members)) + " threads");
  if (uint32_t gone = mask & warp.exited)
    refuse("mask " + hex(mask) + " names lane " + std::to_string(std::countr_zero(gone)) +
           ", which has exited");
  t.mask = mask;
  t.given = given;
  t.control = control;
  t.site = site;
  t.wait = Wait::Warp;
  warp.waiting |= 1u << t.lane;

  Lanes lanes{block, number * 32, mask};
  bool complete = (warp.waiting & mask) == mask;
  if (complete) lanes.each([&](Thread& other) { complete &= other.site == site && other.mask == mask; });
  if (complete) {
    work(lanes);
    if (!run.report.finding) mergeWarp(block, number, mask);
    warp.waiting &= ~mask;
    if (run.options.order == Order::Descending)
      for (int lane = 31; lane >= 0; --lane) {
        if (mask >> lane & 1) run.scheduler->wake(lanes[lane]);
      }
    else
      lanes.each([&](Thread& other) { run.scheduler->wake(other); });
  }
  run.scheduler->wait(t);
  return t.got;
}

//===-- Shuffles ------------------------------------------------------------------------===//

/// `control`: the mode, the operands b and c of the PTX instruction. `got`: the value, and whether the source
/// lane is in range.
static void shuffle(const Lanes& lanes) {
  ++lanes.block.run->report.shuffles;
  lanes.each([&](Thread& t) {
    uint32_t mode = t.control >> 30, b = t.control & 31, c = t.control >> 8 & 0x1f1f;
    uint32_t clamp = c & 31, segment = c >> 8 & 31;
    uint32_t last = (t.lane & segment) | (clamp & ~segment), least = t.lane & segment;
    int32_t from = 0;
    bool inRange = false;
    switch (mode) {
      case ShuffleMode::Up:
        from = int32_t(t.lane) - int32_t(b), inRange = from >= int32_t(last);
        break;
      case ShuffleMode::Down:
        from = int32_t(t.lane + b), inRange = from <= int32_t(last);
        break;
      case ShuffleMode::Butterfly:
        from = int32_t(t.lane ^ b), inRange = from <= int32_t(last);
        break;
      case ShuffleMode::Index:
        from = int32_t(least | (b & ~segment)), inRange = from <= int32_t(last);
        break;
    }
    if (!inRange) from = int32_t(t.lane);
    if (!(lanes.mask >> from & 1))
      lanes.block.run->scheduler->fail(t, Fault::Divergence,
                                       "reads the value of lane " + std::to_string(from) + ", which mask " +
                                           hex(lanes.mask) + " does not name",
                                       t.site);
    t.got = (uint64_t(inRange) << 32) | uint32_t(lanes[from].given);
  });
}

static uint64_t emuShuffle(Thread* t, uint32_t mask, uint32_t value, uint32_t mode, uint32_t b, uint32_t c,
                           uint32_t site) {
  return together(*t, mask, value, mode << 30 | (c & 0x1f1f) << 8 | (b & 31), site, shuffle);
}

//===-- Votes, matches, reductions ----------------------------------------------------------===//

static void ballot(const Lanes& lanes) {
  uint32_t votes = 0;
  lanes.each([&](Thread& t) { votes |= uint32_t(t.given & 1) << t.lane; });
  lanes.each([&](Thread& t) { t.got = votes; });
}

static void matchAny(const Lanes& lanes) {
  lanes.each([&](Thread& t) {
    uint32_t same = 0;
    lanes.each([&](Thread& other) { same |= uint32_t(other.given == t.given) << other.lane; });
    t.got = same;
  });
}

static uint32_t reduceFloats(float a, float b, uint32_t control) {
  bool nan = (control & Reduction::Nan) && (std::isnan(a) || std::isnan(b));
  float result = nan ? std::numeric_limits<float>::quiet_NaN()
                 : (control & Reduction::Operation) == Reduction::Fmin ? std::fmin(a, b)
                                                                       : std::fmax(a, b);
  return std::bit_cast<uint32_t>(result);
}

static uint32_t reduceTwo(uint32_t a, uint32_t b, uint32_t control) {
  switch (control & Reduction::Operation) {
    case Reduction::Add:
      return a + b;
    case Reduction::Min:
      return uint32_t(std::min(int32_t(a), int32_t(b)));
    case Reduction::Max:
      return uint32_t(std::max(int32_t(a), int32_t(b)));
    case Reduction::Umin:
      return std::min(a, b);
    case Reduction::Umax:
      return std::max(a, b);
    case Reduction::And:
      return a & b;
    case Reduction::Or:
      return a | b;
    case Reduction::Xor:
      return a ^ b;
    default:
      return reduceFloats(std::bit_cast<float>(a), std::bit_cast<float>(b), control);
  }
}

static void reduce(const Lanes& lanes) {
  uint32_t sum = 0;
  bool first = true;
  lanes.each([&](Thread& t) {
    uint32_t value = uint32_t(t.given) & (t.control & Reduction::Abs ? 0x7fffffff : ~0u);
    sum = first ? value : reduceTwo(sum, value, t.control);
    first = false;
  });
  lanes.each([&](Thread& t) { t.got = sum; });
}

static void nothing(const Lanes&) {}

static uint32_t emuBallot(Thread* t, uint32_t mask, bool vote, uint32_t site) {
  return uint32_t(together(*t, mask, vote, 0, site, ballot));
}
static uint32_t emuMatch(Thread* t, uint32_t mask, uint64_t value, uint32_t site) {
  return uint32_t(together(*t, mask, value, 0, site, matchAny));
}
static uint32_t emuReduce(Thread* t, uint32_t mask, uint32_t value, uint32_t how, uint32_t site) {
  return uint32_t(together(*t, mask, value, how, site, reduce));
}
static void emuWarpSync(Thread* t, uint32_t mask, uint32_t site) { together(*t, mask, 0, 0, site, nothing); }

std::span<const Hook> warpHooks() {
  static const Hook hooks[] = {hook("emu.shuffle", emuShuffle), hook("emu.ballot", emuBallot),
                               hook("emu.match", emuMatch), hook("emu.reduce", emuReduce),
                               hook("emu.warpsync", emuWarpSync)};
  return hooks;
}

}  // namespace normc::emulator
