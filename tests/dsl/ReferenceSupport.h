// A layer that keeps its state between calls of the reference, and the specs of
// the well-known normalizations, written out so that these tests need no parser.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "dsl/HardInputs.h"
#include "dsl/Reference.h"

namespace normc {

using Vector = std::vector<double>;

inline Spec norm(const char* name, Reduce reduce, Center center, Moment moment) {
  Spec spec;
  spec.name = name;
  spec.reduce = reduce;
  spec.center = center;
  spec.moment = moment;
  spec.scale = spec.bias = true;
  return spec;
}

inline Spec layerNorm() { return norm("layer_norm", Reduce::Features, Center::Current, Moment::Central); }
inline Spec rmsNorm() {
  Spec spec = norm("rms_norm", Reduce::Features, Center::None, Moment::Raw);
  spec.bias = false;
  return spec;
}
inline Spec batchNorm() {
  Spec spec = norm("batch_norm", Reduce::Rows, Center::Current, Moment::Central);
  spec.running = Spec::Running{};
  return spec;
}
inline Spec powerNormV() {
  Spec spec = norm("power_norm_v", Reduce::Rows, Center::None, Moment::Raw);
  spec.running = Spec::Running{};
  return spec;
}
inline Spec powerNorm() {
  Spec spec = powerNormV();
  spec.name = "power_norm";
  spec.divideBy = DivideBy::Running;
  spec.backward = Backward::Approximate;
  return spec;
}
inline Spec powerNormReleased(double warmupSteps) {
  Spec spec = powerNorm();
  spec.name = "power_norm_released";
  spec.pre = Spec::Pre{.groups = {.count = 2, .binding = {}}, .epsilon = 1e-5};
  spec.warmup = Spec::Warmup{.steps = warmupSteps, .accumulate = Accumulate::CumulativeThenDecay};
  spec.approximate.scale = BackwardScale::Batch;
  spec.padding = Padding::LeaveOutOfStatistics;
  return spec;
}
inline Spec batchRenorm() {
  Spec spec = batchNorm();
  spec.name = "batch_renorm";
  spec.renorm = {.kind = Renorm::Std, .rmax = 3, .dmax = 5, .start = 0, .forward = true};
  return spec;
}
inline Spec mabn(int64_t window, double start) {
  Spec spec = powerNormV();
  spec.name = "mabn";
  spec.divideBy = DivideBy::Window;
  spec.window = {.size = window, .mean = WindowMean::Arithmetic};
  spec.backward = Backward::Approximate;
  spec.approximate.nu = Nu::Window;
  spec.renorm = {.kind = Renorm::Moment, .rmax = 5, .dmax = 0, .start = start, .forward = true};
  return spec;
}
inline Spec unifiedNorm(int64_t window, double start) {
  Spec spec = mabn(window, start);
  spec.name = "unified_norm";
  spec.window.mean = WindowMean::Geometric;
  spec.approximate.nu = Nu::Average;
  spec.renorm.forward = false;
  return spec;
}

/// A spec with f64 data, its state, and what its last forward saved.
class Layer {
 public:
  Layer(Spec spec, Extents extents, bool mask = false) {
    problem.spec = std::make_shared<const Spec>(std::move(spec));
    problem.data = problem.params = DType::F64;
    problem.mask = mask;
    call.extents = extents;
    if (problem.spec->scale) call.scale = Vector(extents.features, 1);
    if (problem.spec->bias) call.bias = Vector(extents.features, 0);
    if (mask) call.mask = std::vector<uint8_t>(extents.totalRows(), 1);
    call.state = initialState(problem, extents);
    for (Tensor tensor : {kResidual, kGate, kModScale, kModShift})
      if (isTaken(infoOf(tensor), Entry::Forward, hasOf(problem)))
        input(tensor) = Vector(elements(tensor), 0);
    // of a spec whose `rope` has a binding, fillAround gives them
    if (const auto& rope = problem.spec->rope; rope && rope->groups.binding.empty()) {
      call.ropeCos = Vector(elements(kRopeCos), 1);
      call.ropeSin = Vector(elements(kRopeSin), 0);
    }
    if (problem.spec->isQuantizedPer(QuantizePer::Tensor)) call.quantScale = {1};
  }

