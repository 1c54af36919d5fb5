#include "bench/cpu/apart/Neighbours.h"

namespace normc::bench::apart {
namespace {

/// What surrounds a norm on one side, if there are loops for it.
enum class Form { None, Unknown, Residual, Gate, GatedResidual, Modulate, Activation, ResidualRelu };

Form formBefore(const Spec& spec) {
  const bool residual = spec.hasResidual(Side::Before), gate = spec.hasGate(Side::Before);
  if (!gate) return residual ? Form::Residual : Form::None;
  if (!residual) return spec.gate->per == Per::Row ? Form::Gate : Form::Unknown;
  const bool plain = spec.gate->function == Activation::None && spec.gate->per == Per::Segment;
  return plain && spec.residual->stream ? Form::GatedResidual : Form::Unknown;
}

Form formAfter(const Spec& spec) {
  const bool residual = spec.hasResidual(Side::After), gate = spec.hasGate(Side::After);
  const bool activation = spec.activation != Activation::None;
  const int clauses = residual + gate + activation + spec.modulate.has_value();
  if (spec.rope || spec.quantize) return Form::Unknown;
  if (clauses == 0) return Form::None;
  if (clauses == 2 && residual && spec.activation == Activation::Relu) return Form::ResidualRelu;
  if (clauses > 1) return Form::Unknown;
  if (residual) return Form::Residual;
  if (activation) return Form::Activation;
  if (gate) return spec.gate->per == Per::Row ? Form::Gate : Form::Unknown;
  const auto& [scale, shift, per, offset] = *spec.modulate;
  return scale && shift && per == Per::Segment ? Form::Modulate : Form::Unknown;
}

std::optional<Op> gateOp(const Spec& spec, bool gradient) {
  if (spec.gate->function == Activation::Silu) return gradient ? Op::GateSiluGrad : Op::GateSilu;
  if (spec.gate->function == Activation::Sigmoid) return gradient ? Op::GateSigmoidGrad : Op::GateSigmoid;
  return std::nullopt;
}

std::optional<Op> activationOp(const Spec& spec, bool gradient) {
  if (spec.activation == Activation::Relu) return gradient ? Op::ReluGrad : Op::Relu;
  if (spec.activation == Activation::Silu) return gradient ? Op::SiluGrad : Op::Silu;
  return std::nullopt;
}

/// Sets `loop` to one of `op`; false where there is no such operation.
bool set(std::optional<Neighbour>& loop, std::optional<Op> op, Neighbour operands) {
  if (!op) return false;
  loop = operands;
  loop->op = *op;
  return true;
}

std::optional<Neighbours> forward(const Spec& spec) {
  Neighbours n;
  bool known = true;
  switch (formBefore(spec)) {
    case Form::None:
      break;
    case Form::Residual:
      set(n.first, Op::Add, {.in = {kX, kResidual}, .out = {Role::Input}});
      break;
    case Form::Gate:
      known = set(n.first, gateOp(spec, false), {.in = {kX, kGate}, .out = {Role::Input}});
      break;
    case Form::GatedResidual:
      set(n.first, Op::GateAdd, {.in = {kX, kResidual}, .vectors = {kGate}, .out = {Role::Input}});
      break;
    default:
      known = false;
  }
  switch (formAfter(spec)) {
    case Form::None:
      break;
    case Form::Residual:
      set(n.last, Op::Add, {.in = {Role::Output, kResidual}, .out = {kY}});
      break;
    case Form::ResidualRelu:
      set(n.last, Op::AddRelu, {.in = {Role::Output, kResidual}, .out = {kY}});
      break;
    case Form::Gate:
      known &= set(n.last, gateOp(spec, false), {.in = {Role::Output, kGate}, .out = {kY}});
      break;
    case Form::Activation:
      known &= set(n.last, activationOp(spec, false), {.in = {Role::Output}, .out = {kY}});
      break;
    case Form::Modulate:
      set(n.last, Op::Modulate, {.in = {Role::Output}, .vectors = {kModScale, kModShift}, .out = {kY}});
      break;
    default:
      known = false;
  }
  return known ? std::optional(n) : std::nullopt;
}

std::optional<Neighbours> backward(const Spec& spec) {
  Neighbours n;
  bool known = true;
  switch (formAfter(spec)) {
    case Form::None:
    case Form::Residual:  // its gradient is dy
      break;
    case Form::ResidualRelu:
      set(n.keep, Op::Add, {.in = {Role::Output, kResidual}, .out = {Role::Kept}});
      set(n.first, Op::ReluGrad, {.in = {kDy, Role::Kept}, .out = {Role::Above}});
      break;
    case Form::Gate:
      known =
          set(n.first, gateOp(spec, true), {.in = {kDy, Role::Kept, kGate}, .out = {Role::Above, kDgate}});
      break;
    case Form::Activation:
      known = set(n.first, activationOp(spec, true), {.in = {kDy, Role::Kept}, .out = {Role::Above}});
      break;
    case Form::Modulate:
      set(n.first, Op::ModulateGrad,
          {.in = {kDy, Role::Kept},
           .vectors = {kModScale},
           .out = {Role::Above},
           .sums = {kDmodScale, kDmodShift}});
      break;
    default:
      known = false;
  }
  switch (formBefore(spec)) {
    case Form::None:
      break;
    case Form::Residual:
      if (spec.hasStream()) set(n.last, Op::Add, {.in = {Role::Below, kDresidualOut}, .out = {kDx}});
      break;
    case Form::Gate:
      known &= set(n.last, gateOp(spec, true), {.in = {Role::Below, kX, kGate}, .out = {kDx, kDgate}});
      break;
    case Form::GatedResidual:
      set(n.last, Op::GateAddGrad,
          {.in = {Role::Below, kDresidualOut, kX},
           .vectors = {kGate},
           .out = {kDresidual, kDx},
           .sums = {kDgate}});
      break;
    default:
      known = false;
  }
  return known ? std::optional(n) : std::nullopt;
}

}  // namespace

std::optional<Problem> bareOf(const Problem& problem) {
  auto spec = std::make_shared<Spec>(*problem.spec);
  spec->residual.reset();
  spec->gate.reset();
  spec->modulate.reset();
  spec->activation = Activation::None;
  if (*spec == *problem.spec) return std::nullopt;
  spec->name += "_bare";
  Problem bare = problem;
  bare.spec = std::move(spec);
  return bare;
}

std::optional<Neighbours> neighboursOf(const Spec& spec, bool isBackward) {
  return isBackward ? backward(spec) : forward(spec);
}

}  // namespace normc::bench::apart
