// Runs PowerNorm for a few batches, whose running moment follows them, in C++ over normc.hpp.
//
//   normc compile power_norm -o norms.npk && first norms.npk
#include <cmath>
#include <cstdio>
#include <normc/normc.hpp>

using namespace normc::host;

constexpr int kRows = 64, kFeatures = 8;

int run(const char* path) {
  const Context context;
  const Package package(context, path);
  const Plan forward(package, "power_norm:forward@f32[*x8]");
  const normc_sizes sizes = Plan::sizes(1, kRows, kFeatures);
  std::vector<float> x(kRows * kFeatures), y(x), scale(kFeatures, 1), bias(kFeatures);
  std::vector<char> saved(forward.savedBytes(sizes)), workspace(forward.workspaceBytes(sizes));
  State state(forward);  // psi2, the running mean of squares, is 1 at the start

  Call call;
  call.x = {x.data(), {kRows, kFeatures}}, call.y = {y.data(), {kRows, kFeatures}};
  call.scale = {scale.data(), {kFeatures}}, call.bias = {bias.data(), {kFeatures}};
  call.saved = saved, call.workspace = workspace, call.state = &state;
  double expected = 1;
  for (int batch = 0; batch < 5; ++batch) {
    double squares = 0;  // of the first feature
    for (int i = 0; i < kRows * kFeatures; ++i) x[i] = 2 * float(std::sin(i + 1 + 100 * batch));
    for (int row = 0; row < kRows; ++row) squares += std::pow(x[row * kFeatures], 2) / kRows;
    forward(call);
    const double divisor = x[0] / y[0];
    std::printf("batch %d: y = x / %.4f\n", batch, divisor);
    if (!(std::abs(divisor - std::sqrt(expected + 1e-5)) < 1e-4)) return 1;
    expected = 0.9 * expected + 0.1 * squares;
  }
  std::vector<float> psi2(kFeatures);
  state.read("psi2", psi2.data(), psi2.size());
  std::printf("psi2 of the first feature: %.4f\n", psi2[0]);
  return !(std::abs(psi2[0] - expected) < 1e-4);
}

int main(int argc, char** argv) try {
  return argc == 2 ? run(argv[1]) : (std::fprintf(stderr, "usage: %s PACKAGE.npk\n", argv[0]), 2);
} catch (const Error& error) {
  std::fprintf(stderr, "%s: %s\n", normc_status_name(error.status()), error.what());
  return 1;
}
