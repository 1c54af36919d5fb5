#include "codegen/targets/cuda/DefaultTable.h"

#include <map>

#include "dsl/Library.h"
#include "llvm/Support/JSON.h"

namespace normc::codegen::cuda {

static constexpr struct {
  llvm::StringLiteral name, text;
} kFiles[] = {
#include "CudaTables.inc"
};

static llvm::Expected<TableLine> readLine(llvm::StringRef text) {
  auto json = llvm::json::parse(text);
  if (!json) return json.takeError();
  const llvm::json::Object* object = json->getAsObject();
  const auto get = [&](llvm::StringRef key) {
    return object ? object->getString(key).value_or("").str() : std::string();
  };
  auto problem = parseProblem(get("problem"), findNorm);
  if (!problem) return llvm::createStringError(normc::text(problem.errors()));
  if (!problem->features)
    return llvm::createStringError("problem '" + get("problem") + "' has any number of features");
  auto schedule = parseSchedule(get("schedule"));
  if (!schedule) return schedule.takeError();
  return TableLine{*problem, *schedule};
}

llvm::Expected<std::vector<TableLine>> readTable(llvm::StringRef lines) {
  std::vector<TableLine> table;
  for (size_t number = 2; !lines.empty(); ++number) {
    const auto [first, rest] = lines.split('\n');
    lines = rest;
    if (first.empty()) continue;
    auto line = readLine(first);
    if (!line)
      return llvm::createStringError("line " + std::to_string(number) + ": " +
                                     llvm::toString(line.takeError()));
    table.push_back(std::move(*line));
  }
  return table;
}

const std::vector<TableLine>& tableOf(const Arch& arch) {
  static const std::map<std::string, std::vector<TableLine>> tables = [] {
    std::map<std::string, std::vector<TableLine>> all;
    for (const auto& [name, text] : kFiles)  // the files are part of the program, and a test reads them
      all[name.str()] = llvm::cantFail(readTable(text.split('\n').second));
    return all;
  }();
  static const std::vector<TableLine> none;
  const auto found = tables.find(arch.name);
  return found == tables.end() ? none : found->second;
}

/// True if the line's rows do the work of the kernel's.
static bool isLike(const TableLine& line, const KernelTraits& traits) {
  const bool centered = line.problem.spec->center != Center::None;
  const bool backward = line.problem.entry == Entry::Backward;
  const int64_t vectors = backward || !centered ? 1 : 2, partials = !backward ? 0 : centered ? 2 : 1;
  return traits.backward == backward && traits.reads == (backward ? 2 : 1) && traits.partials == partials &&
         traits.vectorBytes == vectors * 4 && traits.dataBytes == bytes(line.problem.data);
}

std::optional<Schedule> measuredSchedule(const KernelTraits& traits, const Arch& arch) {
  for (const TableLine& line : tableOf(arch))
    if (*line.problem.features == traits.width && isLike(line, traits) &&
        !whyIllegal(traits, line.schedule, arch))
      return line.schedule;
  return std::nullopt;
}

}  // namespace normc::codegen::cuda
