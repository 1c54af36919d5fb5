#include "bench/quickstart/Training.h"

#include <algorithm>
#include <map>

#include "autotune/gate/Call.h"
#include "dsl/Reference.h"
#include "dsl/Tolerance.h"

namespace normc::quickstart {
namespace {

using Values = std::vector<double>;

/// One entry's plan, its calls and what was wrong with them.
class Judged {
 public:
  Judged(const bench::Kernels& kernels, Problem problem)
      : problem_(problem), plan_(kernels.package(), problem.text()) {}

  std::map<std::string, Values> operator()(const ReferenceCall& arguments, Errors& errors,
                                           std::string& failure) {
    gate::Call call(plan_.get(), problem_, arguments, {});
    gate::CallResult got = call.run();
    const auto want = evaluate(problem_, arguments);
    if (!want) got.fault = text(want.errors());
    if (!got.fault.empty()) {
      note(failure, got.fault);
      return got.outputs;
    }
    for (const auto& [output, values] : got.outputs) {
      const Tolerance tolerance = toleranceOf(problem_, output, arguments.extents);
      const Agreement agreement = compare(want->outputs.at(output), values, tolerance);
      errors.relative = std::max(errors.relative, agreement.relativeError);
      errors.allowed = std::max(errors.allowed, agreement.worstRatio);
      if (!agreement.ok) note(failure, output + ": " + agreement.text);
    }
    return got.outputs;
  }

 private:
  void note(std::string& failure, const std::string& what) const {
    if (failure.empty()) failure = problem_.text() + ": " + what;
  }
  Problem problem_;
  host::Plan plan_;
};

/// The outputs `prefix`NAME as NAME.
std::map<std::string, Values> part(const std::map<std::string, Values>& outputs, const std::string& prefix) {
  std::map<std::string, Values> result;
  for (const auto& [output, values] : outputs)
    if (output.rfind(prefix, 0) == 0) result[output.substr(prefix.size())] = values;
  return result;
}

Values slice(const Batches& batches, int64_t firstRow) {
  const auto begin = batches.rows.begin() + firstRow * batches.features;
  return Values(begin, begin + batches.batchRows * batches.features);
}

/// Half the squared distance of y from the next tokens, for each token; its gradient in dy, in f32.
double loss(const Values& y, const Values& next, int64_t rows, Values& dy) {
  double sum = 0;
  dy.resize(y.size());
  for (size_t i = 0; i < y.size(); ++i) {
    const double distance = y[i] - next[i];
    sum += distance * distance / 2;
    dy[i] = float(distance / double(rows));
  }
  return sum / double(rows);
}

void follow(Values& parameter, const Values& gradient) {
  constexpr double kRate = 0.2;
  for (size_t i = 0; i < gradient.size(); ++i) parameter[i] = float(parameter[i] - kRate * gradient[i]);
}

}  // namespace

Training train(const bench::Kernels& kernels, const Problem& problem, const Batches& batches) {
  Problem reverse = problem;
  reverse.entry = Entry::Backward;
  Judged forward(kernels, problem), backward(kernels, reverse);
  const Extents extents{1, batches.batchRows, batches.features};
  Training result;
  Values scale(batches.features, 1), bias(batches.features, 0);
  std::map<std::string, Values> state = initialState(problem, extents);

  for (int64_t step = 0; step < batches.steps && result.failure.empty(); ++step) {
    const int64_t row = step * batches.batchRows;
    ReferenceCall call;
    call.extents = extents;
    call.x = slice(batches, row);
    call.scale = scale;
    call.bias = bias;
    call.state = state;
    const auto outputs = forward(call, result.forward, result.failure);
    if (!result.failure.empty()) break;
    result.lastLoss = loss(outputs.at("y"), slice(batches, row + 1), batches.batchRows, call.dy);
    if (step == 0) result.firstLoss = result.lastLoss;

    call.state = part(outputs, "state.");
    call.saved = part(outputs, "saved.");
    const auto gradients = backward(call, result.backward, result.failure);
    if (!result.failure.empty()) break;
    follow(scale, gradients.at("dscale"));
    follow(bias, gradients.at("dbias"));
    state = part(gradients, "state.");
  }
  return result;
}

}  // namespace normc::quickstart
