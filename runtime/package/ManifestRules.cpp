#include "runtime/package/ManifestRules.h"

#include <algorithm>

#include "runtime/cuda/Arch.h"

namespace normc::package {
namespace {

using runtime::Arch;

constexpr int kDependentNumber = 90;  // the first compute capability with dependent launches

/// A path within a kernel: "isa", "operands[3].name", "phases[0].units[1]".
struct Place {
  std::string_view list;
  std::optional<size_t> index = {};
  std::string_view key = {};
  std::optional<size_t> factor = {};

  std::string text() const {
    const auto bracketed = [](std::optional<size_t> i) { return i ? "[" + std::to_string(*i) + "]" : ""; };
    return std::string(list) + bracketed(index) + std::string(key) + bracketed(factor);
  }
};

/// True if the sizes of a call may come from this tensor: it is X-sized, all norms have it, and so have all
/// calls that take it.
bool givesSizes(const TensorInfo& info) {
  return info.shape == TensorShape::Elements && !info.needs && !info.mayBeLeftOut();
}

/// The tensors that a backward of an older package ignores where it has no operand for them.
constexpr Tensor kIgnoredByOlder[] = {kX, kScale, kBias};

std::string text(const Shape& shape) {
  std::string text;
  for (const Factor& factor : shape)
    text += (text.empty() ? "[" : ", ") + std::string(package::name(factor.kind));
  return text + "]";
}

/// Returns the names of the tensors for which `wanted` holds, for errors.
template <class Wanted>
std::string namesOf(Wanted wanted) {
  std::string names;
  for (const TensorInfo& each : kTensorTable)
    if (wanted(each)) names += (names.empty() ? "" : ", ") + std::string(each.name);
  return names;
}

/// Keeps the first fault. Later checks may run on invalid values.
class Judge {
 public:
  Judge(Kernel& kernel, const Manifest& manifest) : kernel_(kernel), manifest_(manifest) {}

  std::optional<Fault> all() {
    index("norm", kernel_.norm, manifest_.norms.size());
    index("blob", kernel_.blob, manifest_.blobs.size());
    if (kernel_.cubin) index("cubin", *kernel_.cubin, manifest_.blobs.size());
    if (fault_) return fault_;
    ProblemText& parts = kernel_.parts;
    parts.norm = manifest_.norms[kernel_.norm].name;
    // The fields that forward would save: older packages list them here too.
    if (!parts.usesSaved()) kernel_.saved.clear();
    require(!parts.channelsFirst() || parts.segmented, {"segmented"}, "channels_first has three dimensions");
    require(!kernel_.phases.empty(), {"phases"}, "a kernel has at least one phase");
    for (size_t i = 0; i < kernel_.phases.size(); ++i) {  // a shape may use only chunks of earlier phases
      shape({"phases", i, ".units"}, kernel_.phases[i].units, true, i);
      shape({"phases", i, ".weight"}, kernel_.phases[i].weight, true, i);
    }
    fields("state", kernel_.state, false);
    fields("saved", kernel_.saved, true);
    fields("partial", kernel_.partial, false);
    for (size_t i = 0; i < kernel_.partial.size(); ++i)
      require(kernel_.partial[i].type == DType::F64, {"partial", i, ".type"}, "sums of partials are f64");
    require(kernel_.partial.empty() || parts.isOverRanks(), {"partial"}, "this entry has no partials");
    bool sized = false;
    for (size_t i = 0; i < kernel_.operands.size() && !fault_; ++i) {
      operand(i);
      sized |= kernel_.operands[i].role == Role::Tensor && givesSizes(infoOf(kernel_.operands[i].tensor));
    }
    require(sized || parts.entry == Entry::Commit, {"operands"},
            "one of " + namesOf(givesSizes) + " must be among them");
    require(kernel_.runs > 0 || !(hasOperand(kRopeCos) || hasOperand(kRopeSin)), {"runs"},
            "a kernel that turns pairs of features has runs of them");
    otherTensors();
    if (kernel_.onCuda() && !fault_) cuda();
    return fault_;
  }

 private:
  void require(bool fulfilled, const Place& place, std::string_view rule) {
    if (!fulfilled && !fault_) fault_ = {place.text(), std::string(rule)};
  }

  void index(std::string_view key, size_t index, size_t count) {
    if (index >= count) require(false, {key}, "it must be at most " + std::to_string(int64_t(count) - 1));
  }

