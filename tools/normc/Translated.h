// Turns exceptions of libraries into the Failure that run() in Cli.cpp prints.
#pragma once

#include <system_error>

#include "autotune/gate/CudaDevice.h"
#include "autotune/gate/PackageFile.h"
#include "tools/normc/Failure.h"

namespace normc::cli {

/// Calls `body`; what the runtime, a device or a package refuses becomes a Failure. INVALID_ARGUMENT is the
/// command line's fault, all else that of what it names.
template <typename Body>
auto translated(Body&& body) {
  try {
    return body();
  } catch (const host::Error& error) {
    throw error.status() == NORMC_INVALID_ARGUMENT ? usage(error.what()) : refused(error.what());
  } catch (const gate::CudaError& error) {
    throw refused(error.what());
  } catch (const gate::PackageError& error) {
    throw refused(error.what());
  } catch (const std::system_error& error) {
    throw refused(error.what());
  }
}

}  // namespace normc::cli
