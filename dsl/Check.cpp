#include "dsl/Check.h"

#include <cmath>

#include "dsl/EnumWords.h"
#include "dsl/Nearest.h"
#include "dsl/Print.h"
#include "runtime/abi/Numbers.h"
#include "runtime/abi/ProblemText.h"

namespace normc {
namespace {

constexpr int64_t kLargestWindow = 4096;

class Checker {
 public:
  Checker(const Spec& spec, const Places& places) : spec_(spec), places_(places) {}

  std::vector<Diagnostic> run() {
    defaults();
    state();
    gradient();
    correction();
    preWarmupPadding();
    around();
    sumOfSquares();
    quantized();
    turned();
    values();
    return std::move(errors_);
  }

 private:
  // C5: a flag that is off has its defaults, so equal meanings are equal specs.
  void defaults() {
    const auto unused = [this](bool isDefault, const char* place, const std::string& what,
                               const std::string& where) {
      require(isDefault, "C5", place, what + " means nothing " + where, "leave it out");
    };
    const bool grouped = spec_.perGroup();
    const bool approximate = spec_.backward == Backward::Approximate;
    const Spec::Approximate& nu = spec_.approximate;
    const Renorm kind = spec_.renorm.kind;
    unused(grouped || spec_.groups.isOne(), "reduce.groups", "a number of groups",
           "for 'reduce " + reduce() + "'");
    unused(spec_.divideBy == DivideBy::Window || spec_.window == Spec::Window{}, "divide_by", "a window",
           "without 'divide_by window'");
    unused(approximate || nu == Spec::Approximate{}, "backward", "an option of 'approximate'",
           "without 'backward approximate'");
    unused(!approximate || nu.nu != Nu::Window || nu.decay == Spec::Approximate{}.decay, "backward.decay",
           "a decay", "for 'nu = window'");
    unused(!approximate || nu.nu == Nu::Feedback || !nu.clampGamma, "backward.clamp_gamma", "'clamp_gamma'",
           "without 'nu = feedback'");
    unused(kind != Renorm::None || spec_.renorm == Spec::Renormalize{}, "renorm", "an option of 'renorm'",
           "without a 'renorm' clause");
    unused(kind != Renorm::Moment || spec_.renorm.dmax == 0, "renorm.dmax", "'dmax'", "for 'renorm moment'");
    unused(kind != Renorm::Std || spec_.renorm.forward, "renorm.forward", "'forward = no'",
           "for 'renorm std'");
  }

  void state() {
    const std::string center = "'center " + wordOf(kCenterWords, spec_.center) + "'";
    const std::string divideBy = "'divide_by " + wordOf(kDivideByWords, spec_.divideBy) + "'";
    // C6: a state needs one statistic per feature.
    perFeature("C6", !spec_.running, "running", "'running'",
               hasBase() ? "or write 'running none'" : "or leave the clause out");
    perFeature("C6", spec_.center != Center::Running, "center", center, "or 'center current'");
    perFeature("C6", spec_.divideBy == DivideBy::Current, "divide_by", divideBy, "or 'divide_by current'");
    perFeature("C6", spec_.backward != Backward::Approximate, "backward", "'backward approximate'",
               "or 'backward exact'");
    // C7, C8, C9, C11: what is read from the state needs one.
    if (spec_.perFeature()) {
      needsRunning("C7", spec_.center != Center::Running, "center", center, "'center current'");
      needsRunning("C8", spec_.divideBy != DivideBy::Running, "divide_by", divideBy, "'divide_by current'");
      needsRunning("C9", spec_.divideBy != DivideBy::Window, "divide_by", divideBy, "'divide_by current'");
      needsRunning("C11", spec_.backward != Backward::Approximate, "backward", "'backward approximate'",
                   "'backward exact'");
    }
    if (spec_.divideBy == DivideBy::Window) {
      require(spec_.window.size >= 1 && spec_.window.size <= kLargestWindow, "C9", "divide_by.size",
              "a window of " + std::to_string(spec_.window.size) + " steps",
              "use 1 to " + std::to_string(kLargestWindow));
    }
    // C10
    if (spec_.running && spec_.running->unbiased) {
      require(
          spec_.moment == Moment::Central, "C10", "running.unbiased",
          "'unbiased' needs 'moment central', but moment is " + inQuotes(wordOf(kMomentWords, spec_.moment)),
          "a raw moment has no factor M/(M-1): " + biased() + ", or use 'moment central'");
      require(spec_.divideBy != DivideBy::Window, "C10", "running.unbiased",
              "'unbiased' does not go with 'divide_by window'", "a window holds biased moments: " + biased());
      require(spec_.renorm.kind != Renorm::Std, "C10", "running.unbiased",
              "'unbiased' does not go with 'renorm std'", "it keeps a standard deviation: " + biased());
    }
  }

