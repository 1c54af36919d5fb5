// Arguments of a call, made by changes to a legal one, against a slow judge of its own: the rules of
// normc_args in normc.h, decided element by element and byte by byte.
//
// A call that the judge finds legal is accepted, one that breaks a rule is refused. A refused call has
// written nothing. An accepted one writes its outputs alone, and the same values as a call whose arguments
// lie apart and without gaps. Tensors lie in one block of memory, so that changes make them overlap.
#include <cstdlib>
#include <cstring>

#include "tests/fuzz/CallJudge.h"

namespace normc::fuzz {
namespace {

/// The structs of a call on one block of memory.
class Made {
 public:
  Made(const Input& in, char* arena) : arena_(arena) {
    args_.struct_size = sizeof args_;
    tensors_.reserve(kTensorCount + 3 * NORMC_MAX_FIELDS);
    for (size_t i = 0; i < kTensorCount; ++i) args_.*kTensorArguments[i] = tensor(in.tensors[i]);
    const auto list = [&](const std::vector<Argument>& from, std::vector<const DLTensor*>& to) {
      for (const Argument& a : from) to.push_back(tensor(a));
      return to.empty() ? nullptr : to.data();
    };
    args_.state_in_fields = list(in.stateIn, lists_[0]),
    args_.state_out_fields = list(in.stateOut, lists_[1]);
    args_.saved_fields = list(in.saved, lists_[2]);
    args_.state_field_count = in.stateCount, args_.saved_field_count = in.savedCount;
    args_.state_in = buffer(in.stateInBuffer), args_.state_in_bytes = in.stateInBuffer.bytes;
    args_.state_out = buffer(in.stateOutBuffer), args_.state_out_bytes = in.stateOutBuffer.bytes;
    args_.saved = buffer(in.savedBuffer), args_.saved_bytes = in.savedBuffer.bytes;
    args_.workspace = buffer(in.workspace), args_.workspace_bytes = in.workspace.bytes;
    args_.partial = buffer(in.partial), args_.partial_bytes = in.partial.bytes;
    args_.partials = buffer(in.partials), args_.partials_bytes = in.partials.bytes;
    args_.partial_count = in.partials.given ? in.partialCount : 0;
    if (in.stream) args_.stream = arena;
    if (in.bothForms) {
      if (in.fieldsOfState) args_.state_in = arena;
      if (in.fieldsOfSaved) args_.saved = arena;
    }
    inParts_ = in.inParts;
  }
  Made(const Made&) = delete;

  normc_status call(const normc_plan* plan) const {
    return inParts_ ? normc_execute_part(plan, &args_, 0, 1, nullptr, nullptr) : normc_execute(plan, &args_);
  }

 private:
  const DLTensor* tensor(const Argument& a) {
    if (!a.given) return nullptr;
    DLTensor& t = tensors_.emplace_back();
    // Addresses outside of the arena are numbers that nothing follows.
    t.data =
        a.noData ? nullptr : reinterpret_cast<void*>(reinterpret_cast<uintptr_t>(arena_) + uintptr_t(a.at));
    std::memcpy(&t.device.device_type, &a.deviceType, sizeof a.deviceType);
    t.device.device_id = a.deviceId, t.ndim = a.ndim, t.dtype = a.type, t.byte_offset = a.byteOffset;
    t.shape = a.noShape ? nullptr : const_cast<int64_t*>(a.shape.data());
    t.strides = a.noStrides ? nullptr : const_cast<int64_t*>(a.strides.data());
    return &t;
  }
  char* buffer(const Buffer& buffer) const {
    if (!buffer.given) return nullptr;
    return reinterpret_cast<char*>(reinterpret_cast<uintptr_t>(arena_) + uintptr_t(buffer.at));
  }

