// Where a verb runs kernels: --device, and the CUDA driver that is asked for it.
#pragma once

#include <CLI/CLI.hpp>
#include <memory>
#include <optional>
#include <string>

#include "autotune/gate/CudaDevice.h"
#include "runtime/normc.h"
#include "tools/normc/Translated.h"

namespace normc::cli {

struct PlaceFlags {
  std::string device = "cpu", cudaLibrary = gate::CudaDriver::kLibrary;

  void declare(CLI::App&);
};

/// The CPU, or one CUDA device. Nothing is opened before open().
class Place {
 public:
  /// Throws where `device` is neither `cpu` nor `cuda:N`.
  explicit Place(const PlaceFlags&);

  bool onCuda() const { return cuda_.has_value(); }
  /// The index of the CUDA device.
  const std::optional<int>& cuda() const { return cuda_; }
  int32_t index() const { return cuda_.value_or(0); }
  std::string text() const { return cuda_ ? "cuda:" + std::to_string(*cuda_) : "cpu"; }
  const std::string& cudaLibrary() const { return library_; }

  /// Calls `body`, which asks for the CUDA device. Where there is none, the Failure says how to do without.
  template <typename Body>
  auto asked(Body&& body) const {
    try {
      return translated(body);
    } catch (const Failure& failure) {
      throw withoutDevice(failure);
    }
  }

  /// A request for a plan there.
  normc_request request() const;
  /// Memory and copies of the device; null on the CPU.
  std::unique_ptr<gate::CudaDevice> open() const;

 private:
  Failure withoutDevice(const Failure&) const;

  std::optional<int> cuda_;
  std::string library_;
};

}  // namespace normc::cli
