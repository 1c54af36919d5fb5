#include "bench/cpu/Options.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <set>

#include "bench/cpu/AroundNorms.h"
#include "bench/cpu/Table.h"
#include "codegen/Target.h"

namespace normc::bench {
namespace {

const char kFooter[] =
    "Every race runs our kernels, oneDNN and PyTorch where they are, and plain copies with the reads and\n"
    "writes of our kernels, on tensors of the same shape, in turns; of a norm with clauses around it also\n"
    "the bare norm and elementwise loops apart from it. A ratio is the median of paired samples; the\n"
    "brackets hold 95 % of its bootstrap. Below 1 our kernel is the faster one.\n"
    "Example: normc-bench --norms layer_norm --features 768,1024 --rows 128,memory --threads 1";

/// CLI11 repeats a value for each comma itself; this turns one word into one value, or explains.
template <typename T>
T oneWord(const std::string& word, const std::map<std::string, T>& known, const std::string& otherwise) {
  if (const auto at = known.find(word); at != known.end()) return at->second;
  std::string list;
  for (const auto& [name, value] : known) list += (list.empty() ? "" : ", ") + name;
  throw CLI::ValidationError("'" + word + "' is none of " + list + otherwise);
}

/// Why `name` is no instruction set of a processor; empty if it is one.
std::string whyNoProcessor(const std::string& name) {
  auto target = codegen::findTarget(name);
  if (!target) return llvm::toString(target.takeError());
  return (*target)->device() == "cpu" ? "" : name + " is no processor's; normc-gpu measures those";
}

int64_t positive(const std::string& word, const std::string& what) {
  int64_t value = 0;
  if (!CLI::detail::lexical_cast(word, value) || value < 1 || value > int64_t(1) << 40)
    throw CLI::ValidationError("'" + word + "' is no number of " + what + "; give one from 1");
  return value;
}

Rows rowsOf(const std::string& word) {
  if (word == "cache") return {Rows::Cache};
  if (word == "memory") return {Rows::Memory};
  return {Rows::Given, positive(word, "rows, and neither cache nor memory")};
}

/// An option with values between commas, each read by `read`.
template <typename T, typename Read>
void listOption(CLI::App& app, const std::string& name, std::vector<T>& values, const std::string& help,
                Read read) {
  const auto parse = [&values, read](const std::vector<std::string>& words) {
    values.clear();
    for (const std::string& word : words) values.push_back(read(word));
    return true;
  };
  app.add_option(name, CLI::callback_t(parse), help)->delimiter(',')->type_name("LIST")->expected(1, -1);
}

}  // namespace

int64_t Rows::of(int64_t features, DType type, const Machine& machine) const {
  const int64_t row = features * bytes(type);
  if (kind == Given) return count;
  if (kind == Cache) return std::max<int64_t>(1, machine.secondCache / 4 / row);
  const int64_t most = std::min<int64_t>(int64_t(2) << 30, machine.memory / 10);
  return std::max<int64_t>(1, std::min(4 * machine.lastCache, most) / row);
}

bool Options::partsIntoSegments(const Spec& spec) const {
  return channelsFirst || (spatial && !segmentsIfNeeded) || spec.needsSegments();
}

Shape Options::shapeOf(int64_t rows, int64_t features, bool segmented) const {
  const Layout layout = channelsFirst ? Layout::ChannelsFirst : Layout::FeaturesLast;
  if (!segmented || (spatial == 0 && !channelsFirst)) return {1, rows, features, layout};
  const int64_t each = spatial ? spatial : 784;  // 28 x 28, an image halfway through a network
  return {std::max<int64_t>(1, rows / each), std::min(rows, each), features, layout};
}

std::string Rows::place() const {
  return kind == Cache ? "in cache" : kind == Memory ? "in memory" : std::to_string(count) + " rows";
}

namespace {

/// What the command line says in other words than Options.
struct Words {
  std::vector<std::string> bindings;
  bool around = false, quick = false, noOneDnn = false, noTorch = false;
};

/// What is measured.
void declareProblems(CLI::App& app, Options& options, Words& words, int processors) {
  app.add_option("--norms", options.norms, "built-in norms, e.g. layer_norm,power_norm")
      ->delimiter(',')
      ->type_name("LIST");
  listOption(app, "--features", options.features, "numbers of features",
             [](const std::string& word) { return positive(word, "features"); });
  listOption(app, "--rows", options.rows, "numbers of rows; cache and memory fit them to this machine",
             rowsOf);
  listOption(app, "--dtype", options.types, namesOf(kFloatTypes, ", "), [](const std::string& word) {
    std::map<std::string, DType> known;
    for (const DType each : kFloatTypes) known.emplace(name(each), each);
    return oneWord<DType>(word, known, "");
  });
  listOption(app, "--threads", options.threads, "numbers of threads; all for every core",
             [processors](const std::string& word) {
               return word == "all" ? processors
                                    : int(std::min<int64_t>(positive(word, "threads, and not all"), 4096));
             });
  listOption(app, "--entries", options.entries, "forward, backward, infer, infer_backward",
             [](const std::string& word) {
               std::map<std::string, Entry> known;
               for (const Entry each : kEntries)
                 if (!isOverRanks(each)) known.emplace(name(each), each);
               return oneWord<Entry>(word, known, "");
             });
  app.add_flag("--channels-first", options.channelsFirst, "segments x features x rows");
  app.add_option("--spatial", options.spatial, "rows of a segment [all rows; 784 with --channels-first]")
      ->check(CLI::Range(int64_t(1), int64_t(1) << 40))
      ->type_name("N");
  app.add_option("--bind", words.bindings, "structural bindings, e.g. heads=12 (16 otherwise)")
      ->delimiter(',')
      ->type_name("LIST");
  app.add_option("--target", options.target,
                 "instruction set of our kernels, e.g. x86-64-v3; otherwise what this processor has")
      ->check(whyNoProcessor, "", "")
      ->type_name("NAME");
  app.add_flag("--cliffs", options.cliffs,
               "beside each number of features the multiples of 64 around it, and how much faster those are");
  app.add_flag(
      "--around", words.around,
      "norms with something around them, beside the bare norm and loops apart; forward, backward and "
      "infer of 768 to 16384 features; rows are in segments of 256 for a norm that needs segments");
  app.add_flag("--quick", words.quick,
               "768 features unless --features says otherwise, and fewer rounds: not for a figure");
}

/// What runs beside our kernels, and where the results go.
void declareReports(CLI::App& app, Options& options, Words& words) {
  app.add_flag("--halide", options.halide, "race the kernels of the Halide generator too");
  app.add_option("--before", options.before,
                 "race the kernels of this package too, which another build compiled")
      ->type_name("FILE");
  app.add_flag("--no-onednn", words.noOneDnn, "without oneDNN");
  app.add_flag("--no-torch", words.noTorch, "without PyTorch");
  app.add_option("--python", options.python, "a Python with PyTorch")->type_name("PROGRAM");
  app.add_option("--json", options.jsonFile, "writes every sample there")->type_name("FILE");
  app.add_option("--report", options.reportFolder, "writes tables, medians as JSON and pictures there")
      ->type_name("FOLDER");
  app.add_option("--draw", options.drawnFolder, "draws the pictures of this report again, and runs nothing")
      ->type_name("FOLDER");
}

void readBindings(const std::vector<std::string>& bindings, Options& options) {
  for (const std::string& binding : bindings) {
    const size_t equals = binding.find('=');
    if (equals == std::string::npos)
      throw CLI::ValidationError("--bind '" + binding + "' must be NAME=NUMBER");
    options.bindings[binding.substr(0, equals)] =
        positive(binding.substr(equals + 1), binding.substr(0, equals));
  }
}

/// Sets what `--around` and `--quick` mean where the command line does not say it itself.
void fillIn(const CLI::App& app, const Words& words, Options& options) {
  const auto isLeftOut = [&](const char* option) { return app.count(option) == 0; };
  if (words.around) {
    if (isLeftOut("--norms")) options.norms = aroundNorms();
    if (isLeftOut("--features")) options.features = {768, 1024, 2048, 4096, 8192, 16384};
    if (isLeftOut("--entries")) options.entries = {Entry::Forward, Entry::Backward, Entry::Infer};
    if (isLeftOut("--spatial")) {
      options.spatial = 256;
      options.segmentsIfNeeded = true;
    }
  }
  if (words.quick) {
    if (isLeftOut("--features")) options.features = {768};
    options.race = {.sampleSeconds = 50e-6, .seconds = 0.5, .minRounds = 5, .maxRounds = 21};
  }
}

/// Puts the multiples of kAligned beside each number of features.
void addAlignedNeighbours(Options& options) {
  std::set<int64_t> features(options.features.begin(), options.features.end());
  for (int64_t f : options.features)
    features.insert({std::max(f / kAligned, int64_t(1)) * kAligned, (f / kAligned + 1) * kAligned});
  options.features.assign(features.begin(), features.end());
}

}  // namespace

bool readOptions(int argc, char** argv, const Machine& machine, Options& options, int& exitCode) {
  CLI::App app("Times normalization kernels beside oneDNN, PyTorch and copies", "normc-bench");
  app.footer(kFooter);
  app.get_formatter()->column_width(28);
  const int all = machine.processors;
  options.threads = all > 1 ? std::vector<int>{1, all} : std::vector<int>{1};
  Words words;
  declareProblems(app, options, words, all);
  declareReports(app, options, words);
  try {
    app.parse(argc, argv);
    readBindings(words.bindings, options);
  } catch (const CLI::ParseError& error) {
    exitCode = app.exit(error) == 0 ? 0 : 2;
    return false;
  }
  options.command = "normc-bench";
  for (int i = 1; i < argc; ++i) options.command += " " + std::string(argv[i]);
  options.oneDnn = !words.noOneDnn;
  options.torch = !words.noTorch;
  fillIn(app, words, options);
  if (options.cliffs) addAlignedNeighbours(options);
  return true;
}

}  // namespace normc::bench
