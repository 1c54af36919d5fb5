// normc-quickstart: five normalizations from text to trained steps, on real input, with every number checked.
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <sstream>
#include <stdexcept>

#include "autotune/measure/Copy.h"
#include "autotune/measure/Machine.h"
#include "autotune/measure/Neighbours.h"
#include "bench/cpu/Compile.h"
#include "bench/kit/TrainingCall.h"
#include "bench/quickstart/Text.h"
#include "bench/quickstart/Training.h"
#include "dsl/Library.h"

namespace normc::quickstart {
namespace {

constexpr int64_t kFeatures = 768, kSteps = 8, kBatch = 256;
const char* const kNorms[] = {"batch_norm", "power_norm_v", "power_norm", "power_norm_released",
                              "layer_norm"};
const char* const kTexts[] = {"/usr/share/common-licenses/GPL-3", "/usr/share/common-licenses/GPL-2",
                              "/usr/share/common-licenses/Apache-2.0"};

std::string contents(const std::string& file) {
  std::ifstream stream(file);
  std::ostringstream text;
  text << stream.rdbuf();
  return stream ? text.str() : std::string();
}

/// The text of the file that is named, or of the first licence that is there.
std::string findText(int argc, char** argv, std::string& file) {
  if (argc > 2) throw std::runtime_error("takes at most one argument: a text file");
  for (const char* candidate : kTexts)
    if (argc < 2 && file.empty() && !contents(candidate).empty()) file = candidate;
  if (argc == 2) file = argv[1];
  if (file.empty())
    throw std::runtime_error("found none of Debian's licence texts; name a text file: normc-quickstart FILE");
  const std::string text = contents(file);
  if (text.empty()) throw std::runtime_error("cannot read " + file + ", or it is empty");
  return text;
}

Problem problemOf(const std::string& norm, Entry entry) {
  Problem problem;
  problem.spec = *findNorm(norm);
  problem.entry = entry;
  problem.features = kFeatures;
  for (const std::string& binding : bindingNames(*problem.spec))
    problem.bindings[binding] = 12;  // heads of 64 features
  return problem;
}

struct Line {
  Problem forward, backward;
  Training training;
  bench::Traffic forwardTraffic, backwardTraffic;
};

std::vector<Line> lines() {
  std::vector<Line> result;
  for (const char* norm : kNorms)
    result.push_back({problemOf(norm, Entry::Forward), problemOf(norm, Entry::Backward), {}, {}, {}});
  return result;
}

bench::Kernels compileAll(const std::vector<Line>& all) {
  std::vector<Problem> problems;
  for (const Line& line : all) {
    problems.push_back(line.forward);
    problems.push_back(line.backward);
  }
  return bench::compile(problems);
}

bool trainAll(std::vector<Line>& all, const bench::Kernels& kernels, const Batches& batches) {
  bool ok = true;
  std::printf("%-20s %-40s %s\n", "", "largest error (share of what is allowed)", "loss");
  std::printf("%-20s %-20s %-19s %s\n", "norm", "forward", "backward", "first step to last");
  for (Line& line : all) {
    const Training t = line.training = train(kernels, line.forward, batches);
    if (!t.failure.empty()) {
      std::printf("%-20s WRONG: %s\n", line.forward.spec->name.c_str(), t.failure.c_str());
      ok = false;
      continue;
    }
    std::printf("%-20s %.1e (%3.0f %%)      %.1e (%3.0f %%)      %.1f to %.1f\n",
                line.forward.spec->name.c_str(), t.forward.relative, 100 * t.forward.allowed,
                t.backward.relative, 100 * t.backward.allowed, t.firstLoss, t.lastLoss);
  }
  return ok;
}

/// Races the kernels of one direction with copies of their traffic, on all tokens at once.
void timeAll(std::vector<Line>& all, const bench::Kernels& kernels, const std::vector<float>& rows,
             Entry entry, int threads) {
  bench::Tensors tensors(DType::F32, {.rows = int64_t(rows.size()) / kFeatures, .features = kFeatures},
                         entry == Entry::Backward);
  bench::store(rows, DType::F32, tensors[kX]);
  if (entry == Entry::Backward) {  // the gradient that says: be the next token
    std::vector<float> dy(rows.size());
    for (size_t i = 0; i + kFeatures < rows.size(); ++i) dy[i] = rows[i] - rows[i + kFeatures];
    bench::store(dy, DType::F32, tensors[kDy]);
  }

  std::vector<std::unique_ptr<bench::Contestant>> contestants;
  std::vector<bench::Traffic> traffic;
  for (Line& line : all) {
    auto ours = std::make_unique<bench::TrainingCall>(
        kernels, entry == Entry::Forward ? line.forward : line.backward, tensors, threads);
    traffic.push_back(kernels.traffic(ours->plan().kernel()));
    (entry == Entry::Forward ? line.forwardTraffic : line.backwardTraffic) = traffic.back();
    contestants.push_back(std::move(ours));
    for (bench::Stores stores : {bench::Stores::Cached, bench::Stores::Streaming})
      contestants.push_back(bench::makeCopy(tensors.inputs(), tensors.outputs(), tensors.bytes(),
                                            traffic.back(), stores, threads));
  }
  std::vector<bench::Contestant*> list;
  for (const auto& contestant : contestants) list.push_back(contestant.get());
  const auto samples = bench::race(list, {.seconds = 1.5});

  std::printf("\n%-20s %-18s %8s %8s   %s\n", name(entry).data(), "X-sized transfers", "GB/s", "of copy",
              "(copies: GB/s cached, streaming)");
  for (size_t i = 0; i < all.size(); ++i) {
    const double bytes = double(traffic[i].total()) * double(tensors.bytes());
    const auto rate = [&](size_t j) { return bytes / bench::median(samples[j]) * 1e-9; };
    const double ours = rate(3 * i), cached = rate(3 * i + 1), streaming = rate(3 * i + 2);
    std::printf("%-20s %d: %d read, %d written %6.1f %7.0f %%   (%.1f, %.1f)\n",
                all[i].forward.spec->name.c_str(), traffic[i].total(), traffic[i].reads, traffic[i].writes,
                ours, 100 * ours / std::max(cached, streaming), cached, streaming);
  }
}

/// Prints what the figures say.
void conclude(const std::vector<Line>& all, bool ok, double busyCores) {
  const auto of = [&](const char* norm) -> const Line& {
    return *std::find_if(all.begin(), all.end(),
                         [norm](const Line& l) { return l.forward.spec->name == norm; });
  };
  double worst = 0;
  bool fell = true;
  for (const auto& [forward, backward, training, forwardTraffic, backwardTraffic] : all) {
    worst = std::max({worst, training.forward.relative, training.backward.relative});
    fell &= training.lastLoss < training.firstLoss;
  }
  std::printf("\nWhat was shown\n");
  if (ok)
    std::printf(
        "  Right: every output of %d steps, state and saved statistics included, agrees with the reference "
        "in\n"
        "  double precision; the largest relative error is %.1e.%s\n",
        int(kSteps), worst, fell ? " The gradients are of use: all losses fell." : "");
  else
    std::printf("  Wrong: an output lies outside its tolerance; see above.\n");
  const Line &power = of("power_norm"), &layer = of("layer_norm"), &batch = of("batch_norm");
  std::printf(
      "  Lean: PowerNorm moves %d tensors forward and %d backward, LayerNorm %d and %d, BatchNorm %d and %d: "
      "it knows its\n"
      "  divisor before it reads the batch. Transfers are counted by the compiler in the code it made.\n",
      power.forwardTraffic.total(), power.backwardTraffic.total(), layer.forwardTraffic.total(),
      layer.backwardTraffic.total(), batch.forwardTraffic.total(), batch.backwardTraffic.total());
  std::printf(
      "  Fast: that is for you to judge; speeds were taken in turns with copies of the same reads and "
      "writes.\n");
  if (busyCores > 0.1)
    std::printf("  Other programs kept %.1f cores busy meanwhile, so the speeds of this run say little.\n",
                busyCores);
}

int run(int argc, char** argv) {
  if (argc > 2 || (argc == 2 && argv[1][0] == '-')) {
    std::fputs("normc-quickstart [FILE]: compiles five normalizations, trains and times each on a text\n",
               stderr);
    return 2;
  }
  std::string file;
  const auto tokens = tokensOf(findText(argc, argv, file));
  if (int64_t(tokens.size()) < kSteps * kBatch + 1)
    throw std::runtime_error(file + " has " + std::to_string(tokens.size()) + " words; " +
                             std::to_string(kSteps * kBatch + 1) + " are needed");
  const bench::Machine machine = bench::thisMachine();
  std::printf("%s\n%s: %zu tokens become rows of %d features\n\n", machine.text().c_str(), file.c_str(),
              tokens.size(), int(kFeatures));
  const std::vector<float> rows = activationsOf(tokens, kFeatures);

  std::vector<Line> all = lines();
  std::optional<bench::Kernels> compiled;
  const double seconds = bench::timed(1, [&] { compiled.emplace(compileAll(all)); });
  const bench::Kernels& kernels = *compiled;
  std::printf("1. Compiled %zu normalizations, forward and backward, for %s in %.1f s. One of the texts:\n\n",
              all.size(), normc_cpu_isa(), seconds);
  for (const BuiltinNorm& norm : builtinNorms())
    if (norm.name == "power_norm") std::printf("%s\n", norm.text.c_str());

  std::printf("2. Trained each for %d steps of %d tokens, every output compared with the reference:\n\n",
              int(kSteps), int(kBatch));
  const bool ok = trainAll(all, kernels, {rows, kFeatures, kBatch, kSteps});

  std::printf("\n3. Timed on all %zu tokens at once (%s a tensor), %d threads:\n", tokens.size(),
              bench::bytesText(int64_t(rows.size()) * 4).c_str(), machine.processors);
  const bench::Neighbours neighbours;
  for (Entry entry : {Entry::Forward, Entry::Backward})
    timeAll(all, kernels, rows, entry, machine.processors);
  conclude(all, ok, neighbours.busyCores());
  return ok ? 0 : 1;
}

}  // namespace
}  // namespace normc::quickstart

int main(int argc, char** argv) {
  try {
    return normc::quickstart::run(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "normc-quickstart: %s\n", error.what());
    return 1;
  }
}
