// One phase of a kernel as one Halide pipeline.
//
// A driver Func without dimensions has one update definition for each way in which a
// slab is walked; the units (rows, tiles of columns) are its reduction domain. The stages of
// the slab are computed at that loop, in their order: every
// sweep, fold and stretch of scalar code is a Func, Tuple-valued, with one element
// for each value that later stages need and a last one, its token, whose value is a
// call that stands for the writes of the stage (Finish.h). A sweep is a reduction:
//
//   sweep(v, unit) = (0, ..., token)
//   sweep(v, unit) = (sweep(v, unit)[0] + term, ..., write(y at step * lanes + v, ...))
//
// so one read serves what it writes and what it sums. Nothing here knows a norm.
#pragma once

#include <functional>

#include "codegen/targets/halide/generator/Arithmetic.h"
#include "runtime/abi/Sums.h"

namespace normc::halide {

class Translation {
 public:
  Translation(Memory&, const Schedule&);
  /// Returns the driver. Everything that it needs is scheduled.
  Halide::Func run();
  /// Returns the most additions to one sum in a loop of known length, or of a length with a known bound
  /// (runtime/abi/Sums.h).
  int64_t longestChain() const { return longestChain_; }

 private:
  //===-- Stages and their loops (Stages.cpp) -------------------------------------===//
  struct Stage {
    Halide::Func func;
    size_t values = 0;                     ///< the token comes after them
    int64_t lanes = 0;                     ///< of its first argument; 0: it has none
    std::vector<Combiner> combiners = {};  ///< of the values; empty: all are added
    Combiner by(size_t i) const { return combiners.empty() ? Combiner::Add : combiners[i]; }
    Expr at(const Exprs& site, Expr lane, size_t i) const;
    /// Returns the tokens that a later stage mentions.
    Exprs tokens(const Exprs& site) const;
    /// Returns a value, combined over the lanes.
    Expr across(const Exprs& site, size_t i) const;
  };
  struct Nest {
    std::vector<Halide::Var> site;  ///< arguments of every stage: the unit
    std::vector<Stage> stages;
    Exprs here() const { return {site.begin(), site.end()}; }
  };
  /// Adds a new stage after those of the nest, to which definitions are added with `update`.
  Stage define(Nest&, const std::string& name, int64_t lanes, Exprs values,
               const std::vector<Write>& writes = {});
  /// Adds a stage whose values are reductions: they begin at the identities of the combiners.
  Stage reduction(Nest&, const std::string& name, int64_t lanes, std::vector<Combiner>);
  /// `lane`: the variable for all lanes, or a constant for one.
  void update(Stage&, Nest&, Expr lane, const Exprs& values, const std::vector<Write>&, const Halide::RDom&,
              const Exprs& after = {});
  void noteChain(const Halide::RDom&);
  /// Runs the stages of a nest for `count` values of each site variable, the first innermost,
  /// if `condition` of them holds.
  void drive(Nest&, const Exprs& counts, const std::function<Expr(const Exprs&)>& condition = {});
  /// Returns a stage with the values combined in at most four lanes.
  Stage folded(Nest&, const Stage&);
  Exprs before(const Nest&) const;
  void spread(Halide::Stage, int64_t lanes, const std::vector<Halide::RVar>& loops);

  //===-- Slabs (Slabs.cpp) --------------------------------------------------------===//
  struct Replica {
    Coordinates at;
    Values values;
    Expr valid;  ///< rows of its slab, once counted
  };
  using Replicas = std::vector<Replica>;
  Coordinates unitCoordinates(Expr unit);
  void zeroPartials();
  void slab(const Op&, const Values& shared);
  int64_t rowsTogether(const Op& slab) const;
  void lines(const Op&, const Values& shared);
  void blocks(const Op&, const Values& shared);
  void columns(const Op&, const Values& shared);
  void stream(const Op&, const Values& shared);
  void body(const Op& slab, Nest&, Replicas&);
  /// The units of a slab, and for pilot rows among masked rows the end of those that count.
  struct Units {
    Expr begin, count, end;
    bool searched = false;  ///< only those before `end`
  };
  Units unitsOf(const Op& slab);
  Expr searchHead(int64_t head);

