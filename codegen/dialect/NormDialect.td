// The norm dialect: a kernel as a list of sweeps over X-sized data.
#ifndef NORMC_DIALECT
#define NORMC_DIALECT

include "mlir/IR/OpBase.td"
include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/EnumAttr.td"

def Norm_Dialect : Dialect {
  let name = "norm";
  let cppNamespace = "::normc::codegen";
  let summary = "normalization kernels as sweeps";
  let description = [{
    A `norm.kernel` declares its tensors and lists its phases. All tasks of a phase
    finish before the next phase begins: a phase is the fork of threads on a CPU and
    the launch on a GPU.

    A phase holds `norm.slab`s. A slab is the set of elements that share one
    statistic; its `per` axes index that statistic, the other axes are inside. The
    code in a slab is scalar code for one statistic, the region of a `norm.sweep`
    is scalar code for one element. Nothing here says which axis is contiguous,
    how wide a vector is, or how many rows are interleaved: layout and schedule
    are attributes of the kernel, and the lowering reads them.

    A `resident` slab stays on chip between its sweeps, so memory is read once
    however many sweeps read a tensor. Traffic is computed from this.
  }];
  let useDefaultAttributePrinterParser = 1;
}

class Norm_Attr<string name, string attrMnemonic, list<Trait> traits = []>
    : AttrDef<Norm_Dialect, name, traits> {
  let mnemonic = attrMnemonic;
}

//===-- Words -------------------------------------------------------------===//

class Norm_Enum<string name, string summary, list<EnumCase> cases> : I32Enum<name, summary, cases> {
  let cppNamespace = "::normc::codegen";
}

def Norm_Axis : Norm_Enum<"Axis", "an axis of a tensor, or of the index of a slab or a unit", [
    I32EnumCase<"Segment", 0, "segment">, I32EnumCase<"Row", 1, "row">, I32EnumCase<"Feature", 2, "feature">,
    I32EnumCase<"Group", 3, "group">, I32EnumCase<"PreGroup", 4, "pre_group">,
    I32EnumCase<"Window", 5, "window">, I32EnumCase<"Chunk", 6, "chunk">,
    I32EnumCase<"Partial", 7, "partial">, I32EnumCase<"Block", 8, "block">,
    I32EnumCase<"Pair", 9, "pair">]>;
def Norm_AxisAttr : EnumAttr<Norm_Dialect, Norm_Axis, "axis">;

def Norm_AxesAttr : Norm_Attr<"Axes", "axes"> {
  let summary = "axes in their order in memory, or in an index";
  let parameters = (ins OptionalArrayRefParameter<"::normc::codegen::Axis">:$value);
  let assemblyFormat = "`[` (`]`) : ($value^ `]`)?";
  let returnType = "::llvm::ArrayRef<::normc::codegen::Axis>";
  let constBuilderCall = "::normc::codegen::AxesAttr::get($_builder.getContext(), $0)";
  let convertFromStorage = "$_self.getValue()";
}

def Norm_PhaseRole : Norm_Enum<"PhaseRole", "what a phase is for", [
    I32EnumCase<"Statistics", 0, "statistics">, I32EnumCase<"Combine", 1, "combine">,
    I32EnumCase<"Apply", 2, "apply">, I32EnumCase<"Finish", 3, "finish">]>;
def Norm_PhaseRoleAttr : EnumAttr<Norm_Dialect, Norm_PhaseRole, "phase_role">;

def Norm_SlabKind : Norm_Enum<"SlabKind", "where the contiguous axis is, seen from the statistic", [
    I32EnumCase<"Run", 0, "run">, I32EnumCase<"Block", 1, "block">, I32EnumCase<"Column", 2, "column">,
    I32EnumCase<"Stream", 3, "stream">]>;
def Norm_SlabKindAttr : EnumAttr<Norm_Dialect, Norm_SlabKind, "slab_kind">;

def Norm_CountScope : Norm_Enum<"CountScope", "the rows that are counted", [
    I32EnumCase<"All", 0, "all">, I32EnumCase<"Task", 1, "task">, I32EnumCase<"Slab", 2, "slab">,
    I32EnumCase<"Rows", 3, "rows">]>;
def Norm_CountScopeAttr : EnumAttr<Norm_Dialect, Norm_CountScope, "count_scope">;

def Norm_WidthOf : Norm_Enum<"WidthOf", "the features that are counted", [
    I32EnumCase<"Groups", 0, "groups">, I32EnumCase<"PreGroups", 1, "pre_groups">,
    I32EnumCase<"Task", 2, "task">]>;
def Norm_WidthOfAttr : EnumAttr<Norm_Dialect, Norm_WidthOf, "width_of">;

def Norm_Combiner : Norm_Enum<"Combiner", "how the terms of a reduction become one value", [
    I32EnumCase<"Add", 0, "add">, I32EnumCase<"Max", 1, "max">]>;