  void gradient() {
    // C12
    if (!spec_.perFeature()) return;  // C6 has reported it
    require(spec_.backward != Backward::Exact || spec_.divideBy != DivideBy::Window, "C12", "backward",
            "'backward exact' does not go with 'divide_by window'",
            "a window contains this batch only in part: use 'backward approximate' or 'backward frozen'");
    if (spec_.backward != Backward::Approximate) return;
    // C13
    require(spec_.approximate.nu != Nu::Window || spec_.divideBy == DivideBy::Window, "C13", "backward.nu",
            "'nu = window' needs 'divide_by window', but divide_by is " +
                inQuotes(wordOf(kDivideByWords, spec_.divideBy)),
            "use 'divide_by window(16, arithmetic)', or 'nu = feedback' or 'nu = average'");
    // C14
    require(spec_.approximate.scale != BackwardScale::Batch || spec_.divideBy == DivideBy::Running, "C14",
            "backward.scale",
            "'scale = batch' needs 'divide_by running', but divide_by is " +
                inQuotes(wordOf(kDivideByWords, spec_.divideBy)),
            inherited("backward") ? "use 'divide_by running', or write its 'backward' anew, without 'scale'"
                                  : "use 'divide_by running', or leave 'scale' out");
  }

  void correction() {
    const Renorm kind = spec_.renorm.kind;
    const std::string name = "'renorm " + wordOf(kRenormWords, kind) + "'";
    if (kind != Renorm::None && !spec_.perFeature()) {  // the other rules of renorm assume it
      perFeature(kind == Renorm::Std ? "C15" : "C16", false, "renorm", name, "or 'renorm none'");
      return;
    }
    const auto needs = [&](const char* rule, bool ok, const std::string& what,
                           const std::string& arguments = "") {
      const std::string example = arguments.empty() ? "write '" + what : "write e.g. '" + what + arguments;
      require(ok, rule, "renorm", name + " needs '" + what + "'", example + "', or 'renorm none'");
    };
    if (kind == Renorm::Std) {  // C15
      needs("C15", spec_.center == Center::Current, "center current");
      needs("C15", spec_.moment == Moment::Central, "moment central");
      needs("C15", spec_.divideBy == DivideBy::Current, "divide_by current");
      require(spec_.running.has_value(), "C15", "renorm", name + " needs a 'running' clause",
              "write e.g. 'running decay = 0.9', or 'renorm none'");
    }
    if (kind == Renorm::Moment) {  // C16
      needs("C16", spec_.moment == Moment::Raw, "moment raw");
      needs("C16", spec_.divideBy == DivideBy::Window, "divide_by window", "(16, arithmetic)");
    }
  }

  void preWarmupPadding() {
    // C17
    perFeature("C17", !spec_.pre, "pre", "'pre group_scaling'", "or 'pre none'");
    // C18, C19
    if (spec_.warmup && spec_.perFeature()) {
      require(spec_.divideBy != DivideBy::Current, "C18", "warmup",
              "'warmup' needs 'divide_by running' or 'divide_by window', but divide_by is 'current'",
              "the moment of this batch divides in every step: " +
                  std::string(hasBase() ? "write 'warmup none'" : "leave 'warmup' out"));
      require(spec_.backward != Backward::Exact || spec_.divideBy != DivideBy::Running, "C18", "warmup",
              "'warmup' does not go with 'backward exact'",
              "the exact gradient changes its form after warmup: use 'backward approximate' or 'backward "
              "frozen'");
    }
    perFeature("C18", !spec_.warmup, "warmup", "'warmup'", "or 'warmup none'");
    if (spec_.warmup && spec_.warmup->accumulate != Accumulate::Decay && spec_.divideBy == DivideBy::Window) {
      require(false, "C19", "warmup.accumulate",
              "'accumulate = " + wordOf(kAccumulateWords, spec_.warmup->accumulate) +
                  "' does not go with 'divide_by window'",
              "a window is a mean already: use 'accumulate = decay'");
    }
    // C20
    require(spec_.padding != Padding::LeaveOutOfStatistics || spec_.running, "C20", "padding",
            "'padding leave_out_of_statistics' needs 'running'",
            "where all rows are padded, only a state can transform them: use 'padding exclude', or add " +
                std::string(spec_.perFeature() ? "'running'" : "'running' to 'reduce rows'"));
  }

