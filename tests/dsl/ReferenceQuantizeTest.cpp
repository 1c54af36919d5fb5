// Codes and their scales: values by hand, what is not defined, and whether the tolerance is fair.
#include "dsl/Tolerance.h"
#include "tests/dsl/RandomSpec.h"
#include "tests/dsl/ReferenceSupport.h"

namespace normc {
namespace {

using Quantize = Spec::Quantize;
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

// A norm whose infer has y = x.
Spec identity(const Quantize& quantize) {
  Spec spec = norm("identity", Reduce::Rows, Center::None, Moment::Raw);
  spec.scale = spec.bias = false;
  spec.running = Spec::Running{};
  spec.divideBy = DivideBy::Running;
  spec.epsilon = 0;
  spec.quantize = quantize;
  return spec;
}

// The codes of x, as a store rounds them.
Vector stored(const ReferenceResult& result, const Quantize& quantize) {
  Vector codes = values(result, "codes");
  for (double& each : codes) each = round(each, quantize.codes == Codes::Int8 ? DType::I8 : DType::E4M3);
  return codes;
}
struct Coded {
  Vector codes, scales;
};
Coded coded(const Quantize& quantize, const Vector& x, double given = 0) {
  Layer layer(identity(quantize), {1, 1, static_cast<int64_t>(x.size())});
  if (given > 0) layer.call.quantScale = {given};
  const ReferenceResult result = layer.infer(x);
  EXPECT_FALSE(result.outputs.contains("y"));
  EXPECT_EQ(result.outputs.contains("quant_scale_out"), given == 0);
  return {stored(result, quantize), given > 0 ? Vector{} : values(result, "quant_scale_out")};
}

TEST(ReferenceQuantize, Int8TiesGoToTheEvenCode) {
  const Coded row = coded({}, {127, 0.5, 1.5, 2.5, -0.5, -1.5, -2.5, 0.75, 126.5, -127});
  EXPECT_EQ(row.codes, (Vector{127, 0, 2, 2, 0, -2, -2, 1, 126, -127}));
  EXPECT_EQ(row.scales, Vector{1});
  EXPECT_EQ(coded({}, {-254, 1}).codes, (Vector{-127, 0}));
}

TEST(ReferenceQuantize, E4m3HasSubnormalsAndTiesGoToEven) {
  const Coded row =
      coded({.codes = Codes::E4M3}, {448, 17, 19, 18.9, 0x1p-9, 0x1p-10, 0x1.8p-9, 0x1p-6, -431});
  EXPECT_EQ(row.codes, (Vector{448, 16, 20, 18, 0x1p-9, 0, 0x1p-8, 0x1p-6, -416}));
  EXPECT_EQ(row.scales, Vector{1});
}

TEST(ReferenceQuantize, CodesOfAGivenScaleSaturate) {
  EXPECT_EQ(coded({.per = QuantizePer::Tensor}, {1000, -1000, 3, -63.9, -64}, 0.5).codes,
            (Vector{127, -128, 6, -128, -128}));
  EXPECT_EQ(coded({.codes = Codes::E4M3, .per = QuantizePer::Tensor}, {1e30, -1e30, 3, 1000}, 2).codes,
            (Vector{448, -448, 1.5, 448}));
}

TEST(ReferenceQuantize, ARowOfZerosHasTheScaleOfTheFloor) {
  const Coded zeros = coded({.floor = 1e-4}, {0, 0, -0.0});
  EXPECT_EQ(zeros.codes, (Vector{0, 0, 0}));
  EXPECT_EQ(zeros.scales, Vector{1e-4 / 127});
  // A row below the floor has it too.
  EXPECT_EQ(coded({.codes = Codes::E4M3, .floor = 448}, {3, -1}).codes, (Vector{3, -1}));
}

TEST(ReferenceQuantize, TheFloorIsANumber) {
  Layer layer(identity({}), {1, 1, 2});
  layer.call.numbers["quant_floor"] = 254;
  EXPECT_EQ(values(layer.infer({2, 4}), "codes"), (Vector{1, 2}));
}

TEST(ReferenceQuantize, EachBlockOfEachRowHasItsScale) {
  const Quantize quantize{.per = QuantizePer::Block, .size = 2};
  Layer layer(identity(quantize), {1, 2, 4});
  const ReferenceResult result = layer.infer({127, 1, 0, 254, 12.7, 0, 1.27, -0.01});
  expectNear(values(result, "quant_scale_out"), {1, 2, 0.1, 0.01});
  EXPECT_EQ(stored(result, quantize), (Vector{127, 1, 0, 127, 127, 0, 127, -1}));

  layer.problem.spec = std::make_shared<const Spec>(identity({}));
  const ReferenceResult rows = layer.infer({127, 1, 0, 254, 12.7, 0, 1.27, -0.01});
  expectNear(values(rows, "quant_scale_out"), {2, 0.1});
  EXPECT_EQ(stored(rows, {}), (Vector{64, 0, 0, 127, 127, 0, 13, 0}));
}

TEST(ReferenceQuantize, CodesAreOfTheScaleAsItIsStored) {
  const double third = 1.0 / 3, scale = static_cast<float>(third);
  Layer layer(identity({}), {1, 1, 2});
  const ReferenceResult result = layer.infer({127 * third, 40 * third});
  EXPECT_EQ(values(result, "codes")[1], 40 * third / scale);
  EXPECT_EQ(values(result, "quant_scale_out")[0], 127 * third / 127);
}

TEST(ReferenceQuantize, APowerOfTwoIsRoundedUp) {
  const auto scaleOf = [](double largest, const Quantize& quantize) {
    const Coded row = coded(quantize, {largest, 0});
    EXPECT_LE(row.codes[0], quantize.largest());
    return row.scales[0];
  };
  const Quantize int8{.powerOfTwo = true}, e4m3{.codes = Codes::E4M3, .powerOfTwo = true};
  EXPECT_EQ(scaleOf(127, int8), 1);
  EXPECT_EQ(scaleOf(128, int8), 2);
  EXPECT_EQ(scaleOf(254, int8), 2);
  EXPECT_EQ(scaleOf(63, int8), 0.5);
  EXPECT_EQ(scaleOf(448, e4m3), 1);
  EXPECT_EQ(scaleOf(450, e4m3), 2);
  EXPECT_EQ(coded(e4m3, {500, 3}).codes, (Vector{256, 1.5}));
  EXPECT_EQ(scaleOf(0, int8), 0x1p-40);  // of the floor
  // The largest exponent of a byte.
  EXPECT_EQ(scaleOf(0x1p200, int8), 0x1p127);
}

TEST(ReferenceQuantize, AnOutputThatNoScaleReachesSaturates) {
  const double most = largest(DType::F32);
  const Coded row = coded({}, {1e45, -1e45, 2 * most, most / 4});
  EXPECT_EQ(row.codes, (Vector{127, -128, 2, 0}));
  EXPECT_EQ(row.scales, Vector{most});
  EXPECT_EQ(coded({.codes = Codes::E4M3}, {1e45, -1e45, 2 * most}).codes, (Vector{448, -448, 2}));
  EXPECT_EQ(coded({.powerOfTwo = true}, {1e45, 0x1p128}).codes, (Vector{127, 2}));
}

// Whether the reference accepts these outputs for x.
bool accepts(const Quantize& quantize, const Vector& x, const Vector& codes, const Vector& scales) {
  Layer layer(identity(quantize), {1, 1, static_cast<int64_t>(x.size())});
  layer.problem.data = layer.problem.params = DType::F32;
  const ReferenceResult want = layer.infer(x);
  const auto agrees = [&](const char* name, const Vector& got) {
    return compare(want.outputs.at(name), got, toleranceOf(layer.problem, name, layer.call.extents)).ok;
  };
  return agrees("codes", codes) && agrees("quant_scale_out", scales);
}

TEST(ReferenceQuantize, ATieMayGoEitherWayAndNothingElse) {
  EXPECT_TRUE(accepts({}, {127, 2.5, 3}, {127, 2, 3}, {1}));
  EXPECT_TRUE(accepts({}, {127, 2.5, 3}, {127, 3, 3}, {1}));
  EXPECT_FALSE(accepts({}, {127, 2.4, 3}, {127, 3, 3}, {1}));
  EXPECT_FALSE(accepts({}, {127, 2.5, 3}, {127, 2, 4}, {1}));
  EXPECT_FALSE(accepts({}, {127, 2.5, 3}, {126, 2, 3}, {1}));
  EXPECT_FALSE(accepts({}, {127, 2.5, 3}, {127, 2, 3}, {1 + 1e-5}));
  EXPECT_TRUE(accepts({}, {127, 2.5, 3}, {127, 2, 3}, {1 + 0x1p-23}));
  EXPECT_FALSE(accepts({}, {127, 2.5, 3}, {kNan, 2, 3}, {1}));
}

TEST(ReferenceQuantize, AtAPowerOfTwoTheScaleMayBeTheNextOne) {
  const Quantize e4m3{.codes = Codes::E4M3, .powerOfTwo = true};
  EXPECT_TRUE(accepts(e4m3, {448, 17}, {448, 16}, {1}));
  EXPECT_TRUE(accepts(e4m3, {448, 17}, {224, 8}, {2}));
  EXPECT_FALSE(accepts(e4m3, {448, 17}, {112, 4}, {4}));
  EXPECT_TRUE(accepts(e4m3, {448.0001, 17}, {224, 9}, {2}));
  EXPECT_TRUE(accepts(e4m3, {448.0001, 17}, {448, 16}, {1}));
  EXPECT_TRUE(accepts(e4m3, {450, 16}, {224, 8}, {2}));
  EXPECT_FALSE(accepts(e4m3, {450, 16}, {448, 16}, {1}));
  EXPECT_FALSE(accepts(e4m3, {450, 16}, {224, 8}, {1}));
}

TEST(ReferenceQuantize, PaddedRowsHaveTheCodesOfZeros) {
  const Quantize quantize{.per = QuantizePer::Block, .size = 1, .floor = 1.27};
  Layer layer(identity(quantize), {1, 2, 2}, /*mask=*/true);
  layer.call.mask = {1, 0};
  const ReferenceResult result = layer.infer({127, -254, kNan, kInfinity});
  EXPECT_EQ(stored(result, quantize), (Vector{127, -127, 0, 0}));
  expectNear(values(result, "quant_scale_out"), {1, 2, 0.01, 0.01});
}

TEST(ReferenceQuantize, ARowThatIsNotFiniteIsNotDefined) {
  for (const double strange : {kNan, kInfinity, -kInfinity}) {
    Layer layer(identity({.per = QuantizePer::Block, .size = 2}), {1, 2, 4});
    const ReferenceResult result = layer.infer({1, strange, 3, 4, 127, 1, 2, 127});
    const auto agrees = [&](const char* name, const Vector& got) {
      return compare(result.outputs.at(name), got, toleranceOf(layer.problem, name, {1, 2, 4})).ok;
    };
    EXPECT_TRUE(agrees("codes", {kNan, -128, 0, kInfinity, 127, 1, 2, 127}));
    EXPECT_TRUE(agrees("quant_scale_out", {kNan, -1, 1, 1}));
    EXPECT_FALSE(agrees("codes", {0, 0, 0, 0, 127, 1, 2, 126}));
    EXPECT_FALSE(agrees("quant_scale_out", {0, 0, 1, kNan}));
  }
  const Tolerance none;
  EXPECT_TRUE(compare({{kNan}, {Quantity::kUndefined}}, {3}, none).ok);
  EXPECT_FALSE(compare({{kNan, 1}, {Quantity::kUndefined, 1}}, {3, 2}, none).ok);
}

TEST(ReferenceQuantize, ARowThatOverflowsF32IsNotDefined) {
  Spec spec = identity({});
  spec.scale = true;
  Layer layer(spec, {1, 2, 2});
  layer.problem.data = layer.problem.params = DType::F32;
  layer.call.scale = {1e10, 1};
  const Quantity codes = layer.infer({0x1p120, 1, 0, 127}).outputs.at("codes");
  EXPECT_EQ(codes.magnitude[0], Quantity::kUndefined);
  EXPECT_EQ(codes.magnitude[1], Quantity::kUndefined);
  EXPECT_EQ(codes.value[3], 127);
}

// Everything but y is that of the norm without codes, and y is within half a step of a code.
TEST(ReferenceQuantize, CodesTimesTheScaleAreTheOutput) {
  for (uint64_t seed = 0; seed < 300; ++seed) {
    Spec spec = randomQuantizedSpec(seed), bare = spec;
    bare.quantize.reset();
    const Extents extents{2, 3, 8};
    Layer codes(spec, extents, seed % 4 == 0), plain(bare, extents, seed % 4 == 0);
    for (Layer* layer : {&codes, &plain}) {
      layer->problem.bindings = {{"heads", 2}};
      fillAround(*layer, seed);
      if (!layer->call.mask.empty()) layer->call.mask[1] = 0;
      if (spec.scale) layer->call.scale = random(8, 5, 1);
    }
    if (!codes.call.quantScale.empty()) codes.call.quantScale = {0.25};
    const Vector x = random(48, seed + 1);
    const ReferenceResult got = codes.forward(x), want = plain.forward(x);
    const Vector y = values(want, "y"), stores = stored(got, *spec.quantize);
    const DType type = spec.quantize->codes == Codes::Int8 ? DType::I8 : DType::E4M3;
    const int64_t size = 8 / spec.quantize->blocks(8);
    const bool given = spec.isQuantizedPer(QuantizePer::Tensor);
    for (size_t i = 0; i < y.size(); ++i) {
      const double scale = given ? 0.25 : values(got, "quant_scale_out")[i / size];
      const double code = values(got, "codes")[i];
      const bool saturated = std::abs(code) >= spec.quantize->largest();
      const double step = scale * ulp(code, type) * (0.5 + 1e-4);
      if (!given || !saturated) EXPECT_NEAR(stores[i] * scale, y[i], step) << "seed " << seed << ", " << i;
      EXPECT_TRUE(given || std::abs(stores[i]) <= spec.quantize->largest());
    }
    for (const auto& [name, quantity] : want.outputs)
      if (name != "y") expectNear(values(got, name), quantity.value, 0);
    const Vector dy = random(48, seed + 2);
    const ReferenceResult gradients = codes.backward(dy);
    for (const auto& [name, quantity] : plain.backward(dy).outputs)
      expectNear(values(gradients, name), quantity.value, 0);
  }
}

TEST(ReferenceQuantize, AGivenScaleIsOneThatDivides) {
  const auto said = [](const Vector& scale, Entry entry = Entry::Forward) {
    Layer layer(identity({.per = QuantizePer::Tensor}), {1, 1, 2});
    layer.problem.entry = entry;
    layer.call.x = {1, 2};
    layer.call.quantScale = scale;
    const auto result = evaluate(layer.problem, layer.call);
    return result ? "" : text(result.errors());
  };
  EXPECT_EQ(said({1}), "");
  EXPECT_EQ(said({1}, Entry::Infer), "");
  EXPECT_EQ(said({}), "error: quant_scale has 0 elements, not 1\n  hint: quant_scale is [1]\n");
  EXPECT_EQ(said({1, 2}), "error: quant_scale has 2 elements, not 1\n  hint: quant_scale is [1]\n");
  for (const double scale : {0.0, -1.0, kInfinity, kNan})
    EXPECT_EQ(said({scale}), "error: quant_scale is " + std::to_string(scale) +
                                 ", which is no scale\n  hint: it is finite and above 0\n");
  Layer rows(identity({}), {1, 1, 2});
  rows.call.x = {1, 2};
  rows.call.quantScale = {1};
  EXPECT_EQ(text(evaluate(rows.problem, rows.call).errors()),
            "error: quant_scale has 1 elements, not 0\n"
            "  hint: identity:forward@f64[*x*] takes no quant_scale\n");
  Layer blocks(identity({.per = QuantizePer::Block, .size = 4}), {1, 1, 6});
  blocks.call.x = Vector(6, 1);
  EXPECT_EQ(text(evaluate(blocks.problem, blocks.call).errors()),
            "error: 6 features do not divide into blocks of 4\n");
}

// Checks that outputs with any signs of their errors give codes and scales in bounds, for errors of up to
// `most` of the largest output. Returns the largest of these errors. `given` is the scale of a tensor.
double expectErroneousOutputsInBounds(const Quantize& quantize, double most, double given = 0) {
  Spec spec = norm("centred", Reduce::Features, Center::Current, Moment::Central);
  spec.scale = spec.bias = false;
  Layer plain(spec, {1, 1, 4});
  spec.quantize = quantize;
  Layer coded(spec, {1, 1, 4});
  plain.problem.data = plain.problem.params = coded.problem.data = coded.problem.params = DType::F32;
  if (given > 0) coded.call.quantScale = {given};
  double reached = 0;
  for (double mean = 1; mean < 0x1p30; mean *= 1.25) {
    const Vector x = {mean, mean + 0.1, mean + 1, mean - 0.7};
    const Quantity y = plain.forward(x).outputs.at("y");
    const ReferenceResult want = coded.forward(x);
    constexpr double unit = 0x1p-21;  // that magnitudes are derived with
    double largest = 0, error = 0;
    for (int i = 0; i < 4; ++i)
      largest = std::max(largest, std::abs(y.value[i])), error = std::max(error, unit * y.magnitude[i]);
    if (error > most * largest) break;
    reached = std::max(reached, error / largest);
    for (int signs = 0; signs < 16; ++signs) {
      Vector wrong = y.value;
      for (int i = 0; i < 4; ++i) wrong[i] += (signs >> i & 1 ? 1 : -1) * unit * y.magnitude[i];
      Layer again(identity(quantize), {1, 1, 4});
      again.call.quantScale = coded.call.quantScale;
      const ReferenceResult got = again.infer(wrong);
      for (const char* output : {"codes", "quant_scale_out"}) {
        if (!want.outputs.contains(output)) continue;
        const bool isCode = output == std::string("codes");
        const Agreement agreement =
            compare(want.outputs.at(output), isCode ? stored(got, quantize) : values(got, output),
                    toleranceOf(coded.problem, output, {1, 1, 4}));
        EXPECT_TRUE(agreement.ok) << output << ": " << agreement.text << ", mean " << mean << ", signs "
                                  << signs;
      }
    }
  }
  return reached;
}

TEST(ReferenceQuantize, CodesOfErroneousOutputsAreInBounds) {
  for (const Codes codes : {Codes::Int8, Codes::E4M3})
    for (const bool powerOfTwo : {false, true})
      EXPECT_GT(expectErroneousOutputsInBounds({.codes = codes, .powerOfTwo = powerOfTwo}, 0.5), 0.25)
          << "the errors were small";
}

// Such a code saturates, whatever the error: at the other end if the error is larger than the output.
TEST(ReferenceQuantize, CodesOfAGivenScaleAndErroneousOutputsAreInBounds) {
  for (const Codes codes : {Codes::Int8, Codes::E4M3})
    for (const double given : {1.0, 0.01, 1e-4})
      EXPECT_GT(expectErroneousOutputsInBounds({.codes = codes, .per = QuantizePer::Tensor}, 1e9, given), 10)
          << "the errors were small";
}

TEST(ReferenceQuantize, TolerancesAreOfTheTypesOfTheCodes) {
  Problem problem;
  const auto of = [&](const Quantize& quantize, const char* output, DType data) {
    problem.spec = std::make_shared<const Spec>(identity(quantize));
    problem.data = data, problem.params = statisticsOf(data);
    return toleranceOf(problem, output, {1, 8, 8});
  };
  for (const DType data : {DType::BF16, DType::F32, DType::F64}) {
    EXPECT_EQ(of({}, "codes", data).stored, DType::I8);
    EXPECT_EQ(of({.codes = Codes::E4M3}, "codes", data).stored, DType::E4M3);
    EXPECT_EQ(of({}, "codes", data).ulps, 0.5 + 0x1p-8);
    EXPECT_EQ(of({}, "quant_scale_out", data).stored, DType::F32);
    EXPECT_EQ(of({}, "quant_scale_out", data).ulps, data == DType::F64 ? 0.5 + 0x1p-8 : 0);
    EXPECT_EQ(of({.powerOfTwo = true}, "quant_scale_out", data).stored, DType::E8M0);
    EXPECT_EQ(of({.powerOfTwo = true}, "quant_scale_out", data).ulps, 0);
    EXPECT_EQ(of({.powerOfTwo = true}, "quant_scale_out", data).floor, 0);
    EXPECT_EQ(of({}, "quant_scale_out", data).relative, of({}, "codes", data).relative);
  }
  problem.spec = std::make_shared<const Spec>(rmsNorm());
  problem.data = DType::F32, problem.output = DType::BF16;
  EXPECT_EQ(toleranceOf(problem, "y", {1, 8, 8}).stored, DType::BF16);
  EXPECT_EQ(toleranceOf(problem, "y", {1, 8, 8}).ulps, 0.5 + 0x1p-8);
  EXPECT_EQ(toleranceOf(problem, "dx", {1, 8, 8}).stored, DType::F32);
}

TEST(ReferenceQuantize, RoundingToACodeSaturates) {
  EXPECT_EQ(round(127.6, DType::I8), 127);
  EXPECT_EQ(round(-127.5, DType::I8), -128);
  EXPECT_EQ(round(-300, DType::I8), -128);
  EXPECT_EQ(round(464, DType::E4M3), 448);
  EXPECT_EQ(round(-1e9, DType::E4M3), -448);
  EXPECT_EQ(ulp(100, DType::I8), 1);
  EXPECT_EQ(ulp(0.001, DType::I8), 1);
  EXPECT_EQ(ulp(448, DType::E4M3), 32);
  EXPECT_EQ(ulp(0, DType::E4M3), 0x1p-9);
  EXPECT_EQ(lowest(DType::I8), -128);
  EXPECT_EQ(lowest(DType::E4M3), -448);
}

enum class Mistake { None, Truncates, OtherLargest, NoFloor, RoundsDown, ScaleOfTheRow };

// An RMS norm of a stream with codes, in floats.
std::map<std::string, Vector> inFloats(const Layer& layer, const Vector& x, bool fromStream,
                                       Mistake mistake) {
  const Spec& spec = *layer.problem.spec;
  const Quantize& quantize = *spec.quantize;
  const DType data = layer.problem.data, type = layer.problem.types().codes;
  const int64_t features = layer.call.extents.features, rows = layer.call.extents.totalRows();
  const int64_t size = mistake == Mistake::ScaleOfTheRow ? features : features / quantize.blocks(features);
  const int64_t blocks = quantize.blocks(features);
  const float largest = float(quantize.largest()) + (mistake == Mistake::OtherLargest ? 1.0f : 0.0f);
  std::map<std::string, Vector> out;
  Vector& codes = out["codes"];
  Vector& scales = out["quant_scale_out"];
  for (int64_t row = 0; row < rows; ++row) {
    std::vector<float> y(features);
    float lane[8] = {};
    for (int64_t j = 0; j < features; ++j) {
      const int64_t i = row * features + j;
      y[j] = float(x[i]) + float(layer.call.residual[i]);
      lane[j % 8] += y[j] * y[j];
      if (fromStream) y[j] = float(round(y[j], data));
    }
    float sum = 0;
    for (float each : lane) sum += each;
    const float rstd = 1 / std::sqrt(sum / float(features) + 1e-5f);
    for (int64_t j = 0; j < features; ++j) y[j] = y[j] * rstd * float(layer.call.scale[j]);
    for (int64_t block = 0; block < blocks; ++block) {
      float most = mistake == Mistake::NoFloor ? 1e-20f : float(quantize.floor);
      const int64_t first = size == features ? 0 : block * size;
      for (int64_t j = first; j < first + size; ++j) most = std::max(most, std::abs(y[j]));
      float scale = most * (1 / largest);
      if (quantize.powerOfTwo) {
        int exponent = 0;
        const float fraction = std::frexp(scale, &exponent);
        const bool down = fraction == 0.5f || mistake == Mistake::RoundsDown;
        scale = std::ldexp(1.0f, exponent - down);
      }
      scales.push_back(scale);
      for (int64_t j = block * (features / blocks); j < (block + 1) * (features / blocks); ++j) {
        double code = y[j] * (1 / scale);
        if (mistake == Mistake::Truncates) code = std::trunc(code);
        codes.push_back(std::isnan(code) ? 0
                                         : round(std::clamp(code, lowest(type), normc::largest(type)), type));
      }
    }
  }
  return out;
}

// The outputs that disagree, each with its worst element.
std::string disagreements(const Quantize& quantize, HardInput input, DType data, bool fromStream = false,
                          Mistake mistake = Mistake::None) {
  const Extents extents{1, 40, 64};
  Spec spec = rmsNorm();
  spec.residual = Spec::Residual{};
  spec.quantize = quantize;
  Layer layer(spec, extents);
  layer.problem.data = data, layer.problem.params = DType::F32;
  layer.call.scale = normalValues(64, DType::F32, 1, 1);
  const Vector x = hardInput(input, extents, data);
  layer.call.residual = hardInput(input, extents, data, 2);
  const ReferenceResult want = layer.forward(x);
  std::string out;
  for (const auto& [name, values] : inFloats(layer, x, fromStream, mistake)) {
    const Agreement agreement =
        compare(want.outputs.at(name), values, toleranceOf(layer.problem, name, extents));
    if (!agreement.ok) out += name + ": " + agreement.text + "\n";
  }
  return out;
}

const Quantize kQuantizes[] = {
    {},
    {.codes = Codes::E4M3},
    {.per = QuantizePer::Block, .size = 16},
    {.codes = Codes::E4M3, .per = QuantizePer::Block, .size = 16, .floor = 1e-4},
    {.codes = Codes::E4M3, .per = QuantizePer::Block, .size = 32, .powerOfTwo = true},
    {.powerOfTwo = true},
};

TEST(ReferenceQuantize, HonestFloatsPassOnEveryHardInput) {
  for (const Quantize& quantize : kQuantizes)
    for (const HardInput input : allHardInputs())
      for (const DType data : {DType::F32, DType::BF16, DType::F16})
        for (const bool fromStream : {false, true})
          EXPECT_EQ(disagreements(quantize, input, data, fromStream), "")
              << name(input) << " " << name(data) << " " << &quantize - kQuantizes;
}

TEST(ReferenceQuantize, MistakesAreFound) {
  const auto found = [](const Quantize& quantize, Mistake mistake, HardInput input = HardInput::Normal) {
    return disagreements(quantize, input, DType::BF16, false, mistake) != "";
  };
  for (const Quantize& quantize : kQuantizes) {
    EXPECT_TRUE(found(quantize, Mistake::Truncates));
    EXPECT_TRUE(found(quantize, Mistake::NoFloor, HardInput::Tiny));
    if (quantize.per == QuantizePer::Block) EXPECT_TRUE(found(quantize, Mistake::ScaleOfTheRow));
    if (quantize.powerOfTwo) {
      EXPECT_TRUE(found(quantize, Mistake::RoundsDown));
    } else {
      EXPECT_TRUE(found(quantize, Mistake::OtherLargest));
    }
  }
}

}  // namespace
}  // namespace normc
