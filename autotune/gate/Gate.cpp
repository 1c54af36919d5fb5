#include "autotune/gate/Gate.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "autotune/gate/OverRanks.h"
#include "dsl/Tolerance.h"
#include "runtime/abi/Numbers.h"

namespace normc::gate {

/// Moves running statistics to both sides of those of the batch, or not at all: moments and means in every
/// combination, in nine features.
static void moveFar(std::vector<double>& values, bool positive, DType type) {
  for (size_t i = 0; i < values.size(); ++i) {
    const double side = double((positive ? i : i / 3) % 3) - 1;
    values[i] = round(positive ? values[i] * std::pow(256, side) : values[i] + 32 * side, type);
  }
}

/// Fills the state with values as after training, different in every feature.
static void warmState(const Problem& problem, const Trial& trial, ReferenceCall& call) {
  DType type = problem.statistics();
  uint64_t salt = 100;
  for (auto& [field, values] : call.state) {
    if (field == "step") {
      values = {double(trial.step)};
      continue;
    }
    if (trial.step == 0) continue;
    bool positive = field != "running_mean" && field != "nu" && field != "window_nu";
    values = normalValues(int64_t(values.size()), type, trial.seed + ++salt, 0, 0.25);
    if (positive)
      for (double& v : values) v = round(0.5 + std::fabs(v), type);
    if (trial.farState && !field.starts_with("window")) moveFar(values, positive, type);
  }
}

static int64_t countOf(TensorShape shape, const Extents& e) {
  if (shape == TensorShape::One) return 1;
  if (shape == TensorShape::PerFeature) return e.features;
  return (shape == TensorShape::PerSegment ? e.segments : e.totalRows()) * e.features;
}

/// Returns cosines, or sines, of angles that go on from row to row.
static std::vector<double> turnsOf(const Problem& problem, Tensor tensor, const Extents& e) {
  const int64_t pairs = problem.pairs(e.features);
  std::vector<double> values(size_t(e.totalRows() * pairs));
  for (size_t i = 0; i < values.size(); ++i) {
    const double angle = 0.7 * double(i / size_t(pairs)) / (1 + double(i % size_t(pairs)));
    values[i] = round(tensor == kRopeCos ? std::cos(angle) : std::sin(angle), DType::F32);
  }
  return values;
}

/// True if the largest numbers of a type are small.
static bool isNarrow(DType type) { return largest(type) < 1e10; }

/// Returns values of x whose sums with a residual fit the stream.
static std::vector<double> inputValues(const Problem& problem, const Trial& trial, const Extents& e) {
  const DType stream = problem.types().stream, range = isNarrow(stream) ? stream : problem.data;
  std::vector<double> values = hardInput(trial.data, e, range, trial.seed);
  for (double& v : values) v = round(v, problem.data);
  return values;
}

/// Returns values of a gate: most are small; of eleven one is large, one large and negative, one 0. Where it
/// stands before the norm, or x is infinite, large ones are smaller: infinities then appear where the
/// reference has them.
static std::vector<double> gateValues(const Problem& problem, const Trial& trial, int64_t count,
                                      uint64_t seed) {
  const bool before = problem.spec->hasGate(Side::Before);
  if (before && trial.data == HardInput::Huge) return normalValues(count, problem.data, seed, 0, 0.15);
  const bool extreme = trial.data == HardInput::Huge || trial.data == HardInput::WithInfinity;
  const double large = before || extreme ? 4 : isNarrow(problem.data) ? 30 : 100;
  std::vector<double> values = normalValues(count, problem.data, seed, 0, before ? 0.5 : 1);
  for (int64_t i = 0; i < count; ++i) {
    if (i % 11 == 3) values[i] = large;
    if (i % 11 == 6) values[i] = -large;
    if (i % 11 == 9) values[i] = 0;
  }
  return values;
}

/// Returns values of an input around the norm.
static std::vector<double> valuesAround(const Problem& problem, const Trial& trial, Tensor tensor,
                                        const Extents& e) {
  const int64_t count = countOf(shapeOf(tensor, hasOf(problem)), e);
  const uint64_t seed = trial.seed + 20 + tensor;
  const DType type = typeOf(tensor, problem.types());
  switch (tensor) {
    case kResidual:
      // As hard as x: it is as constant, and as far from 0.
      if (problem.spec->hasResidual(Side::After) || (isNarrow(type) && trial.data == HardInput::Huge)) break;
      return hardInput(trial.data, e, type, seed);
    case kGate:
      return gateValues(problem, trial, count, seed);
    case kModScale:
      return normalValues(count, problem.data, seed, 0, 0.5);
    case kRopeCos:
    case kRopeSin:
      return turnsOf(problem, tensor, e);
    case kQuantScale:  // some codes saturate
      return {round(2.5 / problem.spec->quantize->largest(), DType::F32)};
    default:
      break;
  }
  return normalValues(count, type, seed);
}

/// Fills the inputs around the norm; of those that ranks share, only empty ones.
static void surround(const Problem& problem, const Trial& trial, ReferenceCall& call) {
  const Has has = hasOf(problem);
  for (const Tensor tensor :
       {kResidual, kGate, kModScale, kModShift, kDresidualOut, kQuantScale, kRopeCos, kRopeSin}) {
    const TensorInfo& info = infoOf(tensor);
    std::vector<double>& values = *valuesOf(call, tensor);
    if (!(has.*info.needs) || trial.placement.leavesOut(info.name)) continue;
    if (tensor == kDresidualOut && !isBackward(problem.entry)) continue;
    if (tensor == kQuantScale && isBackward(problem.entry)) continue;
    const bool ofRows = isXSized(tensor, has) || info.shape == TensorShape::PerPair;
    if (values.empty() || ofRows) values = valuesAround(problem, trial, tensor, call.extents);
  }
}

/// Puts NaN into the padded rows of all X-sized inputs, if the norm leaves these rows out.
static void spoilPadding(const Problem& problem, const Trial& trial, ReferenceCall& call) {
  if (!trial.nanPadding || !problem.mask || problem.spec->padding != Padding::Exclude) return;
  for (const TensorInfo& each : kTensorTable) {
    std::vector<double>* const values = valuesOf(call, each.tensor);
    if (!values || values->empty() || !isXSized(each.tensor, hasOf(problem))) continue;
    for (size_t i = 0; i < values->size(); ++i)
      if (!call.mask[i / size_t(call.extents.features)]) (*values)[i] = std::nan("");
  }
}

/// Returns the arguments of another rank, with other rows.
static ReferenceCall otherRank(const Problem& problem, Trial trial, ReferenceCall rank, int64_t rows) {
  rank.extents.rows = rows;
  trial.seed += 10;
  rank.x = inputValues(problem, trial, rank.extents);
  if (problem.mask) rank.mask = hardMask(trial.mask, rank.extents, trial.seed);
  rank.dy = normalValues(int64_t(rank.x.size()), problem.types().output, trial.seed + 3);
  surround(problem, trial, rank);
  spoilPadding(problem, trial, rank);
  return rank;
}

/// Runs the forward of a backward: what it passes on goes into the call, `residual_out` and, if the backward
/// reads them, the state and what was saved. Returns its errors.
static std::vector<Diagnostic> runForward(Problem problem, ReferenceCall& call) {
  const bool saves = readsSaved(problem.entry);
  problem.entry = saves ? Entry::Forward : Entry::Infer;
  const auto before = evaluate(problem, call);
  if (!before) return before.errors();
  for (const auto& [output, quantity] : before->outputs) {
    const bool saved = output.rfind("saved.", 0) == 0, state = output.rfind("state.", 0) == 0,
               stream = output == name(kResidualOut);
    if (!stream && (!saves || (!saved && !state))) continue;
    std::vector<double> values = quantity.value;
    for (double& v : values) v = round(v, stream ? problem.types().stream : problem.statistics());
    (stream ? call.residualOut : (saved ? call.saved : call.state)[output.substr(6)]) = values;
  }
  return {};
}

Result<ReferenceCall> argumentsFor(const Problem& problem, const Trial& trial) {
  ReferenceCall call;
  const Extents& e = call.extents = trial.extents;
  const Spec& spec = *problem.spec;
  call.numbers = trial.numbers;
  call.x = inputValues(problem, trial, e);
  if (spec.scale) call.scale = normalValues(e.features, problem.params, trial.seed + 1, 1, 0.5);
  if (spec.bias) call.bias = normalValues(e.features, problem.params, trial.seed + 2);
  if (problem.mask) call.mask = hardMask(trial.mask, e, trial.seed);
  call.state = initialState(problem, e);
  warmState(problem, trial, call);
  surround(problem, trial, call);
  if (isOverRanks(problem.entry)) {
    call.dy = normalValues(int64_t(call.x.size()), problem.types().output, trial.seed + 3);
    std::vector<ReferenceCall> ranks{call};
    spoilPadding(problem, trial, ranks[0]);
    // Alone in odd steps; else with a rank of fewer rows and one of none.
    if (trial.step % 2 == 0)
      for (const int64_t rows : {e.rows / 2, int64_t(0)})
        ranks.push_back(otherRank(problem, trial, call, rows));
    return argumentsOverRanks(problem, std::move(ranks));
  }
  if (readsSaved(problem.entry) || (isBackward(problem.entry) && spec.hasStream())) {
    ReferenceCall forward = call;
    forward.dresidualOut.clear();
    if (auto errors = runForward(problem, forward); !errors.empty()) return errors;
    call.state = forward.state;
    call.saved = forward.saved;
    call.residualOut = forward.residualOut;
  }
  if (isBackward(problem.entry))
    call.dy = normalValues(int64_t(call.x.size()), problem.types().output, trial.seed + 3);
  spoilPadding(problem, trial, call);
  return call;
}

static bool sameBits(const std::vector<double>& a, const std::vector<double>& b) {
  return a.size() == b.size() &&
         (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(double)) == 0);
}

