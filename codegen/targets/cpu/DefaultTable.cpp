#include "codegen/targets/cpu/DefaultTable.h"

#include <cmath>
#include <limits>
#include <map>
#include <mutex>
#include <utility>

#include "codegen/TableLines.h"
#include "llvm/ADT/StringExtras.h"

namespace normc::codegen::cpu {

static llvm::Expected<TableLine> readLine(const llvm::json::Object& object) {
  TableLine line{.set = textAt(object, "set"), .problem = {}, .schedule = {}, .mostRows = {}};
  auto isa = findIsa(line.set);
  if (!isa) return isa.takeError();
  auto problem = problemAt(object);
  if (!problem) return problem.takeError();
  line.problem = *problem;
  auto schedule = parseSchedule(textAt(object, "schedule"));
  if (!schedule) return schedule.takeError();
  line.schedule = *schedule;
  if (const llvm::json::Value* rows = object.get("most_rows")) {
    line.mostRows = rows->getAsInteger();
    if (!line.mostRows || *line.mostRows < 1)
      return llvm::createStringError("most_rows of '" + textAt(object, "problem") +
                                     "' is no whole number from 1 on");
  }
  if (auto why = whyIllegal(line.problem, line.schedule, *isa))
    return llvm::createStringError("schedule '" + textAt(object, "schedule") + "' of '" +
                                   textAt(object, "problem") + "': " + *why);
  return line;
}

llvm::Expected<std::vector<TableLine>> readTable(llvm::StringRef lines) {
  std::vector<TableLine> table;
  auto error = forEachTableLine(lines, [&](const llvm::json::Object& object) -> llvm::Error {
    auto line = readLine(object);
    if (!line) return line.takeError();
    table.push_back(std::move(*line));
    return llvm::Error::success();
  });
  if (error) return error;
  return table;
}

std::string kindOf(const Problem& problem) {
  const Spec& spec = *problem.spec;
  std::string kind = spec.pre ? "scaled " : "";
  if (spec.perFeature())
    kind += problem.needsBatchStatistics() ? "batch" : problem.entry == Entry::Infer ? "map" : "running";
  else if (spec.perRow())
    kind += spec.center == Center::None ? "squares" : "centered";
  else
    kind += "segment";
  if (!spec.perFeature() && problem.groups(spec.groups) > 1) kind += " groups";
  if (problem.layout == Layout::ChannelsFirst) kind += " channels first";
  return kind;
}

/// Returns which tensors and formulas the norm has around it, and whether rows of a segment lie apart; empty:
/// the kernel reads and writes what the norm alone does.
static std::string surroundingsOf(const Problem& problem) {
  const Spec& spec = *problem.spec;
  std::string around = problem.segmented && !spec.perFeature() ? " segments" : "";
  if (spec.residual) around += spec.hasResidual(Side::After) ? " residual after" : " residual";
  if (spec.hasStream()) around += " stream";
  if (spec.gate) around += spec.hasGate(Side::Before) ? " gate before" : " gate";
  if (spec.modulate) around += " modulate";
  if (spec.activation == Activation::Relu) around += " relu";
  if (spec.activation != Activation::None && spec.activation != Activation::Relu) around += " activation";
  if (spec.rope) around += " rope";
  if (spec.quantize) around += " quantize";
  return around;
}

/// Returns the surroundings of a residual that also stores the sum if this one does not, and the reverse: the
/// sweeps are the same but for one tensor.
static std::string exchangeStream(std::string around) {
  constexpr std::string_view kResidual = " residual", kStream = " stream";
  if (const size_t at = around.find(kStream); at != around.npos) return around.erase(at, kStream.size());
  const size_t at = around.find(kResidual);
  const bool before = at != around.npos && !around.substr(at).starts_with(" residual after");
  return before ? around.insert(at + kResidual.size(), kStream) : around;
}

namespace {

/// The lines of a core, ordered by what has to be equal.
using Table = std::multimap<std::string, TableLine>;

/// Returns what has to be equal, besides set and type. An inference that sums does the work of a forward. A
/// kernel for any number of features takes the lines of such kernels alone.
std::string keyOf(const Problem& problem, const std::string& surroundings, Strategy strategy) {
  Entry entry = problem.entry;
  if (entry == Entry::Infer && !isMap(problem)) entry = Entry::Forward;
  const bool cut = problem.features && problem.layout == Layout::FeaturesLast &&
                   *problem.features * bytes(problem.data) % kCacheLine != 0;
  const int64_t offsets = std::min<int64_t>(pageOffsetsOfRows(problem), 4);  // one, two, or many
  return (problem.features ? "" : "any ") + kindOf(problem) + "," + std::to_string(int(entry)) + "," +
         std::to_string(offsets) + (cut ? "," : ":") + name(strategy).str() + surroundings;
}

const Table& tableOf(const Core& core) {
  static std::mutex mutex;
  static std::map<const char*, Table> tables;  // by the text of their lines
  const std::lock_guard lock(mutex);
  const auto [at, isNew] = tables.try_emplace(core.lines.data());
  if (isNew)
    for (TableLine& line : llvm::cantFail(readTable(core.lines))) {
      std::string key = keyOf(line.problem, surroundingsOf(line.problem), line.schedule.strategy);
      at->second.emplace(std::move(key), std::move(line));
    }
  return at->second;
}

/// Returns the distance of two sizes in octaves, of rows and of statistics; 0 for any number of features.
double distance(const Problem& a, const Problem& b) {
  const auto octaves = [](int64_t m, int64_t n) {
    return std::fabs(std::log2(double(std::max<int64_t>(m, 1)) / double(std::max<int64_t>(n, 1))));
  };
  if (!a.features) return 0;
  return std::max(octaves(*a.features, *b.features), octaves(statisticWidth(a), statisticWidth(b)));
}

}  // namespace

/// Returns the line of a core's table that is nearest among those of a type with such surroundings; null:
/// none is near.
static const TableLine* nearestLine(const Core& core, const Problem& problem, const Isa& isa,
                                    Strategy strategy, const std::string& surroundings, DType data) {
  const TableLine* best = nullptr;
  double least = problem.layout == Layout::FeaturesLast ? 1 : std::numeric_limits<double>::infinity();
  const auto [first, last] = tableOf(core).equal_range(keyOf(problem, surroundings, strategy));
  for (auto at = first; at != last; ++at) {
    const TableLine& line = at->second;
    const double far = distance(line.problem, problem);
    if (line.problem.data != data || !isa.name.starts_with(line.set)) continue;
    if (far > least || (best && far == least)) continue;
    best = &line;
    least = far;
  }
  return best;
}

/// Returns the cores whose tables decide, that of the set first.
static llvm::SmallVector<const Core*, 2> coresOf(const Isa& isa) {
  llvm::SmallVector<const Core*, 2> cores{isa.core};
  if (const Core* sibling = findCore(isa.core->sibling)) cores.push_back(sibling);
  return cores;
}

const TableLine* findLine(const Problem& problem, const Isa& isa, Strategy strategy) {
  if (!isa.core || problem.data == DType::F64) return nullptr;
  const std::string own = surroundingsOf(problem);
  for (const DType data : {problem.data, DType::F32})
    for (const std::string& surroundings : {own, exchangeStream(own), std::string()})
      for (const Core* core : coresOf(isa))
        if (const TableLine* line = nearestLine(*core, problem, isa, strategy, surroundings, data))
          return line;
  return nullptr;
}

/// True if the first line is nearer to a problem: by the type of data, what is around, or else the size.
static bool isNearer(const TableLine& first, const TableLine& second, const Problem& problem) {
  const auto apart = [&](const TableLine& line) {
    return std::pair(line.problem.data != problem.data,
                     surroundingsOf(line.problem) != surroundingsOf(problem));
  };
  const auto [data, around] = apart(first);
  const auto [otherData, otherAround] = apart(second);
  if (data > otherData || around > otherAround) return false;
  return data < otherData || around < otherAround ||
         distance(first.problem, problem) < distance(second.problem, problem);
}

std::optional<int64_t> mostRows(const Problem& problem, const Isa& isa, Strategy strategy) {
  const TableLine* decides = findLine(problem, isa, strategy);
  if (!decides) return std::nullopt;
  const bool splits = strategy == Strategy::Split && !isBackward(problem.entry);
  if (const TableLine* whole = splits ? findLine(problem, isa, Strategy::Resident) : nullptr)
    if (isNearer(*whole, *decides, problem)) return std::nullopt;
  const std::string own = surroundingsOf(problem), around = surroundingsOf(decides->problem);
  if (around != own && around == exchangeStream(own) && !isBackward(problem.entry)) return std::nullopt;
  const auto rowBytes = [](const Problem& p) {
    return p.features.value_or(kUnknownFeatures) * bytes(p.data);
  };
  for (const Core* core : coresOf(isa)) {
    const TableLine* line = nearestLine(*core, problem, isa, strategy, around, decides->problem.data);
    if (line && line->mostRows)
      return std::max<int64_t>(*line->mostRows * rowBytes(line->problem) / rowBytes(problem), 1);
  }
  return std::nullopt;
}

void applyLine(const TableLine& line, const Problem& problem, const Isa& isa, Schedule& s) {
  const bool type = line.problem.data == problem.data;
  const std::string around = surroundingsOf(line.problem), own = surroundingsOf(problem);
  const bool sameAround = around == own, alike = sameAround || around == exchangeStream(own);
  const bool same = type && line.problem.features == problem.features && sameAround;
  const Schedule& measured = line.schedule;
  Schedule changed = same ? measured : s;
  changed.grain = s.grain;
  if (type && !same) changed.vector = std::min(s.vector, measured.vector);
  changed.rows = measured.rows;
  changed.unroll = measured.unroll;
  changed.tile = measured.tile;
  changed.ahead = measured.ahead;
  changed.inTurn = measured.inTurn;
  changed.wide = measured.wide && canBeWide(problem, measured.strategy);
  // With AVX-512 a vector of bf16 is two registers, so a step has half as many vectors.
  if (!type && isa.masks16 && changed.vector * bytes(problem.statistics()) > isa.vectorBytes) {
    changed.unroll = std::max<int64_t>(changed.unroll / 2, 1);
    changed.tile = std::max<int64_t>(changed.tile / 2, 1);
  }
  if (type && alike) {
    changed.stream = measured.stream;
    changed.fetch = measured.fetch;
    changed.nta = measured.nta;
  }
  if (!whyIllegal(problem, changed, isa)) s = changed;
}

}  // namespace normc::codegen::cpu
