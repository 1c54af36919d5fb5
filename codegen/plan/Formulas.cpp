#include "codegen/plan/Formulas.h"

#include "codegen/plan/Activation.h"

namespace normc::codegen {

Num inverseRoot(KernelBuilder& k, Num v, Num epsilon) {
  switch (k.spec().epsilonMode) {
    case EpsilonMode::Add:
      return inverseSqrt(v + epsilon);
    case EpsilonMode::Max:
      return inverseSqrt(max(epsilon, v));
    case EpsilonMode::Outside:
      return 1.0 / (sqrt(v) + epsilon);
  }
  llvm_unreachable("epsilon mode");
}

Num rootFactor(KernelBuilder& k, Num v, Num s, Num epsilon) {
  switch (k.spec().epsilonMode) {
    case EpsilonMode::Add:
      return {};
    case EpsilonMode::Max:
      return select(epsilon <= v, k.constant(1), k.constant(0));
    case EpsilonMode::Outside: {
      // 1 / (sqrt(v) s); the derivative of sqrt at 0 is taken as 0, as the reference does.
      Num root = sqrt(v);
      return select(root > 0, 1.0 / (root * s), k.constant(0));
    }
  }
  llvm_unreachable("epsilon mode");
}

Num scaleOffset(KernelBuilder& k) {
  return k.spec().scaleOffset ? k.narrow(k.number("scale_offset")) : Num();
}
Num factorOfFeature(KernelBuilder& k) {
  return k.spec().scale ? add(k.load(k.argument("scale")), scaleOffset(k)) : Num();
}
Num biasOfFeature(KernelBuilder& k) { return k.spec().bias ? k.load(k.argument("bias")) : Num(); }

Num slopeOfGate(KernelBuilder& k, Num z) {
  const Activation function = k.spec().gate->function;
  return function == Activation::None ? Num() : activationSlope(k, function, z);
}

bool hasOwnRho(const Spec& spec) { return spec.differentiatesMoment() && !spec.momentIsOfX0(); }

}  // namespace normc::codegen
