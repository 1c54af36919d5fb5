#include "tests/fuzz/CallJudge.h"

#include <algorithm>

namespace normc::fuzz {
namespace {

class Judge {
 public:
  explicit Judge(const Input& in) : in_(in), s_(*in.subject) { memories_.reserve(64); }

  Judgement judge() {
    if (in_.stream) illegal("stream");
    tensors();
    if (!illegal_ && !unclear_) buffersAndFields();
    if (!illegal_ && !unclear_) overlaps();
    const bool strided = std::any_of(memories_.begin(), memories_.end(),
                                     [](const Memory& m) { return m.written && m.isStrided; });
    return {illegal_   ? Verdict::Illegal
            : unclear_ ? Verdict::Unclear
                       : Verdict::Legal,
            why_,
            inside_,
            strided,
            sizes_,
            std::move(memories_)};
  }

 private:
  void illegal(const std::string& why) {
    if (!illegal_) why_ = why;
    illegal_ = true;
  }
  void unclear() { unclear_ = true; }

  /// Checks what holds for every tensor. False if nothing more can be said of it.
  bool basics(const std::string& name, const Argument& a, DLDataType type, bool orBool = false) {
    const bool same = a.type.code == type.code && a.type.bits == type.bits && a.type.lanes == 1;
    const bool isBool = orBool && a.type.code == kDLBool && a.type.bits == 8 && a.type.lanes == 1;
    if (!same && !isBool) return illegal(name + " has another type"), false;
    if (a.deviceType != kDLCPU && a.deviceType != kDLCUDAHost) return illegal(name + " is elsewhere"), false;
    if (a.ndim < 0 || a.ndim > 16 || (a.ndim > 0 && a.noShape))
      return illegal(name + " has no legal shape"), false;
    bool extreme = elementsOf(a) > 4096;
    for (int32_t i = 0; i < a.ndim; ++i) {
      if (a.shape[i] < 0) return illegal(name + " has a negative size"), false;
      extreme |= a.shape[i] > 1000;
    }
    if (extreme) {
      inside_ = false;
      return unclear(), false;
    }
    if (elementsOf(a) > 0 && a.noData) return illegal(name + " has no data"), false;
    if (!a.noData && (a.at + int64_t(a.byteOffset)) % int64_t(type.bits / 8) != 0) {
      if (elementsOf(a) == 0) return unclear(), false;  // the rule is about elements
      return illegal(name + " is not aligned"), false;
    }
    return true;
  }

  static std::array<int64_t, 20> stridesOf(const Argument& a) {
    Argument copy = a;
    if (a.noStrides) copy.compact();
    return copy.strides;
  }

  /// Returns the offsets of all elements, in the order of the indices; nothing if one has no address.
  std::optional<std::vector<int64_t>> offsetsOf(const Argument& a) {
    const std::array<int64_t, 20> strides = stridesOf(a);
    std::vector<int64_t> offsets;
    std::array<int64_t, 20> index = {};
    const int64_t count = elementsOf(a);
    for (int64_t n = 0; n < count; ++n) {
      __int128 offset = 0;
      for (int32_t i = 0; i < a.ndim; ++i) offset += __int128(index[i]) * strides[i];
      offset = a.at + int64_t(a.byteOffset) + offset * a.width();
      if (offset > int64_t(1) << 59 || offset < -(int64_t(1) << 59)) return std::nullopt;
      offsets.push_back(int64_t(offset));
      for (int32_t i = a.ndim; i-- > 0 && ++index[i] == a.shape[i];) index[i] = 0;
    }
    return offsets;
  }

  /// True if one stride leads through the elements of these dimensions; `stride` is it, if there are two.
  static bool isWalked(const Argument& a, int32_t first, int32_t last, std::optional<__int128>& stride) {
    const std::array<int64_t, 20> strides = stridesOf(a);
    std::array<int64_t, 20> index = {};
    int64_t count = 1;
    for (int32_t i = first; i < last; ++i) count *= a.shape[i];
    __int128 before = 0;
    for (int64_t n = 0; n < count; ++n) {
      __int128 offset = 0;
      for (int32_t i = first; i < last; ++i) offset += __int128(index[i]) * strides[i];
      if (n == 1) stride = offset;
      if (n > 1 && offset - before != *stride) return false;
      before = offset;
      for (int32_t i = last; i-- > first && ++index[i] == a.shape[i];) index[i] = 0;
    }
    return true;
  }

