#include "tools/normc/ProblemFlags.h"

#include <algorithm>
#include <set>

#include "dsl/Library.h"
#include "dsl/Nearest.h"
#include "tools/normc/Cli.h"
#include "tools/normc/Failure.h"
#include "tools/normc/Output.h"

namespace normc::cli {
namespace {

bool isProblem(const std::string& input) { return input.find_first_of(":@[") != std::string::npos; }

/// Refuses a word that was meant for the flag in front of it, or several norms in one.
void refuseOtherWord(const std::string& input) {
  if (namesFile(input)) return;
  const auto refuse = [&](const std::string& hint) {
    throw usage("there is no norm " + inQuotes(input), hint);
  };
  if (input.find(',') != input.npos) refuse("norms are separated by blanks, e.g. layer_norm rms_norm");
  if (!input.empty() && input.find_first_not_of("0123456789") == input.npos)
    refuse("values of a flag are separated by commas, e.g. --features 768," + input);
  for (const DType dtype : kFloatTypes)
    if (input == name(dtype)) refuse("values of a flag are separated by commas, e.g. --dtype f32," + input);
  for (const Entry entry : kEntries)
    if (input == name(entry))
      refuse("values of a flag are separated by commas, e.g. --entry forward," + input);
}

/// The norms of the command line by name; what a problem's text may name.
class NormTable {
 public:
  void add(const std::string& input) {
    refuseOtherWord(input);
    for (const Norm& norm : normsOf(input)) {
      const auto [at, isNew] = norms_.emplace(norm->name, norm);
      if (!isNew && *at->second != *norm)
        throw usage("two different norms are called " + inQuotes(norm->name) + ", one of them from " + input,
                    "rename one: a package finds a norm by its name");
      if (isNew) order_.push_back(norm);
    }
  }
  const std::vector<Norm>& inOrder() const { return order_; }
  Result<Norm> find(std::string_view name) const {
    const auto at = norms_.find(name);
    return at == norms_.end() ? findNorm(name) : Result<Norm>(at->second);
  }

 private:
  std::map<std::string, Norm, std::less<>> norms_;
  std::vector<Norm> order_;
};

std::map<std::string, int64_t> bindingsOf(const ProblemFlags& flags, const std::vector<Norm>& norms) {
  std::vector<std::string> known;
  for (const Norm& norm : norms)
    for (const std::string& name : bindingNames(*norm)) known.push_back(name);
  std::map<std::string, int64_t> bindings;
  for (const std::string& text : flags.bindings) {
    const auto [name, value] = pairOf("--bind", text, "heads=16");
    if (std::find(known.begin(), known.end(), name) == known.end())
      throw usage("no norm of the command line has a binding " + inQuotes(name),
                  didYouMean(name, known, known.empty() ? "" : "they have " + joined(known)));
    if (!bindings.emplace(name, wholeOf("--bind " + name, value, 1)).second)
      throw usage("--bind " + name + " is given twice");
  }
  return bindings;
}

/// The properties that all problems of a norm share.
Problem frameOf(const Norm& norm, const ProblemFlags& flags, const std::map<std::string, int64_t>& bindings) {
  Problem problem;
  problem.spec = norm;
  problem.layout = layoutOf("--layout", flags.layout);
  problem.segmented = flags.segmented || problem.layout == Layout::ChannelsFirst || norm->needsSegments();
  problem.mask = flags.mask;
  for (const std::string& name : bindingNames(*norm)) {
    const auto at = bindings.find(name);
    if (at == bindings.end())
      throw usage("the norm " + norm->name + " leaves the number of its " + name + " open",
                  "give it: --bind " + name + "=16");
    problem.bindings[name] = at->second;
  }
  return problem;
}

/// The numbers of features of a norm's problems: any, where the norm allows that, and those of --features.
std::vector<std::optional<int64_t>> featuresOf(const Norm& norm, const ProblemFlags& flags) {
  const bool needsNumber = norm->rope && norm->rope->features;  // rule P14
  if (needsNumber && flags.features.empty())
    throw usage("the norm " + norm->name + " needs a known number of features: its 'rope' turns " +
                    std::to_string(*norm->rope->features) + " of each group",
                "give it: --features 4096");
  std::vector<std::optional<int64_t>> features;
  if (!needsNumber) features.push_back(std::nullopt);
  for (const std::string& text : flags.features) features.push_back(wholeOf("--features", text, 1));
  return features;
}

class Collector {
 public:
  void add(Result<Problem> problem) {
    if (!problem) {
      errors_.insert(errors_.end(), problem.errors().begin(), problem.errors().end());
      return;
    }
    const std::string text = problem->text();
    if (std::find(texts_.begin(), texts_.end(), text) != texts_.end()) return;
    texts_.push_back(text);
    problems_.push_back(*std::move(problem));
  }
  std::vector<Problem> take() {
    if (!errors_.empty()) throw Failure(ExitCode::Usage, distinct());
    return std::move(problems_);
  }

