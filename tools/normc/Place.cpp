#include "tools/normc/Place.h"

#include "autotune/tune/FlagValues.h"
#include "dsl/Nearest.h"
#include "tools/normc/PackageFile.h"

namespace normc::cli {

void PlaceFlags::declare(CLI::App& parser) {
  parser.add_option("--device", device, "Where to run: cpu, or cuda:N for a GPU [cpu]")->type_name("DEVICE");
  parser.add_option("--cuda-library", cudaLibrary, "The CUDA driver [libcuda.so.1]")->type_name("FILE");
}

Place::Place(const PlaceFlags& flags) : library_(flags.cudaLibrary) {
  const std::string& text = flags.device;
  if (text == "cpu") return;
  const auto index = tune::cudaDeviceIn(text);
  if (!index) throw usage("--device is " + inQuotes(text) + "; it must be cpu or cuda:N, e.g. cuda:0");
  cuda_ = true, index_ = *index;
}

normc_request Place::request() const {
  normc_request request{};
  request.device_type = cuda_ ? kDLCUDA : kDLCPU;
  request.device_id = index_;
  return request;
}

std::unique_ptr<gate::CudaDevice> Place::open() const {
  if (!cuda_) return nullptr;
  return translated([&] { return std::make_unique<gate::CudaDevice>(index_, library_); });
}

}  // namespace normc::cli
