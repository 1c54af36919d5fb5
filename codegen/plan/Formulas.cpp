#include "codegen/plan/Formulas.h"

namespace normc::codegen {

Num inverseRoot(KernelBuilder& k, Num v, Num epsilon) {
  switch (k.spec().epsilonMode) {
    case EpsilonMode::Add: return 1.0 / sqrt(v + epsilon);
    case EpsilonMode::Max: return 1.0 / sqrt(max(epsilon, v));
    case EpsilonMode::Outside: return 1.0 / (sqrt(v) + epsilon);
  }
  llvm_unreachable("epsilon mode");
}

Num rootFactor(KernelBuilder& k, Num v, Num s, Num epsilon) {
  switch (k.spec().epsilonMode) {
    case EpsilonMode::Add: return {};
    case EpsilonMode::Max: return select(epsilon <= v, k.constant(1), k.constant(0));
    case EpsilonMode::Outside: {
      // 1 / (sqrt(v) s); the derivative of sqrt at 0 is taken as 0, as the reference does.
      Num root = sqrt(v);
      return select(root > 0, 1.0 / (root * s), k.constant(0));
    }
  }
  llvm_unreachable("epsilon mode");
}

Num masked(KernelBuilder& k, Num valid, Num value) {
  return valid ? select(valid, value, k.constant(0)) : value;
}

Num elementY(KernelBuilder& k, Num d, Num a, Num b, Num valid) {
  Num y = add(multiply(d, a), b);
  return k.spec().padding == Padding::Exclude ? masked(k, valid, y) : y;
}

Num elementDx(KernelBuilder& k, const DxTerms& t, Num g, Num x0, Num valid) {
  Num dx = multiply(g, t.p);
  if (valid && k.spec().padding == Padding::LeaveOutOfStatistics) {
    if (t.all) dx = dx + x0 * t.all;
    Num own = add(t.own ? x0 * t.own : Num(), t.offset);
    return own ? dx + masked(k, valid, own) : dx;
  }
  if (Num slope = add(t.all, t.own)) dx = dx + x0 * slope;
  dx = add(dx, t.offset);
  return masked(k, valid, dx);
}

}  // namespace normc::codegen
