#include "tools/normc/Place.h"

#include "autotune/tune/FlagValues.h"
#include "dsl/Nearest.h"

namespace normc::cli {

void PlaceFlags::declare(CLI::App& parser) {
  parser.add_option("--device", device, "Where to run: cpu, or cuda:N for a GPU [cpu]")->type_name("DEVICE");
  parser.add_option("--cuda-library", cudaLibrary, "The CUDA driver [libcuda.so.1]")->type_name("FILE");
}

Place::Place(const PlaceFlags& flags) : library_(flags.cudaLibrary) {
  const std::string& text = flags.device;
  if (text == "cpu") return;
  cuda_ = tune::cudaDeviceIn(text);
  if (!cuda_) throw usage("--device is " + inQuotes(text) + "; it must be cpu or cuda:N, e.g. cuda:0");
}

normc_request Place::request() const {
  normc_request request{};
  request.device_type = onCuda() ? kDLCUDA : kDLCPU;
  request.device_id = index();
  return request;
}

Failure Place::withoutDevice(const Failure& failure) const {
  std::vector<Diagnostic> errors = failure.diagnostics();
  if (onCuda() && errors.back().hint.empty()) errors.back().hint = "leave --device out to run on the CPU";
  return {failure.code(), std::move(errors)};
}

std::unique_ptr<gate::CudaDevice> Place::open() const {
  if (!cuda_) return nullptr;
  return asked([&] { return std::make_unique<gate::CudaDevice>(*cuda_, library_); });
}

}  // namespace normc::cli
