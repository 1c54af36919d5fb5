#include "codegen/plan/Formulas.h"

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

Num masked(KernelBuilder& k, Num valid, Num value) {
  return valid ? select(valid, value, k.constant(0)) : value;
}

Num elementY(KernelBuilder& k, Num d, Num a, Num b, Num valid) {
  Num y = add(multiply(d, a), b);
  return k.spec().padding == Padding::Exclude ? masked(k, valid, y) : y;
}

bool hasOwnRho(const Spec& spec) {
  if (spec.backward != Backward::Exact || spec.divideBy != DivideBy::Current) return false;
  return isRhoCentred(spec) ? spec.center != Center::Current : spec.center != Center::None;
}

Num elementDx(KernelBuilder& k, const DxTerms& t, Num g, Num x0, Num rho, Num valid) {
  Num dx = multiply(g, t.p), all = t.all ? x0 * t.all : Num(), own = t.own ? (rho ? rho : x0) * t.own : Num();
  if (valid && k.spec().padding == Padding::LeaveOutOfStatistics) {
    own = add(own, t.offset);
    return add(add(dx, all), own ? masked(k, valid, own) : Num());
  }
  // The terms without g are added first, so that each addition belongs to a product and becomes an fma.
  return masked(k, valid, add(dx, add(add(all, own), t.offset)));
}

DxTerms sampleTerms(KernelBuilder& k, Num p, Num s, bool centred, Num sumG, Num meanHx0, Num n) {
  DxTerms terms{.p = p, .all = {}, .own = {}, .offset = {}};
  Num eps = k.narrow(k.number("epsilon"));
  Num f = k.hasSaved("second_moment") ? rootFactor(k, k.load(k.saved("second_moment")), s, eps) : Num();
  terms.own = -multiply(s * meanHx0, f);
  if (centred) terms.offset = -meanOf(p * sumG, n);
  return terms;
}

Merged mergeChunks(KernelBuilder& k, int64_t phase, llvm::ArrayRef<llvm::StringRef> parts) {
  enum { kCount, kBase, kMean, kSquares, kRaw };
  const bool raw = parts.size() > kRaw;
  Num zero = k.wideConstant(0), one = k.wideConstant(1);
  Nums merged =
      k.fold(Axis::Chunk, phase, parts, Nums(5, zero), [&](auto, const Nums& run, const Nums& narrow) {
        Nums e;
        for (Num n : narrow) e.push_back(k.widen(n));
        Num both = run[kCount] + e[0], share = e[0] / max(both, one);
        Num base = select(run[kCount] > 0.0, run[kBase], e[1]);
        Num mean = (e[1] - base) + e[2], delta = mean - run[kMean];
        // An infinite mean stays one, whatever follows.
        Nums next{both, base, run[kMean] + finiteOr(delta * share, mean),
                  run[kSquares] + e[3] + delta * delta * (run[kCount] * share), run[kRaw]};
        if (raw) next[kRaw] = run[kRaw] + e[4];
        return next;
      });
  return {merged[kBase] + merged[kMean], merged[kSquares], merged[kRaw]};
}

}  // namespace normc::codegen