  static bool isCompact(const Argument& a) {
    std::optional<__int128> stride;
    return elementsOf(a) == 0 || (isWalked(a, 0, a.ndim, stride) && stride.value_or(1) == 1);
  }

  /// Adds the elements of a checked tensor.
  Memory* add(const std::string& name, const Argument& a, bool written) {
    const auto offsets = offsetsOf(a);
    if (!offsets) return illegal(name + " reaches past the end of memory"), nullptr;
    Memory& memory = memories_.emplace_back();
    memory.name = name, memory.elements = *offsets, memory.width = a.width(), memory.written = written;
    memory.isStrided = !isCompact(a);
    std::vector<int64_t> sorted = *offsets;
    std::sort(sorted.begin(), sorted.end());
    if (written && std::adjacent_find(sorted.begin(), sorted.end()) != sorted.end())
      illegal(name + " has elements that share memory");
    cover(memory);
    return &memory;
  }
  void cover(Memory& memory) {
    for (const int64_t at : memory.elements)
      for (int64_t i = at; i < at + memory.width; ++i) {
        if (i < 0 || i >= kArena)
          inside_ = false;
        else
          memory.bytes.set(size_t(i));
      }
  }

  bool sameShape(const Argument& a, const Argument& b) const {
    return a.ndim == b.ndim && std::equal(a.shape.begin(), a.shape.begin() + a.ndim, b.shape.begin());
  }

  bool checkElements(const std::string& name, const Argument& a) {
    if (first_ && !sameShape(a, *first_)) return illegal(name + " has another shape"), false;
    if (a.ndim < (s_.segmented ? 3 : 2)) return illegal(name + " has too few dimensions"), false;
    const int32_t features = s_.channelsFirst ? 1 : a.ndim - 1,
                  firstRow = s_.channelsFirst ? 2
                             : s_.segmented   ? 1
                                              : 0,
                  lastRow = s_.channelsFirst ? a.ndim : features;
    if (a.shape[features] == 0) return illegal(name + " has no features"), false;
    if (elementsOf(a) > 0) {
      std::optional<__int128> rows;
      if (!isWalked(a, firstRow, lastRow, rows)) return illegal(name + " has rows without one stride"), false;
      const std::optional<__int128> stride = s_.channelsFirst ? rows
                                             : a.shape[features] > 1
                                                 ? std::optional<__int128>(stridesOf(a)[features])
                                                 : std::nullopt;
      if (stride.value_or(1) != 1) return illegal(name + " is not contiguous along its last axis"), false;
    }
    if (first_) return true;
    first_ = &a;
    sizes_ = {sizeof sizes_, s_.segmented ? a.shape[0] : 1, 1, a.shape[features]};
    for (int32_t i = firstRow; i < lastRow; ++i) sizes_.rows *= a.shape[i];
    return true;
  }

  bool checkRows(const std::string& name, const Argument& a) {
    // The shape of x without features, or its rows as one dimension.
    const int32_t fixed = s_.segmented ? 1 : 0, firstRow = s_.channelsFirst ? 2 : fixed,
                  rowDims = first_->ndim - 1 - fixed;
    bool whole = a.ndim == fixed + rowDims, merged = a.ndim == fixed + 1 && a.shape[fixed] == sizes_.rows;
    for (int32_t i = 0; whole && i < rowDims; ++i) whole = a.shape[fixed + i] == first_->shape[firstRow + i];
    if ((!whole && !merged) || (fixed && a.shape[0] != sizes_.segments))
      return illegal(name + " has another shape"), false;
    std::optional<__int128> stride;
    if (elementsOf(a) > 0 && (!isWalked(a, fixed, a.ndim, stride) || stride.value_or(1) != 1))
      return illegal(name + " is not contiguous"), false;
    return true;
  }

