// normc_judge_random: random programs, judged by the gate. A count, not a test: the suite has the first
// seeds.
//
//   normc_judge_random FROM TO [STEP]
//   normc_judge_random show SEED [ISA]
//
// The programs of the seeds FROM, FROM + STEP, ... below TO: norms with any legal mix of clauses, two of nine
// with codes or pairs, in any type, layout and entry but those over ranks, with a random schedule, for the
// instruction sets of this machine. Several with other FROM and the same STEP can run side by side. Of a
// fault the smallest program that still has one is printed. The last line counts. `show` prints a program,
// that of another machine if the name of an instruction set follows.
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "tests/end_to_end/Smaller.h"

using namespace normc;

namespace {

Drawing drawingOf(uint64_t seed) {
  return seed % 9 == 7 ? Drawing::Quantized : seed % 9 == 8 ? Drawing::WithRope : Drawing::Plain;
}

/// Codes have no gradients; an eleventh of the others are those of an inference. The first two bits of a seed
/// choose the instruction set and whether rows are stored in turn, so no entry depends on them.
std::optional<Entry> entryOf(uint64_t seed) {
  if (drawingOf(seed) == Drawing::Quantized) return seed / 4 % 2 ? Entry::Infer : Entry::Forward;
  return seed % 11 == 3 ? std::optional(Entry::InferBackward) : std::nullopt;
}

int show(uint64_t seed, const char* given) {
  auto isa = codegen::cpu::findIsa(given ? given : seed % 2 ? hostIsa().name : "x86-64-v3");
  if (!isa) {
    std::fprintf(stderr, "normc_judge_random: %s\n", llvm::toString(isa.takeError()).c_str());
    return 2;
  }
  const Drawn d = draw(seed, *isa, entryOf(seed), drawingOf(seed));
  std::printf("%s, %lld features\n", textOf(d, *isa).c_str(), (long long)d.features);
  return 0;
}

}  // namespace

int main(int count, char** arguments) {
  if (count > 2 && std::string_view(arguments[1]) == "show")
    return show(std::strtoull(arguments[2], nullptr, 10), count > 3 ? arguments[3] : nullptr);
  if (count < 3) {
    std::fprintf(stderr,
                 "normc_judge_random: FROM and TO are missing; usage: normc_judge_random FROM TO [STEP]\n");
    return 2;
  }
  const uint64_t from = std::strtoull(arguments[1], nullptr, 10),
                 to = std::strtoull(arguments[2], nullptr, 10),
                 step = count > 3 ? std::max(std::strtoull(arguments[3], nullptr, 10), 1ull) : 1;
  const codegen::cpu::Isa host = hostIsa(), avx2 = llvm::cantFail(codegen::cpu::findIsa("x86-64-v3"));
  long long programs = 0, faults = 0;
  const auto say = [&](uint64_t seed) {
    std::printf("%lld programs up to seed %llu, %lld faults\n", programs, (unsigned long long)seed, faults);
    std::fflush(stdout);
  };
  for (uint64_t seed = from; seed < to; seed += step) {
    const codegen::cpu::Isa& isa = seed % 2 ? host : avx2;
    const Drawn d = draw(seed, isa, entryOf(seed), drawingOf(seed));
    ++programs;
    if (!faultOf(d, isa).empty()) {
      ++faults;
      const Drawn small = smallest(d, isa, [&](const Drawn& d) { return !faultOf(d, isa).empty(); });
      std::printf("seed %llu: %s\n%s, %lld features\n", (unsigned long long)seed, faultOf(small, isa).c_str(),
                  textOf(small, isa).c_str(), (long long)small.features);
    }
    if (programs % 1000 == 0) say(seed);
  }
  say(to);
  return faults != 0;
}
