// Accesses of memory in PTX, with all that may stand in their names.
#include <gtest/gtest.h>

#include "tests/emulator/Kernels.h"
#include "tests/emulator/Support.h"

namespace normc::emulator {
namespace {

/// Four floats from x to y by these instructions.
std::string copyBy(const std::string& load, const std::string& store) {
  return kernel("ptr %x, ptr %y", R"(
  %i = mul i64 %t, 4
  %px = getelementptr float, ptr %x, i64 %i
  %py = getelementptr float, ptr %y, i64 %i
)" + load + store);
}
const std::string kPlainLoad = "%v = load <4 x float>, ptr %px, align 16\n";
const std::string kPlainStore = "store <4 x float> %v, ptr %py, align 16\n";

std::string loadBy(const std::string& name) {
  std::string text = "%a = call { i32, i32, i32, i32 } asm sideeffect \"" + name +
                     " {$0,$1,$2,$3}, [$4];\", \"=r,=r,=r,=r,l\"(ptr %px)\n";
  std::string before = "undef";
  for (int i = 0; i < 4; ++i) {
    std::string n = std::to_string(i);
    text += "%a" + n + " = extractvalue { i32, i32, i32, i32 } %a, " + n + "\n%w" + n +
            " = insertelement <4 x i32> " + before + ", i32 %a" + n + ", i32 " + n + "\n";
    before = "%w" + n;
  }
  return text + "%v = bitcast <4 x i32> %w3 to <4 x float>\n";
}

std::string storeBy(const std::string& name) {
  std::string text;
  for (int i = 0; i < 4; ++i)
    text += "%e" + std::to_string(i) + " = extractelement <4 x float> %v, i32 " + std::to_string(i) + "\n";
  return text + "call void asm sideeffect \"" + name +
         " [$0], {$1,$2,$3,$4};\", \"l,f,f,f,f,~{memory}\"(ptr %py, float %e0, float %e1, float %e2, float "
         "%e3)\n";
}

Report runCopy(const std::string& ir, float* last = nullptr, size_t offset = 0) {
  Memory memory;
  auto* x = iota<float>(memory, "x", 64, Access::ReadOnly);
  auto* y = fresh<float>(memory, "y", 64);
  Report report = run(ir, {.block = {16}}, memory, {x + offset, y});
  if (last) *last = y[63];
  return report;
}

TEST(Ptx, LoadsAndStoresOfManyKinds) {
  for (const char* load :
       {"ld.global.nc.L1::no_allocate.v4.b32", "ld.global.nc.L1::no_allocate.L2::128B.v4.b32",
        "ld.global.v4.u32", "ld.global.cs.v4.b32", "ld.global.L1::evict_last.v4.b32",
        "ld.volatile.global.v4.u32", "ld.v4.b32", "ld.weak.global.cg.v4.b32"})
    for (const char* store : {"st.global.cs.v4.f32", "st.global.v4.b32", "st.global.L1::no_allocate.v4.f32",
                              "st.global.wt.v4.f32", "st.v4.f32"}) {
      float last = 0;
      Report report = runCopy(copyBy(loadBy(load), storeBy(store)), &last);
      ASSERT_TRUE(report.ok()) << load << " " << store << " " << report.text();
      EXPECT_EQ(last, 63.0f);
      EXPECT_EQ(report.of("x").loads[4], 16u);
      EXPECT_EQ(report.of("y").stores[4], 16u);
    }
}

TEST(Ptx, WidthsOfOneRegister) {
  std::string ir = kernel("ptr %x, ptr %y", R"(
  %a = call i64 asm sideeffect "ld.global.b64 $0, [$1+8];", "=l,l"(ptr %x)
  %b = call i16 asm sideeffect "ld.global.nc.u16 $0, [$1];", "=h,l"(ptr %x)
  %c = call i32 asm sideeffect "ld.global.s8 $0, [$1];", "=r,l"(ptr %x)
  %d = call { i64, i64, i64, i64 } asm sideeffect "ld.global.nc.v4.b64 {$0,$1,$2,$3}, [$4];",
      "=l,=l,=l,=l,l"(ptr %x)
  %d3 = extractvalue { i64, i64, i64, i64 } %d, 3
  %b64 = zext i16 %b to i64
  %c64 = sext i32 %c to i64
  %s = add i64 %a, %b64
  %s1 = add i64 %s, %c64
  %s2 = add i64 %s1, %d3
  call void asm sideeffect "st.global.cs.b64 [$0], $1;", "l,l"(ptr %y, i64 %s2))");
  Memory memory;
  auto* x = static_cast<int64_t*>(memory.allocate(32, "x", Access::ReadOnly, Content::Initialised));
  for (int i = 0; i < 4; ++i) x[i] = i == 0 ? 0xff : 1000 * i;
  auto* y = fresh<int64_t>(memory, "y", 1);
  Report report = run(ir, {}, memory, {x, y});
  ASSERT_TRUE(report.ok()) << report.text();
  EXPECT_EQ(*y, 1000 + 0xff - 1 + 3000);
  EXPECT_EQ(report.of("x").loads[5], 1u);  // 32 bytes at once
}

TEST(Ptx, LoadsAreCheckedLikeAnyOther) {
  std::string load = loadBy("ld.global.nc.L1::no_allocate.v4.b32");
  EXPECT_TRUE(has(runCopy(copyBy(load, kPlainStore), nullptr, 4).text(),
                  "thread (15, 0, 0): reads 16 bytes at x + 256 (x has 256 bytes)"));
  EXPECT_TRUE(has(runCopy(copyBy(load, kPlainStore), nullptr, 1).text(), "misaligned"));
  Memory memory;
  auto* x = iota<float>(memory, "x", 64);
  EXPECT_TRUE(has(run(copyBy(load, kPlainStore), {.block = {16}}, memory, {x, x}).text(), "non-coherent"));
}

TEST(Ptx, CopiesThroughHalvesOfAddresses) {
  std::string ir =
      "@tile = internal addrspace(3) global [64 x float] undef, align 16\n" + copyBy(R"(
  %to = getelementptr float, ptr addrspace(3) @tile, i64 %i
  %to64 = ptrtoint ptr addrspace(3) %to to i64
  %to32 = trunc i64 %to64 to i32
  call void asm sideeffect "cp.async.cg.shared.global.L2::128B [$0], [$1], 16;",
      "r,l,~{memory}"(i32 %to32, ptr %px)
  call void asm sideeffect "cp.async.commit_group;", "~{memory}"()
  call void asm sideeffect "cp.async.wait_group 0;", "~{memory}"()
  %v = load <4 x float>, ptr addrspace(3) %to, align 16
)",
                                                                                     kPlainStore);
  float last = 0;
  Report report = runCopy(ir, &last);
  ASSERT_TRUE(report.ok()) << report.text();
  EXPECT_EQ(last, 63.0f);
  size_t wait = ir.find("wait_group 0");
  ir.replace(wait, 12, "wait_group 1");
  EXPECT_TRUE(has(runCopy(ir).text(), "data race"));
}

TEST(Ptx, AtomicsAndFences) {
  std::string ir = kernel("ptr %y", R"(
  %old = call i32 asm sideeffect "atom.acq_rel.gpu.global.add.u32 $0, [$1], $2;", "=r,l,r"(ptr %y, i32 2)
  call void asm sideeffect "red.release.gpu.global.add.u32 [$0], $1;", "l,r"(ptr %y, i32 1)
  call void asm sideeffect "fence.acq_rel.gpu;", "~{memory}"()
  %p = getelementptr i32, ptr %y, i64 1
  %o = call i32 asm sideeffect "atom.global.cas.b32 $0, [$1], $2, $3;", "=r,l,r,r"(ptr %p, i32 1, i32 77)
  %v = call i32 asm sideeffect "ld.acquire.gpu.global.b32 $0, [$1];", "=r,l"(ptr %y)
  %q = getelementptr i32, ptr %y, i64 2
  call void asm sideeffect "st.release.gpu.global.u32 [$0], $1;", "l,r"(ptr %q, i32 %v))");
  Memory memory;
  auto* y = iota<int32_t>(memory, "y", 3);
  Report report = run(ir, {.grid = {4}, .block = {8}}, memory, {y});
  ASSERT_TRUE(report.ok()) << report.text();
  EXPECT_EQ(y[0], 96);
  EXPECT_EQ(y[1], 77);
}

TEST(Ptx, APredicateDecides) {
  std::string ir = kernel("ptr %y", R"(
  %p = getelementptr i32, ptr %y, i64 %t
  %few = icmp ult i32 %tid, 3
  call void asm sideeffect "@$2 st.global.u32 [$0], $1;", "l,r,b"(ptr %p, i32 5, i1 %few))");
  Memory memory;
  auto* y = iota<int32_t>(memory, "y", 3);
  Report report = run(ir, {.block = {8}}, memory, {y});
  ASSERT_TRUE(report.ok()) << report.text();
  EXPECT_EQ(y[2], 5);
}

TEST(Ptx, AMoveKeepsTheBits) {
  std::string ir = kernel("ptr %y", R"(
  %a = load i32, ptr %y
  %b = call i32 asm "mov.b32 $0, $1;", "=r,r"(i32 %a)
  %p = getelementptr i32, ptr %y, i64 1
  store i32 %b, ptr %p)");
  Memory memory;
  auto* y = iota<int32_t>(memory, "y", 2);
  y[0] = -77;
  Report report = run(ir, {.block = {1}}, memory, {y});
  ASSERT_TRUE(report.ok()) << report.text();
  EXPECT_EQ(y[1], -77);
}

}  // namespace
}  // namespace normc::emulator
