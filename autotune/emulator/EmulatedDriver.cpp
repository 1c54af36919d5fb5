#include "autotune/emulator/EmulatedDriver.h"

#include <dlfcn.h>

#include <cstring>

#include "autotune/emulator/driver/FakeCuda.h"

namespace normc::emulator {

namespace {
constexpr int kLaunchFailed = 719, kNotFound = 500;

Dim3 dim(const unsigned (&d)[3]) { return {d[0], d[1], d[2]}; }
}  // namespace

struct EmulatedDriver::Impl {
  struct Module {
    Program program;
    std::vector<std::string> operands;
  };

  EmulatedDriver* owner = nullptr;
  void* library = nullptr;
  decltype(&fake_cuda_set_launcher) setLauncher = nullptr;
  decltype(&fake_cuda_allocation_of) allocationOf = nullptr;
  std::map<std::string, Module, std::less<>> modules;
  std::vector<Launched> launched;

  template <typename Function>
  llvm::Error find(Function& to, const char* name) {
    to = reinterpret_cast<Function>(dlsym(library, name));
    return to ? llvm::Error::success() : llvm::createStringError(std::string("the fake driver has no ") + name);
  }

  static int launch(void* self, const fake_cuda_launch* launch) { return static_cast<Impl*>(self)->run(*launch); }

  /// Whatever a parameter points to, as a region of its own.
  Memory memoryOf(std::span<const uint64_t> words, const std::vector<std::string>& operands) {
    Memory memory;
    std::map<uint64_t, bool> known;
    for (size_t i = 0; i < operands.size() && i < words.size(); ++i) {
      fake_cuda_allocation a;
      if (!allocationOf(words[i], &a) || !known.emplace(a.begin, true).second) continue;
      llvm::consumeError(memory.add(reinterpret_cast<void*>(a.begin), a.end - a.begin, operands[i]));
    }
    return memory;
  }

  int run(const fake_cuda_launch& l) {
    Launched done{l.function, {}};
    auto fail = [&](Fault fault, const std::string& what, int result) {
      done.report.finding = Finding{.fault = fault, .what = what, .kernel = l.function};
      launched.push_back(std::move(done));
      return result;
    };
    const std::string_view image(static_cast<const char*>(l.image), strnlen(static_cast<const char*>(l.image), l.image_bytes));
    auto module = modules.find(image);
    if (module == modules.end())
      return fail(Fault::Misuse, "the module was not made here, so its IR is not known", kNotFound);
    std::vector<uint64_t> words(l.parameter_bytes / 8);
    std::memcpy(words.data(), l.parameters, words.size() * 8);
    Memory memory = memoryOf(words, module->second.operands);
    const Launch request{.function = l.function, .grid = dim(l.grid), .block = dim(l.block), .cluster = dim(l.cluster),
                         .sharedBytes = l.shared_bytes, .words = words};
    auto report = module->second.program.run(request, memory, owner->options);
    if (!report) return fail(Fault::Misuse, llvm::toString(report.takeError()), kLaunchFailed);
    done.report = std::move(*report);
    const bool ok = done.report.ok();
    launched.push_back(std::move(done));
    return ok ? 0 : kLaunchFailed;
  }
};

llvm::Expected<std::unique_ptr<EmulatedDriver>> EmulatedDriver::open(const std::string& library, int major, int minor) {
  auto driver = std::unique_ptr<EmulatedDriver>(new EmulatedDriver);
  driver->impl_ = std::make_unique<Impl>();
  Impl& impl = *driver->impl_;
  impl.owner = driver.get();
  impl.library = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!impl.library) return llvm::createStringError("cannot load the fake driver: " + std::string(dlerror()));
  decltype(&fake_cuda_reset) reset;
  decltype(&fake_cuda_set_devices) setDevices;
  if (auto error = impl.find(impl.setLauncher, "fake_cuda_set_launcher")) return error;
  if (auto error = impl.find(impl.allocationOf, "fake_cuda_allocation_of")) return error;
  if (auto error = impl.find(reset, "fake_cuda_reset")) return error;
  if (auto error = impl.find(setDevices, "fake_cuda_set_devices")) return error;
  reset();
  const fake_cuda_device device{.major = major, .minor = minor, .multiprocessors = 0, .memory_bytes = size_t(4) << 30};
  setDevices(1, &device);
  impl.setLauncher(Impl::launch, &impl);
  return driver;
}

EmulatedDriver::~EmulatedDriver() {
  if (impl_ && impl_->setLauncher) impl_->setLauncher(nullptr, nullptr);
}

void EmulatedDriver::add(const std::string& ptx, Program program, std::vector<std::string> operands) {
  impl_->modules.insert_or_assign(ptx.c_str(), Impl::Module{std::move(program), std::move(operands)});
}

std::vector<EmulatedDriver::Launched> EmulatedDriver::takeLaunches() { return std::exchange(impl_->launched, {}); }

}  // namespace normc::emulator
