#include "tests/end_to_end/AArch64Run.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <fstream>
#include <iterator>

#include "autotune/gate/Storage.h"
#include "codegen/targets/cpu/Link.h"
#include "llvm/Object/ELFObjectFile.h"
#include "llvm/Support/Program.h"
#include "runtime/abi/kernel.h"

namespace normc {

namespace {

using package::Access;
using package::Factor;
using package::Kernel;
using package::Operand;
using package::Role;
using package::Shape;

//===-- Programs ------------------------------------------------------------------===//

std::string need(const char* program) {
  auto path = llvm::sys::findProgramByName(program);
  if (path) return *path;
  throw std::runtime_error(std::string("AArch64 kernels cannot be run here: ") + program +
                           " is not on the PATH; scripts/setup installs it");
}

/// A path of this process alone.
std::string scratch(const char* name) {
  return testing::TempDir() + "normc-" + std::to_string(getpid()) + "-" + name;
}

std::string readAll(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

void writeAll(const std::string& path, const std::string& bytes) {
  std::ofstream out(path, std::ios::binary);
  if (!(out << bytes)) throw std::runtime_error("cannot write " + path);
}

/// Runs a program whose input and output are files; what it says on stderr is the error.
void execute(const std::vector<std::string>& command, const std::string& in, const std::string& out) {
  std::vector<llvm::StringRef> words(command.begin(), command.end());
  std::string log = scratch("log"), error;
  std::optional<llvm::StringRef> redirects[] = {llvm::StringRef(in), llvm::StringRef(out),
                                                llvm::StringRef(log)};
  int status = llvm::sys::ExecuteAndWait(command[0], words, std::nullopt, redirects, 120, 0, &error);
  std::string said = readAll(log);
  std::remove(log.c_str());
  if (status)
    throw std::runtime_error(command[0] + " ended with status " + std::to_string(status) + ": " + error +
                             said);
}

/// Returns the path of the driver program, which the first call builds.
const std::string& driver() {
  struct Built {
    std::string path = scratch("driver");
    Built() {
      std::string source = NORMC_SOURCE_DIR;
      execute({need("clang-22"), "--target=aarch64-linux-gnu", "-ffreestanding", "-nostdlib", "-static",
               "-fno-pic", "-O1", "-fno-stack-protector", "-fuse-ld=" + need("ld.lld-22"), "-I" + source,
               "-o", path, source + "/tests/end_to_end/AArch64Driver.c"},
              "", "");
    }
    ~Built() { std::remove(path.c_str()); }
  };
  static Built built;
  return built.path;
}

/// Addresses of exported functions. The driver does not relocate, so there must be nothing to.
std::map<std::string, int64_t> addressesIn(const std::string& shared) {
  auto file = llvm::object::ObjectFile::createELFObjectFile(llvm::MemoryBufferRef(shared, "kernels.so"));
  if (!file) throw std::runtime_error(llvm::toString(file.takeError()));
  auto* elf = llvm::cast<llvm::object::ELFObjectFileBase>(file->get());
  if (elf->getEMachine() != llvm::ELF::EM_AARCH64) throw std::runtime_error("the object is not for AArch64");
  for (llvm::object::SectionRef section : elf->sections())
    if (llvm::cantFail(section.getName()).starts_with(".rela"))
      throw std::runtime_error("the object has relocations");
  std::map<std::string, int64_t> addresses;
  for (llvm::object::ELFSymbolRef symbol : elf->getDynamicSymbolIterators())
    addresses[llvm::cantFail(symbol.getName()).str()] = llvm::cantFail(symbol.getAddress());
  return addresses;
}

//===-- The image -------------------------------------------------------------------===//

/// One call as memory: what the runtime would lay out, in one block.
class Image {
 public:
  Image(const Problem& problem, const Kernel& kernel, const ReferenceCall& call,
        const std::map<std::string, int64_t>& addresses)
      : problem_(problem), kernel_(kernel), call_(call) {
    computeCuts();
    header_ = {0,
               int64_t(kernel.operands.size()),
               int64_t(kernel.phases.size()),
               call.extents.segments,
               call.extents.rows,
               call.extents.features,
               0,
               0};
    bytes_.assign(8 * (8 + 4 * kernel.operands.size() + kernel.phases.size()), 0);
    for (const Operand& operand : kernel.operands) addOperand(operand);
    for (const auto& phase : kernel.phases) header_.push_back(addresses.at(phase.symbol));
    std::vector<double> scalars;
    for (const auto& scalar : kernel.scalars) scalars.push_back(scalar.value);
    header_[6] = append(scalars.data(), 8 * scalars.size());
    header_[7] = append(cuts_.data(), sizeof(normc_cut) * cuts_.size());
    header_[0] = bytes_.size();
    std::memcpy(bytes_.data(), header_.data(), 8 * header_.size());
  }

  const std::string& bytes() const { return bytes_; }

  /// Reads the outputs of what came back.
  std::map<std::string, std::vector<double>> outputsOf(const std::string& after) const {
    if (after.size() != bytes_.size())
      throw std::runtime_error("the driver returned another number of bytes");
    std::map<std::string, std::vector<double>> outputs;
    for (const Place& place : places_) {
      const Operand& o = *place.operand;
      for (int64_t i = place.end; i < place.end + kGuard; ++i)
        if (after[i] != kGuardByte) throw std::runtime_error("the kernel wrote behind " + o.name);
      if (o.access == Access::Read &&
          after.compare(place.begin, place.end - place.begin, bytes_, place.begin, place.end - place.begin))
        throw std::runtime_error("the kernel wrote its input " + o.name);
      if (o.access != Access::Write) continue;
      std::string name = (o.role == Role::StateOut ? "state."
                          : o.role == Role::Saved  ? "saved."
                                                   : "") +
                         o.name;
      gate::Storage storage(place.end - place.begin, 0);
      std::memcpy(storage.data(), after.data() + place.begin, storage.bytes());
      std::vector<double>& values = outputs[name];
      for (int64_t i = 0; i < place.elements; ++i) values.push_back(get(storage, o, position(o, i)));
    }
    return outputs;
  }

 private:
  static constexpr int64_t kGuard = 64;
  static constexpr char kGuardByte = 0x5A;
  struct Place {
    const Operand* operand;
    int64_t elements, begin, end;
  };

  int64_t append(const void* data, int64_t size) {
    bytes_.resize((bytes_.size() + 63) / 64 * 64, kGuardByte);
    int64_t at = bytes_.size();
    bytes_.append(static_cast<const char*>(data), size);
    bytes_.append(kGuard, kGuardByte);
    return at;
  }

  int64_t product(const Shape& shape) const {
    int64_t n = 1;
    for (const Factor& f : shape)
      n *= f.of({call_.extents.segments, call_.extents.rows, call_.extents.features}, cuts_.data());
    return n;
  }

  /// docs/package-format.md, "A phase".
  void computeCuts() {
    for (const auto& phase : kernel_.phases) {
      int64_t units = product(phase.units), weight = std::max<int64_t>(1, product(phase.weight)),
              least = std::max({(phase.minUnits + weight - 1) / weight,
                                (units + phase.maxChunks - 1) / phase.maxChunks,
                                std::min(phase.enoughUnits.value_or(1), (units + 15) / 16)}),
              count = std::max<int64_t>(1, units / least + (units % least > least / 2)),
              size = std::max<int64_t>(1, (units + count - 1) / count),
              group = phase.group.value_or(phase.multiple),
              step = units < 32 * group ? phase.multiple : group;
      size = (size + step - 1) / step * step;
      cuts_.push_back({units, size, (units + size - 1) / size});
    }
  }

  static bool wide(const Operand& o) {
    return o.role == Role::Tensor && (o.name.back() == 'x' || o.name.back() == 'y');
  }
  static int64_t width(const Operand& o) { return normc::bytes(typeOf(o)); }
  static DType typeOf(const Operand& o) { return o.type; }

  /// Returns the position of the i-th element in logical order [segment][row][feature].
  int64_t position(const Operand& o, int64_t i) const {
    if (!wide(o) || problem_.layout == Layout::FeaturesLast) return i;
    const Extents& e = call_.extents;
    int64_t f = i % e.features, r = i / e.features % e.rows, s = i / (e.features * e.rows);
    return (s * e.features + f) * e.rows + r;
  }

  int64_t elementsOf(const Operand& o) const {
    const Extents& e = call_.extents;
    if (o.role == Role::Workspace) return product(o.shape);
    if (o.role == Role::Tensor)
      return wide(o) ? e.totalRows() * e.features : o.name == "mask" ? e.totalRows() : e.features;
    for (const Field& f : o.role == Role::Saved ? savedFields(problem_) : stateFields(problem_))
      if (f.name == o.name) return f.elements(e);
    throw std::runtime_error("no field " + o.name);
  }

  /// Returns the input values of the operand; null if the kernel only writes it.
  const std::vector<double>* inputOf(const Operand& o) const {
    if (o.access != Access::Read) return nullptr;
    if (o.role == Role::StateIn) return &call_.state.at(o.name);
    if (o.role == Role::Saved) return &call_.saved.at(o.name);
    return o.name == "x"       ? &call_.x
           : o.name == "dy"    ? &call_.dy
           : o.name == "scale" ? &call_.scale
                               : &call_.bias;
  }

  static double get(const gate::Storage& s, const Operand& o, int64_t at) { return s.get(typeOf(o), at); }

  void addOperand(const Operand& o) {
    const Extents& e = call_.extents;
    int64_t elements = elementsOf(o);
    gate::Storage storage(elements * width(o), 0);  // poisoned
    if (o.name == "mask") {
      std::memcpy(storage.data(), call_.mask.data(), elements);
    } else if (const auto* input = inputOf(o)) {
      for (int64_t i = 0; i < elements; ++i) storage.put(typeOf(o), position(o, i), (*input)[i]);
    }
    int64_t begin = append(storage.data(), storage.bytes());
    places_.push_back({&o, elements, begin, begin + storage.bytes()});
    bool last = problem_.layout == Layout::FeaturesLast;
    if (wide(o))
      header_.insert(header_.end(), {begin, e.rows * e.features, last ? e.features : e.rows, 0});
    else
      header_.insert(header_.end(), {begin, e.rows, 1, 0});
  }

  const Problem& problem_;
  const Kernel& kernel_;
  const ReferenceCall& call_;
  std::vector<normc_cut> cuts_;
  std::vector<int64_t> header_;
  std::vector<Place> places_;
  std::string bytes_;
};

template <typename T>
T orThrow(llvm::Expected<T> value) {
  if (!value) throw std::runtime_error(llvm::toString(value.takeError()));
  return std::move(*value);
}

}  // namespace

AArch64Kernel::AArch64Kernel(const Problem& problem, codegen::Strategy strategy) : problem_(problem) {
  codegen::cpu::Isa isa = llvm::cantFail(codegen::cpu::findIsa("aarch64"));
  link(codegen::cpu::compileKernel(problem, codegen::cpu::defaultSchedule(problem, isa, strategy), isa, "k"));
}

AArch64Kernel::AArch64Kernel(const Problem& problem, const codegen::Target& target) : problem_(problem) {
  link(llvm::cantFail(target.bind(problem, target.bind(problem)->defaults().front().schedule))->compile("k"));
}

void AArch64Kernel::link(llvm::Expected<codegen::CompiledKernel> compiled) {
  try {
    auto kernel = orThrow(std::move(compiled));
    for (const char* program : {"qemu-aarch64", "clang-22", "ld.lld-22"}) need(program);
    manifest_ = kernel.manifest;
    shared_ = orThrow(codegen::cpu::linkShared({kernel.object}, orThrow(codegen::cpu::findIsa("aarch64"))));
    addresses_ = addressesIn(shared_);
  } catch (const std::exception& e) {
    fault_ = e.what();
  }
}

AArch64Result AArch64Kernel::run(const ReferenceCall& call) const {
  if (!fault_.empty()) return {{}, fault_};
  try {
    Image image(problem_, manifest_, call, addresses_);
    std::string code = scratch("kernels.so"), before = scratch("before"), after = scratch("after");
    writeAll(code, shared_), writeAll(before, image.bytes());
    execute({need("qemu-aarch64"), driver(), code}, before, after);
    AArch64Result result{image.outputsOf(readAll(after)), ""};
    for (const std::string& path : {code, before, after}) std::remove(path.c_str());
    return result;
  } catch (const std::exception& e) {
    return {{}, e.what()};
  }
}

}  // namespace normc
