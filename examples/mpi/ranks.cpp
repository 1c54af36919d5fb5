// One step of three norms on four ranks of unequal rows, the second without any, compared with one rank.
// The package, in the words of bash, and the run:
//
//   normc compile {batch_norm,power_norm_v}:{forward,backward}_{reduce,apply}'@f64[*x64]' \
//     power_norm:{forward_reduce,backward_reduce,commit}'@f64[*x64]' -o ranks.npk
//   mpirun -n 4 normc_example_mpi ranks.npk
#include <mpi.h>

#include <cmath>
#include <cstdio>
#include <normc/normc.hpp>
using namespace normc::host;
using Doubles = std::vector<double>;
constexpr int d = 64, kRows = 17, kFirst[] = {0, 5, 5, 14, kRows};  // the first row of each rank

// Returns y, dx and the running moment after a step: these rows, with the other rows of `comm`.
Doubles step(const Package& package, const std::string& norm, int first, int rows, MPI_Comm comm) {
  const auto plan = [&](const char* entry) { return Plan(package, norm + ":" + entry + "@f64[*x64]"); };
  const Plan forward = plan("forward_reduce"), backward = plan("backward_reduce");
  Doubles x(kRows * d), all(2 * kRows * d + d), dy(x), scale(d, 1.5), bias(d, 0.5);
  for (int i = 0; i < kRows * d; ++i) x[i] = 3 + std::sin(i * 1.7), dy[i] = std::cos(i * 2.3);
  Doubles sums((forward.partialBytes() + backward.partialBytes()) / 8);  // of the forward, then the backward
  Buffer ahead(sums.data(), forward.partialBytes()), back(&sums[ahead.bytes / 8], backward.partialBytes());
  std::vector<char> saved(backward.savedBytes(Plan::sizes(1, rows, d))), workspace(1 << 20);
  State state(forward);
  const auto run = [&](const Plan& entry, Call call) { call.workspace = workspace, entry(call); };
  const auto summed = [&](Buffer part) {  // over the ranks, in place
    MPI_Allreduce(MPI_IN_PLACE, part.data, int(part.bytes / 8), MPI_DOUBLE, MPI_SUM, comm);
    return part;
  };
  const auto at = [&](Doubles& of, int row) { return Tensor(&of[row * d], {rows, d}); };
  const Tensor a(scale.data(), {d}), b(bias.data(), {d});
  Call in, y, dx, reduced;
  in.x = y.x = dx.x = at(x, first), y.y = at(all, first), dx.dy = at(dy, first),
  dx.dx = at(all, kRows + first);
  y.scale = dx.scale = a, y.bias = b, y.saved = dx.saved = saved, y.state = dx.state = &state, reduced = dx;
  const bool waits = norm != "power_norm";  // y and dx wait for sums; else one exchange a step, at any time
  if (waits) reduced.dx = {}, reduced.state = nullptr;
  (waits ? in : y).partial = ahead, reduced.partial = back;
  run(forward, waits ? in : y);
  if (waits) y.partials = summed(ahead), run(plan("forward_apply"), y);
  run(backward, reduced);
  if (waits) dx.partials = summed(back), run(plan("backward_apply"), dx);
  if (!waits) run(plan("commit"), {.state = &state, .partials = summed(sums)});
  state.read(waits && norm == "batch_norm" ? "running_var" : "psi2", &all[2 * kRows * d], d);
  return all;
}

int compareRanks(const char* file, int rank) {
  const Package package(Context(), file);
  double worst = 0;
  for (const char* norm : {"batch_norm", "power_norm_v", "power_norm"}) {
    const int first = kFirst[rank], rows = kFirst[rank + 1] - first;
    const Doubles one = step(package, norm, 0, kRows, MPI_COMM_SELF),
                  own = step(package, norm, first, rows, MPI_COMM_WORLD);
    for (const auto& [begin, size] : {std::pair{first, rows}, {kRows + first, rows}, {2 * kRows, 1}})
      for (int i = begin * d; i < (begin + size) * d; ++i) worst = std::max(worst, std::abs(own[i] - one[i]));
  }
  MPI_Allreduce(MPI_IN_PLACE, &worst, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  if (rank == 0) std::printf("four ranks and one differ by %g\n", worst);
  return !(worst < 1e-12);
}

int main(int argc, char** argv) try {
  int rank, ranks;
  MPI_Init(&argc, &argv), MPI_Comm_rank(MPI_COMM_WORLD, &rank), MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  const bool fits = argc == 2 && ranks == 4;
  if (!fits && rank == 0) std::fprintf(stderr, "usage: mpirun -n 4 %s PACKAGE\n", argv[0]);
  const int result = fits ? compareRanks(argv[1], rank) : 2;
  return MPI_Finalize() || result;
} catch (const Error& error) {
  std::fprintf(stderr, "%s\n", error.what());
  MPI_Abort(MPI_COMM_WORLD, 1);
}
