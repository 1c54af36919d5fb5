#include "runtime/hosts/common/Registry.h"

#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <filesystem>
#include <iterator>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "runtime/hosts/common/Compiler.h"
#include "runtime/hosts/common/TypeNames.h"

namespace normc::hosts {
namespace {

namespace fs = std::filesystem;
using host::Context;
using host::Package;
using host::Plan;

Types typesOf(const Request& request) {
  Types types{.data = nameOf(request.data), .mask = request.mask};
  const std::string_view usual = types.data == "f64" ? "f64" : "f32";
  if (request.params.bits && nameOf(request.params) != usual) types.params = nameOf(request.params);
  return types;
}

/// An open package.
struct Opened {
  Package package;
  std::set<std::string> norms;
  std::set<std::pair<std::string, std::string>> entries;  ///< norm and entry of its kernels
  std::vector<bool> anyFeatures;                          ///< of its kernels

  Opened(const Context& context, const std::string& path) : package(context, path) {
    const auto manifest = nlohmann::json::parse(package.manifest());
    for (const auto& norm : manifest.at("norms")) norms.insert(norm.at("name"));
    for (const auto& kernel : manifest.at("kernels")) {
      const auto& norm = manifest.at("norms").at(kernel.at("norm").get<size_t>());
      entries.emplace(norm.at("name"), kernel.at("entry"));
      anyFeatures.push_back(kernel.at("features").is_null());
    }
  }
};

/// Throws unless the norm has a number of that name. All entries of a norm have the same numbers.
void requireNumber(const NormText& text, const Plan& plan, const std::string& name) {
  std::string known;
  for (const normc_number_info& number : plan.numbers()) {
    if (name == number.name) return;
    if (!number.threshold) known += (known.empty() ? "" : ", ") + std::string(number.name);
  }
  throw std::invalid_argument(text.name + " has no number " + name +
                              (known.empty() ? "" : "; it has " + known));
}

/// What stands for a request in a key.
uint64_t bitsOf(const Request& r) {
  const auto type = [](DLDataType t) { return uint64_t(t.code) << 8 | t.bits; };
  return uint64_t(r.entry) | uint64_t(r.mask) << 4 | uint64_t(r.channelsFirst) << 5 | type(r.data) << 8 |
         type(r.params) << 24 | uint64_t(r.device.device_type) << 40 | uint64_t(r.device.device_id) << 48;
}

/// The plans that a thread used last, by the hash of text and request: no lock is taken for these.
struct Recent {
  std::string text;
  uint64_t bits = 0;
  const Prepared* prepared = nullptr;
};
thread_local std::array<Recent, 64> recent;

}  // namespace

Entry entryNamed(std::string_view text) {
  const auto found = std::find(std::begin(kEntries), std::end(kEntries), text);
  if (found == std::end(kEntries))
    throw std::invalid_argument("no entry has the name '" + std::string(text) + "'");
  return Entry(found - std::begin(kEntries));
}

Prepared::Prepared(NormText t, Request r, Plan p) : text(std::move(t)), request(r), plan(std::move(p)) {
  state = plan.stateFields(text.features);
  saved = plan.savedFields(Plan::sizes(1, 1, text.features));
  for (const normc_field& field : state) {
    readsState |= (field.access & NORMC_FIELD_READ) != 0;
    writesState |= (field.access & NORMC_FIELD_WRITTEN) != 0;
  }
  for (const normc_number_info& number : plan.numbers())
    if (number.name == std::string_view("scale_offset")) neutralScale = 1 - number.value;
  const normc_sizes sizes = Plan::sizes(1, 1, text.features);
  host::check(normc_plan_partial_bytes(plan.get(), &sizes, &partialBytes));
  for (const normc_tensor_info& tensor : plan.tensors()) {
    const std::string_view is = tensor.name;
    if (is == "codes") codes = tensor.dtype;
    if (is == "scale") {
      scale = true;
      readsScale = tensor.use == NORMC_TENSOR_READ;
    }
    if (is == "bias") {
      bias = true;
      readsBias = tensor.use == NORMC_TENSOR_READ;
    }
    if (is == "y") y = true;
    if (is == "x") readsX = tensor.use == NORMC_TENSOR_READ;
    if (is == "dx") dx = true;
    if (is == "dscale") dscale = true;
    if (is == "dbias") dbias = true;
    const auto row = std::ranges::find(kAround, is, &AroundRow::name);
    if (row == kAround.end()) continue;
    Around& each = around.emplace_back(&*row, tensor.use, tensor.shape, tensor.same_as);
    each.dtype = tensor.dtype;
    if (tensor.block) each.blocks = text.features / tensor.block;
    if (each.shape == NORMC_TENSOR_PER_PAIR)
      each.pairs = tensor.pairs ? tensor.pairs : text.features / tensor.runs / 2;
  }
  std::ranges::sort(around, {}, &Around::row);
}

struct Registry::State {
  std::mutex mutex;
  std::optional<Context> context;
  normc_parallel_for parallelFor = nullptr;
  std::atomic<normc_log> log = nullptr;
  Compiler compiler;
  bool isOff = false;                                                    ///< `compiler` was set to none
  std::map<std::string, std::vector<std::unique_ptr<Opened>>> packages;  ///< by source
  std::map<std::string, std::string> norms;                              ///< files, by source
  std::map<std::pair<std::string, uint64_t>, std::unique_ptr<Prepared>, std::less<>> plans;
  /// Problems that the compiler was asked for, and why it failed; empty: it did not.
  std::map<std::string, std::string> compiled;
  std::vector<std::string> lines;  ///< for `log`

