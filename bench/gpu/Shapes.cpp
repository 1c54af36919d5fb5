#include "bench/gpu/Shapes.h"

#include <algorithm>
#include <set>

#include "dsl/Library.h"
#include "dsl/Problem.h"

namespace normc::gpu {
namespace {

struct Size {
  int64_t rows, features;
};

/// Sizes with published figures, for norms with a statistic per row. The last one is known for layer_norm
/// backward.
constexpr Size kPublished[] = {{16384, 4096}, {8192, 8192}, {4096, 16384}, {8192, 5120}, {8192, 4096},
                               {4096, 8192},  {4096, 6144}, {2048, 4096},  {4096, 2048}, {131072, 128},
                               {16384, 128},  {8192, 128},  {1024, 12288}};
/// Norms and features that the kit has candidates for, the most important first, with as many rows as give x
/// kTunedElements. Each of these sizes is measured with the defaults, too.
constexpr int64_t kTunedFeatures[] = {4096, 8192, 1024, 16384, 768};
constexpr int64_t kTunedElements = 64 << 20, kQuickElements = 64 * 128;
const char* const kTunedNorms[] = {"layer_norm", "rms_norm", "power_norm", "batch_norm"};
/// Small, odd, not a power of two, and huge.
constexpr int64_t kFeatures[] = {1000, 4095, 64,    96,    127,   257,    1536,
                                 2304, 7168, 12288, 28672, 65536, 131072, 5120};
/// A column kernel sees features as columns only, so fewer numbers suffice.
constexpr int64_t kColumnFeatures[] = {1000, 4095, 64, 127, 257};
/// Bytes of a tensor in the second list: more than any second-level cache.
constexpr int64_t kTensorBytes = 128 << 20;

/// Sizes that other libraries run, too: in bf16, with and without a residual stream, with scale and bias in
/// f32 and in bf16, as models of other libraries have them.
constexpr Size kOfModels[] = {{16384, 4096}, {8192, 4096}, {4096, 8192}, {2048, 4096}, {4096, 16384}};
const char* const kResidualNorms[] = {"rms_norm_residual", "layer_norm_residual"};
const char* const kRowNorms[] = {"rms_norm_residual", "layer_norm_residual", "rms_norm", "layer_norm"};

bool perFeature(const std::string& norm) { return norm != "rms_norm" && norm != "layer_norm"; }

ProblemText shapeOf(const std::string& norm, Entry entry, DType data, Size size) {
  ProblemText shape{.norm = norm, .entry = entry, .data = data, .params = statisticsOf(data)};
  shape.rows = size.rows;
  shape.features = size.features;
  return shape;
}

const char* const kNorms[] = {"rms_norm", "layer_norm", "power_norm", "batch_norm", "power_norm_v"};

/// Adds one size with all norms, so that their costs can be compared.
void add(std::vector<ProblemText>& shapes, DType data, Size size, bool columns) {
  for (const char* norm : kNorms)
    for (const Entry entry : {Entry::Forward, Entry::Backward})
      if (columns || !perFeature(norm)) shapes.push_back(shapeOf(norm, entry, data, size));
}

/// The norm for any number of features: what tests run through odd sizes, and what a host falls back to.
void addGeneric(std::set<std::string>& problems, const std::shared_ptr<const Spec>& spec) {
  Problem problem;
  problem.spec = spec;
  problem.segmented = spec->needsSegments();
  for (const std::string& binding : bindingNames(*spec)) problem.bindings[binding] = 4;
  const auto addIfLegal = [&](const Problem& candidate) {
    if (const auto checked = checkProblem(candidate)) problems.insert(checked->text());
  };
  for (const Entry entry : {Entry::Forward, Entry::Backward, Entry::Infer}) {
    problem.entry = entry;
    for (const DType type : {DType::F32, DType::BF16}) {
      problem.data = type;
      addIfLegal(problem);
    }
    problem.data = DType::F32;
    if (spec->perFeature()) {
      Problem variant = problem;
      variant.mask = true;
      addIfLegal(variant);
      variant.mask = false;
      variant.segmented = true;
      variant.layout = Layout::ChannelsFirst;
      addIfLegal(variant);
    }
  }
}

}  // namespace

std::vector<ProblemText> allShapes(bool quick) {
  std::vector<ProblemText> shapes;
  if (quick) {
    for (const Entry entry : {Entry::Forward, Entry::Backward})
      shapes.push_back(shapeOf("layer_norm", entry, DType::F32, {64, 128}));
    return shapes;
  }
  for (const Size size : kOfModels)
    for (const Entry entry : {Entry::Forward, Entry::Backward}) {
      for (const char* norm : kResidualNorms) shapes.push_back(shapeOf(norm, entry, DType::BF16, size));
      for (const char* norm : kRowNorms) {
        shapes.push_back(shapeOf(norm, entry, DType::BF16, size));
        shapes.back().params = DType::BF16;
      }
    }
  for (const DType data : {DType::BF16, DType::F32}) {
    for (Size size : kPublished) add(shapes, data, size, true);
    for (int64_t features : {1024, 768}) add(shapes, data, {65536, features}, true);
    for (int64_t features : kFeatures)
      add(shapes, data, {kTensorBytes / (features * bytes(data)), features},
          std::ranges::count(kColumnFeatures, features) > 0);
  }
  return shapes;
}

std::vector<std::string> argumentsToExport(bool quick) {
  std::vector<std::string> arguments = {"--elements",
                                        std::to_string(quick ? kQuickElements : kTunedElements)};
  const auto add = [&](const ProblemText& shape) { arguments.push_back(shape.withoutSizes().text()); };
  if (quick) {
    std::ranges::for_each(allShapes(true), add);
    return arguments;
  }
  for (const DType data : {DType::BF16, DType::F32})
    for (const int64_t features : kTunedFeatures)
      for (const char* norm : kTunedNorms)
        for (const Entry entry : {Entry::Backward, Entry::Forward})
          add(shapeOf(norm, entry, data, {0, features}));
  return arguments;
}

std::vector<std::string> problemsToCompile(bool quick) {
  std::set<std::string> problems;
  for (ProblemText shape : allShapes(quick)) {
    problems.insert(shape.withoutSizes().text());
    shape.entry = Entry::Forward;
    problems.insert(shape.withoutSizes().text());
  }
  if (!quick)
    for (const BuiltinNorm& norm : builtinNorms()) addGeneric(problems, norm.spec);
  return {problems.begin(), problems.end()};
}

}  // namespace normc::gpu
