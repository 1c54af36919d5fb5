// The part of the protocol between normc and normc-halide-gen that both programs include; generator/Request.h
// has the request itself. It needs the standard library alone.
#pragma once

#include <cstdint>

namespace normc::halide {

/// Raised whenever the meaning of a request changes.
inline constexpr int64_t kSchema = 7;

/// The exit codes of the generator. kFailed and kRefused follow from the request; no other failure does.
enum Exit { kDone = 0, kFailed = 1, kBadRequest = 2, kRefused = 3 };

}  // namespace normc::halide
