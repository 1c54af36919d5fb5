#include "bench/gpu/Trials.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <deque>
#include <mutex>
#include <numeric>
#include <set>
#include <thread>

namespace normc::gpu {
namespace {

constexpr size_t kFailuresKept = 3;
/// Elements of a trial that is not made smaller.
constexpr int64_t kElements = 1 << 17;
const char* const kPasses[] = {"first", "rest"};

/// The trials of one kernel in one pass.
struct Piece {
  size_t kernel;
  bool first;
};

/// A package may have several kernels of one problem, which differ in their schedules.
std::string keyOf(const Json& record) {
  std::string key;
  for (const char* part : {"problem", "isa", "schedule", "pass"}) key += record.value(part, "") + " ";
  return key;
}

/// The pieces of earlier runs: those that ended, began, or began alone.
struct History {
  std::set<std::string> ended, begun, begunAlone;

  explicit History(const std::vector<Json>& records) {
    for (const Json& record : records) {
      const std::string kind = record.value("kind", "");
      if (kind == "test") ended.insert(keyOf(record));
      if (kind == "begin") (record.value("alone", false) ? begunAlone : begun).insert(keyOf(record));
    }
  }
};

/// Features to try a kernel of any number with.
std::vector<int64_t> featureCounts(const Problem& problem) {
  if (problem.features) return {*problem.features};
  const int64_t multiple = problem.featuresMultiple();
  std::vector<int64_t> counts;
  for (const int64_t base : {7, 64, 100, 1000}) counts.push_back(package::commonMultiple({base, multiple}));
  return counts;
}

/// The results of the trials of a piece.
struct Tally {
  int64_t trials = 0, failed = 0;
  double worstRatio = 0;
  std::string worstOutput;
  std::vector<std::string> failures;  ///< the first one and the last two

  void fail(const std::string& why) {
    ++trials;
    ++failed;
    if (failures.size() == kFailuresKept) failures.erase(failures.begin() + 1);
    failures.push_back(why);
  }
  void add(const gate::Verdict& verdict) {
    if (!verdict.ok) return fail(verdict.text);
    ++trials;
    if (verdict.worstRatio > worstRatio) {
      worstRatio = verdict.worstRatio;
      worstOutput = verdict.worstOutput;
    }
  }
  void writeTo(Json& json) const {
    json["trials"] = trials;
    json["failed"] = failed;
    json["worst_ratio"] = worstRatio;
    json["worst_output"] = worstOutput;
    if (!failures.empty()) json["failures"] = failures;
  }
};

class Run {
 public:
  Run(const Kernels& kernels, const History& history, const TestOptions& options)
      : kernels_(kernels), history_(history), options_(options) {}

  TestEnd all() {
    std::deque<Piece> together, alone;
    for (const bool first : {true, false})
      for (size_t k = 0; k < kernels_.kernels().size(); ++k) {
        const Piece piece = {k, first};
        if (!options_.only.empty() && kernels_.kernels()[k].problem.find(options_.only) == std::string::npos)
          continue;
        if (!kernels_.kernels()[k].onCuda() || history_.ended.contains(keyOf(piece))) continue;
        if (history_.begunAlone.contains(keyOf(piece))) {
          blame(piece);
        } else {
          (history_.begun.contains(keyOf(piece)) ? alone : together).push_back(piece);
        }
      }
    work(alone, 1, true);
    if (end_ == TestEnd::Finished) work(together, std::max(1, options_.threads), false);
    return end_;
  }

 private:
  std::string keyOf(const Piece& piece) const { return gpu::keyOf(frameOf("", piece)); }
  Json frameOf(const char* kind, const Piece& piece) const {
    const package::Kernel& kernel = kernels_.kernels().at(piece.kernel);
    return {{"kind", kind},
            {"problem", kernel.problem},
            {"isa", kernel.isa},
            {"schedule", kernel.schedule},
            {"pass", kPasses[!piece.first]}};
  }
  void record(const Json& json) {
    const std::lock_guard lock(mutex_);
    options_.record(json);
  }
  void blame(const Piece& piece) {
    Json json = frameOf("test", piece);
    json["trials"] = 1;
    json["failed"] = 1;
    json["failures"] = {"tried alone, it lost the device or never ended"};
    record(json);
  }

  void work(std::deque<Piece>& pieces, int threads, bool alone) {
    std::vector<std::thread> workers;
    for (int i = 0; i < threads; ++i)
      workers.emplace_back([&] {
        try {
          const gate::CudaDevice device(kernels_.device(), options_.driver);
          while (const auto piece = next(pieces)) judge(device, *piece, alone);
        } catch (const std::exception& error) {
          record({{"kind", "note"}, {"text", error.what()}});
          end_ = TestEnd::DeviceLost;
        }
      });
    for (std::thread& worker : workers) worker.join();
  }

  std::optional<Piece> next(std::deque<Piece>& pieces) {
    const std::lock_guard lock(mutex_);
    if (end_ != TestEnd::Finished || pieces.empty()) return std::nullopt;
    if (options_.stop()) {
      end_ = TestEnd::Stopped;
      return std::nullopt;
    }
    const Piece piece = pieces.front();
    pieces.pop_front();
    return piece;
  }

