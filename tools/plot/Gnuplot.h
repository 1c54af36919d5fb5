// Draws plots with gnuplot, a separate program that only `normc plot` needs.
#pragma once

#include <string>
#include <vector>

#include "llvm/Support/Error.h"

namespace normc::plot {

/// `name` is that of a file, without signs that are commands to gnuplot; `data` are blocks (`block`),
/// `script` what sets the axes and plots them.
struct Picture {
  std::string name, data, script;
};

/// A block of data that a script calls `$name`; a line of `rows` for each point.
std::string block(const std::string& name, const std::string& rows);
/// Text that gnuplot takes as it is: some signs are commands to it.
std::string plain(std::string);

bool isThere();

/// A picture as a file: its name, and what it holds.
struct Drawn {
  std::string file, bytes;
};

/// Returns each picture as `name.svg` and `name.png`, whole. An error says that gnuplot is not there, with
/// how to get it, or what it said.
llvm::Expected<std::vector<Drawn>> draw(const std::vector<Picture>&);

}  // namespace normc::plot
