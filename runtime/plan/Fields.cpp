#include "runtime/plan/Fields.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "runtime/abi/DlType.h"
#include "runtime/api/Struct.h"

namespace normc::runtime {
namespace {

static_assert(kMaxFields == NORMC_MAX_FIELDS && kMaxDimensions == NORMC_MAX_FIELD_DIMS);
static_assert(int(Factor::Fixed) == NORMC_EXTENT_FIXED && int(Factor::Segments) == NORMC_EXTENT_SEGMENTS &&
              int(Factor::Rows) == NORMC_EXTENT_ROWS && int(Factor::Features) == NORMC_EXTENT_FEATURES);

template <typename T>
void fill(char* memory, int64_t count, double value) {
  std::fill_n(reinterpret_cast<T*>(memory), count, static_cast<T>(value));
}

}  // namespace

int64_t fieldBytes(const Field& field, const Sizes& sizes) {
  return multiply(elements(field.shape, sizes), bytes(field.type));
}

int64_t layOut(const std::vector<Field>& fields, const Sizes& sizes, int64_t* offsets, int64_t alignment) {
  int64_t offset = 0;
  for (size_t i = 0; i < fields.size(); ++i) {
    offsets[i] = offset;
    offset = roundUp(add(offset, fieldBytes(fields[i], sizes)), alignment);
  }
  return offset;
}

int64_t totalBytes(const std::vector<Field>& fields, const Sizes& sizes, int64_t alignment) {
  std::array<int64_t, kMaxFields> offsets;
  return layOut(fields, sizes, offsets.data(), alignment);
}

normc_status describeField(const std::vector<Field>& fields, const Sizes& sizes, size_t index, int access,
                           normc_field* out, int64_t alignment) {
  if (index >= fields.size())
    return fail(NORMC_OUT_OF_RANGE, "there is no field ", index, "; there are ", fields.size());
  std::array<int64_t, kMaxFields> offsets;
  if (layOut(fields, sizes, offsets.data(), alignment) == kHuge)
    return fail(NORMC_INVALID_ARGUMENT, "the sizes are too large: a field would not fit into memory");
  const Field& field = fields[index];
  normc_field result = {};
  result.name = field.name.c_str();
  result.type = normc_type(infoOf(field.type).field);
  result.ndim = static_cast<int32_t>(field.shape.size());
  for (size_t i = 0; i < field.shape.size(); ++i) {
    result.shape[i] = field.shape[i].of(sizes, nullptr);
    result.extent[i] = field.shape[i].kind;
  }
  result.offset = offsets[index];
  result.bytes = fieldBytes(field, sizes);
  result.init = field.init;
  result.dtype = dlType(field.type);
  result.access = access;
  return writeStruct(result, out, "normc_field");
}

void initialize(const std::vector<Field>& fields, const Sizes& sizes, void* memory) {
  std::array<int64_t, kMaxFields> offsets;
  std::memset(memory, 0, layOut(fields, sizes, offsets.data()));
  for (size_t i = 0; i < fields.size(); ++i) {
    char* const at = static_cast<char*>(memory) + offsets[i];
    const int64_t count = elements(fields[i].shape, sizes);
    switch (fields[i].type) {
      case DType::F64:
        fill<double>(at, count, fields[i].init);
        break;
      case DType::I64:
        fill<int64_t>(at, count, fields[i].init);
        break;
      default:
        fill<float>(at, count, fields[i].init);
        break;
    }
  }
}

std::string signature(const std::vector<Field>& fields) {
  std::string text;
  for (const Field& field : fields) {
    text += (text.empty() ? "" : ", ") + field.name + ":" + std::string(name(field.type)) + "[";
    for (size_t i = 0; i < field.shape.size(); ++i) {
      if (i) text += "x";
      text += field.shape[i].kind == Factor::Fixed ? std::to_string(field.shape[i].value)
                                                   : std::string(package::name(field.shape[i].kind));
    }
    text += "]";
  }
  return text;
}

}  // namespace normc::runtime
