#include "tests/gpu/CpuKernels.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>

#include "dsl/Library.h"
#include "tests/runtime/CudaSupport.h"

namespace normc::test {
namespace {

/// The parameters of runtime/abi/cuda.h, word by word.
class Words {
 public:
  explicit Words(const fake_cuda_launch& launch) : words_(static_cast<const uint64_t*>(launch.parameters)) {}
  float* floats(size_t word) const { return reinterpret_cast<float*>(words_[word]); }
  int64_t integer(size_t word) const { return int64_t(words_[word]); }
  double number(size_t word) const {
    double value;
    std::memcpy(&value, &words_[word], sizeof value);
    return value;
  }

 private:
  const uint64_t* words_;
};

void layerNormForward(const Words& w) {
  const int64_t rows = w.integer(11), features = w.integer(12);
  for (int64_t r = 0; r < rows; ++r) {
    const float* x = w.floats(0) + r * w.integer(7);
    float* y = w.floats(3) + r * w.integer(9);
    double mean = 0, variance = 0;
    for (int64_t f = 0; f < features; ++f) mean += x[f];
    mean /= double(features);
    for (int64_t f = 0; f < features; ++f) variance += (x[f] - mean) * (x[f] - mean);
    const double rstd = 1 / std::sqrt(variance / double(features) + w.number(13));
    for (int64_t f = 0; f < features; ++f)
      y[f] = float((x[f] - mean) * rstd * w.floats(1)[f] + w.floats(2)[f]);
    w.floats(4)[r] = float(mean), w.floats(5)[r] = float(rstd);
  }
}

/// One row of partial sums for each chunk.
void layerNormBackward(const Words& w) {
  const int64_t rows = w.integer(17), features = w.integer(18), chunkRows = w.integer(21);
  const float *scale = w.floats(2), *mean = w.floats(3), *rstd = w.floats(4);
  std::fill_n(w.floats(8), w.integer(22) * features, 0.0f);
  std::fill_n(w.floats(9), w.integer(22) * features, 0.0f);
  for (int64_t r = 0; r < rows; ++r) {
    const float *x = w.floats(0) + r * w.integer(11), *dy = w.floats(1) + r * w.integer(13);
    float* const partialScale = w.floats(8) + r / chunkRows * features;
    float* const partialBias = w.floats(9) + r / chunkRows * features;
    const auto normal = [&](int64_t f) { return (double(x[f]) - mean[r]) * rstd[r]; };
    double sum = 0, dot = 0;
    for (int64_t f = 0; f < features; ++f) {
      sum += double(dy[f]) * scale[f];
      dot += double(dy[f]) * scale[f] * normal(f);
      partialScale[f] += float(dy[f] * normal(f));
      partialBias[f] += dy[f];
    }
    if (!w.floats(5)) continue;
    float* const dx = w.floats(5) + r * w.integer(15);
    for (int64_t f = 0; f < features; ++f)
      dx[f] = float(rstd[r] * (double(dy[f]) * scale[f] - (sum + normal(f) * dot) / double(features)));
  }
}

void layerNormFinish(const Words& w) {
  const int64_t features = w.integer(18), chunks = w.integer(22);
  for (int64_t f = 0; f < features; ++f) {
    double scale = 0, bias = 0;
    for (int64_t c = 0; c < chunks; ++c)
      scale += w.floats(8)[c * features + f], bias += w.floats(9)[c * features + f];
    w.floats(6)[f] = float(scale), w.floats(7)[f] = float(bias);
  }
}

void stream(const Words& w, bool triad) {
  for (int64_t i = 0; i < w.integer(3) / 4; ++i)
    w.floats(0)[i] = triad ? std::fma(w.floats(2)[i], 0.5f, w.floats(1)[i]) : w.floats(1)[i];
}

}  // namespace

package::Writer layerNormPackage(int64_t fewRows, const std::string& schedule) {
  package::Writer writer({{"normc", schedule}});
  const auto& norms = builtinNorms();
  const auto norm = std::ranges::find_if(norms, [](const BuiltinNorm& n) { return n.name == "layer_norm"; });
  for (const char* entry : {"forward", "backward"}) {
    package::Kernel kernel = forCuda(layerNorm(entry, 128));
    kernel.schedule = schedule;
    kernel.norm = writer.addNorm(norm->name, "hash", norm->text);
    kernel.blob = writer.addBlob(ptxOf(kernel), "ptx", kernel.isa);
    writer.addKernel(kernel);
    if (!fewRows || kernel.parts.entry != Entry::Forward) continue;
    kernel.limits.rowsMax = fewRows, kernel.schedule = "few rows";
    writer.addKernel(std::move(kernel));
  }
  return writer;
}

int runOnCpu(void*, const fake_cuda_launch* launch) {
  const std::string name = launch->function;
  const Words words(*launch);
  if (name.starts_with("layer_norm_forward")) layerNormForward(words);
  if (name.starts_with("layer_norm_backward")) layerNormBackward(words);
  if (name.starts_with("layer_norm_finish")) layerNormFinish(words);
  if (name.starts_with("copy_")) stream(words, false);
  if (name.starts_with("triad_")) stream(words, true);
  return 0;
}

}  // namespace normc::test
