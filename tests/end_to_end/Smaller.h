// The smallest program that still has a fault, for reports of random programs.
#pragma once

#include <functional>

#include "tests/end_to_end/Drawn.h"

namespace normc {

/// Returns a program that `fails` where no single simplification of it does: a clause left out or set to its
/// default, an option of the problem left out, fewer features, a knob of the schedule at its least.
/// `fails` is asked about legal programs alone, and has to be true of `d`.
Drawn smallest(Drawn d, const codegen::cpu::Isa&, const std::function<bool(const Drawn&)>& fails);

}  // namespace normc
