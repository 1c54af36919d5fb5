// The meaning of a normalization layer: the flags of the language, without anything about loops.
//
// Every flag is orthogonal. The table in dsl/SPEC.md says which combinations are legal, and checkSpec()
// (Check.h) is that table as code. Only a Spec that passed it reaches the reference or the compiler.
//
// Notation (docs/language.md): a tensor has axes segment x row x feature. `u` is
// the input after the optional `pre` stage, `q` the second moment of this batch,
// `s` an inverse root, `psi` the activation, `v` the output of the affine, `G` its gradient (dy * psi'(o)
// where nothing else stands behind it), `h = r * scale * G`. Where the affine has an offset, `scale` stands
// for offset + scale, but in dscale, which does not depend on the offset.
//
//   forward   x0 = (u - c) * s,   v = scale * (r * x0 + shift) + bias,   y = psi(o)
//   backward  du = s_b * [ h - k_mu m mean(h) - k_psi f m rho mean(h x0) - k_nu w x0 kappa ]
//
// What stands around the norm, in the order of its meaning (docs/around-a-norm.md). phi is the function of
// the gate:
//
//   h = phi(z) x [gate before] + r [residual before],   u = h after `pre`
//   m = (mod_offset + mod_scale) v + mod_shift [modulate]
//   t = R m [rope]: of each pair  p' = p cos - q sin,  q' = q cos + p sin
//   o = phi(z) t [gate after] + r [residual after]
//
// Behind all stands `quantize`: in place of y it stores codes, y / D rounded, and the scale D of each row or
// block of a row; a tensor has one D, which the caller gives.
//
// Structure is compiled, numbers are arguments: the fields marked (number) are scalar arguments of a kernel,
// and `init` fills a fresh state. Specs that differ only there share their kernels.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "runtime/abi/Types.h"

namespace normc {

// Packages hold hashes of the numbers of these enumerators (structuralHash): append enumerators, never
// renumber.

/// The elements that one statistic is taken over. `rows` is all rows of all segments.
enum class Reduce {
  Rows,             ///< one statistic per feature                     (BN, PN)
  Features,         ///< one per row and feature group                 (LN, RMS, GN)
  Segment,          ///< over the rows of a segment: one per segment and feature (IN)
  SegmentFeatures,  ///< over rows and group of a segment              (GN on N x C x T)
};
enum class Center { None, Current, Running };  ///< c = 0 | mean of this batch | running mean before it
/// mean(u^2) | mean((u - mean)^2), about the current mean | sum(u^2), about 0: means of h x0 are sums too
enum class Moment { Raw, Central, Sum };
enum class DivideBy { Current, Running, Window };  ///< which second moment divides (after warmup)
enum class WindowMean { Arithmetic, Geometric };
enum class Backward {
  Exact,        ///< differentiates through every current statistic
  Approximate,  ///< the second-moment term is replaced by nu; a current mean keeps its exact gradient
  Frozen,       ///< statistics are constants
};
/// The estimate that replaces mean(h x0) in an approximate backward.
enum class Nu {
  Feedback,  ///< nu before this step; nu' = nu (1 - (1-a) Gamma) + (1-a) Lambda   (Eq. 11-13 of PN)
  Average,   ///< exponential average that includes the current mean(h x0)         (UN)
  Window,    ///< mean over the window that includes the current mean(h x0)        (MABN)
};
enum class BackwardScale { Forward, Batch };  ///< s_b: the s of the forward | that of the batch statistic
enum class EpsilonMode {
  Add,      ///< s = (v + eps)^-1/2
  Max,      ///< s = max(v, eps)^-1/2
  Outside,  ///< s = 1 / (sqrt(v) + eps)
};
enum class Accumulate {
  Decay,                ///< v' = a v + (1-a) q, from the first step
  Cumulative,           ///< mean over the steps so far while t < W, then Decay
  CumulativeThenDecay,  ///< as Cumulative, and Decay on top of it in every step (the released code)
};
enum class Renorm {
  None,
  Std,     ///< Batch Renormalization: r = clip(sB/sigma), shift = clip((mu_B - mu)/sigma), from the old state
  Moment,  ///< MABN, UN: r = clip(sqrt(var + eps) / sqrt(running + eps))
};
/// psi of `activation`: y = psi(o); and phi of `gate`, where None is the identity.
enum class Activation { None, Relu, Silu, Gelu, GeluTanh, Sigmoid, Tanh };
/// Each row, or each segment, has a vector of features of its own; Feature: all rows share one.
enum class Per { Row, Segment, Feature };
/// The side of the norm that a residual or a gate is on: its input or its output.
enum class Side { Before, After };
/// Which features of a run of k turned ones are a pair of `rope`.
enum class Pairs {
  Half,         ///< l and l + k / 2
  Interleaved,  ///< 2 l and 2 l + 1
};
/// The type of the codes of `quantize`.
enum class Codes {
  Int8,
  E4M3,  ///< OCP's 8-bit float with 4 bits of exponent, finite only, up to 448
};
/// The elements that share one scale of codes.
enum class QuantizePer {
  Tensor,  ///< the caller gives it
  Row,
  Block,  ///< `size` features of a row
};
enum class Padding {
  Exclude,               ///< padded rows: y = 0, dx = 0, in no sum
  LeaveOutOfStatistics,  ///< left out of the forward statistics only
};

/// A number of feature groups: a literal, or the name of a binding of the
/// Problem (`heads`), so that one text serves every model size.
struct Groups {
  int64_t count = 1;
  std::string binding;  ///< empty: `count` holds
  bool isOne() const { return binding.empty() && count == 1; }
  std::string text() const { return binding.empty() ? std::to_string(count) : binding; }
  bool operator==(const Groups&) const = default;
};

struct Spec {
  std::string name;

