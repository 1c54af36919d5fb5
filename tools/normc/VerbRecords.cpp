// normc records show|coverage|merge|verify|plot|report DB...
#include <ostream>
#include <set>

#include "autotune/records/Journal.h"
#include "autotune/tune/Setting.h"
#include "tools/normc/Cli.h"
#include "tools/normc/Failure.h"
#include "tools/normc/Files.h"
#include "tools/normc/Plot.h"
#include "tools/normc/RecordFiles.h"
#include "tools/normc/RecordsCoverage.h"
#include "tools/normc/RecordsPage.h"
#include "tools/normc/TuneReport.h"
#include "tools/normc/Values.h"
#include "tools/normc/Verify.h"

namespace normc::cli {
namespace {

struct RecordsFlags {
  std::vector<std::string> words, norms;
  std::string output, wait;
};

tune::Database readAll(const std::vector<std::string>& files) {
  tune::Database all;
  for (const std::string& file : files) all.add(recordsIn(file));
  return all;
}

Json jsonOf(const tune::Record& r, const std::string& id) {
  return {{"id", id},
          {"problem", r.task.problem.text()},
          {"segments", r.task.segments},
          {"rows", r.task.rows},
          {"threads", r.task.threads},
          {"policy", r.task.policy},
          {"device", r.device.name},
          {"arch", r.device.arch},
          {"device_id", r.device.id()},
          {"generator", r.generator},
          {"schedule", r.schedule},
          {"kind", tune::name(r.kind)},
          {"verdict", tune::name(r.conclusion->verdict)},
          {"ratio", r.conclusion->ratio},
          {"low", r.conclusion->low},
          {"high", r.conclusion->high}};
}

ExitCode show(const std::vector<std::string>& files, Output& out) {
  const tune::Database all = readAll(files);
  std::set<std::string> devices, rejected;
  int64_t trials = 0;
  for (const tune::Record& r : all.records) {
    devices.insert(r.device.text() + " (" + r.device.id().substr(0, 8) + ")");
    trials += r.kind == tune::RecordKind::Trial;
    if (r.kind == tune::RecordKind::Trial && isFailure(r.status))
      rejected.insert(r.task.problem.text() + ", " + r.schedule + ": " + std::string(tune::name(r.status)) +
                      ": " + shortOf(r.reason));
  }
  Json choices = Json::array();
  Table table({"record", "problem", ">rows", ">threads", "policy", "device", "", ">speed-up", "schedule"});
  for (size_t i = 0; i < all.records.size(); ++i) {
    const tune::Record& r = all.records[i];
    if (r.kind == tune::RecordKind::Trial) continue;
    choices.push_back(jsonOf(r, all.id(i)));
    table.row(
        {all.id(i).substr(0, 8), r.task.problem.text(), std::to_string(r.task.totalRows()),
         std::to_string(r.task.threads), r.task.policy, r.device.id().substr(0, 8),
         (r.kind == tune::RecordKind::Verify ? "again: " : "") +
             std::string(tune::name(r.conclusion->verdict)),
         r.conclusion->verdict == tune::Verdict::Tie ? "" : digitsText(1 / r.conclusion->ratio, 3) + "x",
         r.schedule});
  }
  if (out.json) {
    Json result = countsJson(all.counts);
    result.update({{"trials", trials}, {"rejected", rejected}, {"devices", devices}, {"choices", choices}});
    out.result(result);
    return ExitCode::Ok;
  }
  out.results() << all.counts.text() << "; " << counted(trials, "trial") << " of "
                << counted(int64_t(devices.size()), "device") << "\n";
  for (const std::string& device : devices) out.results() << "  " << device << "\n";
  if (!choices.empty()) out.results() << "\n" << table.text();
  if (!rejected.empty()) out.results() << "\nrejected:\n";
  for (const std::string& each : rejected) out.results() << "  " << each << "\n";
  return ExitCode::Ok;
}

ExitCode merge(const RecordsFlags& flags, const std::vector<std::string>& files, Output& out) {
  if (flags.output.empty())
    throw usage("normc records merge needs the name of the file to write", "-o MERGED.jsonl");
  requireWritable(flags.output);
  const tune::Hold hold(flags.output);  // which may be one of the files, and a tuning may append to it
  const tune::Database all = readAll(files);
  std::ostream& said = reportOf(flags.output, out);
  writeFile(flags.output, all.text());
  if (out.json) {
    Json result = countsJson(all.counts);
    result["file"] = flags.output;
    out.result(result);
    return ExitCode::Ok;
  }
  said << flags.output << ": " << all.counts.text() << "\n";
  return ExitCode::Ok;
}

ExitCode records(const RecordsFlags& flags, Output& out) {
  const std::vector<std::string> actions{"show", "coverage", "merge", "verify", "plot", "report"};
  if (flags.words.empty())
    throw usage("normc records needs a word for what to do",
                "show, coverage, merge, verify, plot or report; e.g. normc records show tuned.jsonl");
  const std::string action = wordOf("what to do with records", flags.words[0], actions);
  const std::vector<std::string> files(flags.words.begin() + 1, flags.words.end());
  if (files.empty())
    throw usage("normc records " + action + " needs a file of records",
                "e.g. normc records " + action + " tuned.jsonl");
  if (!flags.norms.empty() && action != "verify")
    throw usage("--norm is for records verify alone", "normc records " + action + " needs no norm's text");
  if (!flags.wait.empty() && action != "verify")
    throw usage("--wait is for records verify alone", "normc records " + action + " measures nothing");
  if (!flags.output.empty() && action != "merge" && action != "plot" && action != "report")
    throw usage("-o is for records merge, plot and report", "normc records " + action + " writes no file");
  if (action == "show") return show(files, out);
  if (action == "coverage") return showCoverage(readAll(files), out);
  if (action == "merge") return merge(flags, files, out);
  std::vector<NamedFile> named;
  for (const std::string& file : files) named.push_back({"the input", file});
  if (action == "report") {
    std::ostream& said = reportOf(flags.output, out);
    return reportRecords(readAll(files), flags.output, named, said, out);
  }
  if (action == "plot") return plotRecords(readAll(files), flags.output, named, out);
  if (files.size() != 1)
    throw usage("normc records verify adds what it finds to one file",
                "merge them first: normc records merge A B -o C");
  for (const std::string& norm : flags.norms) requireOwnFile(named[0], {{"--norm", norm}});
  const double wait = flags.wait.empty() ? tune::Setting{}.quietPatience : secondsOf("--wait", flags.wait);
  return verifyRecords(files[0], flags.norms, wait, out);
}

}  // namespace

Action declareRecords(CLI::App& parser) {
  auto flags = std::make_shared<RecordsFlags>();
  parser
      .add_option("WHAT", flags->words,
                  "show, coverage, merge, verify, plot or report, then files of records")
      ->type_name("");
  parser
      .add_option("-o,--output", flags->output,
                  "Of merge: the file to write; of plot: the folder [.]; of report: the page")
      ->type_name("FILE");
  addList(parser, "--norm", flags->norms, "Of verify: .norm files of norms that are not built in");
  parser
      .add_option("--wait", flags->wait,
                  "Of verify: the longest wait of a choice for a core without other load [8s]")
      ->type_name("TIME");
  parser.footer(
      "verify measures what was chosen again, beside the default, on this machine; it fails where the\n"
      "95 % interval of a choice lies more than 2 % above the default, or a choice is wrong or does not\n"
      "run. coverage shows what is tuned where. plot draws with gnuplot; report writes one page of HTML\n"
      "that needs nothing else.");
  return [flags](Output& out) { return records(*flags, out); };
}

}  // namespace normc::cli
