// One call, or the part of a thread: checks every argument, fails before anything is written, lays out the
// operands on the stack, and passes them to the back end. All this depends on the arguments alone, so that
// the threads of a call by parts agree without talking to each other.
#include <algorithm>

#include "runtime/core/Error.h"
#include "runtime/plan/Plan.h"

namespace normc::runtime {
namespace {

/// Refuses a call that leaves out all outputs.
normc_status refuseNothing(const Kernel& kernel, const LeftOut& leftOut) {
  Message all;
  int outputs = 0;
  if (!leftOut.stateOut) return NORMC_OK;
  for (const Operand& operand : kernel.operands) {
    if (operand.role != Role::Tensor || !operand.written()) continue;
    if (!leftOut.tensors[operand.tensor]) return NORMC_OK;
    all << (outputs++ ? ", " : "") << operand.name;
  }
  if (kernel.parts.writesState() && !kernel.state.empty()) all << (outputs++ ? " and " : "") << "state_out";
  return fail(NORMC_INVALID_ARGUMENT, "nothing to compute: ", all.text(),
              outputs > 1 ? " are all null" : " is null");
}

/// Refuses a tensor that a plan does not take.
normc_status refuseTensor(const BoundKernel& kernel, const TensorInfo& tensor, std::string_view problem) {
  if (const std::optional<Tensor> same = kernel.same(tensor.tensor))
    return fail(NORMC_INVALID_ARGUMENT, tensor.name, " is given, but ", problem,
                " does not write it, because it is equal to ", name(*same), "; leave it null and use ",
                name(*same));
  return fail(NORMC_INVALID_ARGUMENT, tensor.name, " is given, but ", problem,
              " does not take it; leave it null");
}

normc_status tooManyRows() {
  return fail(NORMC_INVALID_ARGUMENT, "the tensors have more rows than can be counted");
}

}  // namespace

normc_status Plan::bindTensors(Call& call) const {
  // All kernels of a plan take the same tensors, of the same types.
  const BoundKernel& general = *kernels_.back();
  std::array<int, kTensorCount> regionOfTensor;
  regionOfTensor.fill(Region::kNone);
  ShapeSource source;
  for (int i = 0; i < kTensorCount; ++i) {
    const Tensor which = Tensor(i);
    const TensorInfo& info = infoOf(which);
    const DLTensor* const tensor = call.tensors[i];
    if (general.operandOf(i) == BoundKernel::kUnused) {
      if (tensor && !general.ignores(i)) return refuseTensor(general, info, request_.text);
      continue;
    }
    const Operand& operand = general.info().operands[general.operandOf(i)];
    if (!tensor) {
      if (!info.mayBeLeftOut())
        return fail(NORMC_INVALID_ARGUMENT, info.name, " is null; ", request_.text,
                    operand.written() ? " writes it" : " needs it");
      call.leftOut.tensors[i] = true;
      continue;
    }
    View& view = call.views[i];
    const TensorRules rules = {.which = which,
                               .shape = operand.tensorShape,
                               .type = operand.type,
                               .written = operand.written(),
                               .problem = &request_.parts,
                               .kernel = &general.info(),
                               .place = &place_};
    const bool hadSizes = source.tensor != nullptr;
    NORMC_TRY(bindTensor(rules, *tensor, source, call.sizes, view));
    if (!hadSizes && source.tensor) NORMC_TRY(checkSizes(call.sizes));
    Region region = {info.name, view.begin(), view.end(), operand.written(),
                     operand.tensorShape == TensorShape::Elements ? &view : nullptr};
    const std::optional<Tensor> shared = mayShare(which, general.info().runs > 0);
    const int other = shared ? general.operandOf(*shared) : BoundKernel::kUnused;
    if (other != BoundKernel::kUnused && general.info().operands[other].type == operand.type)
      region.mayBe = regionOfTensor[*shared];
    regionOfTensor[i] = call.regions.add(region);
  }
  return source.tensor ? NORMC_OK : sizesOfPartials(call);
}

normc_status Plan::bindOperands(const Kernel& kernel, Call& call) const {
  if (!computeCuts(kernel, call.sizes, call.cuts.data())) return tooManyRows();
  std::array<Scratch, kMaxOperands> scratch;
  const int64_t needed = layOutWorkspace(kernel, call.sizes, call.cuts.data(), call.leftOut, scratch.data());
  char* workspace = static_cast<char*>(call.args.workspace);
  if (needed > 0) {
    if (!workspace && call.args.workspace_bytes)
      return fail(NORMC_INVALID_ARGUMENT, "workspace is null, and workspace_bytes is ",
                  call.args.workspace_bytes, "; this call needs ", needed, " bytes of memory");
    const auto given =
        static_cast<int64_t>(std::min<uint64_t>(workspace ? call.args.workspace_bytes : 0, kHuge));
    const int64_t skipped = bytesToSkip(kernel, workspace, given, needed, call.views[kX].data);
    if (given < add(needed, skipped))
      return fail(NORMC_INVALID_ARGUMENT, "workspace has ", given, " bytes; this call needs ",
                  add(needed, skipped), " (normc_plan_workspace_bytes tells what is enough for any call)");
    // The range that the call may use for any address of x, so that refusals do not depend on that address.
    call.regions.add(Region::of(std::string_view("workspace"), workspace,
                                std::min(given, add(needed, spareBytes(kernel, needed))), true));
    workspace += skipped;
  }

  for (size_t i = 0; i < kernel.operands.size(); ++i) {
    const Operand& operand = kernel.operands[i];
    normc_operand& to = call.operands[i];
    to = {};
    if (scratch[i].offset != Scratch::kNone) {
      to.data = workspace + scratch[i].offset;
      to.task_stride = scratch[i].taskStride;
      continue;
    }
    switch (operand.role) {
      case Role::Tensor:
        if (const View& view = call.views[operand.tensor]; call.tensors[operand.tensor])
          to = {view.data, view.outerStride, view.middleStride, 0};
        break;
      case Role::StateIn:
        to.data = call.stateIn[operand.field];
        break;
      case Role::StateOut:
        to.data = call.stateOut[operand.field];
        break;
      case Role::Saved:
        to.data = call.saved[operand.field];
        break;
      case Role::Partial:
        to.data = call.partial[operand.field];
        break;
      case Role::Partials:
        to = {call.partial[operand.field], call.partialCount, call.partialStride, 0};
        break;
      case Role::Workspace:
        break;  // no elements
    }
  }
  return NORMC_OK;
}

normc_status Plan::checkParts(int32_t count) const {
  if (!place_.onHost())
    return fail(NORMC_FAILED_PRECONDITION, request_.text,
                " runs on CUDA here, where a call has no parts; use normc_execute");
  if (count < 1) return fail(NORMC_INVALID_ARGUMENT, "nth is ", count, "; it must be at least 1");
  return NORMC_OK;
}

normc_status Plan::barriers(const Sizes& sizes, int32_t& count) const {
  NORMC_TRY(checkParts(1));
  NORMC_TRY(checkSizes(sizes));
  const BoundKernel& kernel = kernelFor(sizes);
  std::array<normc_cut, kMaxPhases> cuts;
  if (!computeCuts(kernel.info(), sizes, cuts.data())) return tooManyRows();
  count = kernel.backend().barriers(cuts.data());
  return NORMC_OK;
}

normc_status Plan::execute(const normc_args& args, const Part* part) const {
  if (part) NORMC_TRY(checkParts(part->count));
  Call call(args, part);
  if (args.stream && place_.onHost())
    return fail(NORMC_INVALID_ARGUMENT, "stream is given, but this plan runs on the CPU; leave it null");
  NORMC_TRY(bindTensors(call));
  const BoundKernel& kernel = kernelFor(call.sizes);
  NORMC_TRY(bindState(kernel, call));
  const bool mayLeaveOut = request_.parts.isBackward() && !request_.parts.writesPartial();
  if (mayLeaveOut || request_.parts.entry == Entry::Commit)
    NORMC_TRY(refuseNothing(kernel.info(), call.leftOut));
  NORMC_TRY(bindSaved(kernel, call));
  NORMC_TRY(bindPartials(kernel.info(), call));
  NORMC_TRY(bindOperands(kernel.info(), call));
  NORMC_TRY(call.regions.check());
  return kernel.backend().run(call);
}

}  // namespace normc::runtime
