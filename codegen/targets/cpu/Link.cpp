#include "codegen/targets/cpu/Link.h"

#include <mutex>
#include <vector>

#include "codegen/targets/TemporaryFile.h"
#include "codegen/targets/Unavailable.h"
#include "lld/Common/Driver.h"
#include "llvm/Support/CrashRecoveryContext.h"
#include "llvm/Support/raw_ostream.h"

LLD_HAS_DRIVER(elf)

namespace normc::codegen::cpu {

/// True if a file could not be opened, read or written, or lld crashed and so named no error. That says
/// nothing about the kernels.
static bool isFaultOfMachine(llvm::StringRef log) {
  if (!log.contains("error: ")) return true;
  for (const char* fault : {"error: cannot open ", "error: failed to open ", "error: failed to write "})
    if (log.contains(fault)) return true;
  return false;
}

/// Runs lld and returns what it says; nothing if it has written its output.
static std::string run(const std::vector<std::string>& command) {
  static std::mutex mutex;
  const std::lock_guard lock(mutex);
  std::vector<const char*> words;
  for (const std::string& word : command) words.push_back(word.c_str());
  std::string log;
  llvm::raw_string_ostream out(log);
  // What is fatal to lld ends a recovery context, and without one the process.
  llvm::CrashRecoveryContext::Enable();
  const lld::Result result = lld::lldMain(words, out, out, {{lld::Gnu, &lld::elf::link}});
  llvm::CrashRecoveryContext::Disable();
  if (!result.retCode) return "";
  return log.empty() ? "lld ended with " + std::to_string(result.retCode) : log;
}

llvm::Expected<std::string> linkShared(llvm::ArrayRef<std::string> objects, const Isa& isa) {
  std::vector<TemporaryFile> files;
  for (const std::string& object : objects) {
    auto file = TemporaryFile::create("o", object);
    if (!file) return file.takeError();
    files.push_back(std::move(*file));
  }
  // lld writes to another file beside its output and renames it, or leaves it there.
  auto folder = TemporaryFolder::create();
  if (!folder) return folder.takeError();
  const std::string output = folder->file("kernels.so");
  std::vector<std::string> command{
      "ld.lld",      "-shared",          "--no-undefined", "-z", "noexecstack", "--build-id=none",
      "--strip-all", "--hash-style=gnu", "--threads=1",    "-o", output};
  for (const TemporaryFile& file : files) command.push_back(file.path().str());
  const std::string said = run(command);
  if (said.empty()) return readMade(output);
  const std::string failed = "linking " + isa.name.str() + " kernels failed: " + said;
  return isFaultOfMachine(said) ? llvm::make_error<Unavailable>(failed) : llvm::createStringError(failed);
}

}  // namespace normc::codegen::cpu
