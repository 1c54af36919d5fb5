// The state and the saved statistics of a call. Each is one buffer, whose fields have published offsets, or
// one tensor for each field. Both forms give the same result: the memory of every field.
#include "runtime/core/Error.h"
#include "runtime/plan/Fields.h"
#include "runtime/plan/Plan.h"
#include "runtime/plan/State.h"

namespace normc::runtime {
namespace {

/// The members of normc_args for one of state_in, state_out and saved.
struct Names {
  std::string_view buffer, array, count;
};
constexpr Names kStateIn = {"state_in", "state_in_fields", "state_field_count"},
                kStateOut = {"state_out", "state_out_fields", "state_field_count"},
                kSaved = {"saved", "saved_fields", "saved_field_count"};

/// Their values in a call.
struct Given {
  const Names& names;
  const void* buffer;
  size_t bytes;
  const DLTensor* const* array;
  size_t count;

  bool any() const { return buffer || array; }
  std::string_view name() const { return array ? names.array : names.buffer; }
  ArgumentName nameOf(const std::vector<Field>& fields, size_t i) const {
    return array ? ArgumentName(names.array, fields[i].name, i) : ArgumentName(names.buffer);
  }
};

/// Refuses the two forms in one call.
normc_status refuseBoth(const Given& buffer, const Given& array) {
  if (!buffer.buffer || !array.array) return NORMC_OK;
  return fail(NORMC_INVALID_ARGUMENT, buffer.names.buffer, " and ", array.names.array,
              " are both given; give buffers, or one tensor for each field");
}

/// Binds one of state_in, state_out and saved.
class FieldBinder {
 public:
  FieldBinder(const Given& given, const std::vector<Field>& fields, const Place& place, Call& call,
              FieldMemory& memory)
      : given_(given), fields_(fields), place_(place), call_(call), memory_(memory) {}

  /// Gives the memory of each field, null where there is none, and adds its regions. `mayBe`: the binder of
  /// the memory that this one may be; null: there is none.
  normc_status bind(bool written, const FieldBinder* mayBe) {
    if (given_.array) return bindArray(written, mayBe);
    std::array<int64_t, kMaxFields> offsets;
    const int64_t bytes = layOut(fields_, call_.sizes, offsets.data());
    char* const buffer = static_cast<char*>(const_cast<void*>(given_.buffer));
    for (size_t i = 0; i < fields_.size(); ++i) memory_[i] = buffer ? buffer + offsets[i] : nullptr;
    if (!buffer) return NORMC_OK;
    if (given_.bytes != static_cast<uint64_t>(bytes))
      return fail(NORMC_INVALID_ARGUMENT, given_.names.buffer, " has ", given_.bytes,
                  " bytes; with these sizes it has ", bytes);
    if (reinterpret_cast<uintptr_t>(buffer) % 8 != 0)
      return fail(NORMC_INVALID_ARGUMENT, given_.names.buffer, " is not aligned to 8 bytes");
    Region region = Region::of(given_.names.buffer, buffer, bytes, written);
    if (mayBe) region.mayBe = mayBe->bufferRegion_;
    bufferRegion_ = call_.regions.add(region);
    return NORMC_OK;
  }

  /// Fails if the pointer of a field is null that the kernel reads or writes. `access`: what the kernel does
  /// with a field. `wanted`: NORMC_FIELD_READ or NORMC_FIELD_WRITTEN.
  template <typename Access>
  normc_status require(std::string_view problem, normc_field_access wanted, Access access) const {
    if (!given_.array) return NORMC_OK;
    for (size_t i = 0; i < fields_.size(); ++i)
      if (!given_.array[i] && (access(i) & wanted) && fieldBytes(fields_[i], call_.sizes) > 0)
        return fail(NORMC_INVALID_ARGUMENT, given_.nameOf(fields_, i), " is null; ", problem,
                    wanted == NORMC_FIELD_READ ? " reads it" : " writes it");
    return NORMC_OK;
  }

 private:
  normc_status bindArray(bool written, const FieldBinder* mayBe) {
    if (given_.count != fields_.size())
      return fail(NORMC_INVALID_ARGUMENT, given_.names.count, " is ", given_.count, "; there are ",
                  fields_.size(), " fields");
    for (size_t i = 0; i < fields_.size(); ++i) {
      memory_[i] = nullptr;
      fieldRegions_[i] = Region::kNone;
      if (!given_.array[i]) continue;
      const ArgumentName name = given_.nameOf(fields_, i);
      NORMC_TRY(bindField(name, fields_[i], *given_.array[i], call_.sizes, place_, memory_[i]));
      Region region = Region::of(name, memory_[i], fieldBytes(fields_[i], call_.sizes), written);
      if (mayBe && mayBe->given_.array) region.mayBe = mayBe->fieldRegions_[i];
      fieldRegions_[i] = call_.regions.add(region);
    }
    return NORMC_OK;
  }

