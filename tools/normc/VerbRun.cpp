// normc run F.npk PROBLEM --in x=x.npy ... --out y=y.npy ...
#include <algorithm>
#include <chrono>
#include <filesystem>
#include <ostream>

#include "autotune/measure/Stats.h"
#include "autotune/tune/Interrupt.h"
#include "runtime/abi/Operands.h"
#include "tools/normc/Cli.h"
#include "tools/normc/FieldFolder.h"
#include "tools/normc/Files.h"
#include "tools/normc/Progress.h"
#include "tools/normc/RunCall.h"
#include "tools/normc/Values.h"

namespace normc::cli {
namespace {

struct RunFlags {
  PlanFlags plan;
  std::vector<std::string> inputs, outputs;
  std::string state, saved;
  int64_t repeat = 0;
};

/// The tensors that some entry reads, or writes.
std::string namesOf(bool written) {
  std::vector<std::string> names;
  for (const TensorInfo& each : kTensorTable) {
    const auto is = [&](Entry entry) { return each.written(entry) == written; };
    if (is(Entry::Forward) || (each.direction == Direction::Passed && is(Entry::Backward)))
      names.emplace_back(each.name);
  }
  return joined(names);
}

FileMap filesOf(const std::string& flag, const std::vector<std::string>& pairs, const std::string& form) {
  FileMap files;
  for (const std::string& text : pairs) {
    const auto [name, file] = pairOf(flag, text, form);
    if (!files.emplace(name, file).second) throw usage(flag + " " + name + " is given twice");
  }
  return files;
}

/// No output may be the package, an input, a file of a folder or another output. The fields of --state and
/// --saved are replaced where an entry writes them: that is what these folders are for. Fields that are not
/// there yet are those of the plan: `requireNoFields`.
void requireOwnOutputs(const RunFlags& flags, const FileMap& inputs, const FileMap& outputs) {
  std::vector<NamedFile> others{{"the package", flags.plan.file}};
  for (const auto& [name, file] : inputs) others.push_back({"--in " + name, file, '='});
  for (const auto& [flag, folder] :
       {std::pair("a field of --state", flags.state), {"a field of --saved", flags.saved}}) {
    std::error_code none;
    if (folder.empty()) continue;
    for (const auto& file : std::filesystem::directory_iterator(folder, none)) {
      for (const NamedFile& other : others) requireOwnFile({flag, file.path().string()}, {other});
      others.push_back({flag, file.path().string()});
    }
  }
  for (const auto& [name, file] : outputs) {
    requireOwnFile({"--out " + name, file, '='}, others);
    others.push_back({"--out " + name, file, '='});
  }
}

/// No output may be a field of --state or --saved, there or not.
void requireNoFields(const RunFlags& flags, const FileMap& outputs, RunCall& call) {
  std::vector<NamedFile> fields;
  const auto add = [&](const char* what, const std::string& folder, const FieldBuffer& buffer) {
    if (folder.empty()) return;
    for (const normc_field& field : buffer.fields) fields.push_back({what, fileOf(folder, field)});
  };
  add("a field of --state", flags.state, call.state());
  add("a field of --saved", flags.saved, call.saved());
  for (const auto& [name, file] : outputs) requireOwnFile({"--out " + name, file, '='}, fields);
}

bool isSameFolder(const std::string& a, const std::string& b) {
  namespace fs = std::filesystem;
  std::error_code none;
  const auto whole = [&](const std::string& path) {
    return fs::weakly_canonical(fs::absolute(path), none) / "";
  };
  return fs::equivalent(a, b, none) || whole(a) == whole(b);
}

void refuseUseless(const RunFlags& flags, const std::string& problem, RunCall& call) {
  if (!flags.state.empty() && call.state().empty())
    throw usage(problem + " has no state", "leave out --state");
  if (!flags.saved.empty() && call.saved().empty())
    throw usage(problem + " has no saved statistics", "leave out --saved");
  if (!flags.state.empty() && !flags.saved.empty() && isSameFolder(flags.state, flags.saved))
    throw usage("--state and --saved are one folder", "give each its own: their fields have the same names");
}

void readState(const RunFlags& flags, const std::string& problem, RunCall& call, Output& out) {
  if (call.state().empty()) return;
  if (flags.state.empty()) {
    // Of a backward that gets all from what forward saved, no field is accessed.
    if (std::ranges::any_of(call.state().fields, [](const normc_field& field) { return field.access != 0; }))
      out.note(std::string("no --state: the state is a fresh one") +
               (call.writesState() ? ", and is not kept" : ""));
  } else if (holdsFields(flags.state)) {
    readFields(flags.state, "the state of " + problem, call.state());
  } else if (!call.writesState()) {
    throw refused("the folder " + flags.state + " holds no state",
                  "a forward with --state " + flags.state + " makes one");
  }
}

void readSaved(const RunFlags& flags, const std::string& problem, RunCall& call) {
  if (!call.readsSaved() || call.saved().empty()) return;
  if (flags.saved.empty())
    throw usage(problem + " needs what its forward saved", "give --saved FOLDER to the forward and to this");
  readFields(flags.saved, "the saved statistics of " + problem, call.saved());
}

/// Returns the stream of the report: not the one that an output goes to.
std::ostream& reportBeside(const FileMap& outputs, Output& out) {
  const auto isStandard = [](const auto& output) { return isStandardOutput(output.second); };
  const auto count = std::ranges::count_if(outputs, isStandard);
  if (count > 1) throw usage("two outputs go to the standard output", "name a file for all but one of them");
  return count ? reportOf("-", out) : out.results();
}

struct Timing {
  measure::Samples seconds;
  double fastest() const { return *std::ranges::min_element(seconds); }
  double median() const { return measure::median(seconds); }
};

Timing timed(RunCall& call, int64_t repeat, const tune::Interrupt& interrupt, Output& out) {
  using Clock = std::chrono::steady_clock;
  Timing timing;
  Progress progress(out, "running", repeat);
  for (int64_t i = 0; i < repeat && !interrupt.requested(); ++i) {
    const auto start = Clock::now();
    call.execute();
    timing.seconds.push_back(std::chrono::duration<double>(Clock::now() - start).count());
    progress.step(i + 1, "calls");
  }
  return timing;
}

struct Report {
  const RunFlags& flags;
  const Planned& planned;
  const RunCall& call;
  const Json& written;
  const Timing& timing;