  // Rules of clauses around the norm.
  void around() {
    // C29
    require(!spec_.hasResidual(Side::After) || spec_.residual->stream, "C29", "residual.stream",
            "'stream' means nothing for 'residual after'", "leave it out, or use 'residual before'");
    // C30
    if (const auto& modulate = spec_.modulate) {
      require(modulate->scale || modulate->shift, "C30", "modulate",
              "'modulate' has neither 'scale' nor 'shift'",
              "write 'modulate scale, shift', one of them, or 'modulate none'");
      require(modulate->scale || modulate->offset == Spec::Modulate{}.offset, "C30", "modulate.offset",
              "an offset of 'modulate' needs 'scale'",
              "write 'modulate scale(offset = 0)', or leave the offset out");
      require(modulate->per != Per::Feature, "C30", "modulate.per", "'modulate' is per segment or per row",
              "the factor of a feature is 'affine scale', what is added to it 'affine bias'");
      require(std::isfinite(modulate->offset), "C30", "modulate.offset",
              "offset is " + numberText(modulate->offset),
              "use 1 for a factor of 1 + scale, 0 for scale alone");
    }
    // C31
    require(!spec_.gate || !wordOf(kGateWords, std::optional(spec_.gate->function)).empty(), "C31", "gate",
            "a gate has no function " +
                inQuotes(spec_.gate ? wordOf(kActivationWords, spec_.gate->function) : ""),
            "use 'silu', 'sigmoid', 'tanh', 'gelu' or 'identity'");
  }

  // C32
  void sumOfSquares() {
    if (spec_.moment != Moment::Sum) return;
    require(
        !spec_.perFeature(), "C32", "moment", "'moment sum' does not go with 'reduce rows'",
        "a sum grows with the batch, so a state could not hold it: use 'moment raw', or another 'reduce'");
    require(spec_.center == Center::None, "C32", "moment",
            "'moment sum' needs 'center none', but center is " + inQuotes(wordOf(kCenterWords, spec_.center)),
            "it is the sum of u^2, about 0: write 'center none', or use 'moment central', a mean about the "
            "centre");
  }

  // C33
  void quantized() {
    if (!spec_.quantize) return;
    const Spec::Quantize& quantize = *spec_.quantize;
    const Spec::Quantize defaults;
    const std::string per = "'per = " + wordOf(kQuantizePerWords, quantize.per) + "'";
    const bool blocks = quantize.per == QuantizePer::Block, given = quantize.per == QuantizePer::Tensor;
    require(blocks || quantize.size == defaults.size, "C33", "quantize.size",
            "'size' means nothing for " + per, "leave it out, or write 'per = block'");
    require(!blocks || quantize.size >= 1, "C33", "quantize.size",
            "a block of " + std::to_string(quantize.size) + " features", "use 1 or more, e.g. 128");
    require(!given || !quantize.powerOfTwo, "C33", "quantize.scale", "'scale' means nothing for " + per,
            kGivenScaleHint);
    require(!given || quantize.floor == defaults.floor, "C33", "quantize.floor",
            "'floor' means nothing for " + per, kGivenScaleHint);
    number("C33", given || quantize.floor >= kLeastFloor, "quantize.floor", "floor", quantize.floor,
           "use 1e-30 or more, e.g. 1e-10: a row of zeros has a scale too, which divides in f32");
  }

  // C34
  void turned() {
    if (!spec_.rope) return;
    groups("rope.groups", spec_.rope->groups);
    const int64_t features = spec_.rope->features.value_or(2);
    require(features >= 2 && features % 2 == 0, "C34", "rope.features",
            "features is " + std::to_string(features), "use an even number of 2 or more: 'rope' turns pairs");
  }

  void values() {
    // C28
    if (spec_.scaleOffset) {
      require(spec_.scale, "C28", "affine", "an offset of 'affine' needs 'scale'",
              "write 'affine scale(offset = 1)', or leave the offset out");
      number("C28", *spec_.scaleOffset != 0, "affine.offset", "offset", *spec_.scaleOffset,
             "leave it out where the factor is the scale alone");
    }
    groups("reduce.groups", spec_.groups);
    if (spec_.pre) groups("pre.groups", spec_.pre->groups);
    // C22
    if (spec_.running) decay("running.decay", spec_.running->decay);
    if (spec_.backward == Backward::Approximate) decay("backward.decay", spec_.approximate.decay);
    epsilons();
    // C24
    if (spec_.running) {
      number("C24", spec_.running->init > 0, "running.init", "init", spec_.running->init,
             "use a value above 0");
    }
    // C25, C26
    const Spec::Renormalize& renorm = spec_.renorm;
    const char* limit = renorm.kind == Renorm::Std ? "rmax" : "limit";
    number("C25", renorm.rmax >= 1, std::string("renorm.") + limit, limit, renorm.rmax, "use 1 or more");
    number("C25", renorm.dmax >= 0, "renorm.dmax", "dmax", renorm.dmax, "use 0 or more");
    number("C25", renorm.start >= 0, "renorm.start", "start", renorm.start, "use 0 or more");
    whole("renorm.start", "start", renorm.start);
    if (spec_.approximate.clampGamma) {
      const double clamp = *spec_.approximate.clampGamma;
      number("C25", clamp > 0, "backward.clamp_gamma", "clamp_gamma", clamp, "use a value above 0, e.g. 4");
    }
    if (spec_.warmup) {
      number("C26", spec_.warmup->steps >= 0, "warmup.steps", "steps", spec_.warmup->steps, "use 0 or more");
      whole("warmup.steps", "steps", spec_.warmup->steps);
    }
  }

