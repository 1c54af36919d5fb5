// The formulas of one element, written once for all plans.
//
// A formula names its operands by their part in it: the centre, the inverse root, a parameter. A plan says
// for each part whether it is a value of the slab or an element of a tensor, since that is what plans differ
// in. A sweep reads the tensors whose parts its formulas use, and no other. Notation as in dsl/Spec.h.
#pragma once

#include <array>
#include <memory>
#include <string>

#include "codegen/plan/Builder.h"

namespace normc::codegen {

/// The operands of the formulas, in the order in which a sweep reads them. A part that a plan does not bind
/// is absent: 0 where it would be added, 1 where it would be multiplied.
enum class Part : unsigned {
  X,
  Dy,
  Center,     ///< c
  Rstd,       ///< s of x0 = (u - c) s
  BatchMean,  ///< the point about which the moment was taken, where that is not c
  Slope,      ///< a of (u - c) a + b, the output before parameters that are elements and the activation
  Intercept,  ///< b
  DxSlope,    ///< the terms of dx: Element::dx
  DxAll,
  DxOwn,
  DxOffset,
  Shift,  ///< a shift estimate of u
  Scale,  ///< the parameters, in slabs of many features
  Bias,
  Residual,  ///< what is added before the norm, or behind it
  Gate,      ///< z
  ModScale,
  ModShift,
  RopeCos,
  RopeSin,
  ResidualOut,  ///< h, where a kernel reads what it or the forward has stored
  DresidualOut,
  Mask,
  RowScale,     ///< r of group scaling, u = h r
  ScaleOffset,  ///< what is added to Scale
  ModOffset,    ///< what is added to ModScale
  CodeFactor,   ///< 1 / D
  Pull,         ///< the mean of du u over a row group: with RowScale the derivative of group scaling
  Count
};

/// The sums of a gradient over the elements of a statistic: of G, G x0 and x0^2 those that are needed.
struct GradientSums {
  bool g, gx, xx;
  unsigned count() const { return g + gx + xx; }
};

/// Where the parts of a slab's formulas are.
class Parts {
 public:
  /// Binds what belongs to an element in every plan: x, dy, the mask, and what stands around the norm.
  explicit Parts(KernelBuilder&);
  /// Binds a part to a value of the slab. An absent value leaves the part absent.
  void is(Part part, Num value) { bound_[size_t(part)] = {.value = value, .symbol = {}}; }
  /// Binds a part to the elements of a tensor: a tensor of the call, a saved statistic, a workspace. The
  /// kernel declares the first two when a formula reads them.
  void argument(Part part, llvm::StringRef name);
  void saved(Part part, llvm::StringRef field);
  void workspace(Part part, llvm::StringRef symbol);
  /// Binds scale and bias of the norm to their elements.
  void parameters();

 private:
  friend class Element;
  struct Bound {
    Num value;
    std::string symbol;                                                    ///< of a tensor
    llvm::StringRef (KernelBuilder::*declare)(llvm::StringRef) = nullptr;  ///< null: it is declared
    llvm::StringRef name = {};                                             ///< what `declare` takes
  };
  KernelBuilder& k_;
  std::array<Bound, size_t(Part::Count)> bound_;
};

/// One element of a sweep that is being built.
class Element {
 public:
  Element(KernelBuilder& k, const Parts& parts, mlir::Block& region)
      : k_(k), parts_(parts), region_(region) {}

  /// Returns an operand; absent if the part is not bound. The first use of a tensor makes the sweep read it.
  Num operator[](Part);

  Num h();  ///< of x, the gate and the residual in front
  /// u, of h and the scale of its row group. It is rounded, also where it is a product: a mean is one of
  /// rounded elements, and sweeps have to agree about the sign of u - c.
  Num u();
  Num centred();                               ///< u - c
  Num normalized();                            ///< x0
  Num valid() { return (*this)[Part::Mask]; }  ///< i1: the row is not padding; absent without a mask
  Num inStatistic();                           ///< i1: the element enters the statistics of its slab
  Num kept();                                  ///< i1: padding does not exclude the element
  Num output();                                ///< y
  Num code() { return output() * (*this)[Part::CodeFactor]; }  ///< y / D
  Num gradient();                                              ///< G, the gradient of the affine's output
  Num scaledGradient();  ///< G, multiplied by the scale if that is an element
  /// Returns du = p g + all x0 + (valid ? own rho + offset : 0), g the scaled gradient. x0 = (u - c) s
  /// enters, not u - c, because products of two small scales would underflow. rho is the distance from the
  /// point about which the moment was taken: in terms of x0 a constant would cancel most of it, with all
  /// digits. With padding `exclude` a padded row gets 0.
  Num du();
  Num dx();
  /// Returns the terms of the sums of a backward: of g, g (u - c) and (u - c)^2 those that it needs. The
  /// factor s of x0 is applied once, to the complete sums.
  Nums gradientTerms(GradientSums);
  Num dscale();  ///< the term of the sum, where parameters are elements
  Num dbias();
  /// The outputs of a call beside y and dx. A tensor that rows share is a sum, of which this is a term.
  Num residualOut();
  Num dresidual();
  Num dgate();
  Num dmodScale();
  Num dmodShift();
  /// Returns `value` where the condition holds, else 0. An absent condition always holds.
  Num where(Num condition, Num value);

  /// Declares the tensors that were read, and returns them in the order of the region's arguments. Those of
  /// mates are behind them.
  llvm::SmallVector<llvm::StringRef, 8> reads() const;
  llvm::SmallVector<llvm::StringRef, 8> mates() const;

 private:
  /// Returns the element that `rope` turns together with this one: the other of its pair.
  Element& mate();
  bool isMate() const { return mate_ && !ownMate_; }
  /// Returns what a feature gets from its mate; 0 if `rope` does not turn the feature.
  Num fromMate(Num value) { return where(isTurned_, value); }
  /// Returns an operand of a mate.
  Num ofMate(Part);
  Num argument(Part);
  Num gate(Side);   ///< phi(z), absent if the norm has no gate there
  Num factor();     ///< what the affine multiplies by
  Num modFactor();  ///< what `modulate` multiplies by
  Num affine();     ///< v
  Num modulated();  ///< m
  Num turned();     ///< R m
  Num beforeActivation();
  Num arrived();            ///< the gradient before the activation
  Num turnedGradient();     ///< that of R m
  Num modulatedGradient();  ///< that of m
  Num rho();
  Num dh();
  /// Returns the value that `compute` gave the first time.
  static Num once(Num& value, llvm::function_ref<Num()> compute) {
    if (!value) value = compute();
    return value;
  }

  KernelBuilder& k_;
  const Parts& parts_;
  mlir::Block& region_;
  Element* mate_ = nullptr;
  std::unique_ptr<Element> ownMate_;  ///< of an element that is no mate itself
  Num isTurned_;                      ///< i1; absent if `rope` turns all features
  llvm::SmallVector<Part, 8> read_;   ///< in their order
  Num h_, u_, centred_, normalized_, gate_, affine_, modulated_, turned_, arrived_;
  Num modulatedGradient_, gradient_, dh_;
};

}  // namespace normc::codegen