  Reduce reduce = Reduce::Features;
  Groups groups;  ///< Features, SegmentFeatures only

  Center center = Center::None;
  Moment moment = Moment::Raw;
  DivideBy divideBy = DivideBy::Current;
  struct Window {
    int64_t size = 16;
    WindowMean mean = WindowMean::Arithmetic;
    bool operator==(const Window&) const = default;
  } window;  ///< divideBy == Window, or nu == Window

  struct Running {
    double decay = 0.9;     ///< a: weight of the old value        (number)
    double init = 1.0;      ///< initial second moment             (number)
    bool unbiased = false;  ///< variance enters with M / (M - 1)
    bool operator==(const Running&) const = default;
  };
  std::optional<Running> running;  ///< absent: no state, inference uses the statistics of its input

  Backward backward = Backward::Exact;
  struct Approximate {
    Nu nu = Nu::Feedback;
    double decay = 0.9;  ///< a_b  (number)
    BackwardScale scale = BackwardScale::Forward;
    std::optional<double> clampGamma;  ///< upper limit of Gamma, off by default (number)
    bool operator==(const Approximate&) const = default;
  } approximate;  ///< backward == Approximate

  struct Renormalize {
    Renorm kind = Renorm::None;
    double rmax = 5;      ///< r in [1/rmax, rmax]               (number)
    double dmax = 0;      ///< shift in [-dmax, dmax], Std only  (number)
    double start = 0;     ///< r = 1, shift = 0 while t <= start and in warmup, t <= W (number)
    bool forward = true;  ///< false: r scales the backward only (UN)
    bool operator==(const Renormalize&) const = default;
  } renorm;

  bool scale = false, bias = false;  ///< affine
  /// The factor of the affine is offset + scale; absent: scale alone (number)
  std::optional<double> scaleOffset;

  /// What is added to the input of the norm, or to its output.
  struct Residual {
    Side side = Side::Before;
    bool stream = true;  ///< before: the sum h is an output of forward, which backward reads
    bool operator==(const Residual&) const = default;
  };
  std::optional<Residual> residual;

  /// A tensor z whose function phi multiplies the input of the norm, or its output.
  struct Gate {
    Activation function = Activation::None;
    Side side = Side::After;
    Per per = Per::Row;
    bool operator==(const Gate&) const = default;
  };
  std::optional<Gate> gate;

  /// A second affine behind the first, whose parameters belong to a segment or a row.
  struct Modulate {
    bool scale = false, shift = false;
    Per per = Per::Segment;
    double offset = 1;  ///< the factor is offset + mod_scale  (number)
    bool operator==(const Modulate&) const = default;
  };
  std::optional<Modulate> modulate;

  /// Turns pairs of features by an angle of each row and pair, in each of some equal runs of features.
  struct Rope {
    Pairs pairs = Pairs::Half;
    Groups groups;                    ///< the runs, e.g. heads
    std::optional<int64_t> features;  ///< of a run, that are turned: its first ones; absent: all
    bool operator==(const Rope&) const = default;
  };
  std::optional<Rope> rope;

