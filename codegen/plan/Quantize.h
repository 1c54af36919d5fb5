// The sweep that writes the output of a norm: y, or the codes that stand for it and the scales of these.
#pragma once

#include "codegen/plan/Element.h"

namespace normc::codegen {

/// True if the scale of a code depends on elements beside it, so that a slab needs whole rows.
bool scalesRows(const Spec&);

/// Adds the sweep, and before it what the scale of codes needs. `others` has what the sweep writes and sums
/// beside the output, whose values `element` appends. Returns the sums.
Nums sweepOutput(KernelBuilder&, Parts&, KernelBuilder::Sweep others,
                 llvm::function_ref<void(Element&, Nums&)> element);

}  // namespace normc::codegen