  void tensors() {
    std::array<Memory*, kTensorCount> found = {};
    bool writes = false;
    for (size_t i = 0; i < kTensorCount && !illegal_ && !unclear_; ++i) {
      const std::string name(normc::name(Tensor(i)));
      const Argument& a = in_.tensors[i];
      const auto& info = s_.tensors[i];
      if (!info) {
        if (a.given) illegal(name + " is not taken");
        continue;
      }
      if (info->use == NORMC_TENSOR_IGNORED) continue;
      const bool written = info->use == NORMC_TENSOR_WRITTEN || info->use == NORMC_TENSOR_OPTIONAL;
      if (!a.given) {
        if (info->use != NORMC_TENSOR_OPTIONAL && info->use != NORMC_TENSOR_READ_IF_GIVEN)
          illegal(name + " is missing");
        continue;
      }
      writes |= written;
      if (!basics(name, a, info->dtype, info->shape == NORMC_TENSOR_PER_ROW)) continue;
      if (info->shape == NORMC_TENSOR_ELEMENTS) {
        if (!checkElements(name, a)) continue;
      } else if (info->shape == NORMC_TENSOR_PER_FEATURE) {
        if (a.ndim != 1 || a.shape[0] != sizes_.features || !isCompact(a)) {
          illegal(name + " is no vector of features");
          continue;
        }
      } else if (info->shape == NORMC_TENSOR_PER_SEGMENT) {
        if (a.ndim != 2 || a.shape[0] != sizes_.segments || a.shape[1] != sizes_.features || !isCompact(a)) {
          illegal(name + " has no vector for each segment");
          continue;
        }
      } else if (!checkRows(name, a)) {
        continue;
      }
      found[i] = add(name, a, written);
      if (found[i])
        for (const auto& [output, input] : {std::pair(kY, kX), {kDx, kDy}, {kResidualOut, kResidual}})
          if (i == output) found[i]->mayBe = found[input];
    }
    anyOutput_ = writes;
    if (s_.commits && !illegal_) sizesOfPartials();
  }

  /// A commit has as many features as its partials: rows, and a sum for each feature.
  void sizesOfPartials() {
    if (!in_.partials.given || in_.partialCount == 0) return illegal("partials are missing");
    const size_t each = in_.partials.bytes / in_.partialCount;
    if (in_.partials.bytes % in_.partialCount != 0 || each % 8 != 0 || each < 16)
      return illegal("partials have no features");
    if (each > 4096) inside_ = false, unclear();
    sizes_ = {sizeof sizes_, 1, 0, int64_t(each / 8) - 1};
  }

  Memory* addBuffer(const std::string& name, const Buffer& buffer, size_t bytes, bool written,
                    size_t alignment = 8) {
    if (!buffer.given) return nullptr;
    if (buffer.bytes != bytes) return illegal(name + " has another number of bytes"), nullptr;
    if (buffer.at % int64_t(alignment) != 0) return illegal(name + " is not aligned"), nullptr;
    Memory& memory = memories_.emplace_back();
    memory.name = name, memory.width = 1, memory.written = written;
    for (size_t i = 0; i < bytes; ++i) memory.elements.push_back(buffer.at + int64_t(i));
    cover(memory);
    return &memory;
  }

  /// Checks the tensors of fields. Returns their memories, null where none is given.
  std::vector<Memory*> addFields(const std::string& name, const std::vector<Argument>& list, size_t count,
                                 const std::vector<FieldInfo>& fields, auto query, bool written, int needed) {
    std::vector<Memory*> found(fields.size());
    if (count != fields.size()) return illegal(name + " has another number of fields"), found;
    for (size_t i = 0; i < fields.size() && !illegal_ && !unclear_; ++i) {
      normc_field field = {};
      field.struct_size = sizeof field;
      require(query(s_.plan, &sizes_, i, &field) == NORMC_OK, "a field has a description");
      const Argument& a = list[i];
      if (!a.given) {
        if (field.bytes > 0 && (fields[i].access & needed)) illegal(name + " lacks a field");
        continue;
      }
      if (!basics(name, a, field.dtype)) continue;
      if (elementsOf(a) * a.width() != int64_t(field.bytes) || !isCompact(a)) {
        illegal(name + " has a field of another size");
        continue;
      }
      found[i] = add(name + " of fields", a, written);
    }
    return found;
  }

