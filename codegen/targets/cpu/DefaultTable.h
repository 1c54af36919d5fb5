// Default schedules that were measured: the lines of a core's table.
//
//   {"set": "x86-64-v3", "problem": "layer_norm:forward@f32[*x768]", "schedule": "resident,rows=4,...",
//    "most_rows": 16}
//
// A line says which schedule of its strategy is the fastest for its problem and for those like it: norms
// whose sweeps do the same work (kindOf). A problem takes the nearest number of features, at most an octave
// away, among the lines of its set, kind, entry and strategy whose rows begin alike: at one place in a page,
// at two or at many, and at cache lines or inside them. With channels first the distance has no limit. Lines
// of its type come first, then those of f32; lines with the same clauses around the norm before those of the
// norm alone. A residual takes those of one with a stream too, and the reverse. Where a core's table has no
// such line, that of its sibling core may have one, before the next kind of lines is looked at. A kernel for
// any number of features takes lines of such problems (`[*x*]`) alone. Where no line is near, the rule
// decides (DefaultRule.h).
//
// The knobs of a line replace those of the rule. The rule keeps what depends on the size alone: grain, and
// for another number of features scalar_tail and vectors for narrow statistics. It also keeps what large
// calls do if the line has another type or other clauses around the norm.
#pragma once

#include <optional>
#include <string>

#include "codegen/targets/cpu/CpuSchedule.h"

namespace normc::codegen::cpu {

struct TableLine {
  std::string set;
  Problem problem;
  Schedule schedule;
  /// The rows of the line's problem up to which its strategy is faster than the first one; without it the
  /// sibling's line decides, or the rule.
  std::optional<int64_t> mostRows;
};

/// Returns the lines of the file. An error names the line and what is wrong with it.
llvm::Expected<std::vector<TableLine>> readTable(llvm::StringRef lines);

/// Returns the work of a norm's sweeps: `batch` and `running` for statistics of a feature, `map` where
/// nothing is summed, `centered` and `squares` for statistics of a row, and `segment`. `scaled ` precedes
/// where groups of a row are scaled first; ` groups` and ` channels first` follow where a row has several
/// statistics, and where the layout is that.
std::string kindOf(const Problem&);

/// Returns the line that decides the schedule; null: the rule does. Thread-safe.
const TableLine* findLine(const Problem&, const Isa&, Strategy);

/// Returns the rows up to which the strategy is faster than the first one, as much data as in those of the
/// line that decides, or of its kind in the table of the sibling; nothing if neither says. Forward a
/// line of a residual with a stream does not say it for one without, nor the reverse: it has a tensor more;
/// and where a line of whole rows is nearer than one of split rows, its problem was measured without a gain.
/// Thread-safe.
std::optional<int64_t> mostRows(const Problem&, const Isa&, Strategy);

/// Replaces the knobs of `s`, a legal schedule of the problem, by those of the line, if the result is legal.
void applyLine(const TableLine&, const Problem&, const Isa&, Schedule& s);

}  // namespace normc::codegen::cpu
