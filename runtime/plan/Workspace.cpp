#include "runtime/plan/Workspace.h"

#include <algorithm>

#include "runtime/plan/Fields.h"

namespace normc::runtime {
namespace {

/// The most bytes of scratch for rows of their own, one for each task, if an x-sized output is left out.
constexpr int64_t kOwnLines = 16 << 20;

/// Returns the bytes of a row of an X-sized operand along the contiguous axis.
int64_t lineBytes(const Kernel& kernel, const Operand& operand, const Sizes& sizes) {
  const int64_t line = kernel.parts.channelsFirst() ? sizes.rows : sizes.features;
  return roundUp(multiply(line, bytes(operand.type)), kAlignment);
}

/// Returns the bytes of scratch that the operand needs; 0 if it needs none.
int64_t scratchBytes(const Kernel& kernel, const Operand& operand, const Sizes& sizes, const normc_cut* cuts,
                     const LeftOut& leftOut, int64_t& taskStride) {
  const int64_t width = bytes(operand.type);
  switch (operand.role) {
    case Role::Workspace:
      return multiply(elements(operand.shape, sizes, cuts), width);
    case Role::StateIn:
    case Role::Partial:
    case Role::Partials:
      return 0;
    case Role::StateOut:
      return leftOut.stateOut ? fieldBytes(kernel.state[operand.field], sizes) : 0;
    case Role::Saved:
      return leftOut.saved && operand.written() ? fieldBytes(kernel.saved[operand.field], sizes) : 0;
    case Role::Tensor:
      break;
  }
  if (!leftOut.tensors[operand.tensor]) return 0;
  if (!operand.written()) return bytesOfZeros(kernel, operand, sizes, leftOut);
  // Tensors that may be left out are vectors of features, or X-sized.
  if (operand.tensorShape != TensorShape::Elements) {
    const int64_t vectors = operand.tensorShape == TensorShape::PerSegment ? sizes.segments : 1;
    return multiply(multiply(vectors, sizes.features), width);
  }
  if (kernel.onCuda()) return 0;  // such a kernel tests the pointer
  // One row of the contiguous axis for each task, which every row of the task overwrites. If that is too much
  // memory, rows of tasks overlap, because no code reads them; each begins in another cache line.
  const int64_t line = lineBytes(kernel, operand, sizes);
  int64_t tasks = 0;
  for (size_t i = 0; i < kernel.phases.size(); ++i) tasks = std::max(tasks, cuts[i].chunks);
  if (tasks == 0) return 0;
  const int64_t stride = std::min(line, std::max(kOwnLines / tasks / kAlignment, int64_t(1)) * kAlignment);
  taskStride = stride / width;
  return add(multiply(tasks - 1, stride), line);
}

/// Returns the most bytes that any call of at most these sizes needs: the rows of fewer tasks overlap less.
int64_t mostScratchBytes(const Kernel& kernel, const Operand& operand, const Sizes& sizes,
                         const normc_cut* cuts) {
  int64_t taskStride = -1;
  const int64_t size = scratchBytes(kernel, operand, sizes, cuts, LeftOut::everything(), taskStride);
  if (taskStride < 0) return size;
  const int64_t line = lineBytes(kernel, operand, sizes);
  return taskStride * bytes(operand.type) < line ? std::max(size, add(kOwnLines, line)) : size;
}

/// The next offset at or after `offset` that lies `place` bytes into a page.
int64_t nextAt(int64_t offset, int64_t place) {
  return offset >= kHuge - kPage ? offset : offset + ((place - offset) & (kPage - 1));
}

}  // namespace

int64_t bytesOfZeros(const Kernel& kernel, const Operand& operand, const Sizes& sizes,
                     const LeftOut& leftOut) {
  if (operand.role != Role::Tensor || operand.written() || !leftOut.tensors[operand.tensor]) return 0;
  return lineBytes(kernel, operand, sizes);
}

int64_t layOutWorkspace(const Kernel& kernel, const Sizes& sizes, const normc_cut* cuts,
                        const LeftOut& leftOut, Scratch* scratch) {
  int64_t offset = 0, vectors = 0;
  for (size_t i = 0; i < kernel.operands.size(); ++i) {
    scratch[i] = {Scratch::kNone, 0};
    const int64_t size =
        scratchBytes(kernel, kernel.operands[i], sizes, cuts, leftOut, scratch[i].taskStride);
    if (size == 0) continue;
    if (size >= kApart && !kernel.onCuda()) offset = nextAt(offset, vectors++ % 2 * kApart);
    scratch[i].offset = offset;
    offset = roundUp(add(offset, size), kAlignment);
  }
  return offset;
}

int64_t spareBytes(const Kernel& kernel, int64_t needed) {
  return (needed >= kApart && !kernel.onCuda() ? kPage : kAlignment) - 1;
}

int64_t bytesToSkip(const Kernel& kernel, const void* workspace, int64_t given, int64_t needed,
                    const void* x) {
  const auto begin = reinterpret_cast<uintptr_t>(workspace);
  const auto place = (reinterpret_cast<uintptr_t>(x) + kBehindX) / kAlignment * kAlignment;
  const auto apart = int64_t((place - begin) % kPage);
  return x && apart <= std::min(given - needed, spareBytes(kernel, needed)) ? apart
                                                                            : int64_t(-begin % kAlignment);
}

int64_t enoughWorkspace(const Kernel& kernel, const Sizes& sizes) {
  const Range rows = kernel.limits.rows(), run = kernel.limits.run();
  if (rows.least > sizes.totalRows() || run.least > sizes.rows) return 0;
  const Sizes most = {std::min(sizes.segments, rows.most), std::min({sizes.rows, rows.most, run.most}),
                      sizes.features};
  std::array<normc_cut, kMaxPhases> cuts;
  if (!boundCuts(kernel, most, cuts.data())) return kHuge;
  int64_t needed = 0;
  for (const Operand& operand : kernel.operands) {
    const int64_t size = mostScratchBytes(kernel, operand, most, cuts.data());
    const int64_t apart = size >= kApart && !kernel.onCuda() ? kPage : 0;  // for any offset in a page
    needed = add(needed, add(roundUp(size, kAlignment), apart));
  }
  if (needed >= kHuge - kPage) return kHuge;
  return needed == 0 ? 0 : needed + spareBytes(kernel, needed);
}

}  // namespace normc::runtime
