// The C API of normc_tuner.h: checks arguments, calls OpenBundle, and converts its result to a status.
#include <dlfcn.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "autotune/measure/Policy.h"
#include "autotune/tune/Bundle.h"
#include "autotune/tune/Choose.h"
#include "autotune/tuner/normc_tuner.h"
#include "dsl/Library.h"
#include "dsl/Problem.h"
#include "runtime/api/Guard.h"
#include "runtime/api/Struct.h"
#include "runtime/normc.hpp"

using namespace normc;
using namespace normc::runtime;

struct normc_tuner {
  tune::BundleRun run;
  std::unique_ptr<tune::OpenBundle> bundle;
  std::vector<std::string> problems;  ///< distinct
  normc_tuner_progress progress = nullptr;
  void* progressCtx = nullptr;
  tune::Found found;  ///< result of the last call; owns the texts that the caller may hold

  // State of the current call.
  normc_tuner_status status = {};
  std::chrono::steady_clock::time_point begin;
  bool cancelled = false, running = false;

  double seconds() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  }
  bool stop() {
    status.seconds = seconds();
    return cancelled = cancelled || (progress && progress(progressCtx, &status) != 0);
  }
};

namespace {

/// Marks its tuner as running during its lifetime.
class Running {
 public:
  explicit Running(normc_tuner& tuner) : tuner_(tuner) { tuner_.running = true; }
  ~Running() { tuner_.running = false; }
  Running(const Running&) = delete;

 private:
  normc_tuner& tuner_;
};

/// Returns the folder of this library.
std::string ownFolder() {
  Dl_info info = {};
  if (dladdr(reinterpret_cast<const void*>(&normc_tuner_open), &info) == 0 || !info.dli_fname) return ".";
  const std::string path = info.dli_fname;
  const size_t slash = path.rfind('/');
  return slash == path.npos ? "." : path.substr(0, slash);
}

/// Returns the absolute path. The host may change its folder after it opened the tuner.
std::string absolute(const std::string& path) {
  return path.empty() ? path : std::filesystem::absolute(path).string();
}

normc_status findWorker(const char* given, std::string& worker) {
  const std::string folder = ownFolder();
  const std::vector<std::string> places =
      given ? std::vector<std::string>{given}
            : std::vector<std::string>{folder + "/normc-worker",
                                       folder + "/" NORMC_PROGRAMS_FROM_LIBRARIES "/normc-worker"};
  for (const std::string& place : places)
    if (access(place.c_str(), X_OK) == 0) {
      worker = absolute(place);
      return NORMC_OK;
    }
  if (given) return fail(NORMC_NOT_FOUND, "options.worker is ", given, ", which is no program");
  return fail(NORMC_NOT_FOUND, "kernels are measured by normc-worker, which is neither ", places[0].c_str(),
              " nor ", places[1].c_str(), "; name it by options.worker");
}

/// Calls `body`; converts exceptions of the tuner or the runtime to a status.
template <typename Body>
normc_status translated(Body&& body) {
  try {
    return body();
  } catch (const tune::BundleError& error) {
    const normc_status statuses[] = {NORMC_NOT_FOUND, NORMC_DATA_LOSS, NORMC_FAILED_PRECONDITION};
    return fail(statuses[error.kind], error.what());
  } catch (const host::Error& error) {
    return fail(error.status(), error.what());
  } catch (const std::runtime_error& error) {  // records cannot be written, or a worker cannot be started
    return fail(NORMC_FAILED_PRECONDITION, error.what());
  }
}

std::string joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : ", ") + word;
  return text;
}

/// A problem in the canonical text of the bundle.
struct Canonical {
  std::string text;
  bool segmented = true;
};

/// Converts a problem to canonical text. Only norms of the bundle are known; a problem with another norm is
/// unchanged.
normc_status canonical(const normc_tuner& tuner, const std::string& given, Canonical& result) {
  bool unknown = false;
  std::string damaged;  // the norm whose text is damaged
  const auto find = [&](std::string_view name) -> Result<std::shared_ptr<const Spec>> {
    for (const tune::Shipped& shipped : tuner.bundle->tasks()) {
      if (shipped.setting.task.problem.norm != name) continue;
      const auto norms = readNorms(shipped.setting.spec, "the norm of the bundle");
      if (norms && !norms->empty()) return norms->front();
      damaged = name;
      break;
    }
    unknown = damaged.empty();
    return Diagnostic{.message = "the bundle has no " + std::string(name)};
  };
  const auto problem = parseProblem(given, find);
  if (unknown) {
    result.text = given;
    return NORMC_OK;
  }
  if (problem) {
    result = {problem->text(), problem->segmented};
    return NORMC_OK;
  }
  if (!damaged.empty()) return fail(NORMC_DATA_LOSS, "the bundle's text of ", damaged.c_str(), " is damaged");
  return fail(NORMC_INVALID_ARGUMENT, "request.problem: ", problem.errors().at(0).message.c_str());
}

