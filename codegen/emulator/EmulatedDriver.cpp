#include "codegen/emulator/EmulatedDriver.h"

#include <dlfcn.h>

#include <algorithm>
#include <cstring>
#include <set>

#include "codegen/emulator/driver/FakeCuda.h"

namespace normc::emulator {

namespace {
constexpr int kLaunchFailed = 719, kNotFound = 500;

constexpr std::string_view kElf =
    "\x7f"
    "ELF";

/// Returns the key of a module: the image; for PTX the text up to its zero, if it has one.
std::string_view keyOf(std::string_view image) {
  return image.starts_with(kElf) ? image : image.substr(0, image.find('\0'));
}

Dim3 dim(const unsigned (&d)[3]) { return {d[0], d[1], d[2]}; }
}  // namespace

constexpr size_t kLine = 64;

struct EmulatedDriver::Impl {
  struct Module {
    Program program;
    std::vector<Operand> operands;
  };

  /// An allocation that operands of a launch point into: a region.
  struct Region {
    uint64_t begin, end, serial, first;  ///< first: the lowest address of an operand
    std::string name;
    bool written, given;
    bool operator==(const Region&) const = default;
  };

  EmulatedDriver* owner = nullptr;
  uint32_t mostShared = 0;  ///< of a block of the device
  void* library = nullptr;
  decltype(&fake_cuda_set_launcher) setLauncher = nullptr;
  decltype(&fake_cuda_allocation_of) allocationOf = nullptr;
  decltype(&fake_cuda_take_cleared) takeCleared = nullptr;
  std::map<std::string, Module, std::less<>> modules;
  std::vector<Launched> launched;
  struct {
    Memory memory;
    std::vector<Region> regions;
    std::set<std::string> functions;
  } call;

  template <typename Function>
  llvm::Error find(Function& to, const char* name) {
    to = reinterpret_cast<Function>(dlsym(library, name));
    return to ? llvm::Error::success()
              : llvm::createStringError(std::string("the fake driver has no ") + name);
  }

  static int launch(void* self, const fake_cuda_launch* launch) {
    return static_cast<Impl*>(self)->run(*launch);
  }

  std::vector<Region> regionsOf(std::span<const uint64_t> words, const std::vector<Operand>& operands) {
    std::vector<Region> regions;
    for (size_t i = 0; i < operands.size() && i < words.size(); ++i) {
      const Operand& o = operands[i];
      fake_cuda_allocation a;
      if (!allocationOf(words[i], &a)) continue;
      auto known =
          std::find_if(regions.begin(), regions.end(), [&](const Region& r) { return r.begin == a.begin; });
      if (known == regions.end()) {
        regions.push_back({a.begin, a.end, a.serial, words[i], o.name, o.written, o.given});
      } else {
        known->first = std::min(known->first, words[i]);
        known->written |= o.written;
        known->given |= o.given;
      }
    }
    return regions;
  }

  Memory memoryOf(const std::vector<Region>& regions) {
    Memory memory;
    for (const Region& r : regions) {
      llvm::cantFail(memory.add(reinterpret_cast<void*>(r.begin), r.end - r.begin, r.name,
                                r.written ? Access::ReadWrite : Access::ReadOnly,
                                r.given ? Content::Initialised : Content::Uninitialised));
      const size_t guard = owner->guardBytes;
      if (!guard || r.end - r.begin <= guard) continue;
      // Includes the misalignment before a tensor. A tensor with descending rows begins at its last row,
      // further behind.
      const size_t before = r.first - r.begin, front = before <= guard + kLine ? before : guard;
      llvm::cantFail(memory.forbid(reinterpret_cast<void*>(r.begin), front));
      llvm::cantFail(memory.forbid(reinterpret_cast<void*>(r.end - guard), guard));
    }
    // Memory that the runtime has cleared counts as written in this call. Memory without an operand is not
    // checked.
    for (uint64_t begin, end; takeCleared(&begin, &end);)
      llvm::consumeError(memory.markInitialised(reinterpret_cast<void*>(begin), end - begin));
    return memory;
  }

