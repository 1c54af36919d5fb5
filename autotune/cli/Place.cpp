#include "autotune/cli/Place.h"

#include <charconv>

#include "autotune/cli/PackageFile.h"
#include "dsl/Nearest.h"

namespace normc::cli {

void PlaceFlags::declare(CLI::App& parser) {
  parser.add_option("--device", device, "Where to run: cpu, or cuda:N for a GPU [cpu]")->type_name("DEVICE");
  parser.add_option("--cuda-library", cudaLibrary, "The CUDA driver [libcuda.so.1]")->type_name("FILE");
}

Place::Place(const PlaceFlags& flags) : library_(flags.cudaLibrary) {
  const std::string& text = flags.device;
  if (text == "cpu") return;
  constexpr std::string_view kCuda = "cuda:";
  const char* const end = text.data() + text.size();
  if (text.starts_with(kCuda) && text.size() > kCuda.size() && text[kCuda.size()] != '-') {
    const auto [rest, error] = std::from_chars(text.data() + kCuda.size(), end, index_);
    cuda_ = error == std::errc() && rest == end;
  }
  if (!cuda_) throw usage("--device is " + inQuotes(text) + "; it must be cpu or cuda:N, e.g. cuda:0");
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
