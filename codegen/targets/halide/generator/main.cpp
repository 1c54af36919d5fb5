// normc-halide-gen: a planned kernel through Halide, in a process of its own.
//
//   normc-halide-gen FILE < request.json     writes an object to FILE and facts to standard output
//   normc-halide-gen --version               the version of Halide, as JSON
//
// Halide brings an LLVM of its own and may fail anywhere: the caller
// (codegen/targets/halide) limits time and memory and reads
// standard error as the log. Protocol.h has the exit codes.
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <sstream>

#include "codegen/targets/halide/generator/Finish.h"
#include "codegen/targets/halide/generator/Traffic.h"
#include "codegen/targets/halide/generator/Translation.h"

namespace normc::halide {
namespace {

/// Turns Halide's errors into exceptions, and its warnings into lines of the log.
class Reporter : public Halide::CompileTimeErrorReporter {
  void warning(const char* text) override { std::cerr << text; }
  void error(const char* text) override { throw std::runtime_error(text); }
};

std::string version() {
  std::ostringstream text;
  text << HALIDE_VERSION_MAJOR << "." << HALIDE_VERSION_MINOR << "." << HALIDE_VERSION_PATCH;
  return text.str();
}

void write(const std::string& file, const std::string& text) {
  std::ofstream stream(file);
  stream << text;
  stream.close();
  if (!stream) throw std::runtime_error("cannot write " + file);
}

void answer(const Request& request, const std::string& path) {
  const auto start = std::chrono::steady_clock::now();
  const Halide::Target target = targetOf(request.target);
  const Kernel& kernel = request.kernel;
  std::vector<Halide::Internal::LoweredFunc> functions;
  std::ostringstream text;
  int64_t longestChain = 0;
  Traffic traffic;
  for (size_t i = 0; i < kernel.phases.size(); ++i) {
    Memory memory(kernel, static_cast<int>(i));
    Translation translation(memory, request.schedule);
    Halide::Func driver = translation.run();
    longestChain = std::max(longestChain, translation.longestChain());
    const std::string symbol = kernel.symbol + "_" + kernel.phases[i].name;
    if (request.emit == "halide") {
      text << "// " << symbol << "\n";
      std::streambuf* log = std::cerr.rdbuf(text.rdbuf());  // where Halide prints it
      driver.print_loop_nest();
      std::cerr.rdbuf(log);
      continue;
    }
    functions.push_back(lowered(driver, memory, symbol, target));
    if (!request.count.empty()) {
      const Traffic t =
          trafficOf(functions.back(), memory, {request.count[0], request.count[1], request.count[2]});
      traffic.reads += t.reads;
      traffic.writes += t.writes;
    }
    if (request.emit == "stmt")
      text << "func " << symbol << " (args, task) {\n" << functions.back().body << "}\n\n";
  }
  static const std::map<std::string, Halide::OutputFileType> files{{"object", Halide::OutputFileType::object},
                                                                   {"asm", Halide::OutputFileType::assembly}};
  if (auto file = files.find(request.emit); file != files.end())
    compile(functions, target, file->second, path);
  else
    write(path, text.str());
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
  nlohmann::json facts{{"schema", kSchema},
                       {"halide", version()},
                       {"symbol", kernel.symbol},
                       {"seconds", took.count()},
                       {"longest_chain", longestChain}};
  if (!request.count.empty()) {
    facts["reads"] = traffic.reads;
    facts["writes"] = traffic.writes;
  }
  for (const Phase& phase : kernel.phases) facts["phases"].push_back(kernel.symbol + "_" + phase.name);
  std::cout << facts.dump() << "\n";
}

int run(int argc, char** argv) {
  if (argc != 2) {
    std::cerr << "usage: normc-halide-gen FILE < request.json, or normc-halide-gen --version\n";
    return kBadRequest;
  }
  if (std::string(argv[1]) == "--version") {
    std::cout << nlohmann::json{{"schema", kSchema}, {"halide", version()}}.dump() << "\n";
    return kDone;
  }
  // Kernels call nothing, so a loop that clears memory must stay a loop. Halide reads LLVM's options from
  // this variable only.
  setenv("HL_LLVM_ARGS", "-disable-loop-idiom-all", /*overwrite=*/1);
  const std::string input(std::istreambuf_iterator<char>(std::cin), {});
  static Reporter reporter;
  Halide::set_custom_compile_time_error_reporter(&reporter);
  try {
    answer(parseRequest(input), argv[1]);
    return kDone;
  } catch (const BadRequest& e) {
    std::cerr << "bad request: " << e.what() << "\n";
    return kBadRequest;
  } catch (const Refusal& e) {
    std::cerr << "cannot be expressed: " << e.what() << "\n";
    return kRefused;
  } catch (const std::exception& e) {
    std::cerr << e.what() << "\n";
    return kFailed;
  }
}

}  // namespace
}  // namespace normc::halide

int main(int argc, char** argv) { return normc::halide::run(argc, argv); }
