#include "codegen/targets/cuda/DefaultTable.h"

#include <map>

#include "codegen/TableLines.h"
#include "codegen/targets/cuda/Legality.h"

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
    if (!problem->features)
      return llvm::createStringError("problem '" + problem->text() + "' has any number of features");
    auto schedule = parseSchedule(textAt(line, "schedule"));
    if (!schedule) return schedule.takeError();
    const std::optional<int64_t> rowsMax = line.getInteger("rows_max");
    if (rowsMax && *rowsMax < 1)
      return llvm::createStringError("rows_max = " + std::to_string(*rowsMax) + "; legal: at least 1");
    table.push_back({*problem, *schedule, rowsMax});
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
  const int64_t reads = (backward ? 2 : 1) + line.problem.spec->hasResidual(Side::Before);
  // A backward waits for x and dy, whichever type scale has.
  const int64_t f32 = vectors * 4, narrow = backward ? vectors * 2 : f32;
  return traits.backward == backward && traits.reads == reads && traits.partials == partials &&
         (traits.vectorBytes == f32 || traits.vectorBytes == narrow) &&
         traits.dataBytes == bytes(line.problem.data);
}

const TableLine* measuredLine(const KernelTraits& traits, const Arch& arch, bool forFewRows) {
  for (const TableLine& line : tableOf(arch))
    if (*line.problem.features == traits.width && line.rowsMax.has_value() == forFewRows &&
        isLike(line, traits) && !whyIllegal(traits, line.schedule, arch))
      return &line;
  return nullptr;
}

}  // namespace normc::codegen::cuda
