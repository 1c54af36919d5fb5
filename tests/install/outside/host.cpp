// Four threads share a plan of a norm that is the host's own.
#include <cmath>
#include <cstdio>
#include <exception>
#include <normc/normc.hpp>
#include <thread>
#include <vector>

using namespace normc::host;

int main(int argc, char** argv) try {
  constexpr int kRows = 7, kFeatures = 24, kThreads = 4;
  Plan forward(Package(Context(), argc == 2 ? argv[1] : ""), "sum_norm:forward@f32[*x24]");
  std::vector<float> x(kRows * kFeatures), scale(kFeatures, 2.0f);
  for (size_t i = 0; i < x.size(); ++i) x[i] = std::sin(float(i));
  std::vector<std::vector<float>> y(kThreads, std::vector<float>(x.size()));
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t)
    threads.emplace_back([&, t] {
      Call call;
      call.x = Tensor(x.data(), {kRows, kFeatures});
      call.scale = Tensor(scale.data(), {kFeatures});
      call.y = Tensor(y[t].data(), {kRows, kFeatures});
      std::vector<std::byte> workspace(forward.workspaceBytes(Plan::sizes(1, kRows, kFeatures)));
      call.workspace = workspace;
      forward(call);
    });
  for (std::thread& thread : threads) thread.join();
  double squares = 0;
  for (int i = 0; i < kFeatures; ++i) squares += x[i] * double(x[i]) / kFeatures;
  const double error = std::abs(y[0][1] - 2 * x[1] / std::sqrt(squares + 1e-5));
  std::printf("%s", forward.describe().c_str());
  for (int t = 1; t < kThreads; ++t)
    if (y[t] != y[0]) return std::puts("threads differ"), 1;
  return error < 1e-6 ? 0 : (std::printf("error %g\n", error), 1);
} catch (const std::exception& error) {
  std::puts(error.what());
  return 1;
}
