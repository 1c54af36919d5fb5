// Statistics over ranks: the fields of a partial, which norms have the entries, and that ranks of unequal
// rows get what one rank gets on all rows.
#include "dsl/Library.h"
#include "tests/dsl/Ranks.h"
#include "tests/dsl/ReferenceSupport.h"

namespace normc {
namespace {

std::string fieldsOf(const Spec& spec, Entry entry) {
  Problem problem{.spec = std::make_shared<const Spec>(spec), .entry = entry};
  std::string names;
  for (const Field& field : partialFields(problem)) {
    EXPECT_EQ(field.type, DType::F64);
    names += (names.empty() ? "" : " ") + field.name + (field.shape.empty() ? "" : "[d]");
  }
  return names;
}

TEST(Partials, HaveTheFieldsThatTheNormNeeds) {
  EXPECT_EQ(fieldsOf(batchNorm(), Entry::ForwardReduce), "rows sum[d] squares[d]");
  EXPECT_EQ(fieldsOf(batchNorm(), Entry::ForwardApply), "rows sum[d] squares[d]");
  EXPECT_EQ(fieldsOf(batchNorm(), Entry::BackwardReduce), "gradient[d] gradient_x[d]");
  EXPECT_EQ(fieldsOf(powerNormV(), Entry::ForwardReduce), "rows squares[d]");
  EXPECT_EQ(fieldsOf(powerNormV(), Entry::BackwardApply), "gradient_x[d]");
  EXPECT_EQ(fieldsOf(powerNorm(), Entry::Commit), "rows squares[d] gradient_x[d]");
  EXPECT_EQ(fieldsOf(powerNorm(), Entry::Forward), "");
  Spec lagged = powerNorm();
  lagged.center = Center::Running, lagged.moment = Moment::Central;
  EXPECT_EQ(fieldsOf(lagged, Entry::Commit), "rows sum[d] squares[d] gradient_x[d] energy[d]");
  Spec padded = powerNorm();
  padded.padding = Padding::LeaveOutOfStatistics;
  EXPECT_EQ(fieldsOf(padded, Entry::BackwardReduce), "gradient_x[d] energy[d] gradient_rows");
  Spec frozen = powerNorm();
  frozen.backward = Backward::Frozen;
  EXPECT_EQ(fieldsOf(frozen, Entry::BackwardReduce), "");
}

TEST(Partials, DependOnTheNormAlone) {
  Problem problem{.spec = std::make_shared<const Spec>(powerNorm()), .entry = Entry::Commit};
  const std::string names = fieldsOf(powerNorm(), Entry::Commit);
  problem.mask = true, problem.data = DType::BF16, problem.layout = Layout::ChannelsFirst;
  std::string other;
  for (const Field& field : partialFields(problem))
    other += (other.empty() ? "" : " ") + field.name + (field.shape.empty() ? "" : "[d]");
  EXPECT_EQ(other, names);
}

TEST(OverRanks, SavedStatisticsAreThoseOfAllRanks) {
  const auto saved = [](const Spec& spec, Entry entry) {
    Problem problem{.spec = std::make_shared<const Spec>(spec), .entry = entry};
    std::string names;
    for (const Field& field : savedFields(problem)) names += field.name + " ";
    return names;
  };
  EXPECT_EQ(saved(batchNorm(), Entry::ForwardReduce), "");
  EXPECT_EQ(saved(batchNorm(), Entry::ForwardApply), "mean rstd count ");
  EXPECT_EQ(saved(batchNorm(), Entry::BackwardReduce), "mean rstd count ");
  EXPECT_EQ(saved(powerNorm(), Entry::Forward), "rstd second_moment ");
  EXPECT_EQ(saved(powerNorm(), Entry::ForwardReduce), "rstd ");
  EXPECT_EQ(saved(powerNorm(), Entry::BackwardReduce), "rstd ");
  EXPECT_EQ(saved(powerNorm(), Entry::Commit), "");
}

/// Every norm of one statistic per feature that has the entries.
std::vector<Spec> specs() {
  std::vector<Spec> all = {batchNorm(), powerNormV(), powerNorm(), batchRenorm()};
  Spec unbiased = batchNorm();
  unbiased.running->unbiased = true;
  Spec stateless = batchNorm();
  stateless.running.reset();
  Spec outside = batchNorm();
  outside.epsilonMode = EpsilonMode::Outside;
  Spec centred = batchNorm();
  centred.divideBy = DivideBy::Running, centred.backward = Backward::Approximate;
  Spec average = centred;
  average.approximate.nu = Nu::Average;
  Spec lagged = powerNorm();
  lagged.center = Center::Running, lagged.moment = Moment::Central;
  Spec clamped = powerNorm();
  clamped.approximate.clampGamma = 0.5;
  Spec active = batchNorm();
  active.activation = Activation::Silu;
  Spec grouped = powerNorm();
  grouped.pre = Spec::Pre{.groups = {.count = 2, .binding = {}}, .epsilon = 1e-5};
  Spec exact = powerNorm();
  exact.backward = Backward::Exact;
  Spec rawCentred = powerNormV();
  rawCentred.center = Center::Current;
  for (const Spec& each :
       {unbiased, stateless, outside, centred, average, lagged, clamped, active, grouped, exact, rawCentred})
    all.push_back(each);
  for (Spec each : {batchNorm(), powerNorm(), grouped})
    for (const Per per : {Per::Row, Per::Segment, Per::Feature})
      for (const Side side : {Side::After, Side::Before}) {
        const bool before = side == Side::Before;
        each.name += " around";
        each.gate = Spec::Gate{.function = Activation::Silu, .side = side, .per = per};
        each.residual =
            Spec::Residual{.side = per == Per::Feature ? Side::After : Side::Before, .stream = true};
        each.modulate = Spec::Modulate{.scale = true, .shift = true, .per = before ? Per::Row : Per::Segment};
        each.activation = before ? Activation::Tanh : Activation::None;
        all.push_back(each);
        Spec turned = each;
        turned.name += " turned";
        turned.rope = Spec::Rope{.pairs = before ? Pairs::Half : Pairs::Interleaved, .groups = {2, ""}};
        all.push_back(turned);
      }
  return all;
}

Outputs evaluated(Problem problem, Entry entry, const ReferenceCall& call) {
  problem.entry = entry;
  const auto result = evaluate(problem, call);
  Outputs outputs;
  if (!result) {
    ADD_FAILURE() << text(result.errors());
    return outputs;
  }
  for (const auto& [name, quantity] : result->outputs) outputs[name] = quantity.value;
  return outputs;
}

TEST(OverRanks, OfUnequalRowsGetWhatOneRankGets) {
  constexpr int64_t kRows = 23, kFeatures = 4;
  for (Spec spec : specs())
    for (const bool mask : {false, true})
      for (const Padding padding : {Padding::Exclude, Padding::LeaveOutOfStatistics}) {
        if (padding == Padding::LeaveOutOfStatistics && !spec.running) continue;
        spec.padding = padding;
        Layer layer(spec, {1, kRows, kFeatures}, mask);
        for (auto& [field, values] : layer.call.state)
          if (field != "step")
            for (size_t i = 0; i < values.size(); ++i) values[i] = 0.4 + 0.3 * double(i);
        layer.call.x = random(kRows * kFeatures, 5, 2), layer.call.dy = random(kRows * kFeatures, 6);
        if (spec.scale) layer.call.scale = random(kFeatures, 7, 1);
        if (spec.bias) layer.call.bias = random(kFeatures, 8);
        for (size_t row = 0; row < layer.call.mask.size(); ++row) layer.call.mask[row] = row % 3 != 1;
        fillAround(layer, 9);
        const RunEntry run = [&](Entry entry, const ReferenceCall& call) {
          return evaluated(layer.problem, entry, call);
        };
        const Outputs want = stepOfOne(layer.call, run);
        for (const Exchange exchange : {Exchange::Sum, Exchange::Gather}) {
          const Outputs got = stepOverRanks(layer.problem, layer.call, {7, 0, 15, 1}, exchange, run);
          for (const auto& [name, values] : got) {
            if (name.starts_with("partial.") || name == "saved.count") continue;
            SCOPED_TRACE(spec.name + " " + name + (mask ? " mask" : "") +
                         (padding == Padding::Exclude ? "" : " left out"));
            ASSERT_TRUE(want.contains(name));
            expectNear(values, want.at(name), 1e-12);
          }
        }
      }
}

TEST(OverRanks, OfSegmentsHaveTheGradientsOfTheirOwn) {
  Spec spec = batchNorm();
  spec.gate = Spec::Gate{.function = Activation::Silu, .side = Side::Before, .per = Per::Segment};
  spec.residual = Spec::Residual{};
  spec.modulate = Spec::Modulate{.scale = true, .shift = true};
  Layer layer(spec, {5, 3, 2});
  layer.call.x = random(30, 1), layer.call.dy = random(30, 2);
  fillAround(layer, 3);
  const RunEntry run = [&](Entry entry, const ReferenceCall& call) {
    return evaluated(layer.problem, entry, call);
  };
  const Outputs want = stepOfOne(layer.call, run);
  const Outputs got = stepOverRanks(layer.problem, layer.call, {2, 0, 3}, Exchange::Sum, run);
  for (const char* name : {"y", "residual_out", "dx", "dresidual", "dgate", "dmod_scale", "dmod_shift"})
    expectNear(got.at(name), want.at(name), 1e-12);
}

TEST(OverRanks, ABatchWithoutARowIsNoStep) {
  for (const Spec& spec : {batchNorm(), powerNorm()}) {
    Layer layer(spec, {1, 0, 3});
    const RunEntry run = [&](Entry entry, const ReferenceCall& call) {
      return evaluated(layer.problem, entry, call);
    };
    const Outputs got = stepOverRanks(layer.problem, layer.call, {0, 0}, Exchange::Gather, run);
    for (const auto& [field, values] : layer.call.state) EXPECT_EQ(got.at("state." + field), values) << field;
  }
}

TEST(OverRanks, PartialsAreChecked) {
  Layer layer(batchNorm(), {1, 2, 3});
  layer.problem.entry = Entry::ForwardApply;
  layer.call.x = Vector(6, 1);
  EXPECT_NE(text(evaluate(layer.problem, layer.call).errors()).find("partials are missing"),
            std::string::npos);
  layer.call.partials = {{{"rows", {2}}, {"sum", {1, 1}}}};
  const std::string errors = text(evaluate(layer.problem, layer.call).errors());
  EXPECT_NE(errors.find("partials.sum has 2 elements, not 3"), std::string::npos) << errors;
  EXPECT_NE(errors.find("partials.squares is missing"), std::string::npos) << errors;
  layer.problem.entry = Entry::Forward;
  EXPECT_NE(text(evaluate(layer.problem, layer.call).errors()).find("partials are given"), std::string::npos);
}

/// The error of a problem, and its hint.
std::string refusal(const std::string& problem) {
  const auto parsed = parseProblem(problem, findNorm);
  return parsed ? "accepted" : text(parsed.errors());
}

TEST(OverRanks, AreForStatisticsThatAreCompleteBeforeOutputsOrNotNeeded) {
  struct {
    const char *problem, *message, *hint;
  } const cases[] = {
      {"layer_norm:forward_reduce@f32[*x8]",
       "'layer_norm' has no 'forward_reduce': each of its statistics is of "
       "rows that lie together, on one rank [P10]",
       "use 'forward' and 'backward' on each rank"},
      {"instance_norm:commit@f32[*x*x8]", "on one rank [P10]", "use 'forward' and 'backward' on each rank"},
      {"power_norm_released:forward_reduce@f32[*x8]{heads=2}",
       "'power_norm_released' has no 'forward_reduce': during 'warmup' it divides by the batch, and after it "
       "by "
       "the state [P10]",
       "leave out 'warmup', or use 'forward' and 'backward', with the statistics of each rank"},
      {"mabn:backward_reduce@f32[*x8]", "it divides by a window, whose first steps wait for the batch [P10]",
       "use 'forward' and 'backward', with the statistics of each rank"},
      {"unified_norm:commit@f32[*x8]", "it divides by a window", "use 'forward' and 'backward'"},
      {"power_norm:forward_apply@f32[*x8]",
       "'power_norm' has no 'forward_apply': its y and dx need no statistic of the batch, and the reductions "
       "write them [P10]",
       "use 'forward_reduce', 'backward_reduce', and 'commit' once a step"},
      {"power_norm:backward_apply@f32[*x8]", "has no 'backward_apply'", "'commit' once a step"},
      {"batch_norm:commit@f32[*x8]",
       "'batch_norm' has no 'commit': its 'forward_apply' and 'backward_apply' write the state [P10]",
       "use 'forward_reduce', 'forward_apply', 'backward_reduce' and 'backward_apply'"},
  };
  for (const auto& [problem, message, hint] : cases) {
    const std::string got = refusal(problem);
    EXPECT_NE(got.find(message), std::string::npos) << got;
    EXPECT_NE(got.find(hint), std::string::npos) << got;
  }
  for (const char* problem :
       {"batch_norm:forward_reduce@f32[*x8]", "batch_renorm:backward_apply@f16[*x8x*]{layout=channels_first}",
        "power_norm:commit@bf16[*x*]", "power_norm_v:forward_apply@f64[*x*x8]{mask}"})
    EXPECT_EQ(refusal(problem), "accepted");
}

TEST(OverRanks, NormsOfWhichOneDirectionWaitsAreRefused) {
  const auto refused = [](Spec spec) {
    const auto checked =
        checkProblem({.spec = std::make_shared<const Spec>(spec), .entry = Entry::ForwardReduce});
    return checked ? "accepted" : checked.errors()[0].message;
  };
  Spec frozen = batchNorm();
  frozen.backward = Backward::Frozen;
  EXPECT_EQ(refused(frozen),
            "'batch_norm' has no 'forward_reduce': y needs statistics of the batch, and dx does not");
  Spec average = powerNorm();
  average.approximate.nu = Nu::Average;
  EXPECT_EQ(refused(average),
            "'power_norm' has no 'forward_reduce': dx needs sums over the batch, and y does not");
  Spec scaled = powerNorm();
  scaled.approximate.scale = BackwardScale::Batch;
  EXPECT_EQ(
      refused(scaled),
      "'power_norm' has no 'forward_reduce': 'scale = batch' needs the batch in a backward that waits for "
      "nothing else");
}

}  // namespace
}  // namespace normc
