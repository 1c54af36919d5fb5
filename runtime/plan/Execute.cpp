// One call: checks every argument, fails before anything is written, lays out the operands on the stack, and
// passes them to the back end.
#include <algorithm>

#include "runtime/core/Error.h"
#include "runtime/plan/Fields.h"
#include "runtime/plan/Plan.h"
#include "runtime/plan/State.h"

namespace normc::runtime {
namespace {

/// Checks the memory of a state or of saved statistics, whose fields have published offsets.
normc_status checkMemory(std::string_view name, const void* memory, size_t bytes, int64_t wanted) {
  if (bytes != static_cast<uint64_t>(wanted))
    return fail(NORMC_INVALID_ARGUMENT, name, " has ", bytes, " bytes; with these sizes it has ", wanted);
  if (reinterpret_cast<uintptr_t>(memory) % 8 != 0)
    return fail(NORMC_INVALID_ARGUMENT, name, " is not aligned to 8 bytes");
  return NORMC_OK;
}

/// Refuses a call that leaves out all that a call may leave out.
normc_status refuseNothing(const LeftOut& leftOut) {
  Message all;
  bool wanted = !leftOut.stateOut;
  for (const TensorInfo& each : kTensorTable) {
    if (!each.mayBeLeftOut()) continue;
    wanted |= !leftOut.tensors[each.tensor];
    if (!wanted) all << (all.text().empty() ? "" : ", ") << each.name;
  }
  if (wanted) return NORMC_OK;
  return fail(NORMC_INVALID_ARGUMENT, "nothing to compute: ", all.text(), " and state_out are all null");
}

constexpr int kNoRegion = -1;

Region regionOf(std::string_view name, const void* memory, int64_t bytes, bool written) {
  const auto begin = reinterpret_cast<uintptr_t>(memory);
  return {name, begin, begin + bytes, written, nullptr, -1};
}

}  // namespace

normc_status Plan::bindTensors(Call& call) const {
  // All kernels of a plan take the same tensors, of the same types.
  const BoundKernel& general = *kernels_.back();
  std::array<int, kTensorCount> regionOfTensor;
  regionOfTensor.fill(kNoRegion);
  ShapeSource source;
  for (int i = 0; i < kTensorCount; ++i) {
    const Tensor which = Tensor(i);
    const TensorInfo& info = infoOf(which);
    const DLTensor* const tensor = call.tensors[i];
    if (general.operandOf(i) == BoundKernel::kUnused) {
      if (tensor && !(request_.parts.isBackward() && info.mayBeIgnored()))
        return fail(NORMC_INVALID_ARGUMENT, info.name, " is given, but ", request_.text,
                    " does not take it; leave it null");
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
    const TensorRules rules = {which, operand.type, operand.written(), &request_.parts, &place_};
    switch (info.shape) {
      case TensorShape::Elements: {
        const bool first = !source.tensor;
        NORMC_TRY(bindXSized(rules, *tensor, source, call.sizes, view));
        if (first) NORMC_TRY(checkSizes(call.sizes));
        break;
      }
      case TensorShape::PerFeature:
        NORMC_TRY(bindVector(rules, *tensor, call.sizes, view));
        break;
      case TensorShape::PerRow:
        NORMC_TRY(bindRows(rules, *tensor, source, call.sizes, view));
        break;
    }
    Region region = {
        info.name, view.begin(), view.end(), operand.written(), isXSized(which) ? &view : nullptr, -1};
    if (info.mayBe) region.mayBe = regionOfTensor[*info.mayBe];
    regionOfTensor[i] = call.regions.add(region);
  }
  return NORMC_OK;
}

normc_status Plan::bindState(const BoundKernel& bound, Call& call) const {
  const Kernel& kernel = bound.info();
  const normc_args& args = call.args;
  const void* in = args.state_in;
  void* out = args.state_out;
  size_t inBytes = args.state_in_bytes, outBytes = args.state_out_bytes;
  if (args.state) {
    const State& state = stateOf(args.state);
    if (in || out)
      return fail(NORMC_INVALID_ARGUMENT, "state and ", in ? "state_in" : "state_out",
                  " are both given; a state object stands for state_in and state_out");
    NORMC_TRY(state.checkFits(*this, call.sizes.features));
    in = state.data();
    if (!kernel.parts.isInfer()) out = state.data();
    inBytes = outBytes = state.bytes();
  }
  call.leftOut.stateOut = !out;
  if (kernel.state.empty()) {
    if (in || out)
      return fail(NORMC_INVALID_ARGUMENT, in ? "state_in" : "state_out", " is given, but ", request_.text,
                  " has no state");
    return NORMC_OK;
  }
  if (args.state_out && kernel.parts.isInfer())
    return fail(NORMC_INVALID_ARGUMENT, "state_out is given, but ", request_.text,
                " does not write the state; leave it null");
  if (!in && bound.readsState())
    return fail(NORMC_INVALID_ARGUMENT, "state_in is null; ", request_.text, " reads the state");
  if (!in && out && !bound.copiedFields().empty())
    return fail(NORMC_INVALID_ARGUMENT, "state_out is given without state_in; `",
                kernel.state[bound.copiedFields()[0]].name, "` would have to be copied from it");

  const int64_t bytes = layOut(kernel.state, call.sizes, call.stateOffsets.data());
  int inRegion = kNoRegion;
  if (in) {
    NORMC_TRY(checkMemory("state_in", in, inBytes, bytes));
    inRegion = call.regions.add(regionOf("state_in", in, bytes, false));
  }
  if (out) {
    NORMC_TRY(checkMemory("state_out", out, outBytes, bytes));
    Region region = regionOf("state_out", out, bytes, true);
    region.mayBe = inRegion;
    call.regions.add(region);
  }
  call.stateIn = static_cast<const char*>(in);
  call.stateOut = static_cast<char*>(out);
  if (out && out != in)
    for (const size_t field : bound.copiedFields())
      call.copies[call.copyCount++] = {call.stateOut + call.stateOffsets[field],
                                       call.stateIn + call.stateOffsets[field],
                                       fieldBytes(kernel.state[field], call.sizes)};
  return NORMC_OK;
}

normc_status Plan::bindSaved(const BoundKernel& bound, Call& call) const {
  const Kernel& kernel = bound.info();
  void* const saved = call.args.saved;
  const int64_t bytes = layOut(kernel.saved, call.sizes, call.savedOffsets.data());
  call.leftOut.saved = !saved;
  if (!saved) {
    if (bound.readsSaved() && bytes > 0)
      return fail(NORMC_INVALID_ARGUMENT, "saved is null; ", request_.text,
                  " needs what the forward of the same batch wrote there");
    return NORMC_OK;
  }
  if (kernel.saved.empty())
    return fail(NORMC_INVALID_ARGUMENT, "saved is given, but ", request_.text,
                " saves nothing; leave it null");
  NORMC_TRY(checkMemory("saved", saved, call.args.saved_bytes, bytes));
  call.regions.add(regionOf("saved", saved, bytes, bound.writesSaved()));
  call.saved = static_cast<char*>(saved);
  return NORMC_OK;
}

normc_status Plan::bindOperands(const Kernel& kernel, Call& call) const {
  if (!computeCuts(kernel, call.sizes, call.cuts.data()))
    return fail(NORMC_INVALID_ARGUMENT, "the tensors have more rows than can be counted");
  std::array<Scratch, kMaxOperands> scratch;
  const int64_t needed = layOutWorkspace(kernel, call.sizes, call.cuts.data(), call.leftOut, scratch.data());
  char* workspace = static_cast<char*>(call.args.workspace);
  if (needed > 0) {
    const auto given =
        static_cast<int64_t>(std::min<uint64_t>(workspace ? call.args.workspace_bytes : 0, kHuge));
    const int64_t skipped = bytesToSkip(kernel, workspace, given, needed, call.views[kX].data);
    if (given < add(needed, skipped))
      return fail(NORMC_INVALID_ARGUMENT, "workspace has ", given, " bytes; this call needs ",
                  add(needed, skipped), " (normc_plan_workspace_bytes tells what is enough for any call)");
    // The range that the call may use for any address of x, so that refusals do not depend on that address.
    call.regions.add(
        regionOf("workspace", workspace, std::min(given, add(needed, spareBytes(kernel, needed))), true));
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
    const auto field = [&](const void* memory, const auto& offsets) {  // null stays null: no elements
      to.data = memory ? static_cast<char*>(const_cast<void*>(memory)) + offsets[operand.field] : nullptr;
    };
    switch (operand.role) {
      case Role::Tensor:
        if (const View& view = call.views[operand.tensor]; call.tensors[operand.tensor])
          to = {view.data, view.outerStride, view.middleStride, 0};
        break;
      case Role::StateIn:
        field(call.stateIn, call.stateOffsets);
        break;
      case Role::StateOut:
        field(call.stateOut, call.stateOffsets);
        break;
      case Role::Saved:
        field(call.saved, call.savedOffsets);
        break;
      case Role::Workspace:
        break;  // no elements
    }
  }
  return NORMC_OK;
}

normc_status Plan::execute(const normc_args& args) const {
  Call call(args);
  if (args.stream && place_.onHost())
    return fail(NORMC_INVALID_ARGUMENT, "stream is given, but this plan runs on the CPU; leave it null");
  NORMC_TRY(bindTensors(call));
  const BoundKernel& kernel = kernelFor(call.sizes);
  NORMC_TRY(bindState(kernel, call));
  NORMC_TRY(bindSaved(kernel, call));
  NORMC_TRY(bindOperands(kernel.info(), call));
  NORMC_TRY(call.regions.check());
  if (request_.parts.isBackward()) NORMC_TRY(refuseNothing(call.leftOut));
  return kernel.backend().run(call);
}

}  // namespace normc::runtime
