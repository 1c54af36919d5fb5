// NumPy's .npy: one array in one file.
//
// Read and written: little-endian f8, f4, f2, i8 and u1, in C order; bool is read as u1, and codes of 8 bits
// are written as i1. All else is refused with a word on how to convert it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "dsl/Result.h"
#include "runtime/abi/Types.h"

namespace normc::cli {

/// NumPy's name of a type, e.g. "f4" of F32; it has none for BF16.
std::string npyName(DType);

struct NpyArray {
  DType type = DType::F32;
  std::vector<int64_t> shape;
  std::string data;  ///< elements() * bytes(type) bytes

  int64_t elements() const;
};

/// The array of a file's content; `path` is its name in messages.
Result<NpyArray> parseNpy(std::string_view content, const std::string& path);
/// The content of a file, its data at a multiple of 64.
std::string npyText(const NpyArray&);

/// The same with files, through Files.h; failures are thrown.
NpyArray readNpy(const std::string& path);
void writeNpy(const std::string& path, const NpyArray&);

}  // namespace normc::cli