  // C21
  void groups(const std::string& place, const Groups& groups) {
    const std::string& name = groups.binding;
    require(groups.count >= 1, "C21", place, "groups is " + std::to_string(groups.count),
            "use 1 or more, or the name of a binding");
    require(!isProblemOption(name), "C21", place, "a binding cannot be called " + inQuotes(name),
            "that is an option of every problem: use another name");
  }

  // C22
  void decay(const std::string& place, double value) {
    number("C22", value >= 0 && value < 1, place, "decay", value,
           "use a value from 0 to below 1: the weight of the old value");
  }

  // C23
  void epsilons() {
    number("C23", spec_.epsilon >= 0, "epsilon", "epsilon", spec_.epsilon, "use a value above 0, e.g. 1e-5");
    require(spec_.epsilon != 0 || epsilonMayBeZero(spec_), "C23", "epsilon",
            "epsilon is 0, but a statistic of this batch may divide, and it may be 0 too",
            "use a value above 0, e.g. 1e-5");
    if (spec_.pre) {
      number("C23", spec_.pre->epsilon > 0, "pre.epsilon", "the epsilon of pre", spec_.pre->epsilon,
             "use a value above 0, e.g. 1e-5");
    }
  }

  // C26
  void whole(const std::string& place, const std::string& what, double value) {
    if (!std::isfinite(value) || value < 0) return;  // reported already
    number("C26", value == std::floor(value) && value <= kLargestWhole, place, what, value, kWholeHint);
  }

  void number(const char* rule, bool ok, const std::string& place, const std::string& what, double value,
              const std::string& hint) {
    require(ok && std::isfinite(value), rule, place, what + " is " + numberText(value), hint);
  }

  void perFeature(const char* rule, bool ok, const char* place, const std::string& flag,
                  const std::string& orElse) {
    require(ok || spec_.perFeature(), rule, place,
            flag + " needs 'reduce rows', but reduce is " + inQuotes(reduce()),
            "use 'reduce rows', " + orElse);
  }

  void needsRunning(const char* rule, bool ok, const char* place, const std::string& flag,
                    const std::string& orElse) {
    require(ok || spec_.running, rule, place, flag + " needs a state, and the norm has no 'running' clause",
            "add 'running decay = 0.9', or use " + orElse);
  }

  void require(bool ok, const char* rule, const std::string& place, std::string message, std::string hint) {
    if (ok) return;
    Diagnostic error{std::move(message), rule, std::move(hint), {}, ""};
    for (const std::string& key : {place, place.substr(0, place.find('.')), std::string()}) {
      if (const auto found = places_.find(key); found != places_.end()) {
        error.where = found->second.where;
        error.sourceLine = found->second.line;
        break;
      }
    }
    errors_.push_back(std::move(error));
  }

  // True if the norm has a base: what it leaves out is that of the base.
  bool hasBase() const { return places_.contains("from"); }
  // True if the clause comes from the base: it can be replaced here, but not removed.
  bool inherited(std::string_view clause) const { return !places_.empty() && !places_.contains(clause); }

  std::string biased() const {
    if (!inherited("running")) return "leave 'unbiased' out";
    const double init = spec_.running->init;
    return "write 'running decay = " + numberText(spec_.running->decay) +
           (init == Spec::Running{}.init ? "" : ", init = " + numberText(init)) + "' without it";
  }

  std::string reduce() const { return wordOf(kReduceWords, spec_.reduce); }

  const Spec& spec_;
  const Places& places_;
  std::vector<Diagnostic> errors_;
};

}  // namespace

bool epsilonMayBeZero(const Spec& spec) {
  return spec.divideBy == DivideBy::Running && !spec.warmup && !spec.hasBatchScale();
}

std::vector<Diagnostic> checkSpec(const Spec& spec, const Places& places) {
  return Checker(spec, places).run();
}

}  // namespace normc
