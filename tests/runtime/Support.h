// Common parts of the runtime's tests: a context and packages in memory, inputs, errors as text.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "runtime/normc.hpp"
#include "tests/runtime/TestPackage.h"

namespace normc::test {

using host::Call;
using host::Plan;
using host::State;
using host::Tensor;

/// Returns the error of `action`, "INVALID_ARGUMENT: x is null; ..."; "accepted" if there is none.
template <typename Action>
std::string refusal(Action&& action) {
  try {
    action();
    return "accepted";
  } catch (const host::Error& error) {
    return std::string(normc_status_name(error.status())) + ": " + error.what();
  }
}

/// The same for a status of the C API.
inline std::string refusal(normc_status status) {
  return refusal([&] { host::check(status); });
}

inline normc_context_options oneThread() {
  normc_context_options options = {};
  options.max_threads = 1;
  return options;
}

/// A context on one thread.
inline const host::Context& context() {
  static const host::Context context(oneThread());
  return context;
}

inline bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

inline host::Package openInMemory(const package::Writer& writer, const host::Context& context) {
  const std::string bytes = writer.bytes();
  return host::Package(context, bytes.data(), bytes.size());
}

/// Plans of the standard package on one thread.
inline const host::Package& standard() {
  static const host::Package package = openInMemory(standardPackage(), context());
  return package;
}

/// Numbers in [-1, 1) that depend on `seed` alone.
inline std::vector<float> numbers(size_t count, unsigned seed = 1) {
  std::vector<float> result(count);
  unsigned state = seed * 2654435761u + 1;
  for (float& value : result) {
    state = state * 1664525u + 1013904223u;
    value = static_cast<float>(static_cast<int>(state >> 8) - (1 << 23)) / (1 << 23);
  }
  return result;
}

/// A layer norm with all its arrays; each test changes what it is about.
struct LayerNorm {
  int64_t rows, features;
  std::vector<float> x, dy, scale, bias, y, dx, dscale, dbias;
  std::vector<char> saved, workspace;
  Plan forwardPlan, backwardPlan;

  explicit LayerNorm(int64_t rows = 33, int64_t features = 10, const host::Package& package = standard())
      : rows(rows),
        features(features),
        x(numbers(rows * features, 1)),
        dy(numbers(rows * features, 2)),
        scale(numbers(features, 3)),
        bias(numbers(features, 4)),
        y(rows * features),
        dx(rows * features),
        dscale(features),
        dbias(features),
        forwardPlan(package, "layer_norm:forward@f32[*x*]"),
        backwardPlan(package, "layer_norm:backward@f32[*x*]") {
    saved.resize(forwardPlan.savedBytes(sizes()));
    workspace.resize(backwardPlan.workspaceBytes(sizes()));
  }

  normc_sizes sizes() const { return Plan::sizes(1, rows, features); }
  Tensor matrix(std::vector<float>& values) { return {values.data(), {rows, features}}; }
  Tensor vector(std::vector<float>& values) { return {values.data(), {features}}; }

  Call forward() {
    Call call;
    call.x = matrix(x), call.y = matrix(y);
    call.scale = vector(scale), call.bias = vector(bias);
    call.saved = saved;
    return call;
  }
  Call backward() {
    Call call;
    call.x = matrix(x), call.dy = matrix(dy), call.dx = matrix(dx);
    call.scale = vector(scale), call.dscale = vector(dscale), call.dbias = vector(dbias);
    call.saved = saved, call.workspace = workspace;
    return call;
  }
};

/// The same for power_norm, with a state object.
struct PowerNorm : LayerNorm {
  State state;

  explicit PowerNorm(int64_t rows = 33, int64_t features = 10, const host::Package& package = standard())
      : LayerNorm(rows, features, package),
        state((forwardPlan = Plan(package, "power_norm:forward@f32[*x*]"), forwardPlan), features) {
    backwardPlan = Plan(package, "power_norm:backward@f32[*x*]");
    saved.assign(forwardPlan.savedBytes(sizes()), 0);
    workspace.assign(std::max(forwardPlan.workspaceBytes(sizes()), backwardPlan.workspaceBytes(sizes())), 0);
  }

  Call forward() {
    Call call = LayerNorm::forward();
    call.workspace = workspace, call.state = &state;
    return call;
  }
  Call backward() {
    Call call = LayerNorm::backward();
    call.state = &state;
    return call;
  }
  std::vector<float> field(const char* name) const {
    std::vector<float> values(features);
    state.read(name, values.data(), values.size());
    return values;
  }
  int64_t step() const {
    int64_t step;
    state.read("step", &step, 1);
    return step;
  }
};

}  // namespace normc::test
