// Conversion between element types and DLPack types.
#pragma once

#include "runtime/abi/Types.h"
#include "runtime/dlpack_abi.h"

namespace normc {

/// Returns the DLPack type of one element.
constexpr DLDataType dlType(DType type) { return {infoOf(type).dlpack, uint8_t(8 * bytes(type)), 1}; }

/// Returns the type of a tensor's elements; empty if no kernel takes such a tensor.
constexpr std::optional<DType> typeOfDlpack(DLDataType type) {
  return type.lanes == 1 ? typeOfDlpack(type.code, type.bits) : std::nullopt;
}

}  // namespace normc
