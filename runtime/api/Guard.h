// Common parts of every function at a C boundary: converts exceptions to a status, and refuses null.
#pragma once

#include <exception>
#include <new>
#include <stdexcept>

#include "runtime/core/Error.h"

namespace normc::runtime {

/// Runs `body` and returns its status; an exception becomes a status.
template <typename Body>
normc_status guarded(Body&& body) {
  try {
    return body();
  } catch (const std::bad_alloc&) {
    return fail(NORMC_RESOURCE_EXHAUSTED, "no memory left");
  } catch (const std::length_error&) {
    return fail(NORMC_RESOURCE_EXHAUSTED, "no memory holds that many bytes");
  } catch (const std::exception& error) {
    return fail(NORMC_INTERNAL, "unexpected: ", error.what());
  } catch (...) {
    return fail(NORMC_INTERNAL, "an exception came from outside");
  }
}

/// Refuses the first argument that is null: `notNull(plan, "plan", args, "args")`.
template <typename... More>
normc_status notNull(const void* argument, const char* name, More... more) {
  if (!argument) return fail(NORMC_INVALID_ARGUMENT, name, " is null");
  if constexpr (sizeof...(more) > 0) return notNull(more...);
  return NORMC_OK;
}

}  // namespace normc::runtime
