#include "tools/normc/PlanFlags.h"

#include <algorithm>

#include "tools/normc/Cli.h"
#include "tools/normc/Values.h"

namespace normc::cli {
namespace {

using Numbers = std::vector<std::pair<std::string, double>>;

gate::PackageFile openFor(const PlanFlags& flags, const Place& place, const std::string& verb) {
  if (flags.file.empty() || flags.problem.empty())
    throw usage("normc " + verb + " needs a package and a problem",
                "e.g. normc " + verb + " norms.npk 'layer_norm:forward@f32[*x768]'");
  requirePackage(flags.file);
  return gate::PackageFile(flags.file, int(std::min<int64_t>(flags.threads, INT32_MAX)), place.cudaLibrary());
}

Numbers numbersOf(const PlanFlags& flags) {
  Numbers numbers;
  for (const std::string& text : flags.numbers) {
    const auto [name, value] = pairOf("--number", text, "epsilon=1e-6");
    numbers.emplace_back(name, numberOf("--number " + name, value));
  }
  return numbers;
}

host::Plan planFor(const gate::PackageFile& file, const PlanFlags& flags, const Place& place,
                   const Numbers& numbers) {
  if (place.onCuda()) place.asked([&] { return file.context().cudaDevice(place.index()); });
  std::vector<normc_number> list;
  for (const auto& [name, value] : numbers) list.push_back({name.c_str(), value});
  normc_request request = place.request();
  if (!flags.isaCap.empty()) request.isa_cap = flags.isaCap.c_str();
  request.denormals = flags.keepDenormals ? NORMC_DENORMALS_KEEP : NORMC_DENORMALS_FLUSH;
  request.numbers = list.data();
  request.number_count = list.size();
  try {
    return valueOf(file.plan(flags.problem, request), ExitCode::Usage);
  } catch (const host::Error& error) {
    const std::string text = error.what(), cap = "request.isa_cap";
    if (text.starts_with(cap)) throw usage("--isa-cap" + text.substr(cap.size()));
    if (error.status() == NORMC_NOT_FOUND && !list.empty()) throw usage(text);
    throw;
  }
}

}  // namespace

void PlanFlags::declare(CLI::App& parser) {
  parser.add_option("FILE", file, "A package (.npk)")->type_name("");
  parser.add_option("PROBLEM", problem, "e.g. 'layer_norm:forward@f32[*x768]'")->type_name("");
  parser
      .add_option("--isa-cap", isaCap, "Use no newer instruction set, or architecture sm_NN, than this one")
      ->type_name("ISA");
  parser
      .add_option(
          "--number", numbers,
          "A number of the norm other than its default, e.g. epsilon=1e-6; may be given several times")
      ->allow_extra_args(false)
      ->type_name("NAME=X");
  place.declare(parser);
  addWhole(parser, "--threads", threads, "At most so many, and one for each processor [all]");
  parser.add_flag("--keep-denormals", keepDenormals, "Do not take subnormal numbers for zero");
}

Planned::Planned(const PlanFlags& flags, const std::string& verb)
    : place(flags.place),
      file(openFor(flags, place, verb)),
      plan(planFor(file, flags, place, numbersOf(flags))),
      index(plan.kernel()) {}

}  // namespace normc::cli