Result<Question> questionFor(const Problem& problem, const Trial& trial) {
  auto arguments = argumentsFor(problem, trial);
  if (!arguments) return arguments.errors();
  auto want = evaluate(problem, *arguments);
  if (!want) return want.errors();
  return Question{trial, *std::move(arguments), *std::move(want)};
}

static std::string failureText(const normc_plan* plan, const Problem& problem, const Trial& trial,
                               const std::string& why) {
  double largeBytes = 1;
  const bool large = normc_plan_number(plan, kLargeNumber.data(), &largeBytes) == NORMC_OK && largeBytes == 0;
  return problem.text() + " on " + trial.text(problem) + (large ? " as a large call" : "") + ": " + why;
}

Verdict judge(const normc_plan* plan, const Problem& problem, const Trial& trial, const CudaDevice* where) {
  auto question = questionFor(problem, trial);
  if (question) return judge(plan, problem, *question, where);
  Verdict verdict;
  verdict.ok = false;
  verdict.text = failureText(plan, problem, trial, text(question.errors()));
  return verdict;
}

/// True if a call has memory for an output of the reference.
static bool isAsked(const Problem& problem, const Placement& placement, const std::string& output) {
  if (output.starts_with("state.")) return problem.parts().writesState() && !placement.leavesOut("state_out");
  if (output.starts_with("saved.")) return writesSaved(problem.entry) && !placement.leavesOut("saved");
  if (output.starts_with("partial.")) return writesPartial(problem.entry);
  return std::ranges::any_of(kTensorTable, [&](const TensorInfo& each) {
    return each.name == output && isTaken(each, problem.entry, hasOf(problem)) &&
           !placement.leavesOut(each.name);
  });
}

