// Trains a linear layer that is followed by PowerNorm, in C++ over runtime/normc.hpp.
//
//   train PACKAGE.npk
//
// The package must hold power_norm, forward and backward, f32, for any or for 8 features. PowerNorm divides
// by a running statistic, so its state goes along with the training, and its gradient is that of a constant
// divisor in the first step (nu is still zero), which is what the check against finite differences uses.
#include <cmath>
#include <cstdio>
#include <normc/normc.hpp>
#include <random>

using namespace normc::host;

namespace {

constexpr int kRows = 64, kInputs = 6, kFeatures = 8, kSteps = 300;

struct Layer {
  std::vector<float> input = std::vector<float>(kRows * kInputs),
                     weight = std::vector<float>(kInputs * kFeatures);
  std::vector<float> x = std::vector<float>(kRows * kFeatures), y = x, dy = x, dx = x, target = x;
  std::vector<float> scale = std::vector<float>(kFeatures, 1), bias = std::vector<float>(kFeatures),
                     dscale = bias, dbias = bias;
  Plan forward, backward;
  State state;
  std::vector<char> saved, workspace;

  explicit Layer(const Package& package)
      : forward(package, "power_norm:forward@f32[*x8]"),
        backward(package, "power_norm:backward@f32[*x8]"),
        state(forward) {
    const normc_sizes sizes = Plan::sizes(1, kRows, kFeatures);
    saved.resize(forward.savedBytes(sizes));
    workspace.resize(std::max(forward.workspaceBytes(sizes), backward.workspaceBytes(sizes)));
  }

  /// Half the mean squared distance to the target; leaves its gradient in dy. With `train` false the state
  /// stays.
  double loss(bool train) {
    for (int row = 0; row < kRows; ++row)
      for (int f = 0; f < kFeatures; ++f) {
        float sum = 0;
        for (int i = 0; i < kInputs; ++i) sum += input[row * kInputs + i] * weight[i * kFeatures + f];
        x[row * kFeatures + f] = sum;
      }
    Call call;
    call.x = {x.data(), {kRows, kFeatures}}, call.y = {y.data(), {kRows, kFeatures}};
    call.scale = {scale.data(), {kFeatures}}, call.bias = {bias.data(), {kFeatures}};
    call.saved = saved, call.workspace = workspace;
    if (train)
      call.state = &state;
    else
      call.stateIn = state.buffer();
    forward(call);
    double sum = 0;
    for (size_t i = 0; i < y.size(); ++i) {
      dy[i] = (y[i] - target[i]) / float(y.size());
      sum += 0.5 * (y[i] - target[i]) * dy[i];
    }
    return sum;
  }

  /// The gradient of every weight.
  std::vector<float> gradients() {
    Call call;
    call.x = {x.data(), {kRows, kFeatures}}, call.dy = {dy.data(), {kRows, kFeatures}};
    call.dx = {dx.data(), {kRows, kFeatures}};
    call.scale = {scale.data(), {kFeatures}};
    call.dscale = {dscale.data(), {kFeatures}}, call.dbias = {dbias.data(), {kFeatures}};
    call.saved = saved, call.workspace = workspace, call.state = &state;
    backward(call);
    std::vector<float> result(weight.size());
    for (int row = 0; row < kRows; ++row)
      for (int i = 0; i < kInputs; ++i)
        for (int f = 0; f < kFeatures; ++f)
          result[i * kFeatures + f] += input[row * kInputs + i] * dx[row * kFeatures + f];
    return result;
  }

  double worstGradientError() {
    loss(true);
    State before(forward);
    before.copyFrom(state);
    const std::vector<float> analytic = gradients();
    double worst = 0;
    state.reset();  // the differences are taken from where the step began
    for (size_t i = 0; i < weight.size(); i += 5) {
      const float keep = weight[i], step = 1e-2f;
      weight[i] = keep + step;
      const double above = loss(false);
      weight[i] = keep - step;
      const double below = loss(false);
      weight[i] = keep;
      worst = std::max(worst, std::abs((above - below) / (2 * step) - analytic[i]));
    }
    return worst;
  }
};

int run(const char* path) {
  Context context;
  Package package(context, path);
  Layer layer(package);
  std::printf("%s\n", layer.forward.describe().c_str());

  std::mt19937 generator(1);
  std::uniform_real_distribution<float> uniform(-1, 1);
  for (float& value : layer.input) value = uniform(generator);
  for (float& value : layer.weight) value = uniform(generator);
  for (int row = 0; row < kRows; ++row)  // a linear map of the input, which the layer can learn
    for (int f = 0; f < kFeatures; ++f) {
      const float* input = &layer.input[row * kInputs];
      layer.target[row * kFeatures + f] = input[f % kInputs] - 0.5f * input[(f + 1) % kInputs];
    }

  const double error = layer.worstGradientError();
  std::printf("largest gradient error against finite differences: %.1e\n", error);

  layer.state.reset();
  double first = 0, last = 0;
  for (int step = 0; step < kSteps; ++step) {
    last = layer.loss(true);
    if (step == 0) first = last;
    const std::vector<float> gradient = layer.gradients();
    for (size_t i = 0; i < gradient.size(); ++i) layer.weight[i] -= 4 * gradient[i];
    for (int f = 0; f < kFeatures; ++f) {
      layer.scale[f] -= 2 * layer.dscale[f];
      layer.bias[f] -= 2 * layer.dbias[f];
    }
  }
  std::int64_t steps;
  layer.state.read("step", &steps, 1);
  std::printf("loss: %.3e before, %.3e after %lld steps\n", first, last, static_cast<long long>(steps));
  if (error < 1e-4 && last < 0.05 * first && steps == kSteps) return 0;
  std::printf("FAILED: the gradients or the training are wrong\n");
  return 1;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: %s PACKAGE.npk\n", argv[0]);
    return 2;
  }
  try {
    return run(argv[1]);
  } catch (const Error& error) {
    std::fprintf(stderr, "%s: %s\n", normc_status_name(error.status()), error.what());
    return 1;
  }
}