def Norm_CombinersAttr : Norm_Attr<"Combiners", "combiners"> {
  let summary = "a combiner for each reduction of a sweep";
  let description = [{
    `add`  the sum; its identity is 0, and rounding depends on the order.
    `max`  the maximum of IEEE 754-2019; its identity is -infinity, the result does not depend on the
           order. A NaN if a term is a NaN, as with a sum; +0 is larger than -0.
  }];
  let parameters = (ins OptionalArrayRefParameter<"::normc::codegen::Combiner">:$value);
  let assemblyFormat = "`[` (`]`) : ($value^ `]`)?";
  let returnType = "::llvm::ArrayRef<::normc::codegen::Combiner>";
  let constBuilderCall = "::normc::codegen::CombinersAttr::get($_builder.getContext(), $0)";
  let convertFromStorage = "$_self.getValue()";
}

def Norm_RopeAttr : Norm_Attr<"Rope", "rope"> {
  let summary = "pairs of features that are turned";
  let description = [{
    The features are `runs` equal runs. In each the first `turned` ones are pairs, all if that is 0:
    2 l and 2 l + 1 if `interleaved`, else l and l + turned / 2.
  }];
  let parameters = (ins "bool":$interleaved, "int64_t":$runs, "int64_t":$turned);
  let assemblyFormat = "`<` struct(params) `>`";
}

def Norm_Strategy : Norm_Enum<"Strategy", "how statistics are divided between tasks (plan/Planner.h)", [
    I32EnumCase<"Streamed", 0, "streamed">, I32EnumCase<"Resident", 1, "resident">,
    I32EnumCase<"Split", 2, "split">]>;

/// An enumeration of runtime/abi: `words` lists its values, `name` returns their words.
class Norm_Word<string type, string words> : AttrParameter<type, ""> {
  let parser = "parseWord($_parser, " # words # ")";
  let printer = "printWord($_printer, $_self)";
}
class Norm_AbiEnum<string name, string mnemonic, string type, string words> : Norm_Attr<name, mnemonic> {
  let parameters = (ins Norm_Word<type, words>:$value);
  let assemblyFormat = "$value";
  let returnType = type;
  let constBuilderCall = "::normc::codegen::" # name # "Attr::get($_builder.getContext(), $0)";
  let convertFromStorage = "$_self.getValue()";
}
def Norm_LayoutAttr : Norm_AbiEnum<"Layout", "layout", "::normc::Layout", "::normc::kLayouts">;
def Norm_RoleAttr : Norm_AbiEnum<"Role", "role", "::normc::package::Role", "::normc::package::kRoles">;
def Norm_AccessAttr
    : Norm_AbiEnum<"Access", "access", "::normc::package::Access", "::normc::package::kAccesses">;

//===-- The schedule ------------------------------------------------------===//

def Norm_ScheduleAttr : Norm_Attr<"Schedule", "schedule"> {
  let summary = "how the sweeps of a kernel become loops";
  let description = [{
    `strategy`    `streamed`: column statistics in chunks of rows, combined in a
                  second phase; `resident`: the whole column slab at once; `split`:
                  rows in pieces, each of several tasks, then columns.
    `vector`      lanes of one vector of the statistics type.
    `rows`        rows interleaved: they share loads of per-feature vectors and one
                  update of column partials.
    `unroll`      vectors a sweep advances per step along the contiguous axis, each
                  with its own accumulator.
    `tile`        vectors of columns that a column slab keeps in registers.
    `grain`       the fewest rows of a task.
    `scalar_tail` a rest that does not fill a vector takes smaller vectors, not a mask.
    `stream`      rows interleaved in large calls, whose outputs are non-temporal, whole
                  cache lines at a time. 0: all calls run the same loops.
    `ahead`       software-pipelined: statistics of the next rows are computed before
                  the outputs of these.
    `fetch`       in large calls the inputs of the next rows are prefetched while the
                  outputs of these are written.
    `nta`         with `fetch`: the prefetches are non-temporal, for data that are used
                  once.
    `in_turn`     the rows of a step are stored one after the other.
    `wide`        in calls that are not large a stream takes 1024 features of its rows at
                  a time, not 512.
  }];
  let parameters = (ins EnumParameter<Norm_Strategy>:$strategy, "int64_t":$vector,
                    "int64_t":$rows, "int64_t":$unroll, "int64_t":$tile, "int64_t":$grain,
                    DefaultValuedParameter<"bool", "false">:$scalar_tail,
                    DefaultValuedParameter<"int64_t", "0">:$stream,
                    DefaultValuedParameter<"bool", "false">:$ahead,
                    DefaultValuedParameter<"bool", "false">:$fetch,
                    DefaultValuedParameter<"bool", "false">:$nta,
                    DefaultValuedParameter<"bool", "false">:$in_turn,
                    DefaultValuedParameter<"bool", "false">:$wide);
  let assemblyFormat = "`<` struct(params) `>`";
}

#endif