  char* arena_;
  std::vector<DLTensor> tensors_;
  std::array<std::vector<const DLTensor*>, 3> lists_;
  normc_args args_ = {};
  bool inParts_ = false;
};

struct Free {
  void operator()(char* memory) const { std::free(memory); }
};
using Block = std::unique_ptr<char, Free>;

/// Returns a block of numbers between -1 and 1.
Block newArena() {
  Block block(static_cast<char*>(std::aligned_alloc(64, kArena)));
  uint32_t state = 1;
  for (int64_t at = 0; at < kArena; at += 4) {
    state = state * 1664525u + 1013904223u;
    const float value = static_cast<float>(static_cast<int32_t>(state >> 8) - (1 << 23)) / (1 << 23);
    std::memcpy(block.get() + at, &value, sizeof value);
  }
  return block;
}

/// Returns the same call with all arguments apart and without gaps, in the order of the judge's memories.
Input apart(const Input& in, const normc_sizes& sizes, std::vector<int64_t>& places) {
  Input result = in;
  int64_t next = kFirst;
  const auto place = [&](int64_t size) {
    places.push_back(next);
    next += (size + 63) / 64 * 64;
    return places.back();
  };
  const auto tensor = [&](Argument& a) {
    if (a.given) a.noStrides = true, a.byteOffset = 0, a.at = place(elementsOf(a) * a.width());
  };
  for (size_t i = 0; i < kTensorCount; ++i) {
    if (in.subject->tensors[i] && in.subject->tensors[i]->use == NORMC_TENSOR_IGNORED)
      result.tensors[i].given = false;
    else
      tensor(result.tensors[i]);
  }
  const auto buffer = [&](Buffer& b) {
    if (b.given) b.at = place(int64_t(b.bytes));
  };
  for (Argument& a : result.stateIn) tensor(a);
  for (Argument& a : result.stateOut) tensor(a);
  buffer(result.stateInBuffer), buffer(result.stateOutBuffer);
  for (Argument& a : result.saved) tensor(a);
  buffer(result.savedBuffer), buffer(result.partial), buffer(result.partials);
  const std::vector<int64_t> kept = places;
  result.workspace = {true, 0, in.subject->bytes(normc_plan_workspace_bytes, sizes)};
  result.workspace.at = place(int64_t(result.workspace.bytes));
  places = kept;
  require(next <= kArena, "a call fits the arena");
  return result;
}

/// Checks that the outputs are those of the same call with its arguments apart.
void checkValues(const Input& in, const Judgement& judged, const char* before, const char* after) {
  std::vector<int64_t> places;
  const Input other = apart(in, judged.sizes, places);
  const std::vector<Memory>& memories = judged.memories;
  require(places.size() == memories.size(), "the judge knows every argument");
  static const Block arena = newArena();
  std::memcpy(arena.get(), before, kArena);
  for (size_t i = 0; i < memories.size(); ++i)
    for (size_t j = 0; j < memories[i].elements.size(); ++j)
      std::memcpy(arena.get() + places[i] + int64_t(j) * memories[i].width, before + memories[i].elements[j],
                  size_t(memories[i].width));
  require(Made(other, arena.get()).call(in.subject->plan) == NORMC_OK,
          std::string("a call is legal wherever its arguments lie: ") + normc_last_error());
  for (size_t i = 0; i < memories.size(); ++i)
    for (size_t j = 0; memories[i].written && j < memories[i].elements.size(); ++j)
      if (std::memcmp(arena.get() + places[i] + int64_t(j) * memories[i].width,
                      after + memories[i].elements[j], size_t(memories[i].width)) != 0)
        throw Fault("element " + std::to_string(j) + " of " + memories[i].name +
                    " does not depend on where arguments lie");
}

}  // namespace

void calls(std::string_view input) {
  Bytes bytes(input);
  Input in = legalInput(bytes);
  for (int changes = 0; changes < 24 && !bytes.empty(); ++changes) change(in, bytes);
  const Judgement judged = judge(in);
  const Verdict verdict = judged.verdict;
  if (verdict != Verdict::Illegal && !judged.inside) return;  // memory that is not the caller's
  if (verdict == Verdict::Unclear && in.workspace.given &&
      (in.workspace.at < 0 ||
       in.workspace.at + int64_t(std::min<size_t>(in.workspace.bytes, kArena)) > kArena))
    return;
  static const Block pristine = newArena(), arena = newArena();
  std::memcpy(arena.get(), pristine.get(), kArena);
  const normc_status status = Made(in, arena.get()).call(in.subject->plan);
  if (status != NORMC_OK) {
    const std::string why = normc_last_error();
    require(status == NORMC_INVALID_ARGUMENT || status == NORMC_FAILED_PRECONDITION,
            "a refusal has a status of its own");
    require(!why.empty(), "a refusal has a reason");
    require(std::memcmp(arena.get(), pristine.get(), kArena) == 0,
            "a refused call has written nothing: " + why);
    const bool conservative =
        why.find("its strides make elements share memory") != why.npos && judged.mayRefuseStrides;
    require(verdict != Verdict::Legal || conservative, "a legal call is accepted: " + why);
    return;
  }
  require(verdict != Verdict::Illegal, "an illegal call is refused: " + judged.why);
  if (verdict == Verdict::Unclear) return;
  Set written;
  for (const Memory& memory : judged.memories)
    if (memory.written) written |= memory.bytes;
  const int64_t begin = in.workspace.given ? in.workspace.at : 0,
                end = in.workspace.given ? begin + int64_t(in.workspace.bytes) : 0;
  for (int64_t i = 0; i < kArena; ++i)
    if (arena.get()[i] != pristine.get()[i] && !written[size_t(i)] && !(i >= begin && i < end))
      throw Fault("a call writes its outputs alone");
  checkValues(in, judged, pristine.get(), arena.get());
}

std::vector<std::string> seedsOfCalls() {
  std::vector<std::string> seeds;
  for (char subject = 0; subject < char(subjects().size()); ++subject)
    for (char form = 0; form < 4; ++form) {
      // Segments, rows, features, form; a seed of rows and features alone where there are no segments.
      seeds.push_back(subjects()[size_t(subject)].segmented ? std::string{subject, 2, 3, 4, form, 1}
                                                            : std::string{subject, 3, 4, form, 1});
      seeds.push_back(seeds.back() + std::string{10, 1, 0, 11, 2, 0, 3, 1, 0, 41});
    }
  return seeds;
}

}  // namespace normc::fuzz