  /// Returns the memory of the call that a launch belongs to: a phase may read what an earlier one has
  /// written. A call begins with other arguments, or with a function that the previous call has already
  /// launched.
  Memory& memoryFor(const std::string& function, const std::vector<Region>& regions) {
    if (regions != call.regions || !call.functions.insert(function).second)
      call = {memoryOf(regions), regions, {function}};
    return call.memory;
  }

  /// Returns the module of an image. A cubin is loaded without its length, so the driver's image may be
  /// shorter than the file.
  const Module* moduleOf(std::string_view image) const {
    const auto at = modules.lower_bound(image);
    const bool same =
        at != modules.end() && (image.starts_with(kElf) ? at->first.starts_with(image) : at->first == image);
    return same ? &at->second : nullptr;
  }

  int run(const fake_cuda_launch& l) {
    Launched done{l.function, {}};
    auto fail = [&](Fault fault, const std::string& what, int result) {
      done.report.finding = Finding{.fault = fault, .what = what, .kernel = l.function};
      launched.push_back(std::move(done));
      return result;
    };
    const Module* const module = moduleOf(keyOf({static_cast<const char*>(l.image), l.image_bytes}));
    if (!module) return fail(Fault::Misuse, "the module's program is not known here", kNotFound);
    std::vector<uint64_t> words(l.parameter_bytes / 8);
    std::memcpy(words.data(), l.parameters, words.size() * 8);
    Memory& memory = memoryFor(l.function, regionsOf(words, module->operands));
    const Launch request{.function = l.function,
                         .grid = dim(l.grid),
                         .block = dim(l.block),
                         .cluster = dim(l.cluster),
                         .sharedBytes = l.shared_bytes,
                         .cooperative = l.cooperative != 0,
                         .mostShared = mostShared,
                         .words = words};
    auto report = module->program.run(request, memory, owner->options);
    if (!report) return fail(Fault::Misuse, llvm::toString(report.takeError()), kLaunchFailed);
    done.report = std::move(*report);
    const bool ok = done.report.ok();
    launched.push_back(std::move(done));
    return ok ? 0 : kLaunchFailed;
  }
};

llvm::Expected<std::unique_ptr<EmulatedDriver>> EmulatedDriver::open(const std::string& library, int major,
                                                                     int minor) {
  auto driver = std::unique_ptr<EmulatedDriver>(new EmulatedDriver);
  driver->impl_ = std::make_unique<Impl>();
  Impl& impl = *driver->impl_;
  impl.owner = driver.get();
  impl.mostShared = uint32_t(limits::sharedOfBlock(10 * major + minor));
  impl.library = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!impl.library) return llvm::createStringError("cannot load the fake driver: " + std::string(dlerror()));
  decltype(&fake_cuda_reset) reset;
  decltype(&fake_cuda_set_devices) setDevices;
  if (auto error = impl.find(impl.setLauncher, "fake_cuda_set_launcher")) return error;
  if (auto error = impl.find(impl.allocationOf, "fake_cuda_allocation_of")) return error;
  if (auto error = impl.find(impl.takeCleared, "fake_cuda_take_cleared")) return error;
  if (auto error = impl.find(reset, "fake_cuda_reset")) return error;
  if (auto error = impl.find(setDevices, "fake_cuda_set_devices")) return error;
  reset();
  const fake_cuda_device device{
      .major = major, .minor = minor, .multiprocessors = 0, .memory_bytes = size_t(4) << 30};
  setDevices(1, &device);
  impl.setLauncher(Impl::launch, &impl);
  return driver;
}

EmulatedDriver::~EmulatedDriver() {
  if (impl_ && impl_->setLauncher) impl_->setLauncher(nullptr, nullptr);
}

void EmulatedDriver::add(const std::string& image, Program program, std::vector<Operand> operands) {
  impl_->modules.insert_or_assign(std::string(keyOf(image)),
                                  Impl::Module{std::move(program), std::move(operands)});
}

std::vector<EmulatedDriver::Launched> EmulatedDriver::takeLaunches() {
  return std::exchange(impl_->launched, {});
}

}  // namespace normc::emulator
