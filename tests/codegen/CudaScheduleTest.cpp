// Schedules of the CUDA target as text, and every reason against one.
#include "codegen/targets/cuda/Defaults.h"
#include "tests/codegen/CudaReasons.h"

namespace normc::codegen::cuda {
namespace {

std::string parseError(llvm::StringRef text) {
  auto schedule = parseSchedule(text);
  return schedule ? "" : llvm::toString(schedule.takeError());
}

//===-- Text ----------------------------------------------------------------------===//

TEST(CudaSchedule, PrintsEveryKnob) {
  Schedule s{.strategy = Strategy::Resident,
             .threads = 96,
             .team = 16,
             .vector = 8,
             .tile = 3,
             .rows = 2,
             .chunks = 7,
             .blocks = 4,
             .prefetch = Prefetch::fromKnob(1),
             .cluster = 8,
             .hints = true,
             .hold = 5,
             .grid = 6,
             .shared = 7};
  EXPECT_EQ(s.text(),
            "resident,threads=96,team=16,vector=8,tile=3,rows=2,chunks=7,blocks=4,prefetch=1,cluster=8,hints="
            "1,hold=5,grid=6,shared=7");
  EXPECT_TRUE(llvm::StringRef(Schedule().text()).starts_with("streamed,threads="));
}

TEST(CudaSchedule, ParsesWhatItPrints) {
  for (Strategy strategy : {Strategy::Streamed, Strategy::Resident})
    for (int64_t knob : {0, 1, 2, 8, 1 << 20}) {
      Schedule s{strategy, 32 + knob,     knob + 1,
                 knob + 2, knob,          knob + 4,
                 knob + 5, 3 * knob,      Prefetch::fromKnob(knob / 2),
                 knob + 6, knob % 2 != 0, knob % 5,
                 knob + 3, knob % 7};
      auto again = parseSchedule(s.text());
      ASSERT_TRUE(bool(again)) << s.text();
      EXPECT_EQ(*again, s) << again->text();
    }
}

TEST(CudaSchedule, TakesWhatATextLeavesOutFromTheDefaults) {
  auto schedule = parseSchedule("resident,team=8");
  ASSERT_TRUE(bool(schedule));
  EXPECT_EQ(*schedule, (Schedule{.strategy = Strategy::Resident, .team = 8}));
}

TEST(CudaSchedule, SaysWhichPartOfATextIsWrong) {
  EXPECT_EQ(parseError("threads=128"),
            "schedule 'threads=128': starts with 'threads'; legal: streamed, resident");
  EXPECT_EQ(parseError(""), "schedule '': starts with ''; legal: streamed, resident");
  EXPECT_EQ(parseError("resident,unroll=2"),
            "schedule 'resident,unroll=2': no knob 'unroll'; legal: threads, team, vector, tile, rows, "
            "chunks, blocks, prefetch, cluster, hints, hold, grid, shared");
  EXPECT_EQ(parseError("resident,team=8,team=8"), "schedule 'resident,team=8,team=8': 'team' is given twice");
  EXPECT_EQ(parseError("resident,rows=two"), "schedule 'resident,rows=two': 'two' is not a number for rows");
  EXPECT_EQ(parseError("resident,rows"), "schedule 'resident,rows': '' is not a number for rows");
  EXPECT_EQ(parseError("resident,rows=99999999999999999999"),
            "schedule 'resident,rows=99999999999999999999': '99999999999999999999' is not a number for rows");
}

//===-- Reasons -------------------------------------------------------------------===//

TEST(CudaSchedule, IsLegalWithinTheKnobs) {
  EXPECT_EQ(reasonOfRow([](Schedule&) {}), "");
  EXPECT_EQ(reasonOfStream([](Schedule&) {}), "");
  EXPECT_EQ(
      reasonOfRow([](Schedule& s) { s.team = s.threads = 96, s.tile = 1; }, "layer_norm:forward@f32[*x380]"),
      "")
      << "whole warps, any number";
  EXPECT_EQ(reasonOfRow([](Schedule& s) { s.tile = 0, s.team = s.threads; }), "")
      << "a loop serves any length";
}

TEST(CudaSchedule, RefusesALoopOfOneWarp) {
  EXPECT_EQ(reasonOfRow([](Schedule& s) { s.tile = 0; }),
            "team = 32 for runs that are walked in a loop; legal: more than a warp of 32");
}

TEST(CudaSchedule, RefusesThreadsThatAreNoBlock) {
  for (int64_t threads : {0, 31, 48, 1056, -32})
    EXPECT_EQ(reasonOfRow([&](Schedule& s) { s.threads = threads; }),
              "threads = " + std::to_string(threads) + "; legal: a multiple of 32 up to 1024");
}

TEST(CudaSchedule, RefusesATeamThatCannotShuffle) {
  for (int64_t team : {0, 3, 24, 48, 256, -8})
    EXPECT_EQ(reasonOfRow([&](Schedule& s) { s.team = team; }),
              "team = " + std::to_string(team) +
                  "; legal: a power of two up to 32, or whole warps, that divides the 128 threads");
  EXPECT_EQ(reasonOfRow([&](Schedule& s) { s.team = 96; }),
            "team = 96; legal: a power of two up to 32, or whole warps, that divides the 128 threads");
}

TEST(CudaSchedule, RefusesAnAccessThatTheArchitectureLacks) {
  auto eight = [](Schedule& s) { s.vector = 8, s.tile = 1; };
  EXPECT_EQ(reasonOfRow(eight),
            "vector = 8; legal: a power of two up to 4, the 16 bytes of one access on sm_90");
  EXPECT_EQ(reasonOfRow(eight, "layer_norm:forward@f32[*x256]", "sm_100"), "");
  EXPECT_EQ(reasonOfRow(eight, "layer_norm:forward@bf16[*x256]"), "");
  auto wide = [](Schedule& s) { s.vector = 16; };
  EXPECT_EQ(reasonOfRow(wide, "layer_norm:forward@f16[*x256]", "sm_80"),
            "vector = 16; legal: a power of two up to 8, the 16 bytes of one access on sm_80");
  EXPECT_EQ(reasonOfRow(wide, "layer_norm:forward@f32[*x256]", "sm_100"),
            "vector = 16; legal: a power of two up to 8, the 32 bytes of one access on sm_100");
  for (int64_t vector : {0, 3, -4})
    EXPECT_EQ(reasonOfRow([&](Schedule& s) { s.vector = vector; }),
              "vector = " + std::to_string(vector) +
                  "; legal: a power of two up to 4, the 16 bytes of one access on sm_90");
}

TEST(CudaSchedule, AnAccessLiesInOneBlockOfCodes) {
  const Problem blocks =
      problemOf("norm n from rms_norm {\n  quantize e4m3(per = block, size = 4)\n}\n", ":forward@f32[*x256]");
  const KernelTraits traits = traitsOf(blocks, Strategy::Resident);
  Schedule s = defaultSchedule(traits, archOf("sm_100"), Strategy::Resident);
  EXPECT_EQ(s.vector, 4);
  s.vector = 8;
  EXPECT_EQ(whyIllegal(traits, s, archOf("sm_100")),
            "vector = 8 does not divide a block of 4 codes, which have one scale");
}

TEST(CudaSchedule, EvictsNothingFirstThatIsReadAgain) {
  const auto streamed = [](const Problem& problem) {
    Planned plan(problem, Strategy::Resident);
    Schedule s = defaultSchedule(problem, archOf("sm_90"), Strategy::Resident);
    s.hints = true;
    std::vector<std::string> names;
    for (auto phase : plan.kernel().getOps<PhaseOp>())
      for (TensorOp t : lastAccessed(phase, s)) names.push_back(t.getSymName().str());
    return names;
  };
  using Names = std::vector<std::string>;
  const std::string codes = "norm n from rms_norm {\n  quantize e4m3(per = block, size = 16)\n}\n";
  EXPECT_EQ(streamed(problemOf("rms_norm:forward@f32[*x256]")), (Names{"x", "y"}));
  EXPECT_EQ(streamed(problemOf("qk_norm_rope:forward@f32[*x256]{heads=2}")), (Names{"y"}));
  EXPECT_EQ(streamed(problemOf(codes, ":forward@f32[*x256]")), (Names{"codes"}));
}

TEST(CudaSchedule, RefusesNumbersOutOfRange) {
  EXPECT_EQ(reasonOfRow([](Schedule& s) { s.rows = 0; }), "rows = 0; legal: 1 to 8");
  EXPECT_EQ(reasonOfRow([](Schedule& s) { s.rows = 9; }), "rows = 9; legal: 1 to 8");
  EXPECT_EQ(reasonOfRow([](Schedule& s) { s.tile = -1; }), "tile = -1; legal: 0 to 64");
  EXPECT_EQ(reasonOfRow([](Schedule& s) { s.tile = 65; }), "tile = 65; legal: 0 to 64");
  EXPECT_EQ(reasonOfRow([](Schedule& s) { s.chunks = 0; }), "chunks = 0; legal: 1 to 1073741824");
  EXPECT_EQ(reasonOfRow([](Schedule& s) { s.chunks = 2000000000; }),
            "chunks = 2000000000; legal: 1 to 1073741824");
  EXPECT_EQ(reasonOfRow([](Schedule& s) { s.chunks = 1 << 29, s.cluster = 4; }),
            "chunks = 536870912; legal: 1 to 268435456");
}

TEST(CudaSchedule, SingleElementsTakeNoKnobThatTakesRegisters) {
  const std::string rest = "; legal: 1, 0 and 0, since addresses of many single elements take the registers";
  EXPECT_EQ(reasonOfRow([](Schedule& s) { s.vector = 1, s.tile *= 4, s.rows = 2; }),
            "vector = 1 with rows = 2, hold = 0 and prefetch = 0" + rest);
  EXPECT_EQ(
      reasonOfRow([](Schedule& s) { s.vector = 1, s.tile *= 4, s.prefetch = {Prefetch::Registers, 1}; }),
      "vector = 1 with rows = 1, hold = 0 and prefetch = 1" + rest);
  EXPECT_EQ(reasonOfRow([](Schedule& s) { s.vector = 1, s.tile *= 4; }), "");
}

TEST(CudaSchedule, RefusesNumbersWhoseProductsWouldOverflow) {
  constexpr int64_t kLarge = int64_t(1) << 61;
  EXPECT_EQ(reasonOfRow([](Schedule& s) { s.threads = 1024, s.blocks = int64_t(1) << 54; }),
            "blocks = 18014398509481984 of 1024 threads; sm_90 holds 2048 threads and 32 blocks");
  EXPECT_EQ(reasonOfRow([](Schedule& s) { s.rows = 8, s.hold = kLarge; }),
            "hold = 2305843009213693952 steps of 8 rows; legal: 0 to 128 rows");
  EXPECT_EQ(reasonOfRow([](Schedule& s) { s.shared = kLarge; }),
            "shared = 2305843009213693952; legal: 0 to 233472, the bytes of a multiprocessor of sm_90");
  EXPECT_EQ(reasonOfRow([](Schedule& s) { s.prefetch = {Prefetch::Async, kLarge}; }),
            "prefetch = 2305843009213693953; legal: 0, 1 (to registers), 2 to 4 (to shared memory, that many "
            "steps ahead and one), or 5 to 7 (the same in bulk)");
}

TEST(CudaSchedule, RefusesMoreBlocksThanAMultiprocessorHolds) {
  EXPECT_EQ(reasonOfRow([](Schedule& s) { s.blocks = 17; }),
            "blocks = 17 of 128 threads; sm_90 holds 2048 threads and 32 blocks");
  EXPECT_EQ(reasonOfRow([](Schedule& s) { s.blocks = -1; }),
            "blocks = -1 of 128 threads; sm_90 holds 2048 threads and 32 blocks");
  EXPECT_EQ(reasonOfRow([](Schedule& s) { s.blocks = 13; }, "layer_norm:forward@f32[*x256]", "sm_120"),
            "blocks = 13 of 128 threads; sm_120 holds 1536 threads and 24 blocks");
  const auto few = [](Schedule& s) { s.threads = s.team = 32, s.blocks = 20; };
  EXPECT_EQ(reasonOfRow(few, "layer_norm:forward@f32[*x256]", "sm_90"), "");
  EXPECT_EQ(reasonOfRow(few, "layer_norm:forward@f32[*x256]", "sm_86"),
            "blocks = 20 of 32 threads; sm_86 holds 1536 threads and 16 blocks");
}

TEST(CudaSchedule, RefusesATileThatDoesNotFitTheRun) {
  EXPECT_EQ(reasonOfRow([](Schedule& s) { s.tile = 1; }),
            "team * vector * tile = 128 elements do not hold a run of 256");
  EXPECT_EQ(reasonOfRow([](Schedule& s) { s.tile = 3; }),
            "team * vector * tile = 384: the last accesses would find nothing of a run of 256");
  EXPECT_EQ(reasonOfRow([](Schedule&) {}, "layer_norm:forward@f32[*x*]"),
            "tile = 2, but the length of a run is not known; legal: 0");
  EXPECT_EQ(reasonOfRow([](Schedule&) {}, "layer_norm:backward@f32[*x254]"), "") << "rows that begin alike";
  EXPECT_EQ(
      reasonOfRow([](Schedule& s) { s.tile = 0, s.team = s.threads; }, "layer_norm:backward@f32[*x254]"),
      "vector = 4 does not divide a run of 254")
      << "its sums are in memory";
  EXPECT_EQ(reasonOfRow([](Schedule& s) { s.tile = 1; }, "group_norm:backward@f32[*x254]{groups=2}"),
            "vector = 4 does not divide a run of 127");
  EXPECT_EQ(reasonOfRow([](Schedule& s) { s.threads = s.team = 1024, s.vector = 16, s.tile = 1; },
                        "layer_norm:backward@bf16[*x16385]", "sm_100"),
            "vector = 16 does not divide a run of 16385, and 1024 threads would turn round sums of 65664 "
            "bytes in shared memory; a block has 40960 for that");
  EXPECT_EQ(reasonOfRow([](Schedule&) {}, "layer_norm:forward@f32[*x254]"), "") << "it can be peeled";
  EXPECT_EQ(reasonOfRow([](Schedule& s) { s.tile = 1, s.team = 8; }, "layer_norm:forward@f32[*x26]"),
            "vector = 4 does not divide a run of 26, and only runs of 27 and more are peeled");
  EXPECT_EQ(reasonOfRow([](Schedule&) {}, "group_norm:forward@f32[*x1024]{groups=4}"), "")
      << "a run is a group's";
}

TEST(CudaSchedule, RefusesRowsThatBeginAlikeWhereRegistersAreShort) {
  EXPECT_EQ(reasonOfRow([](Schedule& s) { s.threads = s.team = 512, s.tile = 4; },
                        "layer_norm:backward@f32[*x8191]"),
            "vector = 4 does not divide a run of 8191, and rows that begin alike take about 188 registers a "
            "thread; 512 threads leave 128");
}

TEST(CudaSchedule, RefusesVectorsOfGroupsThatMayBeginAnywhere) {
  auto looped = [](Schedule& s) { s.tile = 0, s.team = s.threads; };
  EXPECT_EQ(reasonOfRow(looped, "group_norm:forward@f32[*x*]{groups=4}"), "") << "they are peeled";
  EXPECT_EQ(reasonOfRow(looped, "group_norm:backward@f32[*x*]{groups=4}"),
            "vector = 4, but groups of any number of features may begin anywhere; legal: 1");
  EXPECT_EQ(reasonOfRow([](Schedule& s) { s.tile = 0, s.vector = 1, s.team = s.threads; },
                        "group_norm:backward@f32[*x*]{groups=4}"),
            "");
  EXPECT_EQ(reasonOfRow(looped, "group_norm:backward@f32[*x*]{groups=1}"), "") << "one group is the row";
}

TEST(CudaSchedule, RefusesToReadAheadWhatItDoesNotKeep) {
  EXPECT_EQ(reasonOfRow([](Schedule& s) { s.prefetch = Prefetch::fromKnob(1); }), "");
  for (int64_t prefetch : {-1, 8})
    EXPECT_EQ(reasonOfRow([&](Schedule& s) { s.prefetch = Prefetch::fromKnob(prefetch); }),
              "prefetch = " + std::to_string(prefetch) +
                  "; legal: 0, 1 (to registers), 2 to 4 (to shared memory, that many steps ahead and one), "
                  "or 5 to 7 (the same in bulk)");
  EXPECT_EQ(
      reasonOfRow([](Schedule& s) { s.prefetch = Prefetch::fromKnob(1), s.tile = 0, s.team = s.threads; }),
      "prefetch = 1, but no run of this kernel stays in registers; legal: 0");
  for (int64_t prefetch : {1, 4})
    EXPECT_EQ(reasonOfStream([&](Schedule& s) { s.prefetch = Prefetch::fromKnob(prefetch); }), "");
  EXPECT_EQ(reasonOfStream([](Schedule& s) { s.prefetch = Prefetch::fromKnob(5); }),
            "prefetch = 5 copies to shared memory in bulk, and a team reads a part of each row only; legal: "
            "0 to 4");
}

TEST(CudaSchedule, RefusesToCopyAheadWhatIsNotCopiedIn16Bytes) {
  EXPECT_EQ(reasonOfRow([](Schedule& s) { s.prefetch = Prefetch::fromKnob(2); }), "");
  EXPECT_EQ(reasonOfRow([](Schedule& s) { s.prefetch = Prefetch::fromKnob(2); },
                        "layer_norm:forward@f32[*x256]", "sm_80"),
            "");
  EXPECT_EQ(reasonOfRow([](Schedule& s) { s.prefetch = Prefetch::fromKnob(2), s.vector = 2, s.tile = 4; }),
            "prefetch = 2 copies to shared memory 16 bytes at a time, and vector = 2 makes accesses of 8; "
            "legal: vector = 4, or "
            "prefetch = 0 or 1");
  EXPECT_EQ(reasonOfRow([](Schedule& s) { s.prefetch = Prefetch::fromKnob(3), s.vector = 8, s.tile = 1; },
                        "layer_norm:forward@f32[*x256]", "sm_100"),
            "prefetch = 3 copies to shared memory 16 bytes at a time, and vector = 8 makes accesses of 32; "
            "legal: vector = 4, or "
            "prefetch = 0 or 1");
  EXPECT_EQ(
      reasonOfRow([](Schedule& s) { s.prefetch = Prefetch::fromKnob(2); }, "layer_norm:forward@f32[*x254]"),
      "prefetch = 2 copies to shared memory from multiples of 16 bytes, and runs of 254 elements begin "
      "elsewhere; legal: 0 or 1");
  EXPECT_EQ(
      reasonOfRow([](Schedule& s) { s.prefetch = Prefetch::fromKnob(2), s.tile = 0, s.team = s.threads; }),
      "prefetch = 2, but no run of this kernel stays in registers; legal: 0");
}

TEST(CudaSchedule, RefusesToCopyElementsOfSeveralWidths) {
  const char* mixed = "rms_norm_residual:forward@bf16[*x256]{stream=f32}";
  const auto ahead = [](int64_t knob) {
    return [knob](Schedule& s) { s.prefetch = Prefetch::fromKnob(knob), s.vector = 4, s.tile = 2; };
  };
  EXPECT_EQ(reasonOfRow(ahead(1), mixed), "");
  EXPECT_EQ(reasonOfRow(ahead(2), mixed),
            "prefetch = 2 copies to shared memory elements of one width, and tensors of this kernel have "
            "several; legal: 0 or 1");
}

TEST(CudaSchedule, RefusesBulkCopiesThatThereAreNot) {
  EXPECT_EQ(reasonOfRow([](Schedule& s) { s.prefetch = Prefetch::fromKnob(6); }), "");
  EXPECT_EQ(reasonOfRow([](Schedule& s) { s.prefetch = Prefetch::fromKnob(5); },
                        "layer_norm:forward@f32[*x256]", "sm_80"),
            "prefetch = 5 copies to shared memory in bulk, and sm_80 has no bulk copies, sm_90 is the first; "
            "legal: 0 to 4");
  EXPECT_EQ(reasonOfRow([](Schedule& s) { s.prefetch = Prefetch::fromKnob(5), s.team = 16, s.tile = 4; }),
            "prefetch = 5 copies to shared memory in bulk, a piece for a team of at least a warp, which has "
            "a row alone; here team = 16 "
            "has one of 1 groups of it; legal: 0 to 4");
}

TEST(CudaSchedule, RefusesToCopyAheadMoreThanABlockHolds) {
  const auto ahead = [](int64_t prefetch, int64_t blocks) {
    return [=](Schedule& s) {
      s.threads = s.team = 512, s.tile = 4, s.prefetch = Prefetch::fromKnob(prefetch), s.blocks = blocks;
    };
  };
  const char* const problem = "layer_norm:forward@f32[*x8192]";
  EXPECT_EQ(reasonOfRow(ahead(4, 1), problem), "");
  EXPECT_EQ(reasonOfRow(ahead(2, 2), problem), "");
  EXPECT_EQ(reasonOfRow(ahead(4, 2), problem),
            "prefetch = 4 copies to shared memory: steps * rows * tile * tensors * threads * bytes = 4 * 1 * "
            "4 * 1 * 512 * 16 = 131072 "
            "of a block; sm_90 with blocks = 2 has 115328 for each");
  EXPECT_EQ(reasonOfRow(ahead(4, 1), problem, "sm_86"),
            "prefetch = 4 copies to shared memory: steps * rows * tile * tensors * threads * bytes = 4 * 1 * "
            "4 * 1 * 512 * 16 = 131072 "
            "of a block; sm_86 with blocks = 1 has 100992 for each");
}

TEST(CudaSchedule, CopiesAheadAreNoRegisters) {
  const auto backward = [](int64_t prefetch) {
    return [=](Schedule& s) {
      s.threads = s.team = 128, s.tile = 8, s.prefetch = Prefetch::fromKnob(prefetch), s.blocks = 2;
    };
  };
  EXPECT_NE(reasonOfRow(backward(1), "layer_norm:backward@f32[*x4096]"), "");
  EXPECT_EQ(reasonOfRow(backward(2), "layer_norm:backward@f32[*x4096]"), "");
}

TEST(CudaSchedule, RefusesToShareWhatHasNoRestOfARun) {
  const auto rest = [](Schedule& s) { s.threads = s.team, s.tile = 1, s.shared = 1; };
  EXPECT_EQ(reasonOfRow(rest), "");
  EXPECT_EQ(reasonOfRow([](Schedule& s) { s.shared = -1; }),
            "shared = -1; legal: 0 to 233472, the bytes of a multiprocessor of sm_90");
  EXPECT_EQ(
      reasonOfRow([](Schedule& s) { s.tile = 0, s.team = s.threads, s.shared = 2; }),
      "shared = 2 holds what registers do not of a run, and this kernel keeps none in registers; legal: 0");
  EXPECT_EQ(
      reasonOfStream([](Schedule& s) { s.shared = 2; }),
      "shared = 2 holds what registers do not of a run, and this kernel keeps none in registers; legal: 0");
  EXPECT_EQ(reasonOfRow([](Schedule& s) { s.tile = 1, s.shared = 1, s.rows = 2; }),
            "shared = 1 holds one row of a team, not rows = 2; legal: rows = 1, or shared = 0");
  EXPECT_EQ(reasonOfRow([](Schedule& s) { s.tile = 1, s.shared = 1; }), "") << "a row for each team";
  EXPECT_EQ(reasonOfRow([](Schedule& s) { s.tile = 1, s.shared = 1; }, "layer_norm:backward@f32[*x256]"),
            "shared = 1 holds all groups of a row, and sums per feature of one row in a block; team = 32 for "
            "each of 1 groups in 128 "
            "threads; legal: threads = 32");
  EXPECT_EQ(
      reasonOfRow([](Schedule& s) { s.tile = 1, s.shared = 1; }, "group_norm:forward@f32[*x2304]{groups=9}"),
      "shared = 1 holds all groups of a row; team = 32 for each of 9 groups in 128 threads; legal: threads = "
      "a multiple of 288");
  EXPECT_EQ(reasonOfRow([](Schedule& s) { s.tile = 1, s.shared = 2; }),
            "team * vector * (tile + shared) = 384: the last accesses would find nothing of a run of 256");
  EXPECT_EQ(reasonOfRow([](Schedule& s) { s.tile = 1, s.shared = 1; }, "layer_norm:forward@f32[*x300]"),
            "team * vector * (tile + shared) = 256 elements do not hold a run of 300");
}

TEST(CudaSchedule, RefusesToShareMoreThanABlockHas) {
  const auto rest = [](int64_t tile, int64_t shared, int64_t prefetch = 0) {
    return [=](Schedule& s) {
      s.threads = s.team = 512, s.tile = tile, s.shared = shared, s.blocks = 1,
      s.prefetch = Prefetch::fromKnob(prefetch);
    };
  };
  const char *const forward = "layer_norm:forward@f32[*x65536]", *const backward =
                                                                     "layer_norm:backward@f32[*x16384]";
  EXPECT_EQ(reasonOfRow(rest(4, 28), forward), "") << "229376 of 232448 bytes";
  EXPECT_EQ(reasonOfRow(rest(12, 20), forward, "sm_80"), "");
  EXPECT_EQ(reasonOfRow(rest(11, 21), forward, "sm_80"),
            "shared = 21 accesses of 512 threads, 16 bytes each for 1 tensors of 1 rows and 0 sums, take "
            "172032 bytes of a block; sm_80 "
            "with blocks = 1 has 166528 for each");
  EXPECT_EQ(reasonOfRow(rest(3, 29), forward),
            "shared = 29 accesses of 512 threads, 16 bytes each for 1 tensors of 1 rows and 0 sums, take "
            "237568 bytes of a block; sm_90 "
            "with blocks = 1 has 232064 for each");
  EXPECT_EQ(reasonOfRow(rest(2, 6), backward), "");
  EXPECT_EQ(reasonOfRow(rest(2, 6), backward, "sm_80"),
            "shared = 6 accesses of 512 threads, 64 bytes each for 2 tensors of 1 rows and 2 sums, take "
            "196608 bytes of a block; sm_80 "
            "with blocks = 1 has 166656 for each");
  EXPECT_EQ(reasonOfRow(rest(3, 5, 2), backward),
            "shared = 5 accesses of 512 threads, 96 bytes each for 2 tensors of 2 rows and 2 sums, take "
            "245760 bytes of a block; sm_90 "
            "with blocks = 1 has 133888 for each beside what is copied ahead");
}

TEST(CudaSchedule, RefusesToShareRowsThatMayNotBeRead) {
  const Problem problem = problemOf("power_norm_released:forward@f32[*x256]{heads=4}");
  const KernelTraits traits = traitsOf(problem, Strategy::Streamed);
  EXPECT_TRUE(traits.conditional);
  const Schedule s{.strategy = Strategy::Streamed,
                   .threads = 64,
                   .team = 4,
                   .vector = 4,
                   .tile = 2,
                   .rows = 1,
                   .chunks = 3,
                   .shared = 2};
  EXPECT_EQ(whyIllegal(traits, s, archOf("sm_90")).value_or(""),
            "shared = 2, but whether rows of this kernel are read is known when it runs; legal: 0");
}

TEST(CudaSchedule, RefusesHintsThatAreNone) {
  for (const int64_t hints : {1, 2}) EXPECT_EQ(reasonOfRow([&](Schedule& s) { s.hints = hints; }), "");
  for (const int64_t hints : {3, -1})
    EXPECT_EQ(reasonOfRow([&](Schedule& s) { s.hints = hints; }),
              "hints = " + std::to_string(hints) + "; legal: 0, 1, or 2 for reads alone");
}

TEST(CudaSchedule, RefusesATileWhereOneThreadHasOneColumn) {
  auto columns = [](auto change) {
    return reason("batch_norm:forward@f32[*x256]",
                  {.strategy = Strategy::Resident,
                   .threads = 128,
                   .team = 8,
                   .vector = 4,
                   .tile = 1,
                   .rows = 1,
                   .chunks = 8},
                  change);
  };
  EXPECT_EQ(columns([](Schedule&) {}), "");
  EXPECT_EQ(columns([](Schedule& s) { s.hold = 4; }), "");
  EXPECT_EQ(columns([](Schedule& s) { s.hold = -1; }), "hold = -1 steps of 1 rows; legal: 0 to 128 rows");
  EXPECT_EQ(reasonOfStream([](Schedule& s) { s.hold = 1; }),
            "hold = 1, but no column of this kernel is complete in a block, and no row; legal: 0");
  EXPECT_EQ(columns([](Schedule& s) { s.tile = 2; }), "tile = 2, but a thread holds one column; legal: 1");
  EXPECT_EQ(columns([](Schedule& s) { s.tile = 0; }), "tile = 0, but a thread holds one column; legal: 1");
}

TEST(CudaSchedule, HoldsScaleAndBiasOfRowsThatHaveThem) {
  const auto hold = [](const char* problem, int64_t value = 1, int64_t blocks = 0) {
    return reasonOfRow([&](Schedule& s) { s.hold = value, s.blocks = blocks; }, problem);
  };
  EXPECT_EQ(hold("layer_norm:forward@f32[*x256]"), "");
  EXPECT_EQ(hold("layer_norm:forward@f32[*x256]", 2),
            "hold = 2; legal for rows: 1, scale and bias stay in shared memory for the rows of a task, or 0");
  EXPECT_EQ(
      hold("l2_norm:forward@f32[*x256]"),
      "hold = 1 keeps scale and bias of rows in shared memory, and this kernel reads none that all rows "
      "share; legal: 0");
  EXPECT_EQ(
      hold("layer_norm:forward@f32[*x255]"),
      "hold = 1 keeps scale and bias of rows in shared memory, and rows of 255 features begin anywhere; "
      "legal: 0");
  EXPECT_EQ(reasonOfRow([](Schedule& s) { s.hold = 1, s.tile = 0, s.team = s.threads; }),
            "hold = 1 keeps scale and bias of rows in shared memory, and no run of this kernel stays in "
            "registers; legal: 0");
  EXPECT_EQ(reasonOfRow([](Schedule& s) { s.hold = 1, s.threads = s.team = 256, s.tile = 4, s.blocks = 4; },
                        "layer_norm:forward@f32[*x4096]"),
            "");
  EXPECT_EQ(reasonOfRow([](Schedule& s) { s.hold = 1, s.threads = s.team = 256, s.tile = 8, s.blocks = 4; },
                        "layer_norm:forward@f32[*x8192]"),
            "hold = 1: 8 bytes of scale and bias for each feature that a block has take 65536; sm_90 with "
            "blocks = 4 has 57152 for each");
}

TEST(CudaSchedule, HoldsVectorsOfSeveralTypesForTeams) {
  const Problem problem =
      problemOf("norm n from rms_norm {\n  gate silu(per = feature)\n}\n", ":forward@bf16[*x32]");
  const auto hold = [&](int64_t team, int64_t tile) {
    return reasonOfRow([&](Schedule& s) { s.hold = 1, s.team = team, s.tile = tile; }, problem);
  };
  EXPECT_EQ(hold(2, 4), "");
  EXPECT_EQ(hold(1, 8),
            "hold = 1 keeps vectors of several types, which team = 1 would not align; legal: 0, or a larger "
            "team");
}

TEST(CudaSchedule, RefusesAStreamThatKeepsNothing) {
  EXPECT_EQ(reasonOfStream([](Schedule& s) { s.tile = 0; }),
            "tile = 0, but sums per feature stay in registers; legal: at least 1");
}

TEST(CudaSchedule, RefusesTwoRunsWhosePartialsGoStraightToMemory) {
  auto looped = [](Schedule& s) { s.tile = 0, s.team = 64; };
  EXPECT_EQ(reasonOfRow(looped, "layer_norm:backward@f32[*x256]"),
            "team = 64, rows = 1: partials that go straight to memory need one run at a time; legal: team = "
            "threads, rows = 1");
  EXPECT_EQ(reasonOfRow([](Schedule& s) { s.tile = 0, s.team = 128, s.rows = 2; },
                        "layer_norm:backward@f32[*x256]"),
            "team = 128, rows = 2: partials that go straight to memory need one run at a time; legal: team = "
            "threads, rows = 1");
  EXPECT_EQ(reasonOfRow([](Schedule& s) { s.tile = 0, s.team = 128; }, "layer_norm:backward@f32[*x256]"), "");
}

TEST(CudaSchedule, RefusesGroupsThatDoNotStandBesideEachOther) {
  EXPECT_EQ(reasonOfRow([](Schedule& s) { s.team = 32, s.threads = 96, s.tile = 2; },
                        "group_norm:backward@f32[*x1024]{groups=4}"),
            "team = 32 for each of 4 groups does not divide the 96 threads");
}

TEST(CudaSchedule, RefusesMoreThanTheRegistersHold) {
  const std::string many =
      reasonOfRow([](Schedule& s) { s.team = 8, s.tile = 32, s.rows = 2; }, "layer_norm:forward@f32[*x1024]");
  EXPECT_EQ(many.substr(many.find(" registers")), " registers a thread; 128 threads leave 255") << many;
  EXPECT_EQ(many.find("about "), 0u) << many;
  const std::string blocks = reasonOfRow([](Schedule& s) { s.team = 32, s.tile = 8, s.blocks = 16; },
                                         "layer_norm:forward@f32[*x1024]");
  EXPECT_EQ(blocks.substr(blocks.find(" registers")), " registers a thread; 128 threads leave 32") << blocks;
}

TEST(CudaSchedule, RefusesDoubles) {
  EXPECT_EQ(reasonOfRow([](Schedule& s) { s.vector = 2, s.tile = 4; }, "layer_norm:forward@f64[*x256]"),
            "statistics in f64; a CUDA kernel computes them in f32, so the data is f32, bf16 or f16");
  auto target = llvm::cantFail(findTarget("sm_90"));
  const Problem problem = problemOf("layer_norm:forward@f64[*x256]");
  EXPECT_TRUE(target->bind(problem)->defaults().empty());
  EXPECT_EQ(target->bind(problem)->whyIllegal(),
            "statistics in f64; a CUDA kernel computes them in f32, so the data is f32, bf16 or f16");
}

TEST(CudaSchedule, CompilationPassesTheReasonOn) {
  const Problem problem = problemOf("layer_norm:forward@f32[*x256]");
  Schedule s = defaultSchedule(problem, archOf("sm_90"), Strategy::Resident);
  s.rows = 9;
  const std::string wanted = "layer_norm:forward@f32[*x256] for sm_90: rows = 9; legal: 1 to 8";
  auto text = emitStage(problem, s, archOf("sm_90"), Stage::Gpu);
  ASSERT_FALSE(text);
  EXPECT_EQ(llvm::toString(text.takeError()), wanted);
  auto kernel = compileKernel(problem, s, archOf("sm_90"), "k");
  ASSERT_FALSE(kernel);
  EXPECT_EQ(llvm::toString(kernel.takeError()), wanted);
}

}  // namespace
}  // namespace normc::codegen::cuda