  /// A loss of the device leaves the piece without its end, and ends the run.
  void judge(const gate::CudaDevice& device, const Piece& piece, bool alone) {
    Json json = frameOf("begin", piece);
    if (alone) json["alone"] = true;
    record(json);
    json = frameOf("test", piece);
    Tally tally;
    const auto start = std::chrono::steady_clock::now();
    try {
      const package::Kernel& kernel = kernels_.kernels().at(piece.kernel);
      const Problem problem = kernels_.problem(kernel.problem);
      if (const auto most = kernel.limits.rowsMax) {
        tryFewRows(device, problem, *most, piece, tally);
      } else if (const host::Plan plan = kernels_.planOfOneKernel(problem.text());
                 plan.kernel() == piece.kernel) {
        tryAll(device, problem, plan, piece.first, tally);
      }
      if (tally.trials == 0) json["skipped"] = "the runtime chooses another kernel here";
    } catch (const host::Error& error) {
      tally.fail(error.what());
    }
    if (tally.failed > 0 && !device.alive()) {
      record({{"kind", "note"}, {"text", tally.failures.back()}});
      end_ = TestEnd::DeviceLost;
      return;
    }
    tally.writeTo(json);
    json["seconds"] = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    record(json);
  }

  static void tryAll(const gate::CudaDevice& device, const Problem& problem, const host::Plan& plan,
                     bool first, Tally& tally) {
    for (const int64_t features : featureCounts(problem))
      for (const gate::Trial& trial : trialsOf(problem, features, first)) {
        tally.add(gate::judge(plan.get(), problem, trial, &device));
        if (tally.failed > 0 && !device.alive()) return;
      }
  }

  /// Tries a kernel that serves `most` rows with the part of each trial that fits, through a plan for as
  /// many.
  void tryFewRows(const gate::CudaDevice& device, const Problem& problem, int64_t most, const Piece& piece,
                  Tally& tally) const {
    for (const int64_t features : featureCounts(problem))
      for (gate::Trial& trial : trialsOf(problem, features, piece.first)) {
        trial.extents.rows =
            std::min(trial.extents.rows, most / std::max<int64_t>(trial.extents.segments, 1));
        const host::Plan plan = kernels_.plan(problem.text(trial.extents.segments, trial.extents.rows));
        if (plan.kernel() != piece.kernel) continue;
        tally.add(gate::judge(plan.get(), problem, trial, &device));
        if (tally.failed > 0 && !device.alive()) return;
      }
  }

  const Kernels& kernels_;
  const History& history_;
  const TestOptions& options_;
  std::mutex mutex_;
  std::atomic<TestEnd> end_ = TestEnd::Finished;
};

}  // namespace

std::vector<gate::Trial> trialsOf(const Problem& problem, int64_t features, bool first) {
  std::vector<gate::Trial> all = gate::standardTrials(problem, features), chosen;
  for (size_t i = 0; i < all.size(); ++i) {
    gate::Trial& trial = all[i];
    const bool plain = trial.data == HardInput::Normal && !trial.placement.inPlace &&
                       trial.placement.leaveOut.empty() && trial.placement.rowPadding == 0;
    const bool telling = plain && (i == 0 || trial.placement.misalign || trial.extents.rows == 1 ||
                                   trial.extents.rows == 129 || trial.step == 5);
    if (telling != first) continue;
    const int64_t fitting = std::max<int64_t>(3, kElements / (trial.extents.segments * features));
    trial.extents.rows = std::min(trial.extents.rows, fitting);
    chosen.push_back(std::move(trial));
  }
  return chosen;
}

TestEnd testPackage(const Kernels& kernels, const std::vector<Json>& before, const TestOptions& options) {
  const History history(before);
  return Run(kernels, history, options).all();
}

Json testSummary(const std::vector<Json>& records) {
  std::set<std::string> kernels, wrong;
  int64_t trials = 0, failed = 0, skipped = 0;
  double worst = 0;
  std::string worstKernel;
  Json failures = Json::array();
  for (const Json& record : records) {
    if (record.value("kind", "") != "test") continue;
    if (record.contains("skipped")) {
      ++skipped;
      continue;
    }
    std::string name = record.at("problem").get<std::string>() + " " + record.at("isa").get<std::string>();
    if (record.contains("schedule")) name += " " + record.at("schedule").get<std::string>();
    kernels.insert(name);
    trials += record.value("trials", int64_t(0));
    failed += record.value("failed", int64_t(0));
    if (record.value("failed", 0) > 0) wrong.insert(name);
    for (const Json& text : record.value("failures", Json::array())) failures.push_back(text);
    if (const double ratio = record.value("worst_ratio", 0.0); ratio > worst) {
      worst = ratio;
      worstKernel = name;
    }
  }
  return {{"kind", "tests"},      {"kernels", kernels.size()},   {"kernels_wrong", wrong.size()},
          {"trials", trials},     {"trials_failed", failed},     {"pieces_skipped", skipped},
          {"worst_ratio", worst}, {"worst_kernel", worstKernel}, {"failures", failures}};
}

}  // namespace normc::gpu
