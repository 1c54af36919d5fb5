// The kernel that a plan gets, the reason, and the legal requests.
#include "runtime/abi/CpuCore.h"
#include "tests/runtime/Support.h"

namespace normc::test {
namespace {

size_t chosen(const host::Package& package, const std::string& problem, normc_request request = {}) {
  return Plan(package, problem, request).kernel();
}

package::Kernel withIsa(package::Kernel kernel, const std::string& isa) {
  kernel.isa = isa;
  return kernel;
}

TEST(Select, PrefersExactFeatures) {
  const host::Package package = openInMemory(packageOf({layerNorm("forward"), layerNorm("forward", 8),
                                                        layerNorm("forward", 16), layerNorm("backward")}),
                                             context());
  EXPECT_EQ(chosen(package, "layer_norm:forward@f32[*x8]"), 1u);
  EXPECT_EQ(chosen(package, "layer_norm:forward@f32[*x16]"), 2u);
  EXPECT_EQ(chosen(package, "layer_norm:forward@f32[*x9]"), 0u);
  EXPECT_EQ(chosen(package, "layer_norm:forward@f32[*x*]"), 0u);
  const std::string text = Plan(package, "layer_norm:forward@f32[*x8]").describe();
  EXPECT_TRUE(
      has(text,
          "chosen because: of those that serve the request here, it is compiled for exactly these features"))
      << text;
  EXPECT_TRUE(has(text, "kernel 0 (layer_norm:forward@f32[*x*], " + hostIsa() +
                            ", hand): kernel 1 is compiled for exactly these features"))
      << text;
  EXPECT_TRUE(has(text, ": is for features 16, not 8")) << text;
  EXPECT_FALSE(has(text, "backward")) << "other entries are no candidates\n" << text;
}

TEST(Select, PrefersNarrowerLimitsThenTheFirst) {
  package::Kernel small = layerNorm("forward"), other = layerNorm("forward");
  small.limits.rowsMax = 64;
  const host::Package package = openInMemory(packageOf({layerNorm("forward"), small, other}), context());
  EXPECT_EQ(chosen(package, "layer_norm:forward@f32[64x*]"), 1u);
  EXPECT_EQ(chosen(package, "layer_norm:forward@f32[65x*]"), 0u);
  EXPECT_EQ(chosen(package, "layer_norm:forward@f32[*x*]"), 0u);
  const std::string text = Plan(package, "layer_norm:forward@f32[*x*]").describe();
  EXPECT_TRUE(has(text, "but for 0 to 64 rows: kernel 1, ")) << text;
  EXPECT_TRUE(has(text, "kernel 0 comes before it in the package")) << text;
  EXPECT_TRUE(has(Plan(package, "layer_norm:forward@f32[64x*]").describe(), "has the narrower limits"));
  EXPECT_TRUE(has(Plan(package, "layer_norm:forward@f32[65x*]").describe(), "serves 0 to 64 rows, not 65"));
}

TEST(Select, RefusesCallsOutsideTheLimits) {
  package::Kernel small = layerNorm("forward");
  small.limits.rowsMin = 2;
  small.limits.rowsMax = 64;
  const host::Package package = openInMemory(packageOf(small), context());
  EXPECT_EQ(refusal([&] { Plan(package, "layer_norm:forward@f32[*x*]"); }),
            "NOT_FOUND: no kernel of the package serves layer_norm:forward@f32[*x*] here:\n"
            "  kernel 0 (layer_norm:forward@f32[*x*], " +
                hostIsa() +
                ", hand): serves 2 to 64 rows, not any number\n"
                "compile the package with 'layer_norm:forward@f32[*x*]' as well");
  package::Kernel some = layerNorm("forward");
  some.limits.rowsMin = 1;
  const host::Package noneLess = openInMemory(packageOf(some), context());
  EXPECT_TRUE(has(refusal([&] { Plan(noneLess, "layer_norm:forward@f32[*x*]"); }),
                  "serves 1 to any number of rows, not any number"))
      << "a call may have no rows";
}

TEST(Select, CountsTheRowsOfOneSegmentToo) {
  package::Kernel any = probe("channels_first", true, false), few = any, longRuns = any;
  few.limits.rowsMax = 100, longRuns.limits.runMin = 64, longRuns.limits.rowsMax = 1000;
  const host::Package package = openInMemory(packageOf({any, few, longRuns}), context());
  const auto of = [&](const char* shape) {
    return "probe:forward@f32[" + std::string(shape) + "]{layout=channels_first}";
  };
  EXPECT_EQ(chosen(package, of("2x*x63")), 0u) << "126 rows, in short runs";
  EXPECT_EQ(chosen(package, of("2x*x64")), 2u);
  EXPECT_EQ(chosen(package, of("1x*x100")), 1u) << "both serve it, and this has the narrower limits";
  EXPECT_EQ(chosen(package, of("16x*x64")), 0u) << "1024 rows";
  EXPECT_EQ(chosen(package, of("*x*x64")), 0u) << "any number of segments, and so of rows";
  EXPECT_EQ(chosen(package, of("*x*x*")), 0u);
  EXPECT_TRUE(has(Plan(package, of("*x*x100")).describe(), "but for 0 to 100 rows"))
      << "those of one segment";
  const std::string text = Plan(package, of("2x*x63")).describe();
  EXPECT_TRUE(has(text, "serves 0 to 100 rows, not 126")) << text;
  EXPECT_TRUE(has(text, "serves segments of 64 to any number of rows, not 63")) << text;

  package::Kernel runs = any;
  runs.limits = {.runMin = 8, .runMax = 16};
  const host::Package limited = openInMemory(packageOf({any, runs}), context());
  EXPECT_EQ(chosen(limited, of("*x*x8")), 1u) << "the number of segments does not matter";
  EXPECT_TRUE(has(Plan(limited, of("*x*x8")).describe(), "it has the narrower limits"));
  EXPECT_EQ(chosen(limited, of("*x*x17")), 0u);
  EXPECT_TRUE(has(Plan(limited, of("1x*x*")).describe(), "but for segments of 8 to 16 rows: kernel 1, "));
}

package::Kernel withCore(package::Kernel kernel, std::string_view core) {
  kernel.core = core;
  return kernel;
}

TEST(Select, PrefersAKernelWithoutACoreToThatOfAnother) {
  package::Kernel other = withCore(layerNorm("forward"), "rock");
  other.limits.rowsMax = 64;
  const host::Package package = openInMemory(packageOf({other, layerNorm("forward")}), context());
  EXPECT_EQ(chosen(package, "layer_norm:forward@f32[*x*]"), 1u);
  EXPECT_EQ(chosen(package, "layer_norm:forward@f32[8x*]"), 1u) << "the core comes before narrower limits";
  const std::string text = Plan(package, "layer_norm:forward@f32[8x*]").describe();
  EXPECT_TRUE(has(text, "it is not for another core")) << text;
  EXPECT_TRUE(has(text, hostIsa() + ":rock, hand): kernel 1 is not for another core")) << text;
  EXPECT_EQ(chosen(openInMemory(packageOf({other, layerNorm("forward", 8)}), context()),
                   "layer_norm:forward@f32[8x8]"),
            1u);
  EXPECT_EQ(chosen(openInMemory(packageOf({layerNorm("forward"), withCore(layerNorm("forward", 8), "rock")}),
                                context()),
                   "layer_norm:forward@f32[*x8]"),
            1u)
      << "exact features come before the core";
}

TEST(Select, RunsKernelsOfOtherCores) {
  package::Kernel few = withCore(layerNorm("forward"), "rock");
  few.limits.rowsMax = 64;
  const host::Package package =
      openInMemory(packageOf({withCore(layerNorm("forward"), "slate"), few}), context());
  EXPECT_EQ(chosen(package, "layer_norm:forward@f32[65x*]"), 0u);
  EXPECT_EQ(chosen(package, "layer_norm:forward@f32[64x*]"), 1u);
}

TEST(Select, PrefersTheCoreOfTheProcessor) {
  const std::string here(cpuCore());  // "" where there is no table of it: then the first is of no core too
  const host::Package package =
      openInMemory(packageOf({withCore(layerNorm("forward"), "rock"), layerNorm("forward"),
                              withCore(layerNorm("forward"), here)}),
                   context());
  EXPECT_EQ(chosen(package, "layer_norm:forward@f32[*x*]"), here.empty() ? 1u : 2u);
  EXPECT_EQ(
      has(Plan(package, "layer_norm:forward@f32[*x*]").describe(), "it is for the core of this processor"),
      !here.empty());
}

#if defined(__x86_64__)
TEST(Select, PrefersTheNewestInstructionSetOfTheProcessor) {
  if (hostIsa() == "none") GTEST_SKIP() << "this processor has no set that packages know";
  const host::Package package = openInMemory(
      packageOf({withIsa(layerNorm("forward", 8), "x86-64-v3"), withIsa(layerNorm("forward"), "x86-64-v4"),
                 withIsa(layerNorm("forward"), "aarch64")}),
      context());
  const bool v4 = hostIsa().starts_with("x86-64-v4");
  EXPECT_EQ(chosen(package, "layer_norm:forward@f32[*x8]"), v4 ? 1u : 0u);
  normc_request capped = {};
  capped.isa_cap = "x86-64-v3";
  EXPECT_EQ(chosen(package, "layer_norm:forward@f32[*x8]", capped), 0u);
  const std::string text = Plan(package, "layer_norm:forward@f32[*x8]", capped).describe();
  EXPECT_TRUE(has(text, "needs aarch64; this processor has " + hostIsa())) << text;
  EXPECT_TRUE(has(
      text, "needs x86-64-v4" + std::string(v4 ? ", newer than the cap x86-64-v3" : "; this processor has")))
      << text;
  EXPECT_TRUE(has(text, "processor: " + hostIsa() + ", capped at x86-64-v3")) << text;
  if (v4) {
    EXPECT_TRUE(
        has(Plan(package, "layer_norm:forward@f32[*x8]").describe(), "it has the newer instruction set"));
  }
}

TEST(Select, RefusesAPackageForOtherProcessors) {
  package::Kernel other = layerNorm("forward");
  other.device = "abacus";
  const host::Package package = openInMemory(packageOf({withIsa(layerNorm("forward"), "aarch64"),
                                                        withIsa(layerNorm("forward"), "x86-64-v9"), other}),
                                             context());
  EXPECT_EQ(refusal([&] { Plan(package, "layer_norm:forward@f32[*x*]"); }),
            "FAILED_PRECONDITION: no kernel of the package serves layer_norm:forward@f32[*x*] here:\n"
            "  kernel 0 (layer_norm:forward@f32[*x*], aarch64, hand): needs aarch64; this processor has " +
                hostIsa() +
                "\n  kernel 1 (layer_norm:forward@f32[*x*], x86-64-v9, hand): needs 'x86-64-v9', which this "
                "runtime does "
                "not know\n  kernel 2 (layer_norm:forward@f32[*x*], " +
                hostIsa() +
                ", hand): is for device 'abacus'; this plan is for 'cpu'\n"
                "compile the package with --target " +
                hostIsa() + " as well");
}

TEST(Select, SaysForWhichSetToCompile) {
  if (hostIsa() == "none") GTEST_SKIP() << "this processor has no set that packages know";
  const host::Package package =
      openInMemory(packageOf(withIsa(layerNorm("forward"), "x86-64-v4-bf16")), context());
  const auto advice = [&](normc_request request) {
    const std::string text = refusal([&] { Plan(package, "layer_norm:forward@f32[*x*]", request); });
    return text.substr(text.rfind('\n') + 1);
  };
  EXPECT_EQ(advice({.isa_cap = "x86-64-v3"}), "compile the package with --target x86-64-v3 as well");
  EXPECT_FALSE(has(advice({.isa_cap = "aarch64"}), "compile")) << "no set of this processor is below that";
  if (hostIsa().starts_with("x86-64-v4"))
    EXPECT_EQ(advice({.isa_cap = "x86-64-v4"}), "compile the package with --target x86-64-v4 as well");
}
#endif

TEST(Select, SaysWhatAKernelIsFor) {
  const auto refused = [&](const std::string& problem) {
    const std::string text = refusal([&] { Plan(standard(), problem); });
    const size_t end = text.rfind('\n'), begin = text.rfind(": ", end) + 2;
    return text.substr(begin, end - begin);
  };
  EXPECT_EQ(refused("layer_norm:forward@bf16[*x*]"), "is for data f32, not bf16");
  EXPECT_EQ(refused("layer_norm:forward@f32[*x*]{params=bf16}"), "is for params f32, not bf16");
  EXPECT_EQ(refused("layer_norm:forward@f32[*x*]{y=bf16}"), "is for y of f32, not bf16");
  EXPECT_EQ(refused("layer_norm:forward@f32[*x*]{stream=bf16}"), "is for a residual of f32, not bf16");
  EXPECT_EQ(refused("layer_norm:forward@f32[*x*]{round=normalized}"), "does not round the normalized value");
  EXPECT_EQ(refused("layer_norm:forward@f32[*x*x*]"), "is for two dimensions, not three");
  EXPECT_EQ(refused("layer_norm:forward@f32[*x*x*]{layout=channels_first}"),
            "is for layout features_last, not channels_first");
  EXPECT_EQ(refused("layer_norm:forward@f32[*x*]{mask}"), "takes no mask");
  EXPECT_EQ(refused("layer_norm:forward@f32[*x*]{heads=4,groups=2}"),
            "is for no bindings, not bindings groups=2,heads=4");
  const host::Package masked = openInMemory(packageOf(probe("features_last", false, true)), context());
  const std::string text = refusal([&] { Plan(masked, "probe:forward@f32[*x*]"); });
  EXPECT_TRUE(has(text, ": needs a mask\n")) << text;
}

TEST(Select, SaysWhatToCompile) {
  const auto advice = [&](const std::string& problem) {
    const std::string text = refusal([&] { Plan(standard(), problem); });
    EXPECT_TRUE(text.starts_with("NOT_FOUND: ")) << text;
    return text.substr(text.rfind('\n') + 1);
  };
  EXPECT_EQ(advice("layer_norm:forward@f32[8x64]{mask}"),
            "compile the package with 'layer_norm:forward@f32[*x64]{mask}' as well");
  EXPECT_EQ(advice("layer_norm:forward@f64[*x*x*]{params=f64,groups=2}"),
            "compile the package with 'layer_norm:forward@f64[*x*x*]{groups=2}' as well");
  EXPECT_EQ(advice("layer_norm:backward@bf16[*x64x8]{params=bf16,mask,layout=channels_first}"),
            "compile the package with "
            "'layer_norm:backward@bf16[*x64x*]{layout=channels_first,mask,params=bf16}' as well");
}

TEST(Select, NamesWhatThePackageHas) {
  EXPECT_EQ(refusal([&] { Plan(standard(), "batch_norm:forward@f32[*x*]"); }),
            "NOT_FOUND: the package has no norm 'batch_norm'; it has: layer_norm, power_norm, probe, warmup");
  EXPECT_EQ(refusal([&] { Plan(standard(), "layer_norm:infer@f32[*x*]"); }),
            "NOT_FOUND: the package has no infer of 'layer_norm'; it has: forward, backward");
  const host::Package empty = openInMemory(package::Writer({}), context());
  EXPECT_EQ(refusal([&] { Plan(empty, "layer_norm:infer@f32[*x*]"); }),
            "NOT_FOUND: the package has no norm 'layer_norm'; it has: none");
}

TEST(Select, BindingsMatch) {
  package::Kernel sixteen = layerNorm("forward");
  sixteen.parts.bindings = {{"heads", 16}};
  const host::Package package = openInMemory(packageOf({layerNorm("forward"), sixteen}), context());
  EXPECT_EQ(chosen(package, "layer_norm:forward@f32[*x*]{heads=16}"), 1u);
  EXPECT_EQ(chosen(package, "layer_norm:forward@f32[*x*]{params=f32}"), 0u) << "the default, spelled out";
}

TEST(Request, IsReadStrictly) {
  const auto refused = [&](const std::string& problem) {
    return refusal([&] { Plan(standard(), problem); });
  };
  const std::string form =
      "' must have the form NORM:ENTRY@DTYPE[SHAPE]{OPTIONS}, e.g. layer_norm:forward@f32[*x1024]";
  for (const char* text :
       {"", "layer_norm", ":forward@f32[*x*]", "layer_norm@forward:f32[*x*]", "layer_norm:forward@f32",
        "layer_norm:forward@f32[*x*", "layer_norm:forward@f32[*x*]mask", "layer_norm:forward@f32[*x*]{"})
    EXPECT_EQ(refused(text), "INVALID_ARGUMENT: problem '" + std::string(text) + form);
  const auto says = [](const char* problem, const char* rest) {
    return "INVALID_ARGUMENT: problem '" + std::string(problem) + "': " + rest;
  };
  EXPECT_EQ(refused("layer_norm:fwd@f32[*x*]"),
            says("layer_norm:fwd@f32[*x*]",
                 "entry 'fwd' must be forward, backward, infer, infer_backward, "
                 "forward_reduce, forward_apply, backward_reduce, backward_apply or commit"));
  EXPECT_EQ(refused("layer_norm:forward@f8[*x*]"),
            says("layer_norm:forward@f8[*x*]", "dtype 'f8' must be f32, f64, bf16 or f16"));
  EXPECT_EQ(
      refused("layer_norm:forward@f32[*]"),
      says("layer_norm:forward@f32[*]", "shape [*] must be [ROWSxFEATURES] or [SEGMENTSxROWSxFEATURES]"));
  EXPECT_EQ(refused("layer_norm:forward@f32[*x-4]"),
            says("layer_norm:forward@f32[*x-4]", "size '-4' must be a number or *"));
  EXPECT_EQ(refused("layer_norm:forward@f32[*x0]"),
            says("layer_norm:forward@f32[*x0]", "there must be at least one feature"));
  EXPECT_EQ(refused("layer_norm:forward@f32[*x99999999999999999999]"),
            says("layer_norm:forward@f32[*x99999999999999999999]",
                 "size '99999999999999999999' must be a number or *"));
  EXPECT_EQ(refused("layer_norm:forward@f32[*x*]{layout=nchw}"),
            says("layer_norm:forward@f32[*x*]{layout=nchw}",
                 "layout 'nchw' must be features_last or channels_first"));
  EXPECT_EQ(refused("layer_norm:forward@f32[*x*]{layout=channels_first}"),
            says("layer_norm:forward@f32[*x*]{layout=channels_first}",
                 "channels_first needs three sizes, [SEGMENTSxFEATURESxROWS]"));
  EXPECT_EQ(refused("layer_norm:forward@f32[*x*]{params=f8}"),
            says("layer_norm:forward@f32[*x*]{params=f8}", "params 'f8' must be f32, f64, bf16 or f16"));
  EXPECT_EQ(refused("layer_norm:forward@f32[*x*]{heads=8,mask,heads=8}"),
            says("layer_norm:forward@f32[*x*]{heads=8,mask,heads=8}",
                 "option 'heads' stands twice; leave one of them out"));
  EXPECT_EQ(refused("layer_norm:forward@f32[*x*]{round=bf16}"),
            says("layer_norm:forward@f32[*x*]{round=bf16}", "round 'bf16' must be normalized"));
  EXPECT_EQ(refused("layer_norm:forward@f32[*x*]{stream=f8}"),
            says("layer_norm:forward@f32[*x*]{stream=f8}", "stream 'f8' must be f32, f64, bf16 or f16"));
  EXPECT_EQ(refused("layer_norm:forward@f32[*x*]{y=f8}"),
            says("layer_norm:forward@f32[*x*]{y=f8}", "y 'f8' must be f32, f64, bf16 or f16"));
  for (const char* twice :
       {"mask,mask", "params=f32,params=f32", "layout=features_last,layout=features_last"})
    EXPECT_TRUE(has(refused("layer_norm:forward@f32[*x*]{" + std::string(twice) + "}"), "stands twice"))
        << twice;
  for (const char* empty : {"{}", "{heads=8,}", "{,heads=8}", "{heads=8,,mask}"})
    EXPECT_EQ(
        refused("layer_norm:forward@f32[*x*]" + std::string(empty)),
        "INVALID_ARGUMENT: problem 'layer_norm:forward@f32[*x*]" + std::string(empty) +
            "': option '' must be mask, layout=..., params=..., round=..., stream=..., y=... or NAME=COUNT");
  for (const char* option :
       {"heads", "heads=", "heads=0", "heads=x", "heads=0.5", "heads=1e+3", "=3", "mask=1"})
    EXPECT_EQ(refused("layer_norm:forward@f32[*x*]{" + std::string(option) + "}"),
              "INVALID_ARGUMENT: problem 'layer_norm:forward@f32[*x*]{" + std::string(option) +
                  "}': option '" + option +
                  "' must be mask, layout=..., params=..., round=..., stream=..., y=... or NAME=COUNT");
}

TEST(Request, OptionsAreChecked) {
  const auto refused = [&](auto change) {
    normc_request request = {};
    change(request);
    return refusal([&] { Plan(standard(), "probe:forward@f32[*x*]", request); });
  };
  EXPECT_EQ(refused([](auto& r) { r.isa_cap = "avx2"; }),
            "INVALID_ARGUMENT: request.isa_cap is 'avx2'; it must be one of x86-64-v3, x86-64-v4, "
            "x86-64-v4-bf16, aarch64");
  EXPECT_EQ(refused([](auto& r) { r.denormals = static_cast<normc_denormals>(7); }),
            "INVALID_ARGUMENT: request.denormals is 7; it must be 0 (flush) or 1 (keep)");
  EXPECT_EQ(refused([](auto& r) { r.max_threads = -1; }),
            "INVALID_ARGUMENT: request.max_threads is -1; it must not be negative");
  EXPECT_EQ(refused([](auto& r) { r.number_count = 1; }),
            "INVALID_ARGUMENT: request.numbers is null but number_count is 1");
  const normc_number unknown = {"epsilom", 1}, nan = {"factor", NAN}, unnamed = {nullptr, 1};
  const auto number = [&](const normc_number& number) {
    return refused([&](auto& r) { r.numbers = &number, r.number_count = 1; });
  };
  EXPECT_EQ(
      number(unknown),
      "NOT_FOUND: probe:forward@f32[*x*] has no number 'epsilom'; it has: factor, masked, channels_first");
  EXPECT_EQ(
      number(unnamed),
      "NOT_FOUND: probe:forward@f32[*x*] has no number '(null)'; it has: factor, masked, channels_first");
  EXPECT_EQ(number(nan), "INVALID_ARGUMENT: the number 'factor' must not be NaN");
  const normc_number twice[] = {{"factor", 1}, {"factor", 2}};
  EXPECT_EQ(refused([&](auto& r) { r.numbers = twice, r.number_count = 2; }),
            "INVALID_ARGUMENT: the number 'factor' is given twice");
  const auto refusedFor = [&](const char* problem, const char* name, double value) {
    const normc_number given = {name, value};
    normc_request request = {};
    request.numbers = &given;
    request.number_count = 1;
    return refusal([&] { Plan(standard(), problem, request); });
  };
  constexpr const char* kForward = "power_norm:forward@f32[*x*]";
  EXPECT_EQ(refusedFor(kForward, "decay", 1),
            "INVALID_ARGUMENT: the number 'decay' is 1; it must be below 1");
  EXPECT_EQ(refusedFor(kForward, "decay", -0.1),
            "INVALID_ARGUMENT: the number 'decay' is -0.1; it must be at least 0");
  EXPECT_EQ(refusedFor(kForward, "decay", 0), "accepted");
  EXPECT_EQ(refusedFor(kForward, "epsilon", 0),
            "INVALID_ARGUMENT: the number 'epsilon' is 0; it must be above 0");
  EXPECT_EQ(refusedFor(kForward, "epsilon", 1e-39),
            "INVALID_ARGUMENT: the number 'epsilon' is 1e-39; statistics are f32, so it must be from "
            "1.2e-38 to 3.4e38");
  EXPECT_EQ(refusedFor(kForward, "epsilon", 1e39),
            "INVALID_ARGUMENT: the number 'epsilon' is 1e+39; statistics are f32, so it must be from "
            "1.2e-38 to 3.4e38");
  EXPECT_EQ(refusedFor("warmup:forward@f32[*x*]", "warmup_steps", 2.5),
            "INVALID_ARGUMENT: the number 'warmup_steps' is 2.5; it must be a whole number");
  EXPECT_EQ(refusedFor("warmup:forward@f32[*x*]", "warmup_steps", 9007199254740994),
            "INVALID_ARGUMENT: the number 'warmup_steps' is 9007199254740994; it must be a whole number of "
            "at most 2^53");
  EXPECT_EQ(refusedFor("warmup:forward@f32[*x*]", "warmup_steps", 9007199254740992), "accepted");
  normc_request request = {};
  request.struct_size = sizeof request;
  normc_plan* plan;
  EXPECT_EQ(refusal(normc_plan_create(standard().get(), &request, &plan)),
            "INVALID_ARGUMENT: request.problem is null; it names what to compute");
}

TEST(Describe, SaysEverythingThatWasDecided) {
  const normc_number factor = {"factor", 0.5};
  normc_request request = {};
  request.numbers = &factor;
  request.number_count = 1;
  request.denormals = NORMC_DENORMALS_KEEP;
  const std::string text = Plan(standard(), "probe:forward@f32[*x*]", request).describe();
  EXPECT_TRUE(text.starts_with(
      "probe:forward@f32[*x*]\nkernel: 4 of the package in memory: probe:forward@f32[*x*], " + hostIsa() +
      ", by hand\nschedule: scalar (default)\nchosen because: it is the only one that "
      "serves the request here\nprocessor: " +
      hostIsa() +
      "\nthreads: 1, as asked for\ndenormals: kept\nnumber: factor = 0.5 (default 2)\nnumber: masked "
      "= 0\nnumber: channels_first = 0\nrejected:\n"))
      << text;
}

TEST(Sizes, AreChecked) {
  const Plan plan(standard(), "layer_norm:forward@f32[*x8]");
  const auto refused = [&](int64_t rows, int64_t features) {
    return refusal([&] { plan.savedBytes(Plan::sizes(1, rows, features)); });
  };
  EXPECT_EQ(refused(4, 0), "accepted");
  EXPECT_EQ(refused(4, 9), "FAILED_PRECONDITION: sizes.features is 9; layer_norm:forward@f32[*x8] has 8");
  EXPECT_EQ(refused(-1, 8), "INVALID_ARGUMENT: sizes must not be negative: segments 1, rows -1, features 8");
  EXPECT_EQ(refused(INT64_MAX / 2, 8), "INVALID_ARGUMENT: the sizes are too large: no memory holds them");
  EXPECT_EQ(refusal([&] { plan.workspaceBytes(Plan::sizes(1, INT64_MAX / 2, 8)); }),
            "INVALID_ARGUMENT: the sizes are too large: no memory holds them");
  EXPECT_EQ(refusal([&] { plan.savedFields(Plan::sizes(1, INT64_MAX / 2, 8)); }),
            "INVALID_ARGUMENT: the sizes are too large: a field would not fit into memory");
  normc_field field = {};
  field.struct_size = sizeof field;
  const normc_sizes sizes = Plan::sizes(1, 4, 8);
  EXPECT_EQ(refusal(normc_plan_saved_field(plan.get(), &sizes, 2, &field)),
            "OUT_OF_RANGE: there is no field 2; there are 2");
}

}  // namespace
}  // namespace normc::test
