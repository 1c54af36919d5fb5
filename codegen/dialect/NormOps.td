// Operations of the norm dialect. NormDialect.td explains it.
#ifndef NORMC_OPS
#define NORMC_OPS

include "codegen/dialect/NormDialect.td"
include "mlir/IR/BuiltinAttributes.td"
include "mlir/IR/CommonAttrConstraints.td"
include "mlir/IR/SymbolInterfaces.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

/// An enumeration prints a space before its word, so a format has `` in front of it: no second one.
class Norm_Op<string mnemonic, list<Trait> traits = []> : Op<Norm_Dialect, mnemonic, traits>;

def Norm_Tensors : TypedArrayAttrBase<FlatSymbolRefAttr, "tensors declared in the kernel">;

//===-- Structure ---------------------------------------------------------===//

def Norm_KernelOp : Norm_Op<"kernel", [IsolatedFromAbove, Symbol, SymbolTable, NoTerminator, SingleBlock]> {
  let summary = "one entry point of one problem";
  let description = [{
    `statistics` is the type in which statistics are computed. `groups` and
    `pre_groups` divide the feature axis; `features` is absent if the kernel serves
    any number. `segments_are_one`: the segment axis has length 1. `numbers` names
    the scalar parameters in their order. `block` is the number of features of a block
    of codes, which has one scale; without it a row has one. `rope`: the pairs of features
    whose elements a sweep reads together.
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, StrAttr:$problem, Norm_LayoutAttr:$layout, TypeAttr:$statistics,
                   I64Attr:$groups, I64Attr:$pre_groups, OptionalAttr<I64Attr>:$features,
                   UnitAttr:$segments_are_one, StrArrayAttr:$numbers, OptionalAttr<I64Attr>:$block,
                   OptionalAttr<Norm_RopeAttr>:$rope, OptionalAttr<Norm_ScheduleAttr>:$schedule);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "$sym_name `` $layout attr-dict-with-keyword $body";
  let extraClassDeclaration = [{
    /// True if the axis `feature` is contiguous; else `row` is.
    bool featuresLast() { return getLayout() == Layout::FeaturesLast; }
    Axis contiguousAxis() { return featuresLast() ? Axis::Feature : Axis::Row; }
    /// Returns how many groups of the axis `group` or `pre_group` a row has.
    int64_t groupsAlong(Axis axis) { return axis == Axis::PreGroup ? getPreGroups() : getGroups(); }
    bool hasMask() { return ::mlir::SymbolTable::lookupSymbolIn(getOperation(), "mask"); }
    /// Returns the tensor of that name, or the tensors of a list of symbols; the kernel has to declare them.
    TensorOp tensor(::llvm::StringRef name) const;
    ::llvm::SmallVector<TensorOp, 4> tensors(::mlir::ArrayAttr symbols) const;
  }];
}

def Norm_TensorOp : Norm_Op<"tensor", [Symbol, HasParent<"KernelOp">]> {
  let summary = "an operand of the kernel";
  let description = [{
    `axes` index it: segment, row, feature, group, block, pair, window, or chunk: the chunks
    of the phase whose number is `chunk_of`. A tensor with row and feature is X-sized.
    A tensor with the axis partial is one field of the partials of a call, in f64.
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, TypeAttr:$type, Norm_AxesAttr:$axes,
                   OptionalAttr<I64Attr>:$chunk_of, Norm_RoleAttr:$role, Norm_AccessAttr:$access,
                   DefaultValuedAttr<I64Attr, "0">:$window);
  let assemblyFormat = "$sym_name `:` $type $axes (`of` $chunk_of^)? `` $role `` $access attr-dict";
  let extraClassDeclaration = [{
    bool hasAxis(Axis axis) { return ::llvm::is_contained(getAxes(), axis); }
    bool isXSized() { return hasAxis(Axis::Row) && hasAxis(Axis::Feature); }
    /// True if elements along the axis have elements of the tensor of their own.
    bool follows(Axis axis) { return hasAxis(axis) || (axis == Axis::Feature && hasAxis(Axis::Pair)); }
    bool isWorkspace() { return getRole() == package::Role::Workspace; }
    /// Returns the row of a call's tensor in runtime/abi/Operands.h; null for state, saved statistics and workspace.
    const TensorInfo* info();
    /// Returns the number of the phase whose chunks index the tensor; -1 if it has no axis `chunk`.
    int64_t chunkPhase() { return getChunkOf().value_or(-1); }
  }];
  let hasVerifier = 1;
}

def Norm_PhaseOp : Norm_Op<"phase", [Symbol, NoTerminator, SingleBlock, HasParent<"KernelOp">]> {
  let summary = "tasks that may run in any order, after all of the phase before";
  let description = [{
    `units` are the axes whose product is cut into chunks, one a task. `warmup`: its
    result is used only while the step count is within the warmup; its sweeps have
    that `condition`. `by_segment`: no chunk has units of two segments, and all
    segments have the same number of chunks.
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, Norm_PhaseRoleAttr:$role, Norm_AxesAttr:$units, UnitAttr:$warmup,
                   UnitAttr:$by_segment);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "$sym_name `` $role `over` $units attr-dict-with-keyword $body";
  let extraClassDeclaration = [{
    int64_t number();
    /// True if units have an index along the axis.
    bool hasUnits(Axis axis) { return ::llvm::is_contained(getUnits(), axis); }
    /// True if the units are the features.
    bool isOverFeatures() { return getUnits() == ::llvm::ArrayRef(Axis::Feature); }
  }];
  let hasVerifier = 1;
}

def Norm_SlabOp : Norm_Op<"slab", [NoTerminator, SingleBlock, HasParent<"PhaseOp">]> {
  let summary = "the elements that share one statistic";
  let description = [{
    `per` is a subset of segment, row, feature, group, pre_group. Empty: the rows
    of the task, with no complete statistic. `head = n`: only n valid rows of the
    task, to estimate a mean. Their sum may be n times a robust centre.
    A slab without sweeps is a loop over the statistics.

    The planner decides the `kind`, with which all targets choose their loops:
    `run`     elements that are contiguous: a row, a group of it, a channel
    `block`   several such runs
    `column`  a loop over vectors of statistics: each lane has its own, of a feature or, across channels, of a
              row
    `stream`  no complete statistic: the rows of a task go by
  }];
  let arguments = (ins Norm_SlabKindAttr:$kind, Norm_AxesAttr:$per, UnitAttr:$resident,
                   OptionalAttr<I64Attr>:$head);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "`` $kind $per (`head` $head^)? (`resident` $resident^)? attr-dict-with-keyword $body";
  let extraClassDeclaration = [{
    bool isPer(Axis axis) { return ::llvm::is_contained(getPer(), axis); }
    bool hasSweeps();
    /// Returns the sweeps in their order, those of blocks too.
    ::llvm::SmallVector<SweepOp, 4> sweeps();
    /// Returns the axis that divides the features; `group` if none does.
    Axis groupAxis() { return isPer(Axis::PreGroup) ? Axis::PreGroup : Axis::Group; }
    /// Returns how many statistics the features of a row have; 1 unless the slab is per group or per pre_group.
    int64_t groups();
    /// True if tasks share rows of the slab: a task has some features of each.
    bool isSplit();
    /// True if the slab of a feature has only rows of the task, with layout channels_first.
    bool isOfRows();
    /// True if a statistic is of a row whose features do not lie together, with layout channels_first.
    bool isAcrossChannels();
  }];
  let hasVerifier = 1;
}

def Norm_SweepOp : Norm_Op<"sweep", [SingleBlock]> {
  let summary = "one pass over the elements of a slab";
  let description = [{
    The region computes one element. Its arguments are the elements of `reads` (in
    the statistics type; a mask as i1), then those of `mates` at the other feature of
    the pair that `rope` of the kernel turns. Where `rope` turns a part of the features,
    an i1 follows: true if it turns this one. It yields one value for each of `writes`,
    then one term for each result (reduced over the slab), then one term for each of
    `partials` (summed into that workspace over the axes that it lacks).
    Of a tensor of pairs the element is that of the feature's pair, and of @rope_sin the
    negative for the first of a pair. So a pair of m is turned by m * cos + mate of m * sin.
    For a feature that is not turned @rope_cos is 1; mates and @rope_sin have any value.
    `combiners` says how the terms are reduced, one for each result and then for each
    partial; without it all are added. Partials are always added: their workspace is
    cleared to 0.
    If `condition` is false nothing is read and the results are the identities.
  }];
  let arguments = (ins Optional<I1>:$condition, Norm_Tensors:$reads, OptionalAttr<Norm_Tensors>:$mates,
                   Norm_Tensors:$writes, Norm_Tensors:$partials, OptionalAttr<Norm_CombinersAttr>:$combiners);
  let results = (outs Variadic<AnyFloat>:$sums);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = [{ (`if` $condition^)? `reads` $reads (`mates` $mates^)? `writes` $writes `into` $partials
                          (`by` $combiners^)? attr-dict-with-keyword $body (`:` type($sums)^)? }];
  let extraClassDeclaration = [{
    /// Returns the combiner of result i, or of partial i - the number of results.
    Combiner combinerOf(size_t i) { return getCombiners() ? (*getCombiners())[i] : Combiner::Add; }
    /// Returns the argument that says whether `rope` turns the feature; null if it turns all.
    ::mlir::Value isTurned();
  }];
  let hasVerifier = 1;
}

def Norm_BlocksOp : Norm_Op<"blocks", [SingleBlock, NoTerminator, HasParent<"SlabOp">]> {
  let summary = "scalar code and sweeps for each block of a run";
  let description = [{
    In a slab of runs. The body is executed for one block of `block` features of the
    kernel after the other: its sweeps go over the elements of the block, and its loads
    and stores have its index. Nothing behind it uses its values.
  }];
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "attr-dict-with-keyword $body";
  let hasVerifier = 1;
}

def Norm_YieldOp : Norm_Op<"yield", [Terminator, Pure]> {
  let summary = "the values of one element, or the new values of a fold";
  let arguments = (ins Variadic<AnyType>:$values);
  let assemblyFormat = "($values^ `:` type($values))? attr-dict";
}

//===-- Scalars and vectors -----------------------------------------------===//

def Norm_LoadOp : Norm_Op<"load"> {
  let summary = "the element of a tensor that belongs to this statistic";
  let arguments = (ins FlatSymbolRefAttr:$tensor, Optional<Index>:$window);
  let results = (outs AnyType:$value);
  let assemblyFormat = "$tensor (`[` $window^ `]`)? attr-dict `:` type($value)";
}

def Norm_StoreOp : Norm_Op<"store"> {
  let summary = "sets the element of a tensor that belongs to this statistic";
  let arguments = (ins AnyType:$value, FlatSymbolRefAttr:$tensor, Optional<Index>:$window);
  let assemblyFormat = "$value `,` $tensor (`[` $window^ `]`)? attr-dict `:` type($value)";
}

def Norm_AccumulateOp : Norm_Op<"accumulate"> {
  let summary = "adds to a workspace that the task has cleared";
  let arguments = (ins AnyFloat:$value, FlatSymbolRefAttr:$tensor);
  let assemblyFormat = "$value `,` $tensor attr-dict `:` type($value)";
}

def Norm_ProbeOp : Norm_Op<"probe", [IsolatedFromAbove]> {
  let summary = "a shift estimate: a value near the mean of the slab, exact if the data are constant";
  let description = [{
    The shift of a one-pass variance: a middle or a mean of some valid elements from
    the whole slab, or 0 if there are none. With `whole` it is the mean itself, of a
    row of 1, 2, 4 or 8 vectors. The region computes the value of one element from
    those of `reads`, of which one at least is X-sized; without a region there is
    one tensor, and the shift is rounded to its type.
  }];
  let arguments = (ins Norm_Tensors:$reads, UnitAttr:$whole);
  let results = (outs AnyFloat:$value);
  let regions = (region MaxSizedRegion<1>:$body);
  let assemblyFormat = "$reads attr-dict-with-keyword ($body^)? `:` type($value)";
  let extraClassDeclaration = [{
    /// Returns the names of the tensors that an element is computed from.
    ::llvm::SmallVector<::llvm::StringRef, 2> tensors();
  }];
  let hasVerifier = 1;
}

def Norm_CountOp : Norm_Op<"count"> {
  let summary = "the number of valid rows";
  let description = [{
    `scope` is `all`, `task` (the rows of the task; `head`: at most the first n) or
    `slab` (the rows inside the slab). Rows that the mask leaves out do not count,
    except under the scope `rows`: all rows, valid or not.
  }];
  let arguments = (ins Norm_CountScopeAttr:$scope, OptionalAttr<I64Attr>:$head);
  let results = (outs AnyFloat:$value);
  let assemblyFormat = "`` $scope (`head` $head^)? attr-dict `:` type($value)";
}

def Norm_WidthOp : Norm_Op<"width", [Pure]> {
  let summary = "the number of features of one group (`groups`, `pre_groups`), or of a `task` that has a part of a row";
  let arguments = (ins Norm_WidthOfAttr:$groups);
  let results = (outs AnyFloat:$value);
  let assemblyFormat = "`` $groups attr-dict `:` type($value)";
}

def Norm_ScalarOp : Norm_Op<"scalar", [Pure]> {
  let summary = "a scalar parameter of the kernel, in f64";
  let arguments = (ins StrAttr:$name);
  let results = (outs F64:$value);
  let assemblyFormat = "$name attr-dict";
}

def Norm_FoldOp : Norm_Op<"fold", [SingleBlock]> {
  let summary = "folds tensors along their axis `chunk`, `window` or `partial`, in order";
  let description = [{
    `chunk_of` is the number of the phase whose chunks are folded, `extent` that of a window.
    `of_segment`: only the chunks of the slab's segment, of a phase that is cut `by_segment`.
    Region arguments: the position (index), the running values, one element of
    each of `reads`, of partials in f64. Yields the new running values.
    `merges`: parts may be folded apart, each from `init`. The running values of one then take the place of the
    elements, widened, in a fold into those of another. There is one running value for each tensor, or none is used
    for those that follow.
  }];
  let arguments = (ins Norm_AxisAttr:$axis, OptionalAttr<I64Attr>:$chunk_of, UnitAttr:$of_segment, UnitAttr:$merges,
                   OptionalAttr<I64Attr>:$extent, Norm_Tensors:$reads, Variadic<AnyFloat>:$init);
  let results = (outs Variadic<AnyFloat>:$values);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = [{ `` $axis (`of` $chunk_of^)? (`in_segment` $of_segment^)? (`extent` $extent^)?
                          (`merges` $merges^)? `reads` $reads
                          (`from` $init^ `:` type($init))? attr-dict-with-keyword $body
                          (`->` type($values)^)? }];
  let hasVerifier = 1;
}

#endif
