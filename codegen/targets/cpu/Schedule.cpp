#include "codegen/targets/cpu/Schedule.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/Support/MathExtras.h"

namespace normc::codegen::cpu {

std::string Schedule::text() const {
  return name(strategy).str() + ",vector=" + std::to_string(vector) + ",rows=" + std::to_string(rows) +
         ",unroll=" + std::to_string(unroll) + ",tile=" + std::to_string(tile) + ",grain=" + std::to_string(grain) +
         (scalarTail ? ",scalar_tail" : "");
}

ScheduleAttr Schedule::attribute(mlir::MLIRContext* context) const {
  return ScheduleAttr::get(context, name(strategy), vector, rows, unroll, tile, grain, scalarTail);
}

llvm::Expected<Schedule> parseSchedule(llvm::StringRef text) {
  Schedule schedule;
  llvm::SmallVector<llvm::StringRef> parts;
  llvm::StringSet<> given;
  text.split(parts, ',');
  auto wrong = [&](const std::string& why) { return llvm::createStringError("schedule '" + text.str() + "': " + why); };
  for (auto [i, part] : llvm::enumerate(parts)) {
    auto [key, value] = part.split('=');
    if (i == 0) {
      if (key != "streamed" && key != "resident")
        return wrong("starts with '" + key.str() + "'; legal: streamed, resident");
      schedule.strategy = key == "streamed" ? Strategy::Streamed : Strategy::Resident;
      continue;
    }
    if (!given.insert(key).second) return wrong("'" + key.str() + "' is given twice");
    if (part == "scalar_tail") {
      schedule.scalarTail = true;
      continue;
    }
    int64_t* field = llvm::StringSwitch<int64_t*>(key)
                         .Case("vector", &schedule.vector)
                         .Case("rows", &schedule.rows)
                         .Case("unroll", &schedule.unroll)
                         .Case("tile", &schedule.tile)
                         .Case("grain", &schedule.grain)
                         .Default(nullptr);
    if (!field) return wrong("no knob '" + key.str() + "'; legal: vector, rows, unroll, tile, grain, scalar_tail");
    if (value.getAsInteger(10, *field)) return wrong("'" + value.str() + "' is not a number for " + key.str());
  }
  return schedule;
}

static bool narrow(const Problem& problem) { return bytes(problem.data) == 2 || bytes(problem.params) == 2; }

std::optional<std::string> whyIllegal(const Problem& problem, const Schedule& s, const Isa& isa) {
  if (auto reason = codegen::whyIllegal(problem, s.strategy)) return reason;
  auto oneOf = [](llvm::StringRef knob, int64_t value, int64_t most) -> std::optional<std::string> {
    if (value >= 1 && value <= most && llvm::isPowerOf2_64(value)) return std::nullopt;
    return knob.str() + " = " + std::to_string(value) + "; legal: a power of two up to " + std::to_string(most);
  };
  int64_t lanes = isa.vectorBytes / bytes(problem.statistics());
  // Twice the register is allowed: LLVM splits it, which tests a wider schedule on a narrower machine.
  if (auto reason = oneOf("vector", s.vector, 2 * lanes)) return reason;
  if (auto reason = oneOf("rows", s.rows, 8)) return reason;
  if (auto reason = oneOf("unroll", s.unroll, 8)) return reason;
  if (auto reason = oneOf("tile", s.tile, 8)) return reason;
  if (s.grain < 1) return "grain = " + std::to_string(s.grain) + "; legal: at least 1";
  if (s.rows * s.unroll > 16)
    return "rows * unroll = " + std::to_string(s.rows * s.unroll) + " accumulators of each sum; legal: up to 16";
  if (narrow(problem) && !s.scalarTail && !isa.masks16)
    return "masked tails of 16-bit elements; " + isa.name.str() + " has no 16-bit masks: scalar_tail";
  return std::nullopt;
}

Schedule defaultSchedule(const Problem& problem, const Isa& isa, Strategy strategy) {
  Schedule s;
  s.strategy = strategy;
  s.vector = isa.vectorBytes / bytes(problem.statistics());
  bool wide = isa.registers >= 32;
  // Rows share parameter loads and one update of the column partials; one row with
  // several accumulators suits long rows, where interleaved rows would alias in L1.
  bool lines = !problem.spec->perFeature() && problem.spec->reduce == Reduce::Features;
  int64_t features = problem.features.value_or(1024);
  s.rows = lines && features > 4096 ? 1 : 4;
  s.unroll = s.rows == 1 ? 4 : 1;
  // Wider tiles of a column slab gain nothing and outgrow the instruction cache.
  s.tile = wide ? 4 : 2;
  s.grain = 32;
  s.scalarTail = narrow(problem) && !isa.masks16;
  return s;
}

}  // namespace normc::codegen::cpu
