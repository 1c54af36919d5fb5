// One step of training on ranks of unequal rows, of which the second has none, compared with one rank on all rows:
//
//   normc compile batch_norm power_norm_v --dtype f64 --features 64 -o waits.npk \
//       --entry forward_reduce,forward_apply,backward_reduce,backward_apply
//   normc compile power_norm --dtype f64 --features 64 --entry forward_reduce,backward_reduce,commit -o late.npk
//   mpirun -n 4 ranks waits.npk late.npk
#include <mpi.h>

#include <cmath>
#include <cstdio>
#include <normc/normc.hpp>

using namespace normc::host;
using Doubles = std::vector<double>;
constexpr int64_t kFeatures = 64;

// Returns y and dx of these rows, and psi2 or the running variance, after a step of all ranks of `comm`.
Doubles step(const Package& kernels, const std::string& norm, bool waits, Doubles x, Doubles dy, MPI_Comm comm) {
  const auto plan = [&](const char* entry) { return Plan(kernels, norm + ":" + entry + "@f64[*x64]"); };
  const Plan forward = plan("forward_reduce"), backward = plan("backward_reduce");
  const normc_sizes sizes = Plan::sizes(1, int64_t(x.size()) / kFeatures, kFeatures);
  const size_t head = forward.partialBytes() / 8, tail = backward.partialBytes() / 8;
  Doubles y(x.size()), dx(x.size()), scale(kFeatures, 1.5), bias(kFeatures, 0.5), gradient(kFeatures), all(head + tail);
  std::vector<char> saved(backward.savedBytes(sizes)), scratch;
  State state(forward);
  const auto rows = [&](Doubles& of) { return Tensor(of.data(), {sizes.rows, kFeatures}); };
  const auto run = [&](const Plan& part, Call call) {
    scratch.resize(part.workspaceBytes(sizes));
    call.workspace = scratch;
    part(call);
  };
  Call in, out, late;  // what a part takes beside the sums
  in.x = out.x = rows(x), out.y = rows(y), out.state = late.state = &state, out.saved = saved;
  out.scale = Tensor(scale.data(), {kFeatures}), out.bias = Tensor(bias.data(), {kFeatures});
  Call& first = waits ? in : out;
  first.partial = {all.data(), head * 8};
  run(forward, first);
  const auto exchange = [&](size_t from, size_t count) {
    MPI_Allreduce(MPI_IN_PLACE, all.data() + from, int(count), MPI_DOUBLE, MPI_SUM, comm);
  };
  if (waits) exchange(0, head), out.partials = {all.data(), head * 8}, run(plan("forward_apply"), out);
  Call back = in, apply;
  back.partial = {all.data() + head, tail * 8}, back.saved = saved, back.scale = out.scale, back.dy = rows(dy);
  apply = back, apply.dx = rows(dx), apply.state = &state;
  back.dscale = back.dbias = {};
  if (!waits) back.dx = apply.dx, back.state = &state;
  run(backward, back);
  if (waits) exchange(head, tail), apply.partial = {}, apply.partials = back.partial, run(plan("backward_apply"), apply);
  if (!waits) exchange(0, head + tail), late.partials = all, run(plan("commit"), late);  // one exchange a step
  y.insert(y.end(), dx.begin(), dx.end());
  Doubles moment(kFeatures);
  state.get(norm == "batch_norm" ? "running_var" : "psi2", moment);
  y.insert(y.end(), moment.begin(), moment.end());
  return y;
}
