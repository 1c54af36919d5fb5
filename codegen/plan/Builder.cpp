#include "codegen/plan/Builder.h"

#include "codegen/plan/Element.h"
#include "dsl/Numbers.h"
#include "dsl/StateFields.h"
#include "llvm/ADT/STLExtras.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;

namespace normc::codegen {

//===-- The kernel ----------------------------------------------------------===//

static Type typeOf(OpBuilder& b, DType type) {
  switch (type) {
    case DType::F32:
      return b.getF32Type();
    case DType::F64:
      return b.getF64Type();
    case DType::BF16:
      return b.getBF16Type();
    case DType::F16:
      return b.getF16Type();
    case DType::I64:
      return b.getI64Type();
    case DType::U8:
      return b.getI8Type();
    case DType::I8:
      return b.getIntegerType(8, /*isSigned=*/true);
    case DType::E4M3:
      return Float8E4M3FNType::get(b.getContext());
    case DType::E8M0:
      return Float8E8M0FNUType::get(b.getContext());
  }
  llvm_unreachable("dtype");
}

static ArrayAttr numberNames(OpBuilder& b, const Spec& spec) {
  SmallVector<Attribute> names;
  for (const Number& number : numbers(spec)) names.push_back(b.getStringAttr(number.name));
  return b.getArrayAttr(names);
}

static std::shared_ptr<const Spec> plannedSpec(const Problem& problem) {
  if (!problem.hasConstantStatistics()) return problem.spec;
  Spec spec = *problem.spec;
  if (spec.center == Center::Current) spec.center = Center::Running;
  spec.divideBy = DivideBy::Running;
  spec.backward = Backward::Frozen;
  spec.renorm = {};
  spec.warmup = std::nullopt;
  return std::make_shared<const Spec>(std::move(spec));
}

/// Returns the features of a block that has a scale of codes.
static std::optional<int64_t> blockOf(const Problem& problem) {
  const Spec& spec = *problem.spec;
  return spec.isQuantizedPer(QuantizePer::Block) ? std::optional(spec.quantize->size) : std::nullopt;
}

static RopeAttr ropeOf(MLIRContext* context, const Problem& problem) {
  const auto& rope = problem.spec->rope;
  if (!rope) return {};
  return RopeAttr::get(context, rope->pairs == Pairs::Interleaved, problem.groups(rope->groups),
                       rope->features.value_or(0));
}

KernelBuilder::KernelBuilder(ModuleOp module, const Problem& problem, StringRef symbol)
    : problem_(problem), spec_(plannedSpec(problem)), builder_(module.getContext()) {
  statistics_ = typeOf(builder_, problem.statistics());
  builder_.setInsertionPointToEnd(module.getBody());
  auto features = problem.features ? builder_.getI64IntegerAttr(*problem.features) : IntegerAttr();
  kernel_ =
      KernelOp::create(builder_, loc(), symbol, problem.text(), problem.layout, statistics_,
                       problem.groups(problem.spec->groups),
                       problem.spec->pre ? problem.groups(problem.spec->pre->groups) : 1, features,
                       /*segments_are_one=*/!problem.segmented, numberNames(builder_, *problem.spec),
                       integerOr(blockOf(problem)), ropeOf(module.getContext(), problem), ScheduleAttr());
  kernel_.getBody().emplaceBlock();
  builder_.setInsertionPointToEnd(&kernel_.getBody().front());
  if (isTaken(infoOf(kMask), problem.entry, hasOf(problem))) argument(normc::name(kMask));
}

IntegerAttr KernelBuilder::integerOr(std::optional<int64_t> n) {
  return n ? builder_.getI64IntegerAttr(*n) : IntegerAttr();
}

StringRef KernelBuilder::declare(StringRef name, Type type, Axes axes, package::Role role,
                                 package::Access access, int64_t window, std::optional<int64_t> chunkOf) {
  if (auto known = SymbolTable::lookupSymbolIn(kernel_, name)) return cast<TensorOp>(known).getSymName();
  OpBuilder::InsertionGuard guard(builder_);
  Block* body = &kernel_.getBody().front();
  auto at = llvm::find_if(*body, [](Operation& op) { return !isa<TensorOp>(op); });
  builder_.setInsertionPoint(body, at);
  return TensorOp::create(builder_, loc(), name, type, axes, integerOr(chunkOf), role, access, window)
      .getSymName();
}

static SmallVector<Axis, 3> axesOf(TensorShape shape) {
  switch (shape) {
    case TensorShape::Elements:
      return {Axis::Segment, Axis::Row, Axis::Feature};
    case TensorShape::PerFeature:
      return {Axis::Feature};
    case TensorShape::PerRow:
      return {Axis::Segment, Axis::Row};
    case TensorShape::PerSegment:
      return {Axis::Segment, Axis::Feature};
    case TensorShape::PerBlock:
      return {Axis::Segment, Axis::Row, Axis::Block};
    case TensorShape::PerPair:
      return {Axis::Segment, Axis::Row, Axis::Pair};
    case TensorShape::One:
      return {};
  }
  llvm_unreachable("shape");
}

StringRef KernelBuilder::argument(StringRef name) {
  const TensorInfo& info = infoOf(tensorNamed(name).value());
  const DType type = normc::typeOf(info.tensor, problem_.types());
  return declare(name, typeOf(builder_, type), axesOf(shapeOf(info.tensor, hasOf(problem_))),
                 package::Role::Tensor,
                 info.written(problem_.entry) ? package::Access::Write : package::Access::Read);
}

static const Field* findField(const std::vector<Field>& fields, StringRef name) {
  auto at = llvm::find_if(fields, [&](const Field& f) { return f.name == name; });
  return at == fields.end() ? nullptr : &*at;
}
bool KernelBuilder::hasSaved(StringRef name) const {
  return !problem_.hasConstantStatistics() && findField(savedFields(problem_), name);
}
bool KernelBuilder::hasState(StringRef name) const { return findField(stateFields(problem_), name); }
bool KernelBuilder::hasPartial(StringRef name) const { return findField(partialFields(problem_), name); }

bool KernelBuilder::hasFeatures(StringRef tensor) const {
  return kernel_.tensor(tensor).hasAxis(Axis::Feature);
}

StringRef KernelBuilder::stateIn(StringRef name) {
  auto fields = stateFields(problem_);
  const Field* f = findField(fields, name);
  assert(f && "no such state field");
  bool ring = f->shape.size() == 2;
  return declare(("state_in." + name).str(), typeOf(builder_, f->type),
                 f->shape.empty() ? Axes{}
                 : ring           ? Axes{Axis::Window, Axis::Feature}
                                  : Axes{Axis::Feature},
                 package::Role::StateIn, package::Access::Read, ring ? f->shape[0].value : 0);
}
StringRef KernelBuilder::stateOut(StringRef name) {
  stateIn(name);
  TensorOp in = kernel_.tensor(("state_in." + name).str());
  return declare(("state_out." + name).str(), in.getType(), in.getAxes(), package::Role::StateOut,
                 package::Access::Write, in.getWindow());
}
StringRef KernelBuilder::saved(StringRef name) {
  auto fields = savedFields(problem_);
  const Field* f = findField(fields, name);
  assert(f && "no such saved field");
  SmallVector<Axis, 3> axes;
  for (Extent e : f->shape) {
    switch (e.kind) {
      case Extent::Segments:
        axes.push_back(Axis::Segment);
        break;
      case Extent::Rows:
        axes.push_back(Axis::Row);
        break;
      case Extent::Features:
        axes.push_back(Axis::Feature);
        break;
      case Extent::Fixed:
        axes.push_back(Axis::Group);
        break;
    }
  }
  return declare(("saved." + name).str(), typeOf(builder_, f->type), axes, package::Role::Saved,
                 readsSaved(problem_.entry) ? package::Access::Read : package::Access::Write);
}
StringRef KernelBuilder::workspace(StringRef name, Axes axes, std::optional<int64_t> chunkOf) {
  return declare(("work." + name).str(), statistics_, axes, package::Role::Workspace, package::Access::Both,
                 /*window=*/0, chunkOf);
}

StringRef KernelBuilder::partial(StringRef name) {
  const auto fields = partialFields(problem_);
  const Field* f = findField(fields, name);
  assert(f && "no such field of a partial");
  return declare(("partial." + name).str(), builder_.getF64Type(),
                 f->shape.empty() ? Axes{} : Axes{Axis::Feature}, package::Role::Partial,
                 package::Access::Write);
}
StringRef KernelBuilder::partials(StringRef name) {
  const auto fields = partialFields(problem_);
  const Field* f = findField(fields, name);
  assert(f && "no such field of a partial");
  return declare(("partials." + name).str(), builder_.getF64Type(),
                 f->shape.empty() ? Axes{Axis::Partial} : Axes{Axis::Partial, Axis::Feature},
                 package::Role::Partials, package::Access::Read);
}

//===-- Structure -----------------------------------------------------------===//

void KernelBuilder::phase(StringRef name, PhaseRole role, Axes units, llvm::function_ref<void()> body,
                          PhaseOptions options) {
  OpBuilder::InsertionGuard guard(builder_);
  builder_.setInsertionPointToEnd(&kernel_.getBody().front());
  auto op = PhaseOp::create(builder_, loc(), name, role, units, options.warmup, options.bySegment);
  op.getBody().emplaceBlock();
  builder_.setInsertionPointToEnd(&op.getBody().front());
  body();
  ++phases_;
}

static SlabKind kindOf(SlabOp slab, bool featuresLast) {
  if (slab.isAcrossChannels()) return SlabKind::Column;
  if (slab.getPer().empty()) return SlabKind::Stream;
  // Scalar code alone is a loop over vectors of features, unless it samples the rows of each feature.
  if (!slab.hasSweeps() && !slab.isPer(Axis::Row) &&
      (featuresLast || slab.getBody().getOps<ProbeOp>().empty()))
    return SlabKind::Column;
  const bool feature = slab.isPer(Axis::Feature);
  if (featuresLast)
    return slab.isPer(Axis::Row) ? SlabKind::Run : feature ? SlabKind::Column : SlabKind::Block;
  return slab.isPer(Axis::Segment) && feature ? SlabKind::Run : SlabKind::Block;
}

void KernelBuilder::slab(Axes per, SlabOptions options, llvm::function_ref<void()> body) {
  OpBuilder::InsertionGuard guard(builder_);
  auto head = options.head ? builder_.getI64IntegerAttr(options.head) : IntegerAttr();
  auto op = SlabOp::create(builder_, loc(), SlabKind::Stream, per, options.resident, head);
  op.getBody().emplaceBlock();
  builder_.setInsertionPointToEnd(&op.getBody().front());
  body();
  op.setKind(kindOf(op, kernel_.featuresLast()));  // the body decides too
}

void KernelBuilder::blocks(llvm::function_ref<void()> body) {
  OpBuilder::InsertionGuard guard(builder_);
  auto op = BlocksOp::create(builder_, loc());
  op.getBody().emplaceBlock();
  builder_.setInsertionPointToEnd(&op.getBody().front());
  body();
}

ArrayAttr KernelBuilder::symbols(ArrayRef<StringRef> names) {
  SmallVector<Attribute> refs;
  for (StringRef name : names) refs.push_back(FlatSymbolRefAttr::get(builder_.getContext(), name));
  return builder_.getArrayAttr(refs);
}
Nums KernelBuilder::wrap(ValueRange values) {
  Nums nums;
  for (Value v : values) nums.push_back({this, v});
  return nums;
}
static SmallVector<Value> unwrap(const Nums& nums) {
  SmallVector<Value> values;
  for (const Num& n : nums) values.push_back(n.value);
  return values;
}

Nums KernelBuilder::sweep(const Sweep& s, const Parts& parts, llvm::function_ref<Nums(Element&)> element) {
  SmallVector<Type> sums(s.sums, statistics_);
  CombinersAttr combiners;  // absent if all terms are added
  if (!s.combiners.empty()) {
    assert(s.combiners.size() <= s.sums);
    SmallVector<Combiner, 4> all = s.combiners;
    all.resize(s.sums + s.partials.size(), Combiner::Add);
    combiners = CombinersAttr::get(builder_.getContext(), all);
  }
  auto op = SweepOp::create(builder_, loc(), sums, s.condition.value, symbols({}), ArrayAttr(), symbols({}),
                            symbols(s.partials), combiners);
  OpBuilder::InsertionGuard guard(builder_);
  Block& body = op.getBody().emplaceBlock();
  builder_.setInsertionPointToEnd(&body);
  Element e(*this, parts, body);
  YieldOp::create(builder_, loc(), unwrap(element(e)));
  op.setReadsAttr(symbols(e.reads()));
  if (const auto mates = e.mates(); !mates.empty()) op.setMatesAttr(symbols(mates));
  op.setWritesAttr(symbols(llvm::map_to_vector<4>(s.writes, [&](StringRef name) { return argument(name); })));
  return wrap(op.getSums());
}

Nums KernelBuilder::fold(Axis axis, int64_t number, ArrayRef<StringRef> reads, const Nums& init,
                         llvm::function_ref<Nums(Value, const Nums&, const Nums&)> step, Folding folding) {
  SmallVector<Value> from = unwrap(init);
  const auto n = builder_.getI64IntegerAttr(number);
  const bool chunks = axis == Axis::Chunk, window = axis == Axis::Window;
  auto op = FoldOp::create(builder_, loc(), TypeRange(ValueRange(from)), axis, chunks ? n : IntegerAttr(),
                           folding == Folding::OfSegment, folding == Folding::Merges,
                           window ? n : IntegerAttr(), symbols(reads), from);
  OpBuilder::InsertionGuard guard(builder_);
  Block& body = op.getBody().emplaceBlock();
  body.addArgument(builder_.getIndexType(), loc());
  for (Value v : from) body.addArgument(v.getType(), loc());
  const Type element = chunks || window ? statistics_ : builder_.getF64Type();
  for (size_t i = 0; i < reads.size(); ++i) body.addArgument(element, loc());
  builder_.setInsertionPointToEnd(&body);
  auto arguments = body.getArguments();
  Nums results =
      step(arguments[0], wrap(arguments.slice(1, from.size())), wrap(arguments.drop_front(1 + from.size())));
  YieldOp::create(builder_, loc(), unwrap(results));
  return wrap(op.getValues());
}

Nums KernelBuilder::total(int64_t phase, ArrayRef<StringRef> reads, Combiner combiner) {
  Nums sums = fold(
      Axis::Chunk, phase, reads, Nums(reads.size(), wideConstant(identityOf(combiner))),
      [&](Value, const Nums& run, const Nums& e) {
        Nums next;
        for (size_t i = 0; i < run.size(); ++i) next.push_back(combine(combiner, run[i], widen(e[i])));
        return next;
      },
      Folding::Merges);
  for (Num& sum : sums) sum = narrow(sum);
  return sums;
}

Num KernelBuilder::totalOfSegment(int64_t phase, StringRef read) {
  return narrow(fold(
      Axis::Chunk, phase, {read}, {wideConstant(0)},
      [&](Value, const Nums& run, const Nums& e) { return Nums{run[0] + widen(e[0])}; },
      Folding::OfSegment)[0]);
}

Nums KernelBuilder::totalOfPartials(ArrayRef<StringRef> fields) {
  const auto reads = llvm::map_to_vector(fields, [&](StringRef name) { return partials(name); });
  return fold(Axis::Partial, 0, reads, Nums(reads.size(), wideConstant(0)),
              [&](Value, const Nums& run, const Nums& e) {
                Nums next;
                for (size_t i = 0; i < run.size(); ++i) next.push_back(run[i] + e[i]);
                return next;
              });
}

//===-- Values --------------------------------------------------------------===//

Num KernelBuilder::load(StringRef tensor, Value window) {
  TensorOp op = kernel_.tensor(tensor);
  Type type = op.getType().isInteger(64) ? Type(op.getType()) : statistics_;
  return {this, LoadOp::create(builder_, loc(), type, tensor, window)};
}
void KernelBuilder::store(Num value, StringRef tensor, Value window) {
  StoreOp::create(builder_, loc(), value.value, tensor, window);
}
void KernelBuilder::accumulate(Num value, StringRef tensor) {
  AccumulateOp::create(builder_, loc(), value.value, tensor);
}
Num KernelBuilder::probe(const Parts& parts, bool whole) {
  auto op = ProbeOp::create(builder_, loc(), statistics_, symbols({}), whole);
  OpBuilder::InsertionGuard guard(builder_);
  Block& body = op.getBody().emplaceBlock();
  builder_.setInsertionPointToEnd(&body);
  Element e(*this, parts, body);
  const Num u = e.u();
  op.setReadsAttr(symbols(e.reads()));
  if (isa<BlockArgument>(u.value))
    body.erase();  // a tensor as it is
  else
    YieldOp::create(builder_, loc(), u.value);
  return {this, op};
}
Num KernelBuilder::count(CountScope scope, int64_t head) {
  auto limit = head ? builder_.getI64IntegerAttr(head) : IntegerAttr();
  return {this, CountOp::create(builder_, loc(), statistics_, scope, limit)};
}
Num KernelBuilder::width(WidthOf groups) {
  return {this, WidthOp::create(builder_, loc(), statistics_, groups)};
}
Num KernelBuilder::number(StringRef name) {
  return {this, ScalarOp::create(builder_, loc(), builder_.getF64Type(), name)};
}
Num KernelBuilder::ofTask(llvm::function_ref<Num()> value) {
  OpBuilder::InsertionGuard guard(builder_);
  if (auto slab = dyn_cast<SlabOp>(builder_.getInsertionBlock()->getParentOp()))
    builder_.setInsertionPoint(slab);
  return value();
}
Num KernelBuilder::numberOfTask(StringRef name) {
  return ofTask([&] { return narrow(number(name)); });
}
Num KernelBuilder::constant(double value) {
  return {this, arith::ConstantOp::create(builder_, loc(), builder_.getFloatAttr(statistics_, value))};
}
Num KernelBuilder::wideConstant(double value) {
  return {this, arith::ConstantOp::create(builder_, loc(), builder_.getF64FloatAttr(value))};
}
Num KernelBuilder::narrow(Num n) {
  if (n.value.getType() == statistics_) return n;
  return {this, arith::TruncFOp::create(builder_, loc(), statistics_, n.value)};
}
Num KernelBuilder::rounded(Num n, DType type) {
  const Value narrow = arith::TruncFOp::create(builder_, loc(), typeOf(builder_, type), n.value);
  return {this, arith::ExtFOp::create(builder_, loc(), n.value.getType(), narrow)};
}
Num KernelBuilder::widen(Num n) {
  Type f64 = builder_.getF64Type();
  if (n.value.getType() == f64) return n;
  if (n.value.getType().isInteger(64)) return {this, arith::SIToFPOp::create(builder_, loc(), f64, n.value)};
  return {this, arith::ExtFOp::create(builder_, loc(), f64, n.value)};
}
Value KernelBuilder::index(Num n) {
  return arith::IndexCastOp::create(builder_, loc(), builder_.getIndexType(), n.value);
}
Num KernelBuilder::integer(Value index) {
  return {this, arith::IndexCastOp::create(builder_, loc(), builder_.getI64Type(), index)};
}

}  // namespace normc::codegen