/// Returns the bundle's task for the nearest number of rows, with the sizes of the request.
normc_status taskOf(const normc_tuner& tuner, const normc_tuner_request& request, tune::Shipped& task) {
  Canonical wanted;
  NORMC_TRY(canonical(tuner, request.problem, wanted));
  const std::string& text = wanted.text;
  const tune::Shipped* nearest = nullptr;
  const auto away = [&](const tune::Shipped& s) { return tune::octaves(s.setting.task.rows, request.rows); };
  for (const tune::Shipped& shipped : tuner.bundle->tasks())
    if (shipped.setting.task.problem.text() == text && (!nearest || away(shipped) < away(*nearest)))
      nearest = &shipped;
  if (!nearest)
    return fail(NORMC_NOT_FOUND, "the bundle has no candidates for ", text.c_str(), "; it has ",
                joined(tuner.problems).c_str());
  if (request.segments > 1 && !wanted.segmented)
    return fail(NORMC_INVALID_ARGUMENT, "request.segments is ", request.segments, ": ", text.c_str(),
                " has two dimensions; set it to 0, and request.rows to all rows");
  task = *nearest;
  tune::Task& t = task.setting.task;
  t.rows = request.rows;
  t.segments = std::max<int64_t>(request.segments, 1);
  t.threads = request.threads;
  t.policy = request.policy ? request.policy : "warm";
  if (const std::string why = tune::whyTooLarge(t); !why.empty())
    return fail(NORMC_INVALID_ARGUMENT, "request.rows is ", request.rows, ": ", why.c_str());
  return NORMC_OK;
}

normc_status checked(const normc_tuner_request& r) {
  NORMC_TRY(notNull(r.problem, "request.problem"));
  if (r.rows < 1) return fail(NORMC_INVALID_ARGUMENT, "request.rows is ", r.rows, "; it must be 1 or more");
  if (r.segments < 0)
    return fail(NORMC_INVALID_ARGUMENT, "request.segments is ", r.segments, "; it must not be negative");
  if (r.threads < 0 || r.threads > tune::kMostThreads)
    return fail(NORMC_INVALID_ARGUMENT, "request.threads is ", r.threads, "; it must be from 0 to ",
                tune::kMostThreads);
  if (!(r.budget_seconds >= 0) || std::isinf(r.budget_seconds))
    return fail(NORMC_INVALID_ARGUMENT, "request.budget_seconds is ", r.budget_seconds,
                "; it must be a number of seconds, or 0 for ", tune::kUsualBudget);
  if (r.policy && !measure::findPolicy(r.policy))
    return fail(NORMC_INVALID_ARGUMENT, "request.policy is ", r.policy, "; it must be ",
                measure::policyNames().c_str());
  if (r.fresh != 0 && r.fresh != 1)
    return fail(NORMC_INVALID_ARGUMENT, "request.fresh is ", r.fresh, "; it must be 0 or 1");
  if (r.reserved) return fail(NORMC_INVALID_ARGUMENT, "request.reserved is ", r.reserved, "; it must be 0");
  return NORMC_OK;
}

normc_status ended(normc_tuner& tuner, const tune::Found& found, normc_tuner_result* result) {
  if (!found.failure.empty())
    return fail(NORMC_FAILED_PRECONDITION, "the default of ", found.task.text().c_str(),
                " could not be measured here: ", found.failure.c_str());
  if (!found.complete)
    return fail(NORMC_ABORTED, "progress ended the call after ", std::round(10 * tuner.seconds()) / 10,
                " s and ", found.candidates, " candidates; what was measured is in ",
                tuner.run.records.c_str());
  const tune::Conclusion& c = found.conclusion;
  const normc_tuner_result value = {.struct_size = sizeof value,
                                    .package = tuner.found.package.c_str(),
                                    .schedule = tuner.found.schedule.c_str(),
                                    .ratio = c.ratio,
                                    .low = c.low,
                                    .high = c.high,
                                    .default_seconds = found.defaultSeconds,
                                    .candidates = int64_t(found.candidates),
                                    .rejected = int64_t(found.rejected),
                                    .won = c.verdict != tune::Verdict::Tie,
                                    .from_records = found.remembered};
  return writeStruct(value, result, "normc_tuner_result");
}

}  // namespace

