#include "tests/cuda/Emulated.h"

#include <gtest/gtest.h>

#include <array>
#include <regex>

#include "codegen/targets/cuda/Defaults.h"
#include "dsl/Library.h"
#include "dsl/Print.h"
#include "tests/end_to_end/Questions.h"

namespace normc {

gate::Verdict judgedWith(const Damage& damage, const Problem& problem, const std::string& schedule,
                         const gate::Trial& trial) {
  const auto parsed = llvm::cantFail(codegen::cuda::parseSchedule(schedule));
  const auto kernel = emulated(problem, parsed, archOf("sm_90"), damage);
  EXPECT_TRUE(kernel->plan) << kernel->error;
  return kernel->judge(problem, trial);
}

codegen::cuda::Arch archOf(const std::string& name) { return llvm::cantFail(codegen::cuda::findArch(name)); }

Problem problemOf(const std::string& norm, const std::string& rest) {
  const auto spec = readNorms(norm, "test.norm")->back();
  return *parseProblem(spec->name + rest, [&](std::string_view) { return Result(spec); });
}

codegen::cuda::Schedule defaultOf(const Problem& problem, const codegen::cuda::Arch& arch) {
  return codegen::cuda::defaultSchedule(problem, arch, codegen::legalStrategies(problem).front());
}

Damage replaced(const std::string& pattern, const std::string& by) {
  return {.code = [=](std::string& ptx) {
    const std::regex found(pattern);
    EXPECT_TRUE(std::regex_search(ptx, found)) << pattern;
    ptx = std::regex_replace(ptx, found, by);
  }};
}

Damage replacedOnce(const std::string& entry, const std::string& pattern, const std::string& by) {
  return {.code = [=](std::string& ptx) {
    const size_t name = ptx.find(entry, ptx.find(".entry")), at = ptx.find('{', name);
    ASSERT_NE(at, ptx.npos) << entry;
    const std::string code = ptx.substr(at);
    const std::regex found(pattern);
    EXPECT_TRUE(std::regex_search(code, found)) << pattern;
    ptx = ptx.substr(0, at) + std::regex_replace(code, found, by, std::regex_constants::format_first_only);
  }};
}

Damage withoutWait(int n) {
  return {.code = [n](std::string& ptx) {
    static const std::regex kWait(R"(ld\.acquire\.gpu\.b64\s+(%rd\d+), \[[^\]]*\];)");
    std::string damaged;
    for (size_t at = 0, entry = 0; at < ptx.size(); at = entry) {
      entry = std::min(ptx.find(".entry", at + 1), ptx.size());
      std::string code = ptx.substr(at, entry - at);
      auto wait = std::sregex_iterator(code.begin(), code.end(), kWait);
      for (int i = 0; i != n && wait != std::sregex_iterator(); ++i) ++wait;
      if (n >= 0 && wait != std::sregex_iterator())
        code.replace(size_t(wait->position()), size_t(wait->length()),
                     "mov.b64 " + (*wait)[1].str() + ", 1048576;");
      damaged += code;
    }
    ptx = damaged;
  }};
}

static void prepare(Emulated& e, const Problem& problem, const codegen::cuda::Schedule& schedule,
                    const codegen::cuda::Arch& arch, const Damage& damage) {
  auto driver = emulator::EmulatedDriver::open(NORMC_FAKE_CUDA, int(arch.number / 10), int(arch.number % 10));
  if (!driver) return void(e.error = llvm::toString(driver.takeError()));
  e.driver = std::move(*driver);
  e.driver->guardBytes = 256;  // as the gate's buffers have them
  auto kernel = codegen::cuda::compileKernel(problem, schedule, arch, "k", {.make = false});
  if (!kernel) return void(e.error = llvm::toString(kernel.takeError()));
  std::string code = kernel->ptx;
  if (damage.code) damage.code(code);
  auto program = emulator::Program::compile(code);
  if (!program) return void(e.error = llvm::toString(program.takeError()));
  std::vector<emulator::EmulatedDriver::Operand> operands;
  for (const package::Operand& o : kernel->manifest.operands) {
    const bool tensor = o.role == package::Role::Tensor, written = o.written();
    operands.push_back({tensor ? o.name : std::string(name(o.role)) + "." + o.name, written, !written});
  }
  e.driver->add(kernel->ptx, std::move(*program), std::move(operands));

  package::Writer writer({{"normc", "test"}});
  e.manifest = kernel->manifest;
  if (damage.manifest) damage.manifest(e.manifest);
  e.manifest.norm = writer.addNorm(problem.spec->name, problem.spec->structuralHash(), print(*problem.spec));
  e.manifest.blob = writer.addBlob(kernel->ptx, "ptx", arch.name);
  writer.addKernel(e.manifest);
  const std::string bytes = writer.bytes();

  normc_context_options options{.max_threads = 1, .cuda_library = NORMC_FAKE_CUDA};
  try {
    e.context.emplace(options);
    e.package.emplace(*e.context, bytes.data(), bytes.size());
    e.plans.emplace([&package = *e.package, text = problem.text()](const std::vector<normc_number>& numbers) {
      normc_request request = host::onCuda();
      request.numbers = numbers.data(), request.number_count = numbers.size();
      return host::Plan(package, text, request);
    });
  } catch (const host::Error& error) {
    return void(e.error = error.what());
  }
  e.plan = e.plans->plan().get();
  e.device = std::make_unique<gate::CudaDevice>(0, NORMC_FAKE_CUDA);
}

std::unique_ptr<Emulated> emulated(const Problem& problem, const codegen::cuda::Schedule& schedule,
                                   const codegen::cuda::Arch& arch, const Damage& damage) {
  auto result = std::make_unique<Emulated>();
  prepare(*result, problem, schedule, arch, damage);
  return result;
}

gate::Verdict Emulated::judgeInEveryOrder(const Problem& problem) {
  using emulator::Order;
  gate::Verdict verdict;
  for (const gate::Question& question : standardQuestions(problem, *problem.features)) {
    for (Order order : {Order::Ascending, Order::Random}) {  // and each time another one
      driver->options.order = order;
      verdict = judge(problem, question);
      if (!verdict.ok) return verdict;
    }
  }
  return verdict;
}

gate::Verdict Emulated::judgeInTurns(const Problem& problem) {
  using emulator::Order;
  constexpr std::array kOrders{Order::Ascending, Order::Descending, Order::Random};
  gate::Verdict verdict;
  size_t turn = 0;
  for (const gate::Question& question : standardQuestions(problem, *problem.features)) {
    driver->options.order = kOrders[turn++ % kOrders.size()];
    verdict = judge(problem, question);
    if (!verdict.ok) return verdict;
  }
  return verdict;
}

gate::Verdict Emulated::judge(const Problem& problem, const gate::Trial& trial) {
  const auto question = gate::questionFor(problem, trial);
  if (!question) return {.ok = false, .text = text(question.errors())};
  return judge(problem, *question);
}

gate::Verdict Emulated::judge(const Problem& problem, const gate::Question& question) {
  using emulator::Order;
  const emulator::Options first = driver->options;
  gate::Verdict verdict =
      gate::judge(plans->of(question.trial).front(), problem, question, device.get(), [&] {
        emulator::Options& second = driver->options;
        if (first.order == Order::Random)
          ++second.seed;
        else
          second.order = first.order == Order::Ascending ? Order::Descending : Order::Ascending;
      });
  driver->options = first;
  launches = driver->takeLaunches();
  for (const auto& launched : launches) {
    if (launched.report.ok()) continue;
    verdict.ok = false;
    verdict.text += "\n" + launched.report.text();
    break;
  }
  if (!verdict.ok)
    verdict.text = problem.text() + " " + manifest.schedule + " " + manifest.isa + ": " + verdict.text;
  return verdict;
}

void PrintTo(const SharedMemoryCase& c, std::ostream* out) { *out << c.name; }

}  // namespace normc
