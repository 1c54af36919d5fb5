#include "tests/end_to_end/Drawn.h"

#include <numeric>
#include <random>

#include "dsl/Print.h"
#include "tests/end_to_end/Questions.h"

namespace normc {

Drawn draw(uint64_t seed, const codegen::cpu::Isa& isa, std::optional<Entry> only, Drawing drawing) {
  std::mt19937_64 random(seed), ofOutput(seed + 1), ofWidth(seed + 2);
  auto pick = [&](auto... options) {
    std::common_type_t<decltype(options)...> list[] = {options...};
    return list[random() % sizeof...(options)];
  };
  for (;;) {
    Drawn d;
    d.problem.spec = std::make_shared<const Spec>(randomSpec(random(), drawing));
    const Spec& spec = *d.problem.spec;
    d.problem.entry = pick(Entry::Forward, Entry::Backward, Entry::Forward, Entry::Backward, Entry::Infer);
    d.problem.entry = only.value_or(d.problem.entry);
    d.problem.data = pick(DType::F32, DType::F32, DType::F32, DType::BF16, DType::F16, DType::F64);
    bool affine = spec.scale || spec.bias;
    if (d.problem.data == DType::F64)
      d.problem.params = DType::F64;
    else if (affine)
      d.problem.params = pick(DType::F32, DType::F32, d.problem.data);
    d.problem.layout = pick(Layout::FeaturesLast, Layout::FeaturesLast, Layout::ChannelsFirst);
    d.problem.segmented =
        spec.needsSegments() || d.problem.layout == Layout::ChannelsFirst || random() % 3 == 0;
    d.problem.mask = random() % 3 == 0;
    for (const std::string& binding : bindingNames(spec)) d.problem.bindings[binding] = pick(1, 2, 4);
    int64_t groups = 1;
    for (const auto& [name, value] : d.problem.bindings) groups = std::max(groups, value);
    for (const Groups& g : {spec.groups, spec.pre ? spec.pre->groups : Groups()})
      if (g.binding.empty()) groups = std::max(groups, g.count);
    d.features = groups * pick(1, 3, 7, 8, 15, 16, 25, 33, 64, 127);
    if (ofWidth() % 8 == 0) d.features = groups * 48;  // whole cache lines of f32, but not of bf16
    if (spec.isQuantizedPer(QuantizePer::Block)) d.features *= spec.quantize->size;
    if (spec.rope) d.features = std::lcm(4 * d.features, 2 * d.problem.groups(spec.rope->groups));
    if (drawing != Drawing::Quantized && ofOutput() % 4 == 0)
      d.problem.output = (DType[]){DType::F32, DType::BF16, DType::F16, DType::F64}[ofOutput() % 4];
    if (spec.hasResidual(Side::Before) && ofOutput() % 2)
      d.problem.stream = (DType[]){DType::F32, DType::BF16, DType::F16, DType::F64}[ofOutput() % 4];
    d.problem.roundsNormalized = affine && bytes(d.problem.data) == 2 && spec.perRow() && ofOutput() % 2;
    if (random() % 4) d.problem.features = d.features;
    auto checked = checkProblem(d.problem);
    if (!checked) continue;
    auto strategies = codegen::cpu::strategies(d.problem);
    if (strategies.empty()) continue;
    // Depends only on the seed, not on the preferences of this machine's core.
    codegen::cpu::Isa plain = isa;
    plain.core = nullptr;
    d.schedule = codegen::cpu::defaultSchedule(d.problem, plain, strategies[random() % strategies.size()]);
    int64_t lanes = isa.vectorBytes / bytes(d.problem.statistics());
    d.schedule.vector = pick(lanes, lanes, lanes / 2, 2 * lanes);
    d.schedule.rows = pick(1, 2, 4);
    d.schedule.unroll = pick(1, 2, 4);
    d.schedule.tile = pick(1, 2, 4);
    d.schedule.grain = pick(1, 5, 32);
    d.schedule.inTurn = seed / 2 % 2 == 1;
    if (codegen::cpu::whyIllegal(d.problem, d.schedule, isa)) d.schedule.inTurn = false;
    if (!codegen::cpu::whyIllegal(d.problem, d.schedule, isa)) return d;
  }
}

std::string faultOf(const Drawn& d, const codegen::cpu::Isa& isa) {
  const auto kernel = compiled(d.problem, d.schedule, isa);
  if (!kernel->plan) return kernel->error;
  for (const gate::Question& question : standardQuestions(d.problem, d.features))
    if (const gate::Verdict verdict = kernel->judge(d.problem, question); !verdict.ok) return verdict.text;
  return "";
}

std::string textOf(const Drawn& d, const codegen::cpu::Isa& isa) {
  return print(*d.problem.spec) + d.problem.text() + " " + d.schedule.text() + " " + isa.name.str();
}

}  // namespace normc