  const Given& given_;
  const std::vector<Field>& fields_;
  const Place& place_;
  Call& call_;
  FieldMemory& memory_;
  int bufferRegion_ = Region::kNone;
  std::array<int, kMaxFields> fieldRegions_;  // initialised only for an array
};

}  // namespace

normc_status Plan::bindState(const BoundKernel& bound, Call& call) const {
  const Kernel& kernel = bound.info();
  const normc_args& args = call.args;
  Given in = {kStateIn, args.state_in, args.state_in_bytes, args.state_in_fields, args.state_field_count};
  Given out = {kStateOut, args.state_out, args.state_out_bytes, args.state_out_fields,
               args.state_field_count};
  const bool writes = out.any();
  for (const Given* buffer : {&in, &out})
    for (const Given* array : {&in, &out}) NORMC_TRY(refuseBoth(*buffer, *array));
  if (args.state) {
    const State& state = stateOf(args.state);
    if (in.any() || writes)
      return fail(NORMC_INVALID_ARGUMENT, "state and ", in.any() ? in.name() : out.name(),
                  " are both given; a state object stands for state_in and state_out");
    NORMC_TRY(state.checkFits(*this, call.sizes.features));
    in.buffer = state.data();
    if (kernel.parts.writesState()) out.buffer = state.data();
    in.bytes = out.bytes = state.bytes();
  }
  call.leftOut.stateOut = !out.any();
  if (kernel.state.empty()) {
    if (in.any() || out.any())
      return fail(NORMC_INVALID_ARGUMENT, in.any() ? in.name() : out.name(), " is given, but ", request_.text,
                  " has no state");
    return NORMC_OK;
  }
  if (writes && !kernel.parts.writesState())
    return fail(NORMC_INVALID_ARGUMENT, out.name(), " is given, but ", request_.text,
                " does not write the state; leave it null");
  if (!in.any() && bound.readsState())
    return fail(NORMC_INVALID_ARGUMENT, "state_in is null; ", request_.text, " reads the state");

  const auto access = [&](size_t field) { return bound.stateAccess(field); };
  FieldBinder from(in, kernel.state, place_, call, call.stateIn);
  NORMC_TRY(from.bind(false, nullptr));
  if (in.any()) NORMC_TRY(from.require(request_.text, NORMC_FIELD_READ, access));
  FieldBinder to(out, kernel.state, place_, call, call.stateOut);
  NORMC_TRY(to.bind(true, &from));
  if (out.any()) NORMC_TRY(to.require(request_.text, NORMC_FIELD_WRITTEN, access));
  for (const size_t field : bound.copiedFields()) {
    char *const target = call.stateOut[field], *const source = call.stateIn[field];
    if (!target || target == source) continue;
    if (!source)
      return fail(NORMC_INVALID_ARGUMENT, out.nameOf(kernel.state, field), " is given without ",
                  in.any() ? in.nameOf(kernel.state, field)
                           : ArgumentName(out.array ? kStateIn.array : kStateIn.buffer),
                  "; '", kernel.state[field].name, "' would have to be copied from it");
    call.copies[call.copyCount++] = {target, source, fieldBytes(kernel.state[field], call.sizes)};
  }
  return NORMC_OK;
}

normc_status Plan::bindSaved(const BoundKernel& bound, Call& call) const {
  const Kernel& kernel = bound.info();
  const normc_args& args = call.args;
  const Given saved = {kSaved, args.saved, args.saved_bytes, args.saved_fields, args.saved_field_count};
  NORMC_TRY(refuseBoth(saved, saved));
  call.leftOut.saved = !saved.any();
  if (!saved.any() && bound.readsSaved() && totalBytes(kernel.saved, call.sizes) > 0)
    return fail(NORMC_INVALID_ARGUMENT, "saved is null; ", request_.text,
                " needs what the forward of the same batch wrote there");
  if (saved.any() && kernel.saved.empty())
    return fail(NORMC_INVALID_ARGUMENT, saved.name(), " is given, but ", request_.text,
                kernel.parts.isBackward() ? " reads no saved statistics" : " saves nothing",
                "; leave it null");
  FieldBinder binder(saved, kernel.saved, place_, call, call.saved);
  NORMC_TRY(binder.bind(kernel.parts.writesSaved(), nullptr));
  const auto access = [&](size_t field) { return bound.savedAccess(field); };
  NORMC_TRY(binder.require(request_.text, NORMC_FIELD_READ, access));
  return binder.require(request_.text, NORMC_FIELD_WRITTEN, access);
}

}  // namespace normc::runtime
