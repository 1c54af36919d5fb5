#include "codegen/targets/cuda/DefaultTable.h"

#include <map>

#include "codegen/TableLines.h"

namespace normc::codegen::cuda {

static constexpr struct {
  llvm::StringLiteral name, text;
} kFiles[] = {
#include "CudaTables.inc"
};

llvm::Expected<std::vector<TableLine>> readTable(llvm::StringRef lines) {
  std::vector<TableLine> table;
  auto error = forEachTableLine(lines, [&](const llvm::json::Object& line) -> llvm::Error {
    auto problem = problemAt(line);
    if (!problem) return problem.takeError();
    auto schedule = parseSchedule(textAt(line, "schedule"));
    if (!schedule) return schedule.takeError();
    table.push_back({*problem, *schedule});
    return llvm::Error::success();
  });
  if (error) return error;
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