  Activation activation = Activation::None;

  /// 8-bit output: codes in place of y.
  struct Quantize {
    Codes codes = Codes::Int8;
    QuantizePer per = QuantizePer::Row;
    int64_t size = 128;       ///< features of a block, Block only
    bool powerOfTwo = false;  ///< scales are powers of two, each one byte; not for Tensor
    double floor = 1e-10;     ///< the least magnitude that a scale is made for; not for Tensor (number)
    bool operator==(const Quantize&) const = default;
    /// Returns the type of the codes.
    DType type() const { return codes == Codes::Int8 ? DType::I8 : DType::E4M3; }
    /// Returns the largest code.
    double largest() const { return infoOf(type()).format.largest; }
    /// Returns how many scales a row of so many features has; `size` divides them.
    int64_t blocks(int64_t features) const { return per == QuantizePer::Block ? features / size : 1; }
  };
  std::optional<Quantize> quantize;

  double epsilon = 1e-5;  ///< (number)
  EpsilonMode epsilonMode = EpsilonMode::Add;

  /// `pre group_scaling`: every row and group is divided by its own root mean
  /// square first; differentiated exactly; active in inference too.
  struct Pre {
    Groups groups;
    double epsilon = 1e-5;  ///< (number)
    bool operator==(const Pre&) const = default;
  };
  std::optional<Pre> pre;

  struct Warmup {
    double steps = 0;  ///< W: batch statistics divide while t <= W; under a window while t < W (number)
    Accumulate accumulate = Accumulate::Decay;
    bool operator==(const Warmup&) const = default;
  };
  std::optional<Warmup> warmup;

  Padding padding = Padding::Exclude;  ///< the meaning of a mask, if the Problem has one

  bool operator==(const Spec&) const = default;

  /// True if there is one statistic for each feature (column statistics); only these have state.
  bool perFeature() const { return reduce == Reduce::Rows; }
  /// True if each row has statistics of its own.
  bool perRow() const { return reduce == Reduce::Features; }
  /// True if each segment has statistics of its own.
  bool perSegment() const { return reduce == Reduce::Segment || reduce == Reduce::SegmentFeatures; }
  /// True if a statistic is that of a group of features; else each feature has its own.
  bool perGroup() const { return reduce == Reduce::Features || reduce == Reduce::SegmentFeatures; }
  /// True if something has one of its own for each segment, so that a problem has three dimensions (P2, P11).
  bool needsSegments() const {
    return perSegment() || (gate && gate->per == Per::Segment) || (modulate && modulate->per == Per::Segment);
  }
  /// True if forward has the output `stream`, which backward reads in place of x and residual.
  bool hasStream() const { return hasResidual(Side::Before) && residual->stream; }
  bool hasResidual(Side side) const { return residual && residual->side == side; }
  bool isQuantizedPer(QuantizePer per) const { return quantize && quantize->per == per; }
  bool hasGate(Side side) const { return gate && gate->side == side; }
  /// True if a formula behind the affine needs the output of the affine in backward.
  bool recomputesOutput() const {
    return activation != Activation::None || hasGate(Side::After) || (modulate && modulate->scale);
  }
  /// True if a statistic of this batch must be complete before the first output of the forward, even after
  /// warmup.
  bool needsBatchStatistics() const { return center == Center::Current || divideBy != DivideBy::Running; }
  /// True if the second moment is that of x0: it is taken about the same center. Then Gamma = q s^2.
  bool momentIsOfX0() const {
    return moment == Moment::Central ? center == Center::Current : center == Center::None;
  }
  /// True if the gradient contains the derivative of the moment of this batch.
  bool differentiatesMoment() const { return backward == Backward::Exact && divideBy == DivideBy::Current; }
  /// True if backward divides by the statistics of the batch, whatever divided in forward.
  bool hasBatchScale() const {
    return backward == Backward::Approximate && approximate.scale == BackwardScale::Batch;
  }
  /// True if sums of the gradient over the batch must be complete before the first dx.
  bool gradientNeedsBatch() const {
    if (backward == Backward::Frozen) return false;
    if (center == Center::Current) return true;
    if (backward == Backward::Exact) return divideBy == DivideBy::Current;
    return approximate.nu != Nu::Feedback;
  }
  /// Returns 16 hex digits, stable across builds. Specs with equal hashes share their kernels: names and the
  /// fields marked (number) are not part of it.
  std::string structuralHash() const;
};

}  // namespace normc