  int64_t done() const { return int64_t(timing.seconds.size()); }
  int64_t bytesMoved() const { return call.transfers() * call.bytesOfTransfer(); }
  Json json() const;
  std::string text() const;
};

Json Report::json() const {
  Json result = {{"problem", flags.plan.problem},
                 {"kernel", planned.index},
                 {"serves", planned.kernel().problem},
                 {"target", planned.kernel().target()},
                 {"device", planned.place.text()},
                 {"outputs", written},
                 {"transfers", call.transfers()},
                 {"bytes_moved", bytesMoved()},
                 {"calls_timed", done()}};
  if (done()) result["seconds"] = {{"median", timing.median()}, {"fastest", timing.fastest()}};
  return result;
}

std::string Report::text() const {
  const package::Kernel& kernel = planned.kernel();
  std::string text = flags.plan.problem + " on " + call.shapeText() + ", by kernel " +
                     std::to_string(planned.index) + " (" + kernel.problem + ", " + kernel.target() + ")" +
                     (planned.place.onCuda() ? " on " + planned.place.text() : "") + "\n";
  for (const Json& file : written) {
    std::vector<std::string> sizes;
    for (const Json& size : file.at("shape")) sizes.push_back(std::to_string(size.get<int64_t>()));
    text += "  " + file.at("name").get<std::string>() + ": " + joined(sizes, "x") + " " +
            file.at("type").get<std::string>() + " in " + file.at("file").get<std::string>() + "\n";
  }
  if (done())
    text += "  " + counted(done(), "call") + " timed: median " + secondsText(timing.median()) + ", fastest " +
            secondsText(timing.fastest()) + "; " + counted(call.transfers(), "transfer") + " of " +
            bytesText(double(call.bytesOfTransfer())) + ", at the median " +
            digitsText(double(bytesMoved()) / timing.median() / 1e9, 3) + " GB/s\n";
  if (done() < flags.repeat)
    text += "  interrupted: " + std::to_string(done()) + " of " + std::to_string(flags.repeat) +
            " calls are timed\n";
  return text;
}

ExitCode run(const RunFlags& flags, Output& out) {
  const FileMap inputs = filesOf("--in", flags.inputs, "x=x.npy");
  const FileMap outputs = filesOf("--out", flags.outputs, "y=y.npy");
  requireOwnOutputs(flags, inputs, outputs);
  for (const auto& [name, file] : outputs) requireWritable(file);
  std::ostream& said = reportBeside(outputs, out);
  Planned planned(flags.plan, "run");
  const std::string problem = planned.kernel().problem;
  RunCall call(planned, inputs, outputs, out);
  refuseUseless(flags, problem, call);
  requireNoFields(flags, outputs, call);
  readState(flags, problem, call, out);
  readSaved(flags, problem, call);
  if (!flags.state.empty() && call.writesState()) requireFolder(flags.state);
  if (!flags.saved.empty() && call.writesSaved()) requireFolder(flags.saved);

  if (outputs.empty() && flags.repeat == 0) out.note("no --out: the outputs are computed and not kept");
  tune::Interrupt interrupt;
  call.upload();
  call.execute();
  const Timing timing = timed(call, flags.repeat, interrupt, out);
  call.download();
  const Json written = call.write();
  if (!flags.state.empty() && call.writesState()) writeFields(flags.state, call.stateAfter());
  if (!flags.saved.empty() && call.writesSaved()) writeFields(flags.saved, call.saved());

  const Report report{flags, planned, call, written, timing};
  if (out.json) {
    out.result(report.json());
  } else {
    said << report.text();
  }
  return report.done() < flags.repeat ? ExitCode::Interrupted : ExitCode::Ok;
}

}  // namespace

Action declareRun(CLI::App& parser) {
  auto flags = std::make_shared<RunFlags>();
  flags->plan.declare(parser);
  parser
      .add_option("--in", flags->inputs,
                  "An input; may be given several times: " + namesOf(/*written=*/false))
      ->allow_extra_args(false)
      ->type_name("NAME=FILE.npy");
  parser
      .add_option("--out", flags->outputs,
                  "Where to put an output; may be given several times: " + namesOf(/*written=*/true))
      ->allow_extra_args(false)
      ->type_name("NAME=FILE.npy");
  parser.add_option("--state", flags->state, "The state before the call, then that after it")
      ->type_name("FOLDER");
  parser.add_option("--saved", flags->saved, "What forward saves and backward reads")->type_name("FOLDER");
  addWhole(parser, "--repeat", flags->repeat, "Time N more calls, each from the same state");
  parser.footer(
      "A problem takes those of these tensors that its norm has.\n"
      "A folder holds one .npy file for each field. A forward begins a fresh state where the --state\n"
      "folder is absent or empty; that of infer and infer_backward holds a state.\n"
      "Files are C-ordered; float types are rounded to that of the problem, bf16 is read and written\n"
      "as f4. Codes of e4m3 and scales that are powers of two are written as their bytes, u1.\n"
      "On a GPU, the files are copied there and back; a timed call is its launches and the wait for them.");
  return [flags](Output& out) { return run(*flags, out); };
}

}  // namespace normc::cli
