// Element types: one enum and one table. All properties of a type (name, size, spelling in DLPack and in the
// C API) are in its row of the table.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>

namespace normc {

/// Tensors of data and params have a floating type. State has F32, F64 and I64, a mask has U8. Quantized
/// outputs have I8 or E4M3 (OCP's 8-bit float without infinities), and their scales F32 or E8M0 (a power of
/// two: the exponent + 127).
enum class DType : uint8_t { F32, F64, BF16, F16, I64, U8, I8, E4M3, E8M0 };

enum class TypeKind : uint8_t {
  Float,
  Int,    ///< signed
  Bool,   ///< a byte, 0 or 1
  Code,   ///< the rounded quotient of a value and its scale
  Power,  ///< a power of two
};

/// The format of a type of numbers with a precision; zeros for the others. The integers of I8 are as if all
/// of them were in one binade.
struct FloatFormat {
  int precision = 0;  ///< significant bits, the hidden one included
  int smallest = 0;   ///< exponent of the smallest normal value
  int exponent = 0;   ///< exponent of the largest binade
  double largest = 0;
};

struct TypeInfo {
  DType type;
  std::string_view name;  ///< as in problems and manifests
  int bytes;
  uint8_t dlpack;  ///< DLDataTypeCode; DLPack adds the number of bits
  TypeKind kind;
  int field;  ///< normc_type of a field; -1: no field has this type
  FloatFormat format = {};
};

/// In the order of DType.
// clang-format off
inline constexpr TypeInfo kTypeTable[] = {
    {DType::F32,  "f32",  4, 2, TypeKind::Float,  0, {24, -126, 127, 0x1.fffffep127}},
    {DType::F64,  "f64",  8, 2, TypeKind::Float,  1, {53, -1022, 1023, 0x1.fffffffffffffp1023}},
    {DType::BF16, "bf16", 2, 4, TypeKind::Float, -1, {8, -126, 127, 0x1.fep127}},
    {DType::F16,  "f16",  2, 2, TypeKind::Float, -1, {11, -14, 15, 0x1.ffcp15}},
    {DType::I64,  "i64",  8, 0, TypeKind::Int,    2},
    {DType::U8,   "u8",   1, 1, TypeKind::Bool,  -1},
    {DType::I8,   "i8",   1, 0, TypeKind::Code,  -1, {8, 7, 7, 127}},
    {DType::E4M3, "e4m3", 1, 10, TypeKind::Code, -1, {4, -6, 8, 448}},
    {DType::E8M0, "e8m0", 1, 14, TypeKind::Power, -1, {1, -127, 127, 0x1p127}},
};
// clang-format on
static_assert([] {
  size_t at = 0;
  for (const TypeInfo& each : kTypeTable)
    if (size_t(each.type) != at++) return false;
  return true;
}());

constexpr const TypeInfo& infoOf(DType type) { return kTypeTable[size_t(type)]; }
constexpr std::string_view name(DType type) { return infoOf(type).name; }
constexpr int bytes(DType type) { return infoOf(type).bytes; }
/// True if tensors of data and params may have this type.
constexpr bool isFloat(DType type) { return infoOf(type).kind == TypeKind::Float; }

/// Lists of types, e.g. for messages that say which are legal.
inline constexpr auto kAllTypes = {DType::F32, DType::F64, DType::BF16, DType::F16, DType::I64,
                                   DType::U8,  DType::I8,  DType::E4M3, DType::E8M0};
static_assert(kAllTypes.size() == sizeof kTypeTable / sizeof kTypeTable[0]);
/// The types that tensors of data and params may have.
inline constexpr auto kFloatTypes = {DType::F32, DType::F64, DType::BF16, DType::F16};
/// The types of quantized outputs, and of the scales that such an output has beside it.
inline constexpr auto kCodeTypes = {DType::I8, DType::E4M3};
inline constexpr auto kScaleTypes = {DType::F32, DType::E8M0};
/// The types that fields of state and of saved statistics may have.
inline constexpr auto kFieldTypes = {DType::F32, DType::F64, DType::I64};
static_assert([] {
  size_t floats = 0;
  for (const TypeInfo& each : kTypeTable) floats += each.kind == TypeKind::Float;
  for (const DType each : kFloatTypes) floats -= isFloat(each);
  return floats == 0;
}());

/// Returns the names, for messages and help: "f32, f64, bf16 or f16".
inline std::string namesOf(std::initializer_list<DType> types, std::string_view last = " or ") {
  std::string names;
  for (const DType& each : types)
    names.append(&each == types.begin() ? "" : &each + 1 == types.end() ? last : ", ").append(name(each));
  return names;
}

/// Returns the type of statistics and state for such data; it is also the default of params.
constexpr DType statisticsOf(DType data) { return data == DType::F64 ? DType::F64 : DType::F32; }

/// The types that a problem and its norm choose for the elements of tensors.
struct ElementTypes {
  DType data = DType::F32;
  DType params = DType::F32;
  DType output = DType::F32;  ///< of y and dy
  DType stream = DType::F32;  ///< of a residual in front of the norm, and of what is passed on of it
  DType codes = DType::I8;    ///< of a quantized output
  DType scales = DType::F32;  ///< of the scales of its codes
  bool operator==(const ElementTypes&) const = default;
};

/// Returns the first type whose row satisfies `matches`; empty if none does.
template <typename Matches>
constexpr std::optional<DType> findType(Matches matches) {
  for (const TypeInfo& each : kTypeTable)
    if (matches(each)) return each.type;
  return std::nullopt;
}

/// Returns the type of a name, e.g. "bf16"; empty if there is none.
constexpr std::optional<DType> typeNamed(std::string_view name) {
  return findType([&](const TypeInfo& each) { return each.name == name; });
}

/// Returns the type of a DLPack code and number of bits; empty if there is none. DLPack's bool is U8.
constexpr std::optional<DType> typeOfDlpack(uint8_t code, int bits) {
  constexpr uint8_t kBool = 6;
  return findType([&](const TypeInfo& each) {
    return bits == 8 * each.bytes && (code == each.dlpack || (code == kBool && each.kind == TypeKind::Bool));
  });
}

/// Returns the type of a field from its normc_type. Throws std::bad_optional_access if the C API has no such
/// type.
constexpr DType typeOfField(int field) {
  return findType([&](const TypeInfo& each) { return each.field == field; }).value();
}

}  // namespace normc
