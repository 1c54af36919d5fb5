#include "tests/fuzz/CallInput.h"

#include <algorithm>

#include "tests/runtime/TestPackage.h"

namespace normc::fuzz {
namespace {

std::vector<FieldInfo> fieldsOf(const normc_plan* plan,
                                normc_status (*query)(const normc_plan*, const normc_sizes*, size_t,
                                                      normc_field*)) {
  const normc_sizes sizes = {sizeof sizes, 1, 1, 4};
  std::vector<FieldInfo> fields;
  normc_field field = {};
  field.struct_size = sizeof field;
  while (query(plan, &sizes, fields.size(), &field) == NORMC_OK)
    fields.push_back({field.dtype, field.access});
  return fields;
}

/// Gives the tensor the shape that the rules say.
void shapeAsRuled(const Input& in, normc_tensor_shape shape, Argument& to) {
  const bool segmented = in.subject->segmented;
  switch (shape) {
    case NORMC_TENSOR_ELEMENTS:
      if (in.subject->channelsFirst)
        to.take({in.segments, in.features, in.rows});
      else if (segmented)
        to.take({in.segments, in.rows, in.features});
      else
        to.take({in.rows, in.features});
      break;
    case NORMC_TENSOR_PER_FEATURE:
      to.take({in.features});
      break;
    case NORMC_TENSOR_PER_ROW:
      if (segmented)
        to.take({in.segments, in.rows});
      else
        to.take({in.rows});
      break;
    case NORMC_TENSOR_PER_SEGMENT:
      to.take({in.segments, in.features});
      break;
    default:
      throw Fault("the kernels of the tests have no such tensor");
  }
}

constexpr int64_t kExtremes[] = {INT64_MAX, INT64_MIN, INT64_MIN + 1, INT64_MAX / 4, int64_t(1) << 61, -1,
                                 0,         1};

}  // namespace

int64_t elementsOf(const Argument& a) {
  int64_t count = 1;
  for (int32_t i = 0; i < a.ndim && i < 16; ++i)
    count = package::multiply(count, std::max<int64_t>(a.shape[i], 0));
  return count;
}

const std::vector<Subject>& subjects() {
  static const std::vector<Subject> all = [] {
    package::Writer writer = test::packageOf(
        {test::probe("features_last", false, false), test::probe("features_last", false, true),
         test::probe("features_last", true, true), test::probe("channels_first", true, true),
         test::layerNorm("forward"), test::layerNorm("backward"), test::powerNorm("forward"),
         test::powerNorm("backward"), test::around("forward"), test::around("backward"),
         test::sums("forward_reduce"), test::sums("commit")});
    const std::string bytes = writer.bytes();
    normc_context_options options = {};
    options.max_threads = 1;
    const host::Package package(host::Context(options), bytes.data(), bytes.size());
    std::vector<Subject> subjects;
    for (const char* problem :
         {"probe:forward@f32[*x*]", "probe:forward@f32[*x*]{mask}", "probe:forward@f32[*x*x*]{mask}",
          "probe:forward@f32[*x*x*]{layout=channels_first,mask}", "layer_norm:forward@f32[*x*]",
          "layer_norm:backward@f32[*x*]", "power_norm:forward@f32[*x*]", "power_norm:backward@f32[*x*]",
          "around:forward@f32[*x*x*]", "around:backward@f32[*x*x*]", "sums:forward_reduce@f32[*x*]",
          "sums:commit@f32[*x*]"}) {
      Subject subject;
      subject.owner = std::make_shared<host::Plan>(package, problem), subject.plan = subject.owner->get();
      const ProblemText text = *parseProblemText(problem);
      subject.segmented = text.segmented, subject.channelsFirst = text.channelsFirst();
      subject.backward = text.isBackward(), subject.writesState = text.writesState();
      subject.writesPartial = text.writesPartial(), subject.addsPartials = text.addsPartials();
      subject.commits = text.entry == Entry::Commit;
      normc_tensor_info info = {};
      info.struct_size = sizeof info;
      for (size_t i = 0; normc_plan_tensor_info(subject.plan, i, &info) == NORMC_OK; ++i)
        if (info.use != NORMC_TENSOR_SAME) subject.tensors[*tensorNamed(info.name)] = info;
      subject.state = fieldsOf(subject.plan, normc_plan_state_field);
      subject.saved = fieldsOf(subject.plan, normc_plan_saved_field);
      subjects.push_back(std::move(subject));
    }
    return subjects;
  }();
  return all;
}

Input legalInput(Bytes& bytes) {
  Input in;
  in.subject = &subjects()[size_t(bytes.below(int64_t(subjects().size())))];
  const Subject& s = *in.subject;
  in.segments = s.segmented ? bytes.below(4) : 1, in.rows = bytes.below(6), in.features = 1 + bytes.below(6);
  int64_t next = kFirst;
  const auto place = [&](int64_t size) {
    const int64_t at = next;
    next += (size + 63) / 64 * 64;
    return at;
  };
  for (size_t i = 0; i < kTensorCount; ++i) {
    if (!s.tensors[i]) continue;
    Argument& a = in.tensors[i];
    a.given = true, a.type = s.tensors[i]->dtype;
    shapeAsRuled(in, s.tensors[i]->shape, a);
    a.at = place(elementsOf(a) * a.width());
  }
  const normc_sizes sizes = in.sizes();
  const auto buffer = [&](Buffer& to, size_t size) { to = {true, place(int64_t(size)), size}; };
  const auto fields = [&](std::vector<Argument>& to, const std::vector<FieldInfo>& of, auto query) {
    for (size_t i = 0; i < of.size(); ++i) {
      normc_field field = {};
      field.struct_size = sizeof field;
      require(query(s.plan, &sizes, i, &field) == NORMC_OK, "a field has a description");
      Argument& a = to.emplace_back();
      a.given = true, a.type = field.dtype, a.ndim = field.ndim;
      std::copy(field.shape, field.shape + field.ndim, a.shape.begin());
      a.compact();
      a.at = place(int64_t(field.bytes));
    }
  };
  const int64_t form = bytes.below(4);
  if (!s.state.empty()) {
    in.fieldsOfState = form & 1;
    const size_t size = s.bytes(normc_plan_state_bytes, sizes);
    if (in.fieldsOfState) {
      fields(in.stateIn, s.state, normc_plan_state_field);
      if (s.writesState) fields(in.stateOut, s.state, normc_plan_state_field);
      in.stateCount = s.state.size();
    } else {
      buffer(in.stateInBuffer, size);
      if (s.writesState) buffer(in.stateOutBuffer, size);
    }
  }
  if (!s.saved.empty()) {
    in.fieldsOfSaved = form & 2;
    if (in.fieldsOfSaved)
      fields(in.saved, s.saved, normc_plan_saved_field), in.savedCount = s.saved.size();
    else
      buffer(in.savedBuffer, s.bytes(normc_plan_saved_bytes, sizes));
  }
  const size_t partial = s.bytes(normc_plan_partial_bytes, sizes);
  if (s.writesPartial) buffer(in.partial, partial);
  if (s.addsPartials)
    in.partialCount = size_t(1 + bytes.below(3)), buffer(in.partials, partial * in.partialCount);
  buffer(in.workspace, s.bytes(normc_plan_workspace_bytes, sizes));
  require(next < kArena - kFirst, "a call fits the arena");
  return in;
}

/// Changes one of the buffers, or what is given beside the arguments.
static void changeBuffer(Input& in, int64_t what, Bytes& bytes) {
  Buffer& buffer = *in.buffers()[size_t(bytes.below(6))];
  const int64_t value = bytes.below(256);
  switch (what) {
    case 0:
      buffer.given = !buffer.given;
      break;
    case 1:
      buffer.at += (value - 128) * 8;
      break;
    case 2:
      buffer.at += value % 8;
      break;
    case 3:
      buffer.bytes += size_t(value - 128);
      break;
    case 4: {
      const std::vector<Argument*> all = in.arguments();
      const Argument& of = *all[size_t(value) % all.size()];
      if (of.given) buffer.at = of.at;
      break;
    }
    case 5:
      if (value < 128)
        buffer.at = in.buffers()[size_t(value % 6)]->at;
      else if (value < 160)
        in.stream = true;
      else if (value < 192)
        in.bothForms = true;
      else if (value < 210)
        in.partialCount = size_t(value % 3);
      else if (value < 225)
        in.stateCount += size_t(value % 3) - 1;
      else if (value < 240)
        in.savedCount += size_t(value % 3) - 1;
      else
        in.inParts = true;
      break;
  }
}

/// Gives an argument one dimension more, which divides dimension d.
static void divideDimension(Argument& a, size_t d, int64_t value, Bytes& bytes) {
  if (a.ndim <= 0 || a.ndim >= 16) return;
  const int64_t part = 1 + bytes.below(3);
  if (part > 0 && a.shape[d] % part != 0) return;
  std::copy_backward(a.shape.begin() + long(d), a.shape.begin() + a.ndim, a.shape.begin() + a.ndim + 1);
  std::copy_backward(a.strides.begin() + long(d), a.strides.begin() + a.ndim, a.strides.begin() + a.ndim + 1);
  ++a.ndim, a.shape[d] /= part, a.shape[d + 1] = part;
  a.strides[d] = int64_t(uint64_t(a.strides[d]) * uint64_t(part));
  if (a.shape[d] == 1) a.strides[d] = kExtremes[value % 8];
}

void change(Input& in, Bytes& bytes) {
  const int64_t what = bytes.below(24);
  if (what >= 18) return changeBuffer(in, what - 18, bytes);
  const std::vector<Argument*> all = in.arguments();
  Argument& a = *all[size_t(bytes.below(int64_t(all.size())))];
  const int64_t value = bytes.below(256);
  const auto dimension = [&] { return size_t(value) % size_t(std::clamp(a.ndim, 1, 16)); };
  switch (what) {
    case 0:
      a.given = !a.given;
      break;
    case 1:
      a.at += (value - 128) * a.width();
      break;
    case 2:
      a.at += value % 8;
      break;
    case 3:
    case 4:
    case 5:
      a.noStrides = false;
      a.strides[dimension()] = bytes.below(61) - 20;
      break;
    case 6:
      a.shape[dimension()] = bytes.below(7);
      break;
    case 7:
      a.shape[dimension()] = kExtremes[bytes.below(8)];
      break;
    case 8:
      a.noStrides = false;
      a.strides[dimension()] = kExtremes[bytes.below(8)];
      break;
    case 9:
      a.noStrides = !a.noStrides;
      break;
    case 10:
    case 11: {  // the memory of another tensor
      const Argument& of = *all[size_t(value) % all.size()];
      a.at = of.at, a.byteOffset = of.byteOffset;
      if (what == 11 && of.ndim == a.ndim)
        a.strides = of.strides, a.noStrides = of.noStrides, a.shape = of.shape;
      break;
    }
    case 12:
      a.type = {uint8_t(value % 8), uint8_t(8 << (value / 8 % 4)), uint16_t(1 + (value > 200))};
      break;
    case 13:
      a.deviceType = int32_t(1 + value % 4), a.deviceId = int32_t(value / 64);
      break;
    case 14:  // the same address in two parts
      a.byteOffset += uint64_t(value % 16) * 4, a.at -= value % 16 * 4;
      break;
    case 15:
      divideDimension(a, dimension(), value, bytes);
      break;
    case 16:
      a.ndim = int32_t(value % 20) - 1;
      break;
    case 17:
      if (value < 128)
        a.noData = true;
      else
        a.noShape = true;
      break;
  }
}

}  // namespace normc::fuzz