  /// Checks the factors of a shape: sizes of a call, and chunks of the first phases.
  void shape(Place place, const Shape& shape, bool calls, size_t phases) {
    for (size_t i = 0; i < shape.size(); ++i) {
      const auto [kind, value] = shape[i];
      place.factor = i;
      require(kind == Factor::Chunks ? size_t(value) < phases
                                     : calls || kind == Factor::Fixed || kind == Factor::Features,
              place, "it is no size that is known here");
    }
  }

  void fields(std::string_view list, const std::vector<Field>& fields, bool calls) {
    for (size_t i = 0; i < fields.size(); ++i) {
      require(indexOf(fields, fields[i].name) == int(i), {list, i, ".name"}, "another field has this name");
      shape({list, i, ".shape"}, fields[i].shape, calls, 0);
    }
  }

  void operand(size_t i) {
    Operand& operand = kernel_.operands[i];
    const bool workspace = operand.role == Role::Workspace, tensor = operand.role == Role::Tensor;
    if (tensor) this->tensor(i, operand);
    const bool output = isOutput(operand);
    require(operand.written() == output, {"operands", i, ".access"},
            output ? "this operand is written" : "this operand is only read");
    require((operand.access == Access::Both || operand.zeroed()) == workspace, {"operands", i, ".access"},
            "'both' and 'zeroed' are the accesses of workspace alone");
    require(!operand.zeroed() || kernel_.onCuda(), {"operands", i, ".access"},
            "only a kernel for cuda has workspace that is zero");
    require(operand.role != Role::StateOut || kernel_.parts.writesState(), {"operands", i, ".role"},
            "this entry does not write the state");
    if (workspace) shape({"operands", i, ".shape"}, operand.shape, true, kernel_.phases.size());
    require((operand.role != Role::Partial || kernel_.parts.writesPartial()) &&
                (operand.role != Role::Partials || kernel_.parts.addsPartials()),
            {"operands", i, ".role"}, "this entry takes no such operand");
    if (workspace || tensor) return;
    field(i, operand);
    for (size_t other = 0; other < i; ++other)
      require(kernel_.operands[other].role != operand.role || kernel_.operands[other].name != operand.name,
              {"operands", i, ".name"}, "another operand is this field");
  }

  bool hasOperand(Tensor tensor) const {
    return std::any_of(kernel_.operands.begin(), kernel_.operands.end(), [&](const Operand& operand) {
      return operand.role == Role::Tensor && operand.tensor == tensor;
    });
  }

  /// Checks the tensors that are no operands: those that are ignored, and those that equal another.
  void otherTensors() {
    const bool backward = kernel_.parts.isBackward();
    if (!kernel_.ignored) {
      kernel_.ignored.emplace();
      for (const Tensor each : kIgnoredByOlder)
        if (backward && !hasOperand(each)) kernel_.ignored->emplace_back(name(each));
    }
    for (size_t i = 0; i < kernel_.ignored->size(); ++i) {
      const auto tensor = tensorNamed((*kernel_.ignored)[i]);
      require(backward && tensor && infoOf(*tensor).mayBeIgnored() && !hasOperand(*tensor), {"ignored", i},
              "it must be an input of a backward, one of " +
                  namesOf([](const TensorInfo& info) { return info.mayBeIgnored(); }) + ", and no operand");
    }
    for (const auto& [of, other] : kernel_.same) {
      const auto tensor = tensorNamed(of), equal = tensorNamed(other);
      require(tensor && equal && !hasOperand(*tensor) && hasOperand(*equal), {"same"},
              "a tensor that is no operand equals one that is");
    }
  }

  /// Checks the name of a tensor, its type and its shape.
  void tensor(size_t i, Operand& operand) {
    const auto found = tensorNamed(operand.name);
    if (!found)
      return require(false, {"operands", i, ".name"},
                     "it must be one of " + namesOf([](const TensorInfo&) { return true; }));
    operand.tensor = *found;
    for (size_t k = 0; k < i; ++k)
      require(kernel_.operands[k].role != Role::Tensor || kernel_.operands[k].tensor != operand.tensor,
              {"operands", i, ".name"}, "another operand has this name");
    const TypeRule rule = infoOf(operand.tensor).type;
    const bool chosen = rule == TypeRule::Codes || rule == TypeRule::Scales;  // by the norm
    const auto legal = rule == TypeRule::Codes ? kCodeTypes : kScaleTypes;
    const DType wanted = typeOf(operand.tensor, kernel_.parts.types());
    if (chosen && std::find(legal.begin(), legal.end(), operand.type) == legal.end())
      require(false, {"operands", i, ".type"}, "it must be " + normc::namesOf(legal));
    if (!chosen && operand.type != wanted)
      require(false, {"operands", i, ".type"}, "it must be " + std::string(name(wanted)));
    operand.tensorShape = infoOf(operand.tensor).shape;
    if (infoOf(operand.tensor).shapeOf) tensorShape(i, operand);
  }

