#include "autotune/measure/CudaRoof.h"

#include <algorithm>

namespace normc::measure {

using namespace cuda;

namespace {

constexpr RoofKind kKinds[] = {RoofKind::Copy, RoofKind::Triad, RoofKind::Read};
constexpr int kBlocks[] = {256, 512, 1024};
constexpr int kWaves[] = {1,
                          2};  ///< numbers of full waves in a grid; a grid that covers all data is tried too
constexpr int kVector = 16;
constexpr double kTuneSeconds = 0.4e-3;

std::string entryName(RoofKind kind, int inFlight) {
  return std::string(name(kind)) + "_" + std::to_string(inFlight);
}

/// Returns the body of a loop that reads, computes and writes at byte offsets %o0, %o1, ...; all reads come
/// first.
std::string bodyOf(RoofKind kind, int inFlight, const std::string& indent) {
  std::string loads, work, stores;
  for (int i = 0; i < inFlight; ++i) {
    const std::string n = std::to_string(i);
    const auto vector = [&](const char* name) {
      std::string list;
      for (int lane = 0; lane < 4; ++lane)
        list += (lane ? ", %" : "%") + std::string(name) + std::to_string(4 * i + lane);
      return "{" + list + "}";
    };
    loads += indent + "add.s64 %pa" + n + ", %a, %o" + n + ";\n";
    loads += indent + "ld.global.nc.L1::no_allocate.v4.f32 " + vector("x") + ", [%pa" + n + "];\n";
    if (kind == RoofKind::Triad) {
      loads += indent + "add.s64 %pb" + n + ", %b, %o" + n + ";\n";
      loads += indent + "ld.global.nc.L1::no_allocate.v4.f32 " + vector("z") + ", [%pb" + n + "];\n";
      for (int lane = 4 * i; lane < 4 * i + 4; ++lane) {
        const std::string at = std::to_string(lane);
        work += indent + "fma.rn.f32 %x" + at + ", %z" + at + ", 0f3F000000, %x" + at + ";\n";
      }
    }
    if (kind == RoofKind::Read) {
      for (int lane = 0; lane < 4; ++lane)
        work += indent + "add.f32 %s" + std::to_string(lane) + ", %s" + std::to_string(lane) + ", %x" +
                std::to_string(4 * i + lane) + ";\n";
      continue;
    }
    stores += indent + "add.s64 %pt" + n + ", %t, %o" + n + ";\n";
    stores += indent + "st.global.v4.f32 [%pt" + n + "], " + vector("x") + ";\n";
  }
  return loads + work + stores;
}

/// Returns the code at the end of a kernel. The sums of a read are stored under a condition that is never
/// true, a NaN with this payload, so that the assembler keeps the reads.
std::string endOf(RoofKind kind) {
  if (kind != RoofKind::Read) return "";
  return "  add.f32 %s0, %s0, %s1;\n  add.f32 %s2, %s2, %s3;\n  add.f32 %s0, %s0, %s2;\n"
         "  mov.b32 %block, %s0;\n  setp.eq.u32 %p, %block, 0x7fc12345;\n  @%p st.global.v4.f32 [%t], {%s0, "
         "%s1, %s2, %s3};\n";
}

/// Returns the code of an entry. %o0 is the thread's own offset. One iteration of the main loop takes
/// `inFlight` steps, one of the loop after it takes one.
std::string entryOf(RoofKind kind, int inFlight) {
  const std::string count = std::to_string(inFlight);
  std::string offsets;
  for (int i = 1; i < inFlight; ++i)
    offsets += "  add.s64 %o" + std::to_string(i) + ", %o" + std::to_string(i - 1) + ", %step;\n";
  return ".visible .entry " + entryName(kind, inFlight) +
         "(\n  .param .u64 to, .param .u64 first, .param .u64 second, .param .u64 bytes)\n{\n"
         "  .reg .pred %p;\n  .reg .b32 %block, %threads, %thread, %grid;\n"
         "  .reg .b64 %a, %b, %t, %n, %step, %last;\n"
         "  .reg .b64 %o<" +
         count + ">, %pa<" + count + ">, %pb<" + count + ">, %pt<" + count +
         ">;\n"
         "  .reg .f32 %x<" +
         std::to_string(4 * inFlight) + ">, %z<" + std::to_string(4 * inFlight) +
         ">, %s<4>;\n"
         "  mov.f32 %s0, 0f00000000;\n  mov.f32 %s1, %s0;\n  mov.f32 %s2, %s0;\n  mov.f32 %s3, %s0;\n"
         "  ld.param.u64 %t, [to];\n  ld.param.u64 %a, [first];\n  ld.param.u64 %b, [second];\n"
         "  ld.param.u64 %n, [bytes];\n"
         "  cvta.to.global.u64 %t, %t;\n  cvta.to.global.u64 %a, %a;\n  cvta.to.global.u64 %b, %b;\n"
         "  mov.u32 %block, %ctaid.x;\n  mov.u32 %threads, %ntid.x;\n  mov.u32 %thread, %tid.x;\n"
         "  mov.u32 %grid, %nctaid.x;\n"
         "  mul.wide.u32 %o0, %block, %threads;\n  cvt.u64.u32 %step, %thread;\n"
         "  add.s64 %o0, %o0, %step;\n  shl.b64 %o0, %o0, 4;\n"
         "  mul.wide.u32 %step, %grid, %threads;\n  shl.b64 %step, %step, 4;\n"
         "main:\n"
         "  mad.lo.s64 %last, %step, " +
         std::to_string(inFlight - 1) +
         ", %o0;\n"
         "  setp.ge.s64 %p, %last, %n;\n  @%p bra rest;\n" +
         offsets + bodyOf(kind, inFlight, "  ") + "  mad.lo.s64 %o0, %step, " + count +
         ", %o0;\n  bra main;\n"
         "rest:\n"
         "  setp.ge.s64 %p, %o0, %n;\n  @%p bra done;\n" +
         bodyOf(kind, 1, "  ") +
         "  add.s64 %o0, %o0, %step;\n  bra rest;\n"
         "done:\n" +
         endOf(kind) + "  ret;\n}\n";
}

}  // namespace

const char* name(RoofKind kind) {
  return kind == RoofKind::Copy ? "copy" : kind == RoofKind::Triad ? "triad" : "read";
}

std::string Roof::ptx() {
  std::string text = ".version 7.4\n.target sm_80\n.address_size 64\n";
  for (const RoofKind kind : kKinds)
    for (const int inFlight : kInFlight) text += entryOf(kind, inFlight);
  return text;
}

LoadedModule::LoadedModule(const gate::CudaDevice& device, const std::string& ptx, const std::string& doing)
    : device_(device) {
  const gate::CudaDevice::Current current(device);
  device.driver().check(device.driver().cuModuleLoadData(&handle_, ptx.c_str()), doing);
}

LoadedModule::~LoadedModule() {
  try {
    const gate::CudaDevice::Current current(device_);
    device_.driver().cuModuleUnload(handle_);
  } catch (const gate::CudaError&) {  // the context and the module are lost
  }
}

Roof::Roof(const gate::CudaDevice& device)
    : device_(device), module_(device, ptx(), "loading the copy and triad kernels") {
  const gate::CudaDevice::Current current(device);
  const auto& driver = device.driver();
  for (const RoofKind kind : kKinds)
    for (const int inFlight : kInFlight) {
      CUfunction function = nullptr;
      const std::string entry = entryName(kind, inFlight);
      driver.check(driver.cuModuleGetFunction(&function, module_.handle(), entry.c_str()),
                   "finding the kernel " + entry);
      functions_.push_back({kind, inFlight, function});
    }
}

void Roof::enqueue(RoofKind kind, const RoofLaunch& launch, const RoofBuffers& buffers) const {
  const gate::CudaDevice::Current current(device_);
  const auto it = std::ranges::find_if(
      functions_, [&](const Function& f) { return f.kind == kind && f.inFlight == launch.inFlight; });
  uint64_t words[] = {buffers.to, buffers.first, buffers.second, uint64_t(buffers.bytes / kVector * kVector)};
  void* parameters[] = {&words[0], &words[1], &words[2], &words[3]};
  const auto& driver = device_.driver();
  driver.check(driver.cuLaunchKernel(it->function, unsigned(launch.grid), 1, 1, unsigned(launch.block), 1, 1,
                                     0, device_.stream(), parameters, nullptr),
               std::string("launching a ") + name(kind));
}

RoofLaunch Roof::tuned(RoofKind kind, const std::vector<RoofBuffers>& sets) const {
  const int processors = std::max(1, device_.attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT));
  const int resident = device_.attribute(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR);
  const int64_t vectors = std::max<int64_t>(1, sets.at(0).bytes / kVector);
  RoofLaunch best;
  double bestSeconds = 0;
  for (const int block : kBlocks)
    for (const int inFlight : kInFlight) {
      const int64_t perBlock = int64_t(block) * inFlight, covering = (vectors + perBlock - 1) / perBlock;
      std::vector<int64_t> grids = {covering};
      for (const int waves : kWaves)
        if (const int64_t grid = int64_t(processors) * std::max(1, resident / block) * waves; grid < covering)
          grids.push_back(grid);
      for (const int64_t grid : grids) {
        const RoofLaunch launch = {block, int(std::min<int64_t>(grid, 0x7fffffff)), inFlight};
        const CudaTimer timer(
            device_, [&](int set) { enqueue(kind, launch, sets[set]); }, int(sets.size()), kTuneSeconds);
        const double seconds = std::min({timer.sample(), timer.sample(), timer.sample()});
        if (bestSeconds == 0 || seconds < bestSeconds) {
          best = launch;
          bestSeconds = seconds;
        }
      }
    }
  return best;
}

}  // namespace normc::measure
