// Which loops stand in for the clauses around a norm, where the norm runs apart from them.
#pragma once

#include <optional>
#include <string>

#include "autotune/measure/Tensors.h"
#include "bench/cpu/apart/Loops.h"
#include "dsl/Problem.h"

namespace normc::bench::apart {

/// Returns the same problem of the norm without what surrounds it; empty where nothing does.
std::optional<Problem> bareOf(const Problem&);

/// A role that memory has in the calls of a norm and its neighbours.
enum class Role : uint8_t {
  None,
  Input,   ///< x of the norm: x, or the sum in front of it
  Output,  ///< y of the norm
  Kept,    ///< what backward reads of the output of the norm, or of the input of an activation
  Above,   ///< dy of the norm
  Below,   ///< dx of the norm
};

/// An argument of a loop: a tensor of the call, or memory by its role.
struct Operand {
  std::optional<Tensor> tensor = {};
  Role role = Role::None;
  Operand() = default;
  Operand(Tensor t) : tensor(t) {}
  Operand(Role r) : role(r) {}
  bool any() const { return tensor || role != Role::None; }
};

/// One loop, not bound to memory.
struct Neighbour {
  Op op;
  Operand in[3], vectors[2], out[2], sums[2];
};

struct Neighbours {
  std::optional<Neighbour> first, last;  ///< before and after the call of the norm
  std::optional<Neighbour> keep;         ///< makes Kept from Output, once; absent: they are the same
};

/// Returns the loops of a forward, or of a backward; empty where there are none for such clauses.
std::optional<Neighbours> neighboursOf(const Spec&, bool backward);

}  // namespace normc::bench::apart