  void buffersAndFields() {
    if ((in_.fieldsOfState && (in_.bothForms || in_.stateInBuffer.given || in_.stateOutBuffer.given)) ||
        (in_.fieldsOfSaved && (in_.bothForms || in_.savedBuffer.given)))
      return illegal("both forms are given");
    const bool out = in_.fieldsOfState ? !in_.stateOut.empty() : in_.stateOutBuffer.given;
    const bool in = in_.fieldsOfState ? !in_.stateIn.empty() : in_.stateInBuffer.given;
    if (s_.state.empty()) {
      if (in || out) return illegal("there is no state");
    } else {
      state(in, out);
    }
    if (illegal_ || unclear_) return;
    if (in_.fieldsOfSaved) {
      const bool writes = !s_.backward;
      addFields("saved", in_.saved, in_.savedCount, s_.saved, normc_plan_saved_field, writes,
                NORMC_FIELD_READ | NORMC_FIELD_WRITTEN);
    } else if (in_.savedBuffer.given && s_.saved.empty()) {
      illegal("there are no saved statistics");
    } else if (!s_.saved.empty()) {
      const size_t bytes = s_.bytes(normc_plan_saved_bytes, sizes_);
      if (!in_.savedBuffer.given && s_.backward && bytes > 0) return illegal("saved is missing");
      addBuffer("saved", in_.savedBuffer, bytes, !s_.backward);
    }
    if ((in_.partial.given && !s_.writesPartial) || (in_.partials.given && !s_.addsPartials))
      return illegal("no partials are taken");
    if (s_.writesPartial || s_.addsPartials) {
      const size_t bytes = s_.bytes(normc_plan_partial_bytes, sizes_);
      if (s_.writesPartial && !in_.partial.given) return illegal("partial is missing");
      if (s_.writesPartial) addBuffer("partial", in_.partial, bytes, true);
      if (s_.addsPartials) addBuffer("partials", in_.partials, bytes * in_.partialCount, false);
    }
    if ((s_.backward || s_.commits) && !anyOutput_ && !out) return illegal("there is nothing to compute");
    const size_t enough = s_.bytes(normc_plan_workspace_bytes, sizes_);
    if (enough > 0 && (!in_.workspace.given || in_.workspace.bytes < enough)) return unclear();
    if (!in_.workspace.given) return;
    if (in_.workspace.bytes > 2 * kArena) return unclear();
    for (size_t i = 0; i < in_.workspace.bytes; ++i) {
      const int64_t at = in_.workspace.at + int64_t(i);
      if (at < 0 || at >= kArena)
        inside_ = false;
      else
        workspace_.set(size_t(at));
    }
  }

  void state(bool in, bool out) {
    const auto accessed = [&](int wanted) {
      return std::any_of(s_.state.begin(), s_.state.end(),
                         [&](const FieldInfo& f) { return f.access & wanted; });
    };
    if (!in && accessed(NORMC_FIELD_READ)) return illegal("state_in is missing");
    std::vector<Memory*> from, to;
    if (in_.fieldsOfState) {
      if (in)
        from = addFields("state_in", in_.stateIn, in_.stateCount, s_.state, normc_plan_state_field, false,
                         NORMC_FIELD_READ);
      if (out && !illegal_ && !unclear_)
        to = addFields("state_out", in_.stateOut, in_.stateCount, s_.state, normc_plan_state_field, true,
                       NORMC_FIELD_WRITTEN);
    } else {
      const size_t bytes = s_.bytes(normc_plan_state_bytes, sizes_);
      from = {addBuffer("state_in", in_.stateInBuffer, bytes, false)};
      if (!illegal_) to = {addBuffer("state_out", in_.stateOutBuffer, bytes, true)};
    }
    if (illegal_ || unclear_) return;
    for (size_t i = 0; i < to.size(); ++i) {
      if (!to[i]) continue;
      to[i]->mayBe = i < from.size() ? from[i] : nullptr;
      const bool copied = in_.fieldsOfState
                              ? !(s_.state[i].access & NORMC_FIELD_WRITTEN)
                              : std::any_of(s_.state.begin(), s_.state.end(), [](const FieldInfo& f) {
                                  return !(f.access & NORMC_FIELD_WRITTEN);
                                });
      if (copied && !to[i]->mayBe) illegal("a field would have to be copied from state_in");
    }
  }

  void overlaps() {
    for (size_t i = 0; i < memories_.size(); ++i)
      for (size_t j = 0; j < i; ++j) {
        const Memory &a = memories_[i], &b = memories_[j];
        if ((!a.written && !b.written) || (a.bytes & b.bytes).none()) continue;
        const bool pair = a.mayBe == &b || b.mayBe == &a;
        if (!pair || a.elements != b.elements || a.width != b.width)
          illegal(a.name + " and " + b.name + " overlap");
      }
    for (const Memory& memory : memories_)
      if ((memory.bytes & workspace_).any()) unclear();  // a call may need less of it
  }

  const Input& in_;
  const Subject& s_;
  std::vector<Memory> memories_;
  Set workspace_;
  const Argument* first_ = nullptr;
  normc_sizes sizes_ = {};
  bool illegal_ = false, unclear_ = false, inside_ = true, anyOutput_ = false;
  std::string why_;
};

}  // namespace

Judgement judge(const Input& in) { return Judge(in).judge(); }

}  // namespace normc::fuzz
