// Every built-in norm through every stage on every instruction set, and what must
// be true of the code that comes out: freestanding, vectorised, small.
#include <regex>
#include <set>

#include "codegen/targets/cpu/Link.h"
#include "llvm/Object/ELFObjectFile.h"
#include "tests/Kinds.h"
#include "tests/Sample.h"
#include "tests/codegen/Support.h"

namespace normc::codegen {
namespace {

struct Case {
  BuiltinNorm norm;
  Entry entry;
  cpu::Isa isa;
};
void PrintTo(const Case& c, std::ostream* out) {
  *out << c.norm.name << ":" << name(c.entry) << " for " << c.isa.name.str();
}

/// In the sample each kind of norm meets each entry that it has and each instruction set, and these each
/// other. Each norm has each of its entries.
const Divided<Case>& allCases() {
  static const Divided<Case> all = [] {
    std::vector<Case> list;
    for (const BuiltinNorm& norm : builtinNorms())
      for (Entry entry : kEntries)
        for (const cpu::Isa& isa : setsAndCores())
          if (problemOf(norm, {.entry = entry})) list.push_back({norm, entry, isa});
    return divided(
        list,
        [](const Case& c) {
          return Properties{kindOf(*c.norm.spec), std::string(name(c.entry)), spelling(c.isa)};
        },
        [](const Case& c) { return c.norm.name + ":" + std::string(name(c.entry)); });
  }();
  return all;
}

std::string caseName(const testing::TestParamInfo<Case>& info) {
  std::string text =
      info.param.norm.name + "_" + std::string(name(info.param.entry)) + "_" + spelling(info.param.isa);
  std::replace_if(text.begin(), text.end(), [](char c) { return c == '-' || c == ':'; }, '_');
  return text;
}

TEST(KernelCases, HoldEveryEntryThatTheLanguageAllows) {
  for (const BuiltinNorm& norm : builtinNorms())
    for (Entry entry : kEntries)
      if (!infoOf(entry).needsState && !isOverRanks(entry))
        EXPECT_TRUE(problemOf(norm, {.entry = entry})) << norm.name << ":" << name(entry);
}

/// Calls `check(problem, schedule)` for all strategies of a case.
template <typename Check>
void forKernels(const Case& c, int64_t features, Check check) {
  const auto problem = problemOf(c.norm, {.entry = c.entry, .features = features});
  ASSERT_TRUE(problem) << c.norm.name;
  for (Strategy strategy : cpu::strategies(*problem)) {
    SCOPED_TRACE(problem->text() + " " + name(strategy).str() + " " + c.isa.name.str());
    check(*problem, cpu::defaultSchedule(*problem, c.isa, strategy));
  }
}

/// The lines of one phase of an assembly text: what is exported, and the function behind it where it is not
/// inlined.
std::string phaseOf(const std::string& assembly, const std::string& phase) {
  std::string lines;
  for (const char* joint : {"_", "."}) {
    size_t begin = assembly.find("\nkernel" + (joint + phase) + ":");
    if (begin != std::string::npos)
      lines += assembly.substr(begin, assembly.find(".Lfunc_end", begin) - begin);
  }
  return lines;
}

class Kernels : public testing::TestWithParam<Case> {};

TEST_P(Kernels, PassEveryStage) {
  const cpu::Isa& isa = GetParam().isa;
  bool arm = isa.name == "aarch64";
  std::regex call(arm ? "\\n\\s+(bl|blr)\\s(?!kernel\\.)" : "\\n\\s+callq?\\s(?!kernel\\.)");
  std::regex scalarStream("\\n\\s+movnt(i|ss|sd)");
  forKernels(GetParam(), 160, [&](const Problem& problem, const cpu::Schedule& schedule) {
    auto sweeps = emitStage(problem, schedule, isa, Stage::Sweeps);
    ASSERT_TRUE(bool(sweeps)) << llvm::toString(sweeps.takeError());
    const bool commits = problem.entry == Entry::Commit;  // it reads sums alone
    EXPECT_EQ(sweeps->find("norm.sweep") == std::string::npos, commits);
    auto loops = emitStage(problem, schedule, isa, Stage::Loops);
    ASSERT_TRUE(bool(loops)) << llvm::toString(loops.takeError());
    EXPECT_NE(loops->find("vector.load"), std::string::npos);
    EXPECT_EQ(loops->find("norm."), std::string::npos) << "something was not lowered";
    auto assembly = emitStage(problem, schedule, isa, Stage::Assembly);  // goes through Stage::Llvm
    ASSERT_TRUE(bool(assembly)) << llvm::toString(assembly.takeError());
    EXPECT_FALSE(std::regex_search(*assembly, call)) << "a kernel calls nothing but its own phase";
    EXPECT_FALSE(std::regex_search(*assembly, scalarStream));
    // A register of the schedule's width, as a sweep's loads name it.
    const int64_t width = schedule.vector * bytes(problem.statistics());
    const std::string wide = arm ? "\tq" : width == 64 ? "%zmm" : width == 16 ? "%xmm" : "%ymm";
    const bool applies = sweeps->find("norm.phase @apply") != std::string::npos;
    const std::string phase = phaseOf(*assembly, commits ? "finish" : applies ? "apply" : "statistics");
    EXPECT_NE(phase.find(wide), std::string::npos) << "no vector code in the sweep";
  });
}
NORMC_INSTANTIATE_SAMPLE(All, Kernels, allCases(), caseName);

class Objects : public testing::TestWithParam<Case> {};

TEST_P(Objects, AreFreestandingAndExportTheirPhases) {
  const cpu::Isa& isa = GetParam().isa;
  forKernels(GetParam(), 1024, [&](const Problem& problem, const cpu::Schedule& schedule) {
    auto kernel = compileKernel(problem, schedule, isa, "k");
    ASSERT_TRUE(bool(kernel)) << llvm::toString(kernel.takeError());
    auto file =
        llvm::object::ObjectFile::createELFObjectFile(llvm::MemoryBufferRef(kernel->object, "kernel.o"));
    ASSERT_TRUE(bool(file)) << llvm::toString(file.takeError());
    EXPECT_EQ((*file)->getArch(), llvm::Triple(isa.triple).getArch());
    std::set<std::string> exported, phases;
    std::map<std::string, uint64_t> bytes;  // per phase: its exported function and its implementation
    for (llvm::object::ELFSymbolRef symbol : (*file)->symbols()) {
      uint32_t flags = llvm::cantFail(symbol.getFlags());
      std::string name = llvm::cantFail(symbol.getName()).str();
      EXPECT_FALSE(flags & llvm::object::SymbolRef::SF_Undefined && !name.empty()) << name << " is undefined";
      if (flags & llvm::object::SymbolRef::SF_Global) exported.insert(name);
      if (symbol.getELFType() == llvm::ELF::STT_FUNC) bytes["k_" + name.substr(2)] += symbol.getSize();
    }
    for (const package::Phase& phase : kernel->manifest.phases) phases.insert(phase.symbol);
    EXPECT_EQ(exported, phases) << "what is exported are the phases of the manifest, and nothing else";
    // A resident column tile brings its finisher along; everything else is a sweep that leaves room for its
    // caller.
    bool columns = schedule.strategy == Strategy::Split ||
                   (problem.spec->perFeature() && schedule.strategy == Strategy::Resident);
    // What stands around a norm is computed in each replica of it, in code for small and code for large
    // calls, of which a call runs one: half of an instruction cache, of 32 KiB, or 64 KiB of an AArch64.
    const Spec& spec = *problem.spec;
    const bool around =
        spec.residual || spec.gate || spec.modulate || spec.rope || spec.activation != Activation::None;
    const uint64_t half = isa.name == "aarch64" ? 32768 : 16384;
    for (const auto& [symbol, size] : bytes)
      EXPECT_LE(size, columns  ? 32768u
                      : around ? half
                               : 8192u)
          << symbol << " takes more of the instruction cache than it is worth";
  });
}
NORMC_INSTANTIATE_SAMPLE(All, Objects, allCases(), caseName);

TEST(Stages, LlvmIsTextOfTheSamePhases) {
  Problem problem = problemOf("power_norm:forward@f32[*x64]");
  for (const cpu::Isa& isa : cpu::instructionSets()) {
    auto text = emitStage(problem, cpu::defaultSchedule(problem, isa, Strategy::Streamed), isa, Stage::Llvm);
    ASSERT_TRUE(bool(text)) << llvm::toString(text.takeError());
    for (const char* phase : {"prepare", "apply", "finish", "advance"})
      EXPECT_NE(text->find("define void @kernel_" + std::string(phase) + "("), std::string::npos) << phase;
    EXPECT_NE(text->find("target triple = \"" + isa.triple), std::string::npos);
  }
}

TEST(Stages, OnlyPhasesWhoseStoresMayPassTheCachesHaveAFence) {
  auto fences = [](int64_t stream) {
    const Problem problem = problemOf("power_norm:forward@f32[*x1024]");
    cpu::Schedule schedule = cpu::defaultSchedule(problem, isaOf("x86-64-v4"), Strategy::Streamed);
    schedule.stream = stream, schedule.fetch = schedule.fetch && stream;
    const std::string text = llvm::cantFail(emitStage(problem, schedule, isaOf("x86-64-v4"), Stage::Llvm));
    EXPECT_EQ(text.find("nontemporal") != std::string::npos, stream > 0);
    return llvm::StringRef(text).count("fence seq_cst");
  };
  EXPECT_EQ(fences(1), 1u) << "apply, and none of prepare, finish and advance";
  EXPECT_EQ(fences(0), 0u);
}

TEST(Stages, StoresPastTheCachesStaySuchInEveryType) {
  for (const char* type : {"f32", "bf16", "f16"})
    for (const char* entry : {"forward", "backward"})
      for (const char* target : {"x86-64-v3", "x86-64-v4", "x86-64-v4-bf16"}) {
        const Problem problem = problemOf(std::string("layer_norm:") + entry + "@" + type + "[*x768]");
        SCOPED_TRACE(problem.text() + " " + target);
        const cpu::Isa& isa = isaOf(target);
        const cpu::Schedule schedule = cpu::defaultSchedule(problem, isa, Strategy::Resident);
        const std::string text = llvm::cantFail(emitStage(problem, schedule, isa, Stage::Llvm));
        const std::string assembly = llvm::cantFail(emitStage(problem, schedule, isa, Stage::Assembly));
        const size_t asked = llvm::StringRef(text).count(", !nontemporal");
        EXPECT_GT(asked, 0u);
        EXPECT_GE(llvm::StringRef(assembly).count("vmovnt"), asked);
      }
}

TEST(Stages, BF16IsTakenApartAndPutTogetherARegisterAtATime) {
  const Problem problem = problemOf("layer_norm:backward@bf16[*x768]");
  auto count = [&](const char* target, const char* instruction) {
    const cpu::Isa& isa = isaOf(target);
    const cpu::Schedule schedule = cpu::defaultSchedule(problem, isa, Strategy::Resident);
    return llvm::StringRef(llvm::cantFail(emitStage(problem, schedule, isa, Stage::Assembly)))
        .count(instruction);
  };
  for (const char* target : {"x86-64-v4", "x86-64-v4-bf16"}) {
    EXPECT_GT(count(target, "vpermw"), 0u) << target;
    EXPECT_EQ(count(target, "vpmovzxwd"), 0u) << target << ": 768 features leave no rest";
  }
  EXPECT_GT(count("x86-64-v4-bf16", "vcvtne2ps2bf16"), 0u);
  EXPECT_EQ(count("x86-64-v4-bf16", "vcvtneps2bf16"), 0u);
  EXPECT_GT(count("x86-64-v3", "vpmovzxwd"), 0u);
}

TEST(Stages, RunsInTurnAreWrittenByLoopsOfTheirOwn) {
  auto loopsThatStore = [](const char* text, bool inTurn) {
    const Problem problem = problemOf(text);
    cpu::Schedule schedule =
        llvm::cantFail(cpu::parseSchedule("resident,vector=16,rows=4,unroll=1,tile=4,grain=32,stream=0"));
    schedule.inTurn = inTurn;
    const std::string loops = llvm::cantFail(emitStage(problem, schedule, isaOf("x86-64-v4"), Stage::Loops));
    const std::string apply = loops.substr(loops.find("kernel.apply"));
    llvm::SmallVector<llvm::StringRef> parts;
    llvm::StringRef(apply).split(parts, "scf.for");
    return llvm::count_if(llvm::drop_begin(parts),
                          [](llvm::StringRef part) { return part.contains("vector.store"); });
  };
  EXPECT_GE(loopsThatStore("layer_norm:forward@f32[*x1024]", true),
            loopsThatStore("layer_norm:forward@f32[*x1024]", false) + 3);
  EXPECT_GE(loopsThatStore("layer_norm:backward@f32[*x1024]", true),
            loopsThatStore("layer_norm:backward@f32[*x1024]", false) + 4)
      << "and one for the sums per feature";
  const char* channels = "batch_norm:forward@f32[*x64x*]{layout=channels_first}";
  EXPECT_GE(loopsThatStore(channels, true), loopsThatStore(channels, false) + 3);
}

/// Returns the loops of a resident forward whose tiles have so many vectors of eight.
std::string columnLoops(const std::string& problem, int64_t tile) {
  const std::string schedule =
      "resident,vector=8,rows=1,unroll=1,tile=" + std::to_string(tile) + ",grain=64,stream=0";
  return llvm::cantFail(emitStage(problemOf(problem), llvm::cantFail(cpu::parseSchedule(schedule)),
                                  isaOf("x86-64-v3"), Stage::Loops));
}

TEST(Stages, ShiftsOfATileAreEstimatedInALoop) {
  auto estimates = [](const std::string& problem, int64_t tile) {
    return llvm::StringRef(columnLoops(problem, tile)).count("arith.minimumf");
  };
  const size_t one = estimates("batch_norm:forward@f32[*x1024]", 1);
  EXPECT_GT(one, 0u);
  EXPECT_EQ(estimates("batch_norm:forward@f32[*x1024]", 8), one);
  EXPECT_EQ(estimates("batch_norm:forward@f32[*x1000]", 8), 2 * one) << "the last tile has 5 vectors";
  EXPECT_EQ(estimates("batch_norm:forward@f32[*x1020]", 8), 3 * one)
      << "the last vector of the last tile has a mask";
}

TEST(Stages, FeaturesThatFillTilesLeaveNoRest) {
  EXPECT_EQ(columnLoops("batch_norm:forward@f32[*x1024]", 8).find("masked"), std::string::npos);
  EXPECT_NE(columnLoops("batch_norm:forward@f32[*x1020]", 8).find("masked"), std::string::npos);
  EXPECT_NE(columnLoops("batch_norm:forward@f32[*x*]", 8).find("masked"), std::string::npos);
}

TEST(Stages, LinkedObjectsAreOneSharedObject) {
  for (const cpu::Isa& isa : cpu::instructionSets()) {
    std::vector<std::string> objects;
    for (const char* entry : {"forward", "backward"}) {
      Problem problem = problemOf("rms_norm:" + std::string(entry) + "@f32[*x64]");
      auto schedule = cpu::defaultSchedule(problem, isa, Strategy::Resident);
      objects.push_back(llvm::cantFail(compileKernel(problem, schedule, isa, entry)).object);
    }
    auto shared = cpu::linkShared(objects, isa);
    ASSERT_TRUE(bool(shared)) << llvm::toString(shared.takeError());
    auto file = llvm::object::ObjectFile::createELFObjectFile(llvm::MemoryBufferRef(*shared, "kernels.so"));
    ASSERT_TRUE(bool(file)) << llvm::toString(file.takeError());
    auto elf = llvm::cast<llvm::object::ELFObjectFileBase>(file->get());
    EXPECT_EQ(elf->getEType(), llvm::ELF::ET_DYN);
    std::set<std::string> names;
    for (llvm::object::ELFSymbolRef symbol : elf->getDynamicSymbolIterators())
      if (std::string name = llvm::cantFail(symbol.getName()).str(); !name.empty()) names.insert(name);
    EXPECT_EQ(names, (std::set<std::string>{"forward_apply", "backward_apply", "backward_finish"}));
  }
}

}  // namespace
}  // namespace normc::codegen
