// Loads a checkpoint of the released PowerNorm code (MaskPowerNorm) into a state.
//
//   normc::host::State state(plan);
//   example::load({runningPhi, emaGz, iters, 0.9}, state);
//
// The fields of a state have names and types, so a host can fill them from any checkpoint.
#pragma once

#include <cstdint>
#include <limits>
#include <normc/normc.hpp>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

namespace example {

struct Checkpoint {
  std::vector<float> runningPhi;  // becomes psi2
  std::vector<float> emaGz;       // becomes nu = (1 - backwardDecay) * emaGz
  std::int64_t iters = 0;         // training steps so far; becomes step
  double backwardDecay = 0.9;     // alpha_bkw of the run, 0.9 in the released scripts
};

template <typename... Parts>
void require(bool holds, const Parts&... parts) {
  if (holds) return;
  std::ostringstream text;
  (text << ... << parts);
  throw std::invalid_argument(text.str());
}

/// Writes `factor` times the values, in the type of the field.
template <typename T>
void writeScaled(normc::host::State& state, const char* field, const std::vector<float>& values,
                 double factor) {
  std::vector<T> scaled;
  for (const float value : values) scaled.push_back(static_cast<T>(factor * value));
  state.write(field, scaled.data(), scaled.size());
}

/// Throws std::invalid_argument, and changes nothing, where the checkpoint is damaged or not of this state.
inline void load(const Checkpoint& from, normc::host::State& state) {
  const std::vector<normc_field> fields = state.fields();
  std::string names;
  for (const normc_field& field : fields) names += (names.empty() ? "" : ", ") + std::string(field.name);
  require(names == "step, psi2, nu", "a checkpoint of PowerNorm holds step, psi2 and nu; the state holds ",
          names);

  const auto features = static_cast<std::size_t>(fields[1].shape[0]);
  require(from.runningPhi.size() == features, "the checkpoint's running_phi has ", from.runningPhi.size(),
          " features; the state has ", features);
  require(from.emaGz.size() == features, "the checkpoint's ema_gz has ", from.emaGz.size(),
          " features; the state has ", features);
  require(from.iters >= 0, "the checkpoint's iters is ", from.iters, "; it counts steps");
  require(from.backwardDecay >= 0 && from.backwardDecay < 1, "the checkpoint's backward_decay is ",
          from.backwardDecay, "; it must be at least 0 and less than 1 (0.9 in the released scripts)");
  for (std::size_t f = 0; f < features; ++f)
    require(from.runningPhi[f] >= 0 && from.runningPhi[f] <= std::numeric_limits<float>::max(),
            "the checkpoint's running_phi is ", from.runningPhi[f], " at feature ", f,
            "; a mean of squares is finite and not negative");

  const auto write = fields[1].type == NORMC_F64 ? writeScaled<double> : writeScaled<float>;
  write(state, "psi2", from.runningPhi, 1);
  write(state, "nu", from.emaGz, 1 - from.backwardDecay);
  state.write("step", &from.iters, 1);
}

}  // namespace example
