// The words behind `normc tune`, and which flags each of them takes.
#pragma once

#include <CLI/CLI.hpp>

#include "tools/normc/TuneTasks.h"

namespace normc::cli {

/// The action of `tune`: that of its first word, or to tune.
enum class TuneSubcommand { Tune, Export, RunBundle, Import };
TuneSubcommand wordIn(const TuneFlags&);

/// A flag that would be without effect is a Failure that says whose it is.
void refuseUnused(const CLI::App& parser, TuneSubcommand);

}  // namespace normc::cli
