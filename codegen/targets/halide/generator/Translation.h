// One phase of a kernel as one Halide pipeline.
//
// A driver Func without dimensions has one update definition for each way in which a
// slab is walked: its reduction domain are the units (rows, tiles of columns). Under
// that loop, computed at it, stand the stages of the slab in their order: every
// sweep, fold and stretch of scalar code is a Func, Tuple-valued, with one element
// for each value that later stages need and a last one, its token, whose value is a
// call that stands for what the stage writes (Finish.h). A sweep is a reduction:
//
//   sweep(v, unit) = (0, ..., token)
//   sweep(v, unit) = (sweep(v, unit)[0] + term, ..., write(y at step * lanes + v, ...))
//
// so what it writes and what it sums come from one read. Nothing here knows a norm.
#pragma once

#include <functional>

#include "codegen/targets/halide/generator/Arithmetic.h"
#include "runtime/abi/Sums.h"

namespace normc::halide {

class Translation {
 public:
  Translation(Memory&, const Schedule&);
  /// The driver; everything it needs is scheduled.
  Halide::Func run();
  /// The most additions that one loop of known length, or of a length with a known bound, puts on a sum
  /// (runtime/abi/Sums.h).
  int64_t longestChain() const { return longestChain_; }

 private:
  //===-- Stages and the loops they stand in (Stages.cpp) -------------------------===//
  struct Stage {
    Halide::Func func;
    size_t values = 0;  ///< the token comes after them
    int64_t lanes = 0;  ///< of its first argument; 0: it has none
    Expr at(const Exprs& site, Expr lane, size_t i) const;
    /// What a stage after this one mentions.
    Exprs tokens(const Exprs& site) const;
    /// A sum over its lanes.
    Expr across(const Exprs& site, size_t i) const;
  };
  struct Nest {
    std::vector<Halide::Var> site;  ///< arguments of every stage: which unit
    std::vector<Stage> stages;
    Exprs here() const { return {site.begin(), site.end()}; }
  };
  /// A new stage after those of the nest, to which definitions are added with `update`.
  Stage define(Nest&, const std::string& name, int64_t lanes, Exprs values,
               const std::vector<Write>& writes = {});
  /// `lane`: the variable for all lanes, or a constant for one.
  void update(Stage&, Nest&, Expr lane, const Exprs& values, const std::vector<Write>&, const Halide::RDom&,
              const Exprs& after = {});
  void noteChain(const Halide::RDom&);
  /// Runs the stages of a nest for `count` values of each site variable, the first innermost,
  /// where `condition` of them holds.
  void drive(Nest&, const Exprs& counts, const std::function<Expr(const Exprs&)>& condition = {});
  /// The sums of a stage in at most four lanes.
  Stage folded(Nest&, const Stage&);
  Exprs before(const Nest&) const;
  void spread(Halide::Stage, int64_t lanes, const std::vector<Halide::RVar>& loops);

  //===-- Slabs (Slabs.cpp) --------------------------------------------------------===//
  struct Replica {
    Coordinates at;
    Values values;
  };
  using Replicas = std::vector<Replica>;
  enum class Kind { Run, Block, Column, Stream };
  Kind kindOf(const Op& slab) const;
  Coordinates unitCoordinates(Expr unit);
  void zeroPartials();
  void slab(const Op&, const Values& shared);
  void walk(const Op&, const Values& shared);
  /// Whether large calls have loops of their own.
  bool streams(const Op& slab) const;
  Schedule ofLargeCalls(int64_t rows) const;
  int64_t rowsTogether(const Op& slab) const;
  /// Whether the run that is being walked begins at a line if its row does.
  bool beginsAtLine() const;
  void lines(const Op&, const Values& shared);
  void blocks(const Op&, const Values& shared);
  void columns(const Op&, const Values& shared);
  void stream(const Op&, const Values& shared);
  void body(const Op& slab, Nest&, Replicas&);
  /// Units of a slab: how many there are, and for a head among masked rows which of them count.
  struct Units {
    Expr begin, count, end;
    bool searched = false;  ///< only those before `end`
  };
  Units unitsOf(const Op& slab);
  Expr searchHead(int64_t head);

  //===-- Scalar code (Scalars.cpp) --------------------------------------------------===//
  /// Operations from `first` on, up to the next sweep; returns where that is.
  size_t scalars(const std::vector<Op>&, size_t first, Nest&, Replicas&, int64_t lanes);
  void fold(const Op&, Nest&, Replicas&, int64_t lanes);
  Expr count(const Op&, Nest*, const Replica*);
  /// Valid rows among `units` of them; computed once in the task where there is no nest.
  Expr countValid(const std::string& key, Expr units, const std::function<Coordinates(Expr)>& place, Nest*);
  void scalar(const Op&, Replica&, std::vector<Write>&);
  /// Gives what the replicas have computed a place in a stage, as far as `rest` needs it.
  void settle(Nest&, Replicas&, int64_t lanes, std::vector<Write>&, const std::vector<Op>& ops, size_t rest);
  bool isTaskConstant(const Expr&) const;

  //===-- A value near the mean (Probe.cpp) ---------------------------------------------===//
  void probe(const Op&, Nest&, Replicas&, int64_t lanes);
  Expr maskedProbe(const Op&, Nest&, const Replica&, int64_t lanes);
  Coordinates probedPlace(Coordinates, int64_t i, int64_t parts) const;
  Expr probedFeature(const Coordinates&, int64_t i, int64_t parts) const;
  /// The n-th row of a task that is asked for its head: see SlabLowering::headUnit.
  Expr headUnit(Expr n, int64_t head);

  //===-- Sweeps (Sweeps.cpp) -----------------------------------------------------------===//
  struct Sweep {
    const Op* op;
    std::vector<const Tensor*> reads, writes, partials;
    std::vector<bool> alongRun;  ///< of partials: summed along the contiguous axis first
    size_t slots = 0;            ///< sums and those partials
  };
  Sweep sweepOf(const Op&) const;
  struct Terms {
    std::vector<std::vector<std::pair<Values, int>>> slots;  ///< of each replica
    std::vector<Write> writes;
  };
  /// One element of every replica.
  Terms element(const Sweep&, const Replicas&, const std::function<Coordinates(const Replica&)>& place,
                bool robust);
  /// The sums of a stage with the terms added: of every replica to its own, or of all to the same.
  Exprs added(const Stage&, const Nest&, Expr lane, const Terms&, bool shared);
  /// Sums in two levels: a stage has the lower ones first, then as many upper ones. `next` are the lower ones
  /// with something added; where `last` holds they go to the upper ones and begin at zero.
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
  Expr share_;  ///< 1 where this call takes the loops that are being made, else 0; undefined: all do
  Expr past_;   ///< whether their outputs go past the caches; undefined: no
  Expr done_;   ///< units of the task that other loops have done; undefined: none
  bool leavesRest_ = false;  ///< units that fill no step are left to others
  Halide::Var v_{kLane};
  Halide::Func driver_;
  const Op* slab_ = nullptr;
  Kind kind_ = Kind::Run;
  Expr runBegin_;               ///< of the slab along the contiguous axis
  int64_t columnLanes_ = 0;     ///< of a column slab's stages
  std::vector<int> unsettled_;  ///< values that are computed again wherever they are used
  std::vector<Halide::Func> atRoot_;
  std::map<std::string, Expr> counts_;
  int64_t longestChain_ = 0;
};

}  // namespace normc::halide