  /// Holds the lock. What was said meanwhile is told after its release, also on an exception: the log may
  /// wait for a thread that waits for the lock, or call this registry.
  class Locked {
   public:
    explicit Locked(State& state) : state_(state), lock_(state.mutex) {}
    Locked(const Locked&) = delete;
    ~Locked() {
      const std::vector<std::string> lines = std::exchange(state_.lines, {});
      lock_.unlock();
      const normc_log log = state_.log;
      for (const std::string& line : lines)
        if (log) log(nullptr, line.c_str());
    }

   private:
    State& state_;
    std::unique_lock<std::mutex> lock_;
  };
  bool builtIn = false;  ///< the packages beside the library are open

  /// Returns the context, which takes the threads of the host: so it is made at the first use, as the
  /// packages that are built in are opened then.
  Context& opened() {
    if (!context) {
      normc_context_options options = {};
      options.parallel_for = parallelFor;
      context.emplace(options);
    }
    return *context;
  }
  void say(std::string line) { lines.push_back(std::move(line)); }
  /// Opens what the compiler made; null if a file of the cache is damaged.
  std::unique_ptr<Opened> openedOf(const Compiler::Result& result) {
    try {
      auto made = std::make_unique<Opened>(opened(), result.package);
      if (result.seconds == 0) made->package.verify();  // opening it does not read the code
      return made;
    } catch (const host::Error& error) {
      if (result.seconds > 0 || error.status() != NORMC_DATA_LOSS) throw;
      return nullptr;
    }
  }
  void openBuiltIn();
  std::optional<Plan> find(const NormText&, const Request&, const std::string& problem, bool& exact,
                           std::string& why);
  /// Compiles a kernel for the problem, the first time. Returns why there is none; empty if there is one.
  std::string compileOnce(const NormText&, const std::string& problem);
  Plan make(const NormText&, const Request&);
};

Registry& Registry::get() {
  static Registry* const registry = new Registry;  // operators may run until the process ends
  return *registry;
}

Registry::Registry() : state_(*new State) {}

void Registry::State::openBuiltIn() {
  if (builtIn) return;
  Dl_info self;
  if (!dladdr(reinterpret_cast<void*>(&Registry::get), &self)) return;
  std::error_code none;
  const fs::path library = fs::canonical(self.dli_fname, none);
  std::vector<fs::path> files;
  for (const auto& file : fs::directory_iterator(library.parent_path().parent_path() / "packages", none))
    if (file.path().extension() == ".npk") files.push_back(file.path());
  std::sort(files.begin(), files.end());
  std::vector<std::unique_ptr<Opened>> all;  // of none if one cannot be opened: the next call tries again
  for (const fs::path& file : files) all.push_back(std::make_unique<Opened>(opened(), file));
  std::ranges::move(all, std::back_inserter(packages[""]));
  builtIn = true;
}

void Registry::addPackage(const std::string& source, const std::string& path) {
  const std::lock_guard lock(state_.mutex);
  auto& packages = state_.packages[source];
  packages.insert(packages.begin(), std::make_unique<Opened>(state_.opened(), path));
}

void Registry::addNorm(const std::string& source, const std::string& path) {
  const std::lock_guard lock(state_.mutex);
  state_.norms[source] = path;
  state_.compiled.clear();  // what was not compiled without it
}

void Registry::setCompiler(const std::string& program, const std::string& cache) {
  const std::lock_guard lock(state_.mutex);
  const bool path = program.find('/') != program.npos;  // a name is looked for in PATH
  state_.compiler = {path ? fs::absolute(program).string() : program, cache};
  state_.isOff = program.empty();
  state_.compiled.clear();  // what another one could not make
}

void Registry::setLog(normc_log log) { state_.log = log; }

void Registry::setThreads(normc_parallel_for parallelFor) {
  const std::lock_guard lock(state_.mutex);
  state_.parallelFor = parallelFor;
}

/// Returns the plan of the package whose kernel is for the number of features, or of the first that serves
/// it; `why` is the reason of one that does not, of one that has the entry if there is any.
std::optional<Plan> Registry::State::find(const NormText& text, const Request& request,
                                          const std::string& problem, bool& exact, std::string& why) {
  std::optional<Plan> found;
  exact = false;
  const std::string entry(kEntries[size_t(request.entry)]);
  bool entryExists = false;
  const auto all = packages.find(text.source);
  if (all == packages.end()) return found;
  normc_request options = {};
  options.device_type = request.device.device_type;
  options.device_id = request.device.device_id;
  for (const auto& opened : all->second) {
    if (!opened->norms.contains(text.name)) continue;
    try {
      Plan plan(opened->package, problem, options);
      std::vector<normc_number> numbers;
      for (const auto& [name, value] : text.numbers) {
        requireNumber(text, plan, name);
        numbers.push_back({name.c_str(), value});
      }
      options.numbers = numbers.data();
      options.number_count = numbers.size();
      if (!numbers.empty()) plan = Plan(opened->package, problem, options);
      options.numbers = nullptr;
      options.number_count = 0;
      exact = !opened->anyFeatures[plan.kernel()];
      if (!found || exact) found = std::move(plan);
      if (exact) break;
    } catch (const host::Error& error) {
      // A package without the entry says less than one whose kernels of it do not serve the request.
      if (!entryExists) why = error.what();
      entryExists |= opened->entries.contains({text.name, entry});
      if (error.status() != NORMC_NOT_FOUND && error.status() != NORMC_FAILED_PRECONDITION) throw;
    }
  }
  return found;
}

std::string Registry::State::compileOnce(const NormText& text, const std::string& problem) {
  const std::string key = text.source + problem;
  if (const auto before = compiled.find(key); before != compiled.end()) return before->second;
  const auto norm = norms.find(text.source);
  const std::string file = norm == norms.end() ? std::string() : norm->second;
  Compiler::Result result = compiler.compile(problem, file, text.source);
  std::unique_ptr<Opened> made = result.error.empty() ? openedOf(result) : nullptr;
  if (!made && result.error.empty()) {  // a damaged file of the cache
    fs::remove(result.package);
    result = compiler.compile(problem, file, text.source);
    if (result.error.empty()) made = std::make_unique<Opened>(opened(), result.package);
  }
  if (result.ran) compiled[key] = result.error;
  if (!made) {
    say("could not compile " + problem + ": " + result.error);
    return result.error;
  }
  auto& all = packages[text.source];
  all.insert(all.begin(), std::move(made));
  if (result.seconds > 0)
    say("compiled " + problem + " in " + std::to_string(int(result.seconds * 1000)) + " ms");
  return {};
}

Plan Registry::State::make(const NormText& text, const Request& request) {
  const std::string problem =
      text.problem(kEntries[size_t(request.entry)], typesOf(request), request.channelsFirst);
  bool exact;
  std::string why;
  std::optional<Plan> plan = find(text, request, problem, exact, why);
  const bool known = text.source.empty() || norms.contains(text.source);
  const bool compilable = known && request.device.device_type == kDLCPU;
  if (!exact && compilable) {
    if (!compiler.program.empty()) {
      if (const std::string failure = compileOnce(text, problem); !failure.empty())
        why = failure;
      else
        plan = find(text, request, problem, exact, why);
    } else if (plan && compiled.try_emplace(text.source + problem).second) {
      say(problem + " runs a kernel for any number of features; one for " + std::to_string(text.features) +
          " is compiled at first use where the package normc-compiler is installed");
    }
  }
  if (plan) return std::move(*plan);
  if (!known && !packages.contains(text.source))
    throw std::runtime_error("no kernel serves " + problem +
                             ": this process was not given the file of the norm, " + text.source +
                             "; add it before the call");
  throw std::runtime_error(
      "no kernel serves " + problem + (why.empty() ? "" : ": " + why) +
      (!compilable || !compiler.program.empty() ? ""
       : isOff
           ? "; compiling is off: normc.compiler(\"\") was called"
           : "; install normc-compiler (runtime/hosts/compiler of a clone), which compiles it at first use"));
}

const Prepared& Registry::prepared(std::string_view text, const Request& request) {
  const uint64_t bits = bitsOf(request);
  Recent& slot = recent[(std::hash<std::string_view>()(text) ^ bits ^ bits >> 29) % recent.size()];
  if (slot.prepared && slot.bits == bits && slot.text == text) return *slot.prepared;
  const State::Locked locked(state_);
  std::unique_ptr<Prepared>& plan = state_.plans[{std::string(text), bits}];  // stays null where this throws
  if (!plan) {
    state_.openBuiltIn();
    NormText parsed = NormText::parse(text);
    Plan made = state_.make(parsed, request);
    plan = std::make_unique<Prepared>(std::move(parsed), request, std::move(made));
  }
  slot = {std::string(text), bits, plan.get()};
  return *plan;
}

}  // namespace normc::hosts