Verdict judge(const normc_plan* plan, const Problem& problem, const Question& question,
              const CudaDevice* where, const std::function<void()>& between) {
  const auto& [trial, arguments, want] = question;
  Verdict verdict;
  auto fail = [&, &trial = trial](const std::string& why) {
    verdict.ok = false;
    if (verdict.text.empty()) verdict.text = failureText(plan, problem, trial, why);
  };
  Call call(plan, problem, arguments, trial.placement, where);
  CallResult got = call.run();
  for (const auto& [number, value] : trial.numbers) {
    double given = 0;
    if (normc_plan_number(plan, number.c_str(), &given) != NORMC_OK || given != value)
      got.fault = "the plan's " + number + " is not that of the trial";
  }
  if (!got.fault.empty()) {
    fail(got.fault);
    return verdict;
  }
  for (const auto& [output, values] : got.outputs) {
    auto expected = want.outputs.find(output);
    if (expected == want.outputs.end()) {
      fail("the reference has no output " + output);
      continue;
    }
    Agreement agreement = compare(expected->second, values, toleranceOf(problem, output, trial.extents));
    verdict.relativeError[output] = agreement.relativeError;
    if (agreement.worstRatio > verdict.worstRatio) {
      verdict.worstRatio = agreement.worstRatio;
      verdict.worstOutput = output;
    }
    if (!agreement.ok) fail(output + ": " + agreement.text);
  }
  for (const auto& [output, quantity] : want.outputs)
    if (!quantity.value.empty() && !got.outputs.contains(output) && isAsked(problem, trial.placement, output))
      fail("the kernel has no output " + output);
  if (between) between();
  CallResult again = call.run();
  if (!again.fault.empty()) fail("the second run: " + again.fault);
  for (const auto& [output, values] : got.outputs)
    if (!sameBits(values, again.outputs[output])) fail(output + " differs from run to run");
  return verdict;
}

}  // namespace normc::gate
