#include "codegen/targets/cuda/Ptxas.h"

#include <regex>

#include "codegen/targets/TemporaryFile.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MathExtras.h"
#include "llvm/Support/Program.h"

namespace normc::codegen::cuda {

static std::string findTool(llvm::StringRef name) {
  if (auto found = llvm::sys::findProgramByName(name)) return *found;
  if (auto found = llvm::sys::findProgramByName(name, {"/usr/local/cuda/bin"})) return *found;
  return {};
}
std::string findPtxas() { return findTool("ptxas"); }

/// Runs the program. Returns its output on both streams, or an error if it failed.
static llvm::Expected<std::string> runTool(llvm::ArrayRef<llvm::StringRef> command, llvm::StringRef doing) {
  auto log = TemporaryFile::create("log");
  if (!log) return log.takeError();
  std::optional<llvm::StringRef> redirects[] = {llvm::StringRef(), log->path(), log->path()};
  std::string error;
  if (llvm::sys::ExecuteAndWait(command[0], command, std::nullopt, redirects, 120, 0, &error) == 0)
    return log->log();
  std::string said = error + log->log();
  return llvm::createStringError(doing.str() + ": " + llvm::StringRef(said).trim().str());
}

/// Three lines an entry: its name, its stack and spills, its registers and shared memory.
static std::map<std::string, Resources> resourcesOf(const std::string& log) {
  static const std::regex entry("Compiling entry function '([^']+)'"), registers("Used (\\d+) registers"),
      shared("(\\d+) bytes smem"), spills("(\\d+) bytes spill (?:stores|loads)"),
      stack("(\\d+) bytes stack frame"), barriers("used (\\d+) barriers");
  std::map<std::string, Resources> result;
  Resources* current = nullptr;
  std::smatch match;
  for (size_t begin = 0; begin < log.size();) {
    size_t end = std::min(log.find('\n', begin), log.size());
    const std::string line = log.substr(begin, end - begin);
    begin = end + 1;
    if (std::regex_search(line, match, entry)) current = &result[match[1]];
    if (!current) continue;
    for (auto it = std::sregex_iterator(line.begin(), line.end(), spills); it != std::sregex_iterator(); ++it)
      current->spillBytes += std::stoll((*it)[1]);
    if (std::regex_search(line, match, stack)) current->stackBytes = std::stoll(match[1]);
    if (std::regex_search(line, match, registers)) current->registers = std::stoll(match[1]);
    if (std::regex_search(line, match, shared)) current->sharedBytes = std::stoll(match[1]);
    if (std::regex_search(line, match, barriers)) current->barriers = std::stoll(match[1]);
  }
  return result;
}

llvm::Expected<Assembler> assemblerAt(llvm::StringRef path) {
  if (!llvm::sys::fs::can_execute(path)) return llvm::createStringError("no program that can be run");
  auto said = runTool({path, "--version"}, "it cannot tell its version");
  if (!said) return said.takeError();
  std::smatch match;
  if (!std::regex_search(*said, match,
                         std::regex("[Pp]tx optimizing assembler[^]*release ([0-9]+\\.[0-9]+)")))
    return llvm::createStringError("it is not ptxas: --version does not name a release of the CUDA Toolkit");
  return Assembler{path.str(), match[1]};
}

/// `input` is the path of a file of PTX.
static llvm::Expected<Assembled> assembleFile(llvm::StringRef input, const Arch& arch, const Assembler& by) {
  auto output = TemporaryFile::create("cubin");
  if (!output) return output.takeError();
  const std::string name = by.release.empty() ? "ptxas" : "ptxas " + by.release;
  auto log = runTool({by.program, "-v", "-O3", "-arch", arch.name, input, "-o", output->path()},
                     name + " cannot assemble for " + arch.name);
  if (!log) return log.takeError();
  auto cubin = output->read();
  if (!cubin) return cubin.takeError();
  return Assembled{std::move(*cubin), by.release, resourcesOf(*log)};
}

llvm::Expected<Assembled> assemble(llvm::StringRef ptx, const Arch& arch,
                                   llvm::ArrayRef<Assembler> assemblers) {
  const Assembler found{findPtxas(), ""};
  if (assemblers.empty()) assemblers = found;
  if (assemblers.front().program.empty())
    return llvm::createStringError(
        "no ptxas: it is neither on the PATH nor in /usr/local/cuda/bin; install the CUDA toolkit");
  auto input = TemporaryFile::create("ptx", ptx);
  if (!input) return input.takeError();
  std::string reasons;
  for (const Assembler& by : assemblers) {
    auto assembled = assembleFile(input->path(), arch, by);
    if (assembled) return assembled;
    reasons += (reasons.empty() ? "" : "; ") + llvm::toString(assembled.takeError());
  }
  return llvm::createStringError(reasons);
}

llvm::Expected<std::string> disassemble(llvm::StringRef cubin) {
  const std::string program = findTool("nvdisasm");
  if (program.empty())
    return llvm::createStringError(
        "no nvdisasm: it is neither on the PATH nor in /usr/local/cuda/bin; the CUDA toolkit has it");
  auto input = TemporaryFile::create("cubin", cubin);
  if (!input) return input.takeError();
  return runTool({program, input->path()}, "nvdisasm cannot read what ptxas made");
}

int64_t residentBlocks(const Arch& arch, int64_t threads, int64_t dynamicBytes, const Resources& r) {
  // Registers are handed out by the warp, in units of 256.
  int64_t warp = llvm::alignTo(std::max<int64_t>(r.registers, 1) * 32, 256),
          warps = llvm::divideCeil(threads, 32);
  int64_t blocks = arch.blocksOf(threads);
  blocks = std::min(blocks, kRegisters / (warp * warps));
  return std::min(blocks, arch.sharedBytes / (r.sharedBytes + dynamicBytes + limits::kSystemShared));
}

int64_t residentClusters(const Arch& arch, int64_t cluster, int64_t blocks) {
  return arch.neighbours * blocks / cluster;
}

}  // namespace normc::codegen::cuda
