// One call of a norm by an operator of torch: finds the plan, gives it the tensors, makes those that it
// writes.
#pragma once

#include <forward_list>
#include <optional>

#include "runtime/hosts/torch/Tensors.h"

namespace normc::hosts {

using Optional = const std::optional<Tensor>&;
using List = const std::vector<Tensor>&;
// No state is None: packages of AOTInductor give None for an empty list too.
using OptionalList = const std::optional<std::vector<Tensor>>&;

class Call {
 public:
  /// Throws if the shapes or types of the tensors do not fit the norm.
  Call(Entry, const Tensor& x, Optional scale, Optional bias, Optional mask, const std::string& norm);

  const Prepared& plan() const { return *plan_; }

  /// Gives dy.
  void gradient(const Tensor& dy);
  void saved(List saved);
  /// Gives the state. A plan that does not read it also takes none.
  void stateIn(OptionalList state);
  /// Gives the tensors around the norm that the plan reads, in the order of kAround. The last may be left out
  /// if the plan allows it.
  void around(List tensors);
  /// Gives the sums of one rank or of several: the elements of one partial, or rows of them.
  void partials(const Tensor& partials);

  // Each adds outputs of the call to `out`, if the plan has them.
  void outputTo(std::vector<Tensor>& out);
  void savedTo(std::vector<Tensor>& out);
  void stateTo(std::vector<Tensor>& out);
  void partialTo(std::vector<Tensor>& out);
  /// Adds the wanted ones of dx, dscale, dbias. `scale` and `bias` give the shapes of theirs.
  void gradientsTo(std::vector<Tensor>& out, Optional scale, Optional bias, bool dx, bool dscale, bool dbias);
  /// Adds the tensors around the norm that the plan writes, in the order of kAround; of those that may be
  /// left out the ones whose bit is set in `wanted`, the first having bit 0.
  void aroundTo(std::vector<Tensor>& out, int64_t wanted = 0);

  /// Executes. Throws what the runtime says.
  void run();

 private:
  using Fields = std::array<const DLTensor*, NORMC_MAX_FIELDS>;

  const NormText& text() const { return plan_->text; }
  View& view() { return used_ < views_.size() ? views_[used_++] : more_.emplace_front(); }
  const Tensor& held(Tensor tensor) { return held_.emplace_back(std::move(tensor)); }
  const DLTensor* elements(const Tensor& tensor) { return view().elements(tensor, axes_); }
  const DLTensor* beside(const Around&, const Tensor& given);
  const DLTensor* parameter(Optional given, double otherwise);
  Tensor parameterGradient(Optional like, const DLTensor*& to);
  void give(List tensors, size_t wanted, const char* what, const DLTensor* const*& to, Fields&);
  void fields(const std::vector<normc_field>&, std::vector<Tensor>& out, const DLTensor* const*& to, Fields&);

  Tensor x_;
  DLDevice device_;
  Axes axes_;
  const Prepared* plan_;
  DLDataType scaleType_;
  normc_args args_ = {};
  std::array<View, 24> views_;  // most calls need no more
  size_t used_ = 0;
  std::forward_list<View> more_;
  std::vector<Tensor> held_;
  Fields stateFields_[2], savedFields_;
};

/// Executes `commit`: the state after a step, from the sums of its ranks.
std::vector<Tensor> committed(const Tensor& partials, List state, const std::string& norm);

}  // namespace normc::hosts