extern "C" {

const char* normc_tuner_last_error(void) { return lastError(); }

normc_status normc_tuner_open(const char* folder, const normc_tuner_options* options, normc_tuner** tuner) {
  return guarded([&] {
    NORMC_TRY(notNull(folder, "bundle", tuner, "tuner"));
    normc_tuner_options read = {};
    if (options) NORMC_TRY(readStruct(options, read, "normc_tuner_options", sizeof(size_t)));
    return translated([&] {
      auto made = std::make_unique<normc_tuner>();
      tune::BundleRun& run = made->run;
      run.folder = absolute(folder);
      run.records = read.records ? absolute(read.records) : run.folder + "/" + tune::kResultsFile;
      if (read.cuda_library) run.cudaLibrary = read.cuda_library;
      if (run.cudaLibrary.find('/') != run.cudaLibrary.npos) run.cudaLibrary = absolute(run.cudaLibrary);
      NORMC_TRY(findWorker(read.worker, run.worker));
      made->progress = read.progress;
      made->progressCtx = read.progress_ctx;
      run.stop = [self = made.get()] { return self->stop(); };
      run.progress = [self = made.get()](const tune::SearchOptions::Progress& p) {
        self->status.phase = p.phase;
        self->status.ratio = p.ratio;
        self->status.done = int64_t(p.done);
        self->status.candidates = int64_t(p.total);
      };
      made->bundle = std::make_unique<tune::OpenBundle>(run);
      for (const tune::Shipped& shipped : made->bundle->tasks())
        if (const std::string text = shipped.setting.task.problem.text();
            std::ranges::count(made->problems, text) == 0)
          made->problems.push_back(text);
      *tuner = made.release();
      return NORMC_OK;
    });
  });
}

void normc_tuner_destroy(normc_tuner* tuner) { delete tuner; }

normc_status normc_tuner_problem(const normc_tuner* tuner, size_t index, const char** problem) {
  return guarded([&] {
    NORMC_TRY(notNull(tuner, "tuner", problem, "problem"));
    if (index >= tuner->problems.size())
      return fail(NORMC_OUT_OF_RANGE, "problem ", index, " is past the end; the bundle has ",
                  tuner->problems.size());
    *problem = tuner->problems[index].c_str();
    return NORMC_OK;
  });
}

normc_status normc_tuner_run(normc_tuner* tuner, const normc_tuner_request* given,
                             normc_tuner_result* result) {
  return guarded([&] {
    NORMC_TRY(notNull(tuner, "tuner", given, "request", result, "result"));
    if (tuner->running)
      return fail(NORMC_FAILED_PRECONDITION,
                  "this tuner runs already; its progress may end that call, and must not begin another");
    normc_tuner_request request;
    NORMC_TRY(readStruct(given, request, "normc_tuner_request", 2 * sizeof(size_t)));
    NORMC_TRY(checkStruct(result, "normc_tuner_result"));
    NORMC_TRY(checked(request));
    return translated([&] {
      tune::Shipped task;
      NORMC_TRY(taskOf(*tuner, request, task));
      const double budget = request.budget_seconds > 0 ? request.budget_seconds : tune::kUsualBudget;
      tuner->run.fresh = request.fresh != 0;
      tuner->run.deviceIndex = request.device_id;
      tuner->cancelled = false;
      tuner->begin = std::chrono::steady_clock::now();
      const std::string problem = task.setting.task.problem.text();
      tuner->status = {.struct_size = sizeof tuner->status,
                       .problem = problem.c_str(),
                       .phase = "starting",
                       .budget_seconds = budget,
                       .ratio = 1};
      const Running running(*tuner);
      tuner->found = tuner->bundle->tune(task, budget);
      return ended(*tuner, tuner->found, result);
    });
  });
}

}  // extern "C"
