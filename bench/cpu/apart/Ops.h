// The operations of Loops.h on one vector of floats. It sees no other header than intrinsics and integers:
// what it defines is compiled for several instruction sets, and no inline function of a library may be.
#pragma once

#include <cstdint>

#include "bench/cpu/apart/Loops.h"

namespace normc::bench::apart {
namespace {

#if defined(__AVX512F__)
constexpr int kLanes = 16;
#elif defined(__AVX__)
constexpr int kLanes = 8;
#else
constexpr int kLanes = 4;
#endif
using Floats = float __attribute__((vector_size(4 * kLanes)));
using Ints = int32_t __attribute__((vector_size(4 * kLanes)));

/// exp, within 2 units in the last place; arguments are limited so that the result is normal.
inline Floats exponential(Floats x) {
  x = x > 87.f ? Floats{} + 87.f : x;
  x = x < -87.f ? Floats{} - 87.f : x;
  constexpr float kRound = 12582912.f;  // 1.5 * 2^23: its addition rounds to an integer
  const Floats shifted = x * 1.44269504f + kRound, whole = shifted - kRound;
  const Floats r = x - whole * 0.693359375f + whole * 2.12194440e-4f;
  Floats p = r * 1.9875691500e-4f + 1.3981999507e-3f;
  p = p * r + 8.3334519073e-3f;
  p = p * r + 4.1665795894e-2f;
  p = p * r + 1.6666665459e-1f;
  p = p * r + 5.0000001201e-1f;
  p = p * r * r + r + 1.f;
  return (Floats)((Ints)p + ((Ints)shifted << 23));
}

inline Floats sigmoid(Floats x) { return 1.f / (1.f + exponential(-x)); }

/// A function and its slope.
struct Pair {
  Floats value, slope;
};
inline Pair siluOf(Floats x) {
  const Floats s = sigmoid(x);
  return {x * s, s * (1.f + x * (1.f - s))};
}
inline Pair sigmoidOf(Floats x) {
  const Floats s = sigmoid(x);
  return {s, s * (1.f - s)};
}

/// What an operation reads and writes at one place.
struct Place {
  Floats in[3], vectors[2], out[2], sums[2];
  float offset;
};

template <Op op>
inline void apply(Place& p) {
  const Floats a = p.in[0], b = p.in[1], c = p.in[2], u = p.vectors[0], w = p.vectors[1];
  const Floats zero = {};
  if constexpr (op == Op::Add) p.out[0] = a + b;
  if constexpr (op == Op::Silu) p.out[0] = siluOf(a).value;
  if constexpr (op == Op::SiluGrad) p.out[0] = a * siluOf(b).slope;
  if constexpr (op == Op::Relu) p.out[0] = a > zero ? a : zero;
  if constexpr (op == Op::ReluGrad) p.out[0] = b > zero ? a : zero;
  if constexpr (op == Op::AddRelu) p.out[0] = a + b > zero ? a + b : zero;
  if constexpr (op == Op::GateSilu) p.out[0] = a * siluOf(b).value;
  if constexpr (op == Op::GateSigmoid) p.out[0] = a * sigmoidOf(b).value;
  if constexpr (op == Op::GateSiluGrad || op == Op::GateSigmoidGrad) {
    const Pair gate = op == Op::GateSiluGrad ? siluOf(c) : sigmoidOf(c);
    p.out[0] = a * gate.value;
    p.out[1] = a * b * gate.slope;
  }
  if constexpr (op == Op::GateAdd) p.out[0] = u * a + b;
  if constexpr (op == Op::GateAddGrad) {
    p.out[0] = a + b;
    p.out[1] = (a + b) * u;
    p.sums[0] += (a + b) * c;
  }
  if constexpr (op == Op::Modulate) p.out[0] = (p.offset + u) * a + w;
  if constexpr (op == Op::ModulateGrad) {
    p.out[0] = a * (p.offset + u);
    p.sums[0] += a * b;
    p.sums[1] += a;
  }
}

}  // namespace
}  // namespace normc::bench::apart
