#include "codegen/plan/Planner.h"

#include "codegen/plan/Around.h"
#include "codegen/plan/Plans.h"
#include "codegen/plan/Quantize.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/ADT/TypeSwitch.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Verifier.h"

using namespace mlir;

namespace normc::codegen {

/// Returns why scales of codes do not fit the slabs of a strategy.
static std::optional<std::string> whyNotScaled(const Problem& problem, Strategy strategy) {
  const Spec& spec = *problem.spec;
  if (isBackward(problem.entry) || !scalesRows(spec)) return std::nullopt;
  if (strategy == Strategy::Split) return "the scale of codes needs whole rows: strategy resident";
  if (spec.pre) return "groups of 'pre' do not have the scales of whole rows of codes: quantize per = tensor";
  if (spec.perFeature())
    return strategy == Strategy::Streamed ? std::nullopt
                                          : std::optional<std::string>(
                                                "a resident column slab has no whole rows, which scales of "
                                                "codes are of: strategy streamed");
  if (!spec.perRow())
    return "a slab of a segment has no rows of its own, which scales of codes are of: quantize per = tensor";
  const int64_t groups = problem.groups(spec.groups);
  if (groups == 1) return std::nullopt;
  if (spec.quantize->per == QuantizePer::Row)
    return "a row of " + std::to_string(groups) + " groups has one scale of codes: quantize per = block";
  const int64_t width = problem.features.value_or(0) / groups, size = spec.quantize->size;
  if (width > 0 && width % size == 0) return std::nullopt;
  return "blocks of " + std::to_string(size) + " features lie in several groups" +
         (width > 0 ? " of " + std::to_string(width) : " of a number that is not known") +
         "; their size has to divide it";
}

/// Returns why the slabs of a strategy do not have both features of a pair that `rope` turns.
static std::optional<std::string> whyNotTurned(const Problem& problem, Strategy strategy) {
  const Spec& spec = *problem.spec;
  if (!spec.rope) return std::nullopt;
  if (spec.reduce == Reduce::Segment)
    return "the two features of a pair that 'rope' turns have statistics of their own in each segment: "
           "reduce rows, features or segment_features";
  if (strategy == Strategy::Split)
    return "'rope' turns pairs of features, of which a task may have one: strategy resident";
  if (strategy == Strategy::Resident && spec.perFeature())
    return "'rope' turns pairs of features, of which a column slab has one: strategy streamed";
  return std::nullopt;
}

std::optional<std::string> whyIllegal(const Problem& problem, Strategy strategy) {
  const Spec& spec = *problem.spec;
  if (auto reason = whyNotScaled(problem, strategy)) return reason;
  if (auto reason = whyNotTurned(problem, strategy)) return reason;
  bool channelsFirst = problem.layout == Layout::ChannelsFirst;
  if (channelsFirst && spec.pre) return "group scaling of rows needs layout features_last";
  if (isOverRanks(problem.entry) && strategy != Strategy::Streamed)
    return "an entry over ranks stores or reads sums between its sweeps: strategy streamed";
  if (strategy == Strategy::Split) {
    if (hasSegmentSums(problem))
      return "gradients that are sums over the rows of a segment need tasks of its rows: strategy resident";
    if (!spec.perRow()) return "only a statistic of a row is split over its features: strategy resident";
    if (channelsFirst)
      return "the features of a row do not lie together in layout channels_first: strategy resident";
    if (const int64_t groups = problem.groups(spec.groups); groups != 1)
      return "a row of " + std::to_string(groups) + " groups is split by them already: strategy resident";
    return std::nullopt;
  }
  if (!spec.perFeature())
    return strategy == Strategy::Resident
               ? std::nullopt
               : std::optional<std::string>(
                     "a statistic per row or segment is complete in its slab: strategy resident");
  if (spec.pre && strategy == Strategy::Resident)
    return "group scaling needs whole rows, a resident column slab has only some features: strategy streamed";
  return std::nullopt;
}

std::optional<std::string> whyNoStrategy(const Problem& problem) {
  std::optional<std::string> first;
  for (Strategy strategy : {Strategy::Resident, Strategy::Streamed, Strategy::Split}) {
    const auto reason = whyIllegal(problem, strategy);
    if (!reason) return std::nullopt;
    // The reason of the strategy that is meant for the norm.
    if (!first && (strategy == Strategy::Streamed) == problem.spec->perFeature()) first = reason;
  }
  return first;
}

std::optional<std::string> whyOnCpuAlone(const Problem& problem) {
  if (problem.layout == Layout::FeaturesLast) return std::nullopt;
  if (problem.spec->perRow())
    return "the features of a row do not lie together in layout channels_first: "
           "only MLIR for a CPU goes across channels";
  if (isOverRanks(problem.entry))
    return "an entry over ranks goes through channels in the order of memory: only MLIR for a CPU does";
  return std::nullopt;
}

std::optional<std::string> whyInMlirAlone(const Problem& problem) {
  if (problem.spec->quantize && !isBackward(problem.entry)) return "quantized output: only MLIR stores codes";
  if (problem.spec->rope) return "'rope': only MLIR turns pairs of features";
  if (problem.output && *problem.output != problem.data)
    return "y of another type than x: only MLIR stores it";
  if (problem.roundsBeforeAffine()) return "round=normalized: only MLIR rounds before the affine";
  if (problem.stream && *problem.stream != problem.data)
    return "a residual of another type than x: only MLIR adds it";
  return std::nullopt;
}

std::optional<std::string> whyIllegalOnSomeTarget(const Problem& problem, Strategy strategy) {
  if (auto reason = whyIllegal(problem, strategy)) return reason;
  if (auto reason = whyOnCpuAlone(problem)) return reason;
  if (problem.layout == Layout::ChannelsFirst && strategy == Strategy::Streamed)
    return "a channel is one slab in layout channels_first: strategy resident";
  return std::nullopt;
}

SmallVector<Strategy, 2> legalStrategies(const Problem& problem) {
  SmallVector<Strategy, 2> legal;
  for (Strategy s : kStrategies)
    if (!whyIllegalOnSomeTarget(problem, s)) legal.push_back(s);
  return legal;
}

/// Declares tensors in the order of their first use, which is that of a kernel's operands. Tensors without
/// one come first.
static void orderTensors(KernelOp kernel) {
  Block& body = kernel.getBody().front();
  Operation* end = &*llvm::find_if(body, [](Operation& op) { return !isa<TensorOp>(op); });
  llvm::DenseSet<Operation*> placed;
  auto place = [&](StringRef name) {
    TensorOp tensor = kernel.tensor(name);
    if (placed.insert(tensor).second) tensor->moveBefore(end);
  };
  auto all = [&](ArrayAttr names) {
    for (auto name : names.getAsRange<FlatSymbolRefAttr>()) place(name.getValue());
  };
  kernel.walk<WalkOrder::PreOrder>([&](Operation* op) {
    llvm::TypeSwitch<Operation*>(op)
        .Case([&](SweepOp s) {
          all(s.getReads());
          all(s.getWrites());
          all(s.getPartials());
        })
        .Case<FoldOp, ProbeOp>([&](auto reader) { all(reader.getReads()); })
        .Case<LoadOp, StoreOp, AccumulateOp>([&](auto access) { place(access.getTensor()); });
  });
}

llvm::Expected<KernelOp> planKernel(ModuleOp module, const Problem& problem, Strategy strategy,
                                    StringRef symbol, int64_t vector) {
  if (auto reason = whyIllegal(problem, strategy))
    return llvm::createStringError(problem.text() + " cannot be planned as " + name(strategy).str() + ": " +
                                   *reason);
  KernelBuilder builder(module, problem, symbol);
  if (strategy == Strategy::Split) {
    planInFeatureChunks(builder);
  } else if (strategy == Strategy::Streamed) {
    planInRowChunks(builder);
  } else {
    planInSlab(builder, vector);
  }
  orderTensors(builder.kernel());
  // A plan is made by code alone, so a plan that does not verify is not a fault of the input.
  if (failed(verify(builder.kernel())))
    return llvm::createStringError("the plan of " + problem.text() +
                                   " does not verify; this is a fault of normc");
  return builder.kernel();
}

llvm::Error withPlan(const Problem& problem, Strategy strategy, llvm::function_ref<void(KernelOp)> look) {
  MLIRContext context(MLIRContext::Threading::DISABLED);
  context.loadDialect<NormDialect, arith::ArithDialect, math::MathDialect>();
  OwningOpRef<ModuleOp> module(ModuleOp::create(UnknownLoc::get(&context)));
  auto kernel = planKernel(*module, problem, strategy, "kernel");
  if (!kernel) return kernel.takeError();
  look(*kernel);
  return llvm::Error::success();
}

TrafficBounds trafficBoundsOf(KernelOp kernel) {
  return {trafficOf(kernel), trafficOf(kernel, /*warmup=*/false, [](SlabOp) { return false; })};
}

// A slab that stays on chip reads a tensor once; any other reads it in each of its sweeps.
Traffic trafficOf(KernelOp kernel, bool warmup, llvm::function_ref<bool(SlabOp)> keeps) {
  Traffic traffic;
  auto xSized = [&](Attribute symbol) {
    return kernel.tensor(cast<FlatSymbolRefAttr>(symbol).getValue()).isXSized();
  };
  for (auto phase : kernel.getOps<PhaseOp>()) {
    for (auto slab : phase.getOps<SlabOp>()) {
      if (slab.getHead()) continue;  // a fixed number of rows, not X-sized
      const bool kept = keeps ? keeps(slab) : slab.getResident();
      llvm::StringSet<> seen;
      for (SweepOp sweep : slab.sweeps()) {
        if (sweep.getCondition() && !warmup) continue;
        for (Attribute symbol : sweep.getReads())
          if (xSized(symbol) && (seen.insert(cast<FlatSymbolRefAttr>(symbol).getValue()).second || !kept))
            ++traffic.reads;
        traffic.writes += llvm::count_if(sweep.getWrites(), xSized);
      }
    }
  }
  return traffic;
}

}  // namespace normc::codegen
