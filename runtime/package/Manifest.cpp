#include "runtime/package/Manifest.h"

#include <array>
#include <numeric>

#include "runtime/cuda/Arch.h"
#include "runtime/package/JsonReader.h"

namespace normc::runtime {
namespace {

constexpr auto kTensorNames = [] {
  std::array<std::string_view, kTensorCount> names;
  for (const TensorInfo& each : kTensorTable) names[each.tensor] = each.name;
  return names;
}();
constexpr size_t kMaxDepth = 16, kMaxBlobs = 1 << 16, kMaxNorms = 1 << 12, kMaxKernels = 1 << 18;
constexpr int64_t kMaxChunks = 1 << 30;
// What any CUDA device can be asked for.
constexpr int64_t kMaxLeast = 1 << 16;
constexpr int kDependentNumber = 90;  // the first compute capability with dependent launches
constexpr int64_t kMaxThreads = 1024, kMaxCluster = 16, kMaxCooperative = 1 << 16, kMaxShared = 227 << 10,
                  kMaxDeviceAlignment = kAlignment;

/// The sizes of a call are those of its first X-sized tensor; one that is always given must be there.
bool givesSizes(const TensorInfo& info) { return isXSized(info.tensor) && !info.mayBeLeftOut(); }

/// Returns the names of the tensors that give the sizes, for errors.
std::string sizeSources() {
  std::string names;
  for (const TensorInfo& each : kTensorTable)
    if (givesSizes(each)) names += (names.empty() ? "" : ", ") + std::string(each.name);
  return names;
}

/// The index of `text` in `names`; otherwise a fault that lists them, and 0.
template <size_t N>
size_t oneOf(const JsonReader& reader, const std::array<std::string_view, N>& names) {
  const std::string text = reader.string();
  std::string all;
  for (size_t i = 0; i < N; ++i) {
    if (text == names[i]) return i;
    all += (i ? ", " : "") + std::string(names[i]);
  }
  reader.reject("it must be one of " + all);
  return 0;
}

/// The one of `legal` that has this name; otherwise a fault that lists them, and the first.
template <typename Enum>
Enum oneOf(const JsonReader& reader, std::initializer_list<Enum> legal) {
  const std::string text = reader.string();
  std::string all;
  for (const Enum each : legal) {
    if (text == name(each)) return each;
    all += (all.empty() ? "" : ", ") + std::string(name(each));
  }
  reader.reject("it must be one of " + all);
  return *legal.begin();
}

DType elementType(const JsonReader& reader) { return oneOf(reader, kAllTypes); }

/// Which factors may stand in a shape, and how many phases there are to count chunks of.
struct Allowed {
  bool calls = true;  ///< segments, rows
  size_t phases = 0;
};

Shape shape(const JsonReader& reader, Allowed allowed) {
  Shape result;
  for (const JsonReader& factor : reader.items(NORMC_MAX_FIELD_DIMS)) {
    if (!factor.isString()) {
      result.push_back({Factor::Fixed, factor.integer(1)});
      continue;
    }
    const std::string text = factor.string();
    if (text == "features") {
      result.push_back({Factor::Features});
    } else if (allowed.calls && text == "segments") {
      result.push_back({Factor::Segments});
    } else if (allowed.calls && text == "rows") {
      result.push_back({Factor::Rows});
    } else if (text.size() == 8 && text.starts_with("chunks.") && text[7] >= '0' &&
               size_t(text[7] - '0') < allowed.phases) {
      result.push_back({Factor::Chunks, text[7] - '0'});
    } else if (text.size() == 9 && text.starts_with("chunks.1") && text[8] >= '0' &&
               size_t(text[8] - '0' + 10) < allowed.phases) {
      result.push_back({Factor::Chunks, text[8] - '0' + 10});
    } else {
      factor.reject("it is no size that is known here");
    }
  }
  return result;
}

std::vector<FieldInfo> fields(const JsonReader& reader, Allowed allowed) {
  std::vector<FieldInfo> result;
  for (const JsonReader& item : reader.items(kMaxFields)) {
    FieldInfo field;
    field.name = item["name"].string();
    for (const FieldInfo& other : result)
      if (other.name == field.name) item["name"].reject("another field has this name");
    field.type = oneOf(item["type"], {DType::F32, DType::F64, DType::I64});
    field.shape = shape(item["shape"], allowed);
    if (const auto init = item.find("init")) field.init = init->number();
    result.push_back(std::move(field));
  }
  return result;
}

size_t fieldIndex(const JsonReader& reader, const std::vector<FieldInfo>& fields) {
  const std::string text = reader.string();
  for (size_t i = 0; i < fields.size(); ++i)
    if (fields[i].name == text) return i;
  reader.reject("there is no field of this name");
  return 0;
}

Operand tensorOperand(const JsonReader& item, const KernelInfo& kernel) {
  Operand operand;
  operand.tensor = Tensor(oneOf(item["name"], kTensorNames));
  for (const Operand& other : kernel.operands)
    if (other.role == Role::Tensor && other.tensor == operand.tensor)
      item["name"].reject("another operand has this name");
  operand.type = elementType(item["type"]);
  const DType wanted = typeOf(operand.tensor, kernel.parts.data, kernel.parts.params);
  if (operand.type != wanted) item["type"].reject("it must be " + std::string(name(wanted)));
  return operand;
}

Operand operand(const JsonReader& item, const KernelInfo& kernel) {
  static constexpr std::array<std::string_view, 5> roles = {"tensor", "state_in", "state_out", "saved",
                                                            "workspace"};
  static constexpr std::array<std::string_view, 4> accesses = {"read", "write", "both", "zeroed"};
  const Role role = Role(oneOf(item["role"], roles));
  Operand result;
  if (role == Role::Tensor) result = tensorOperand(item, kernel);
  result.role = role;
  const size_t access = oneOf(item["access"], accesses);
  result.written = access != 0;
  result.zeroed = access == 3;

  bool mustWrite = false, mayWrite = false;  // what the role allows
  switch (role) {
    case Role::Tensor:
      mustWrite = mayWrite = infoOf(result.tensor).written();
      break;
    case Role::StateIn:
      break;
    case Role::StateOut:
      mustWrite = mayWrite = true;
      break;
    case Role::Saved:
      mustWrite = mayWrite = kernel.parts.entry == Entry::Forward;
      break;
    case Role::Workspace:
      mustWrite = mayWrite = true;
      break;
  }
  if (result.written ? !mayWrite : mustWrite)
    item["access"].reject(mustWrite ? "this operand is written" : "this operand is only read");
  if ((access >= 2) != (role == Role::Workspace))
    item["access"].reject("`both` and `zeroed` are the accesses of workspace alone");
  if (result.zeroed && !kernel.onCuda())
    item["access"].reject("only a kernel for cuda has workspace that is zero");

  if (role == Role::Workspace) {
    result.type = elementType(item["type"]);
    result.shape = shape(item["shape"], {true, kernel.phases.size()});
  } else if (role != Role::Tensor) {
    const std::vector<FieldInfo>& owner = role == Role::Saved ? kernel.saved : kernel.state;
    result.field = fieldIndex(item["name"], owner);
    result.type = elementType(item["type"]);
    if (result.field < owner.size() && owner[result.field].type != result.type)
      item["type"].reject("the field has another type");
  }
  return result;
}

Phase phase(const JsonReader& item, size_t index) {
  static constexpr std::array<std::string_view, 4> roles = {"statistics", "combine", "apply", "finish"};
  static constexpr std::array<std::string_view, 2> whens = {"always", "warmup"};
  Phase result;
  result.symbol = item["symbol"].string();
  result.role = roles[oneOf(item["role"], roles)];
  result.units = shape(item["units"], {true, index});  // only chunks of phases before this one are known
  result.minUnits = item["min_units"].integer(1);
  if (const auto enough = item.find("enough_units")) result.enoughUnits = enough->integer(result.minUnits);
  if (const auto weight = item.find("weight")) result.weight = shape(*weight, {true, index});
  result.group = result.multiple = item["multiple"].integer(1, 1 << 30);
  if (const auto group = item.find("group")) result.group = group->integer(result.multiple, 1 << 30);
  result.maxChunks = item["max_chunks"].integer(1, kMaxChunks);
  result.warmupOnly = oneOf(item["when"], whens) == 1;
  return result;
}

void cudaPhase(const JsonReader& item, const std::optional<Arch>& arch, Phase& phase) {
  const JsonReader launch = item["launch"];
  phase.launch.threads = launch["threads"].integer(1, kMaxThreads);
  phase.launch.columns = launch["columns"].integer(0, 1 << 30);
  phase.launch.cluster = launch["cluster"].integer(1, kMaxCluster);
  if (const auto cooperative = launch.find("cooperative")) {
    phase.launch.cooperative = cooperative->integer(1, kMaxCooperative);
    if (phase.launch.cooperative > 1 && phase.launch.cluster > 1)
      cooperative->reject("the blocks of a chunk are a cluster already");
  }
  phase.launch.shared = launch["shared"].integer(0, kMaxShared);
  if (const auto least = launch.find("least")) phase.launch.least = least->integer(0, kMaxLeast);
  if (const auto dependent = launch.find("dependent")) {
    phase.launch.dependent = dependent->boolean();
    if (phase.launch.dependent && arch && arch->number() < kDependentNumber)
      dependent->reject("a launch depends on another from sm_90 on");
  }
  if (const auto unaligned = item.find("unaligned")) phase.unaligned = unaligned->string();
}

/// What a kernel for a CUDA device has beside the rest.
void cudaKernel(const JsonReader& item, const Manifest& manifest, KernelInfo& kernel) {
  const std::optional<Arch> arch = Arch::parse(kernel.isa);
  if (!arch) item["isa"].reject("a kernel for cuda is for sm_NN, e.g. sm_90");
  const auto wants = [&](const char* key, size_t blob) {
    const BlobInfo& info = manifest.blobs[blob];
    const std::string_view kind = key == std::string_view("blob") ? "ptx" : "cubin";
    if (info.kind != kind || info.isa != kernel.isa)
      item[key].reject("it must be a blob of kind " + std::string(kind) + " for " + kernel.isa);
  };
  if (kernel.blob < manifest.blobs.size()) wants("blob", kernel.blob);
  if (const auto cubin = item.find("cubin")) {
    kernel.cubin = cubin->integer(0, int64_t(manifest.blobs.size()) - 1);
    if (*kernel.cubin < manifest.blobs.size()) wants("cubin", *kernel.cubin);
  }
  kernel.alignment = item["alignment"].integer(0, kMaxDeviceAlignment);
  if (kernel.alignment & (kernel.alignment - 1)) item["alignment"].reject("it must be a power of two, or 0");
  const std::vector<JsonReader> phases = item["phases"].items(kMaxPhases);
  for (size_t i = 0; i < kernel.phases.size(); ++i) cudaPhase(phases[i], arch, kernel.phases[i]);
}

ProblemText problemParts(const JsonReader& item, const std::vector<NormInfo>& norms, size_t norm) {
  ProblemText parts;
  if (norm < norms.size()) parts.norm = norms[norm].name;
  parts.entry = oneOf(item["entry"], kEntries);
  parts.data = oneOf(item["data"], kFloatTypes);
  parts.params = oneOf(item["params"], kFloatTypes);
  parts.layout = oneOf(item["layout"], kLayouts);
  parts.mask = item["mask"].boolean();
  parts.segmented = item["segmented"].boolean();
  if (parts.channelsFirst() && !parts.segmented)
    item["segmented"].reject("channels_first has three dimensions");
  if (const auto features = item.find("features")) parts.features = features->integer(1);
  for (const auto& [name, size] : item["bindings"].members()) parts.bindings[name] = size.integer(1);
  return parts;
}

Scalar scalar(const JsonReader& item) {
  Scalar result{item["name"].string(), item["value"].number()};
  if (const auto least = item.find("least")) result.least = least->number();
  if (const auto above = item.find("above")) result.above = above->number();
  if (const auto below = item.find("below")) result.below = below->number();
  if (const auto whole = item.find("whole")) result.whole = whole->boolean();
  return result;
}

/// What the features of a kernel for any number of them are a multiple of. A package from before there was the key
/// has bound numbers alone, and all of those count groups.
int64_t featuresMultiple(const JsonReader& item, const ProblemText& parts) {
  if (parts.features) return 1;
  if (const auto given = item.find("features_multiple")) return given->integer(1);
  int64_t multiple = 1;
  for (const auto& [name, groups] : parts.bindings)
    if (groups > 0) multiple = multiply(multiple / std::gcd(multiple, groups), groups);
  return multiple;
}

Range range(const JsonReader& limits, const char* least, const char* most) {
  Range result;
  if (const auto min = limits.find(least)) result.least = min->integer(0);
  if (const auto max = limits.find(most)) result.most = max->integer(result.least);
  return result;
}

KernelInfo kernel(const JsonReader& item, const Manifest& manifest) {
  KernelInfo result;
  result.problem = item["problem"].string();
  result.norm = item["norm"].integer(0, int64_t(manifest.norms.size()) - 1);
  result.blob = item["blob"].integer(0, int64_t(manifest.blobs.size()) - 1);
  result.parts = problemParts(item, manifest.norms, result.norm);
  result.featuresMultiple = featuresMultiple(item, result.parts);
  result.device = item["device"].string();
  result.isa = item["isa"].string();
  result.generator = item["generator"].string();
  result.schedule = item["schedule"].string();
  result.origin = item["origin"].string();
  if (const auto limits = item.find("limits"))
    result.rows = range(*limits, "rows_min", "rows_max"), result.run = range(*limits, "run_min", "run_max");
  for (const JsonReader& one : item["phases"].items(kMaxPhases))
    result.phases.push_back(phase(one, result.phases.size()));
  if (result.phases.empty()) item["phases"].reject("a kernel has at least one phase");
  for (const JsonReader& one : item["scalars"].items(kMaxScalars)) result.scalars.push_back(scalar(one));
  result.state = fields(item["state"], {false, 0});
  result.saved = fields(item["saved"], {true, 0});
  if (result.parts.isInfer()) result.saved.clear();  // what forward would save, as older packages list it here too
  for (const JsonReader& one : item["operands"].items(kMaxOperands))
    result.operands.push_back(operand(one, result));
  bool sized = false;
  for (const Operand& one : result.operands)
    sized |= one.role == Role::Tensor && givesSizes(infoOf(one.tensor));
  if (!sized) item["operands"].reject("one of " + sizeSources() + " must be among them");
  if (result.onCuda()) cudaKernel(item, manifest, result);
  return result;
}

BlobInfo blob(const JsonReader& item, uint64_t fileBytes) {
  BlobInfo result;
  result.sha256 = item["sha256"].string();
  if (result.sha256.size() != 64 || result.sha256.find_first_not_of("0123456789abcdef") != std::string::npos)
    item["sha256"].reject("it must be 64 hexadecimal digits in lower case");
  result.offset = item["offset"].integer(64);
  result.bytes = item["bytes"].integer(1);
  if (result.offset % 64 != 0) item["offset"].reject("it must be a multiple of 64");
  if (result.offset > fileBytes || result.bytes > fileBytes - result.offset)
    item["offset"].reject("the blob would end past the end of the file");
  result.kind = item["kind"].string();
  result.isa = item["isa"].string();
  return result;
}

/// Depth of nesting, so that nothing that walks the tree can run deep.
size_t depth(std::string_view json) {
  size_t depth = 0, deepest = 0;
  bool inString = false;
  for (size_t i = 0; i < json.size(); ++i) {
    const char c = json[i];
    if (inString) {
      if (c == '\\') ++i;
      inString = c != '"';
    } else if (c == '"') {
      inString = true;
    } else if (c == '{' || c == '[') {
      deepest = std::max(deepest, ++depth);
    } else if ((c == '}' || c == ']') && depth > 0) {
      --depth;
    }
  }
  return deepest;
}

/// Versions are judged first: what a newer writer means by the rest is not ours to judge.
normc_status checkVersions(const JsonReader& root, const JsonFault& fault) {
  const int64_t schema = root["schema"].integer(1), abi = root["abi"].integer(1);
  if (fault.status != NORMC_OK)
    return fail(NORMC_DATA_LOSS, "the manifest of the package is not valid: ", fault.text);
  if (schema != 1)
    return fail(NORMC_FAILED_PRECONDITION, "the package has manifest schema ", schema, "; this runtime (",
                normc_version(), ") reads schema 1; use a newer runtime");
  if (abi != NORMC_KERNEL_ABI)
    return fail(NORMC_FAILED_PRECONDITION, "the kernels of the package have ABI ", abi, "; this runtime (",
                normc_version(), ") calls ABI ", NORMC_KERNEL_ABI,
                "; compile the package again or use another runtime");
  return NORMC_OK;
}

}  // namespace


normc_status parseManifest(std::string_view json, uint64_t fileBytes, Manifest& manifest) {
  if (const size_t levels = depth(json); levels > kMaxDepth)
    return fail(NORMC_DATA_LOSS, "the manifest of the package is nested ", levels, " levels deep; at most ",
                kMaxDepth, " are allowed");
  const std::optional<JsonValue> tree = parseJson(json);
  if (!tree) return fail(NORMC_DATA_LOSS, "the manifest of the package is not JSON");

  JsonFault fault;
  const JsonReader root(*tree, "", fault);
  NORMC_TRY(checkVersions(root, fault));
  for (const JsonReader& item : root["blobs"].items(kMaxBlobs))
    manifest.blobs.push_back(blob(item, fileBytes));
  for (const JsonReader& item : root["norms"].items(kMaxNorms))
    manifest.norms.push_back({item["name"].string(), item["hash"].string()});
  if (!root.failed())
    for (const JsonReader& item : root["kernels"].items(kMaxKernels)) {
      manifest.kernels.push_back(kernel(item, manifest));
      if (root.failed()) break;
    }
  if (root.failed()) return fail(NORMC_DATA_LOSS, "the manifest of the package is not valid: ", fault.text);
  return NORMC_OK;
}

}  // namespace normc::runtime