 private:
  /// One mistake is often in many problems.
  std::vector<Diagnostic> distinct() const {
    std::vector<Diagnostic> result;
    for (const Diagnostic& error : errors_)
      if (std::none_of(result.begin(), result.end(),
                       [&](const auto& o) { return o.message == error.message; }))
        result.push_back(error);
    return result;
  }

  std::vector<Problem> problems_;
  std::vector<std::string> texts_;
  std::vector<Diagnostic> errors_;
};

}  // namespace

void ProblemFlags::declare(CLI::App& parser, const std::string& what, Calls calls) {
  parser.add_option("NORM", inputs, "Built-in norms, .norm files, or whole problems")->type_name("");
  addList(parser, "--features", features, what);
  addList(parser, "--dtype", dtypes, "Of the data: " + namesOf(kFloatTypes, ", ") + " [f32]");
  std::vector<std::string> others;
  for (const Entry entry : kEntries)
    if (std::ranges::find(entries, name(entry)) == entries.end() &&
        (calls == Calls::All || !(writesPartial(entry) || addsPartials(entry))))
      others.emplace_back(name(entry));
  addList(parser, "--entry", entries, joined(entries) + " [these three]; " + joined(others));
  parser.add_option("--params", params, "Dtype of scale and bias: f32 or that of the data")
      ->type_name("DTYPE");
  parser.add_option("--layout", layout, "features_last or channels_first")->type_name("LAYOUT");
  parser.add_flag("--mask", mask, "For rows with a mask");
  parser.add_flag("--segmented", segmented,
                  "For segments x rows x features also where the norm does not need it");
  parser.add_option("--bind", bindings, "A number that the norm leaves open; may be given several times")
      ->allow_extra_args(false)
      ->type_name("NAME=N");
}

bool ProblemFlags::shapesNorms() const {
  ProblemFlags untouched;
  untouched.inputs = inputs;
  return *this != untouched;
}

std::vector<Problem> problemsOf(const ProblemFlags& flags) {
  NormTable norms;
  std::vector<std::string> problems, names;
  for (const std::string& input : flags.inputs) {
    if (!namesFile(input) && isProblem(input)) {
      problems.push_back(input);
      continue;
    }
    norms.add(input);
    if (!namesFile(input)) names.push_back(input);
  }

  if (!problems.empty() && flags.shapesNorms())
    throw usage("a whole problem says its dtype, features, layout and so on itself",
                "leave out the flags for them, or name the norm alone");

  Collector collector;
  std::set<std::string, std::less<>> used;
  for (const std::string& text : problems)
    collector.add(parseProblem(text, [&](std::string_view name) {
      used.emplace(name);
      return norms.find(name);
    }));
  // With problems beside it, a norm is there to be named by them, or a file of several.
  if (!problems.empty()) {
    std::vector<Problem> taken = collector.take();
    for (const std::string& name : names)
      if (!used.contains(name))
        throw usage("the problems do not use the norm " + inQuotes(name),
                    "write it as a problem too, e.g. '" + name + ":forward@f32[*x*]', or name norms alone");
    return taken;
  }

  const auto bindings = bindingsOf(flags, norms.inOrder());
  if (!flags.params.empty() &&
      std::ranges::none_of(norms.inOrder(), [](const Norm& norm) { return norm->scale || norm->bias; }))
    throw usage("--params is " + inQuotes(flags.params) + "; no norm of the command line has scale or bias",
                "leave it out");
  for (const Norm& norm : norms.inOrder()) {
    Problem problem = frameOf(norm, flags, bindings);
    const std::vector<std::optional<int64_t>> features = featuresOf(norm, flags);
    for (const std::string& dtype : flags.dtypes) {
      problem.data = dtypeOf("--dtype", dtype);
      problem.params = statisticsOf(problem.data);
      if (!flags.params.empty() && (norm->scale || norm->bias))
        problem.params = dtypeOf("--params", flags.params);
      for (const std::string& entry : flags.entries) {
        problem.entry = entryOf("--entry", entry);
        for (const auto& count : features) {
          problem.features = count;
          collector.add(checkProblem(problem));
        }
      }
    }
  }
  return collector.take();
}

std::vector<NamedFile> normFilesOf(const ProblemFlags& flags) {
  std::vector<NamedFile> files;
  for (const std::string& input : flags.inputs)
    if (namesFile(input)) files.push_back({"the input", input});
  return files;
}

}  // namespace normc::cli