  /// The values of an input of the call.
  Vector& input(Tensor tensor) { return *valuesOf(call, tensor); }
  int64_t elements(Tensor tensor) const {
    const Extents& e = call.extents;
    switch (shapeOf(tensor, hasOf(problem))) {
      case TensorShape::PerFeature:
        return e.features;
      case TensorShape::PerSegment:
        return e.segments * e.features;
      case TensorShape::PerRow:
        return e.totalRows();
      case TensorShape::PerBlock:
        return e.totalRows() * problem.spec->quantize->blocks(e.features);
      case TensorShape::PerPair:
        return e.totalRows() * problem.pairs(e.features);
      case TensorShape::One:
        return 1;
      case TensorShape::Elements:
        break;
    }
    return e.totalRows() * e.features;
  }

  ReferenceResult forward(const Vector& x) {
    call.x = x;
    ReferenceResult result = run(Entry::Forward);
    for (const auto& [name, quantity] : result.outputs) {
      if (name.starts_with("saved.")) call.saved[name.substr(6)] = quantity.value;
    }
    return keptStream(result);
  }
  /// Returns the backward of the last forward.
  ReferenceResult backward(const Vector& dy) {
    call.dy = dy;
    ReferenceResult result = run(Entry::Backward);
    call.dy.clear();
    return result;
  }
  ReferenceResult infer(const Vector& x) {
    call.x = x;
    return keptStream(run(Entry::Infer));
  }
  /// Returns the gradient of infer on x.
  ReferenceResult inferBackward(const Vector& x, const Vector& dy) {
    call.x = x, call.dy = dy;
    ReferenceResult result = run(Entry::InferBackward);
    call.dy.clear();
    return result;
  }
  double state(const std::string& field, size_t index = 0) const { return call.state.at(field).at(index); }

  Problem problem;
  ReferenceCall call;

 private:
  ReferenceResult keptStream(ReferenceResult result) {
    if (result.outputs.contains("residual_out")) call.residualOut = result.outputs.at("residual_out").value;
    return result;
  }

  ReferenceResult run(Entry entry) {
    problem.entry = entry;
    ReferenceCall arguments = call;
    if (!isBackward(entry)) arguments.residualOut.clear(), arguments.dresidualOut.clear();
    if (isBackward(entry)) arguments.quantScale.clear();
    Result<ReferenceResult> result = evaluate(problem, arguments);
    if (!result) {
      ADD_FAILURE() << text(result.errors());
      return {};
    }
    for (const auto& [name, quantity] : result->outputs) {
      if (name.starts_with("state.")) call.state[name.substr(6)] = quantity.value;
    }
    return *result;
  }
};

inline Vector values(const ReferenceResult& result, const std::string& name) {
  return result.outputs.at(name).value;
}

inline Vector random(int64_t count, uint64_t seed, double mean = 0) {
  return normalValues(count, DType::F64, seed, mean);
}

/// Gives the tensors around the norm, and the gradient of a stream, random values.
inline void fillAround(Layer& layer, uint64_t seed) {
  for (Tensor tensor : {kResidual, kGate, kModScale, kModShift})
    if (Vector& input = layer.input(tensor); !input.empty())
      input = random(layer.elements(tensor), seed + tensor, tensor == kGate ? 0.5 : 0);
  if (layer.problem.spec->rope) {
    for (Tensor tensor : {kRopeCos, kRopeSin})
      layer.input(tensor) = random(layer.elements(tensor), seed + tensor);
  }
  if (layer.problem.spec->hasStream())
    layer.call.dresidualOut = random(layer.elements(kDresidualOut), seed + kDresidualOut);
}

/// Equal to `accuracy` relative to the larger of 1 and the value.
inline void expectNear(const Vector& got, const Vector& want, double accuracy = 1e-12) {
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < got.size(); ++i) {
    if (std::isnan(want[i]) && std::isnan(got[i])) continue;
    EXPECT_NEAR(got[i], want[i], accuracy * std::max(1.0, std::abs(want[i]))) << "element " << i;
  }
}

}  // namespace normc