  //===-- Scalar code (Scalars.cpp) --------------------------------------------------===//
  /// Translates operations from `first` on, up to the next sweep. Returns its position.
  size_t scalars(const std::vector<Op>&, size_t first, Nest&, Replicas&, int64_t lanes);
  void fold(const Op&, Nest&, Replicas&, int64_t lanes);
  Expr count(const Op&, Nest*, const Replica*);
  /// Returns the valid rows among `units` of them, computed once in the task if there is no nest.
  Expr countValid(const std::string& key, Expr units, const std::function<Coordinates(Expr)>& place, Nest*);
  void scalar(const Op&, Replica&, std::vector<Write>&);
  /// Puts the values of the replicas that `rest` needs into a stage.
  void settle(Nest&, Replicas&, int64_t lanes, std::vector<Write>&, const std::vector<Op>& ops, size_t rest);
  bool isTaskConstant(const Expr&) const;

  //===-- A value near the mean (Probe.cpp) ---------------------------------------------===//
  void probe(const Op&, Nest&, Replicas&, int64_t lanes);
  Expr maskedProbe(const Op&, Nest&, Replica&, int64_t lanes);
  /// Returns a stage of 16 valid rows, spread over all valid ones: each lane is the number of rows from one
  /// on. Over all segments it is computed once in a task.
  Stage rowsFrom(Nest&, Replica&, const Expr& units);
  /// Returns the coordinates of a row of the slab, counted over its segments.
  Coordinates maskedUnit(Coordinates, const Expr& unit) const;
  Coordinates probedPlace(Coordinates, int64_t i, int64_t parts) const;
  Expr probedFeature(const Coordinates&, int64_t i, int64_t parts) const;
  Expr sampled(const Op& probe, const Coordinates&) const;  ///< the value of one element
  /// Returns the n-th pilot row of a task: see SlabLowering::headUnit.
  Expr headUnit(Expr n, int64_t head);

  //===-- Sweeps (Sweeps.cpp) -----------------------------------------------------------===//
  struct Sweep {
    const Op* op;
    std::vector<const Tensor*> reads, writes, partials;
    std::vector<bool> alongRun;            ///< of partials: summed along the contiguous axis first
    size_t slots = 0;                      ///< sums and those partials
    std::vector<Combiner> combiners = {};  ///< of the slots
  };
  Sweep sweepOf(const Op&) const;
  static bool addsNarrowDifferences(const Sweep&);
  struct Terms {
    std::vector<std::vector<std::pair<Values, int>>> slots;  ///< of each replica
    std::vector<Write> writes;
  };
  /// Evaluates the sweep on one element of every replica.
  Terms element(const Sweep&, const Replicas&, const std::function<Coordinates(const Replica&)>& place,
                bool robust);
  /// Returns the sums of a stage with the terms added: each replica has sums of its own, or all share them.
  Exprs added(const Stage&, const Nest&, Expr lane, const Terms&, bool shared);
  /// Returns sums in two levels: a stage has the lower ones first, then as many upper ones. `next` are the
  /// lower ones with terms added. If `last` holds they go to the upper ones and begin at the identity.
  Exprs raised(const Stage&, const Nest&, Exprs next, const Expr& last) const;
  static Expr isLastOfChain(const Expr& number);
  Expr conditioned(const Op&, const Values&, Expr count);
  Stage along(const Sweep&, Nest&, const Replicas&, Expr runBegin, Expr width, bool robust = false);
  void lineSweep(const Op&, Nest&, Replicas&);
  void blockSweep(const Op&, const Op& slab, Nest&, Replicas&);
  void columnSweep(const Op&, const Op& slab, Nest&, Replicas&, int64_t lanes);
  Expr runWidth(const Op& slab) const;
  Expr laneSum(const Stage&, const Exprs& site, size_t i) const;

  Memory& m_;
  const Kernel& kernel_;
  Schedule schedule_;
  Halide::Var v_{kLane};
  Halide::Func driver_;
  const Op* slab_ = nullptr;
  Kind kind_ = Kind::Run;
  Expr runBegin_;               ///< of the slab along the contiguous axis
  int64_t columnLanes_ = 0;     ///< of a column slab's stages
  std::vector<int> unsettled_;  ///< values that are computed again wherever they are used
  std::vector<Halide::Func> atRoot_;
  std::map<std::string, Expr> counts_;
  std::optional<Stage> rowsFrom_;
  int64_t longestChain_ = 0;
};

}  // namespace normc::halide
