// The norm dialect: a kernel as a list of sweeps over X-sized data.
#ifndef NORMC_DIALECT
#define NORMC_DIALECT

include "mlir/IR/OpBase.td"
include "mlir/IR/AttrTypeBase.td"

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

def Norm_ScheduleAttr : Norm_Attr<"Schedule", "schedule"> {
  let summary = "how the sweeps of a kernel become loops";
  let description = [{
    `strategy`    `streamed`: column statistics in chunks of rows, combined in a
                  second phase; `resident`: the whole column slab at once.
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
    `in_turn`     the rows of a step are stored one after the other.
  }];
  let parameters = (ins StringRefParameter<"streamed | resident">:$strategy, "int64_t":$vector,
                    "int64_t":$rows, "int64_t":$unroll, "int64_t":$tile, "int64_t":$grain,
                    DefaultValuedParameter<"bool", "false">:$scalar_tail,
                    DefaultValuedParameter<"int64_t", "0">:$stream,
                    DefaultValuedParameter<"bool", "false">:$ahead,
                    DefaultValuedParameter<"bool", "false">:$fetch,
                    DefaultValuedParameter<"bool", "false">:$in_turn);
  let assemblyFormat = "`<` struct(params) `>`";
}

#endif