  /// Finds the shape of a tensor whose shape the norm decides: one for all tensors that it decides together.
  void tensorShape(size_t i, Operand& operand) {
    using enum TensorShape;
    std::string legal;
    bool found = false;
    for (const TensorShape each : {PerFeature, PerSegment, Elements}) {
      const Shape factors = factorsOf(each);
      legal += (legal.empty() ? "" : each == Elements ? " or " : ", ") + text(factors);
      if (operand.shape == factors) {
        operand.tensorShape = each;
        found = true;
      }
    }
    require(found, {"operands", i, ".shape"}, "it must be " + legal);
    for (size_t k = 0; k < i; ++k)
      if (const Operand& other = kernel_.operands[k];
          other.role == Role::Tensor && infoOf(other.tensor).shapeOf == infoOf(operand.tensor).shapeOf &&
          other.tensorShape != operand.tensorShape)
        require(false, {"operands", i, ".shape"}, "it must be that of " + other.name);
  }

  /// Finds the field of an operand.
  void field(size_t i, Operand& operand) {
    const bool partial = operand.role == Role::Partial || operand.role == Role::Partials;
    const std::vector<Field>& owner = partial                       ? kernel_.partial
                                      : operand.role == Role::Saved ? kernel_.saved
                                                                    : kernel_.state;
    const int found = indexOf(owner, operand.name);
    if (found < 0) return require(false, {"operands", i, ".name"}, "there is no field of this name");
    operand.field = size_t(found);
    require(owner[operand.field].type == operand.type, {"operands", i, ".type"},
            "the field has another type");
  }

  bool isOutput(const Operand& operand) const {
    switch (operand.role) {
      case Role::Tensor:
        return infoOf(operand.tensor).written(kernel_.parts.entry);
      case Role::StateIn:
        return false;
      case Role::Saved:
        return kernel_.parts.writesSaved();
      case Role::Partials:
        return false;
      case Role::StateOut:
      case Role::Workspace:
      case Role::Partial:
        return true;
    }
    return false;
  }

  /// Checks the members that only a kernel for a CUDA device has.
  void cuda() {
    const std::optional<Arch> arch = Arch::parse(kernel_.isa);
    if (!arch) return require(false, {"isa"}, "a kernel for cuda is for sm_NN, e.g. sm_90");
    blob("blob", kernel_.blob, "ptx");
    if (kernel_.cubin) blob("cubin", *kernel_.cubin, "cubin");
    require((kernel_.alignment & (kernel_.alignment - 1)) == 0, {"alignment"},
            "it must be a power of two, or 0");
    for (size_t i = 0; i < kernel_.phases.size(); ++i) {
      const std::optional<Launch>& launch = kernel_.phases[i].launch;
      if (!launch) return require(false, {"phases", i, ".launch"}, "it must be there");
      require(launch->cooperative == 1 || launch->cluster == 1, {"phases", i, ".launch.cooperative"},
              "the blocks of a chunk are a cluster already");
      require(!launch->dependent || arch->number() >= kDependentNumber, {"phases", i, ".launch.dependent"},
              "a launch depends on another from sm_90 on");
    }
  }

  void blob(std::string_view key, size_t index, const std::string& kind) {
    const Blob& blob = manifest_.blobs[index];
    if (blob.kind != kind || blob.isa != kernel_.isa)
      require(false, {key}, "it must be a blob of kind " + kind + " for " + kernel_.isa);
  }

  Kernel& kernel_;
  const Manifest& manifest_;
  std::optional<Fault> fault_;
};

}  // namespace

std::optional<Fault> fault(const Blob& blob, uint64_t fileBytes) {
  if (blob.sha256.size() != 64 || blob.sha256.find_first_not_of("0123456789abcdef") != std::string::npos)
    return Fault{"sha256", "it must be 64 hexadecimal digits in lower case"};
  if (blob.offset % kAlignment != 0) return Fault{"offset", "it must be a multiple of 64"};
  if (blob.offset > fileBytes || blob.bytes > fileBytes - blob.offset)
    return Fault{"offset", "the blob would end past the end of the file"};
  return std::nullopt;
}

std::optional<Fault> resolve(Kernel& kernel, const Manifest& manifest) {
  return Judge(kernel, manifest).all();
}

}  // namespace normc::package
