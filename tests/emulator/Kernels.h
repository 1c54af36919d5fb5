// Lines that many kernels begin with.
#pragma once

#include <string>

namespace normc::emulator {

/// `%tid`, `%ctaid`, `%ntid` (i32) and `%t`, the thread's number in a one-dimensional grid (i64).
inline const std::string kWhoAmI = R"(
  %tid = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %ctaid = call i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
  %ntid = call i32 @llvm.nvvm.read.ptx.sreg.ntid.x()
  %first = mul i32 %ctaid, %ntid
  %t32 = add i32 %first, %tid
  %t = zext i32 %t32 to i64
)";

/// `define ptx_kernel void @k(PARAMETERS) {`, the index of the thread, the body, `ret void }`.
inline std::string kernel(const std::string& parameters, const std::string& body) {
  return "define ptx_kernel void @k(" + parameters + ") {\n" + kWhoAmI + body + "\n  ret void\n}\n";
}

/// Two parameters: `%x` and `%y`, in global memory.
inline const std::string kXY = "ptr addrspace(1) %x, ptr addrspace(1) %y";

/// `%px`, `%v` = x[t] as float, and `%py` = &y[t].
inline const std::string kLoadX = R"(
  %px = getelementptr float, ptr addrspace(1) %x, i64 %t
  %py = getelementptr float, ptr addrspace(1) %y, i64 %t
  %v = load float, ptr addrspace(1) %px, align 4
)";

/// The first thread of each cluster stores a float; `%rank` is that of its block.
inline std::string firstOfClusterStores(const std::string& value, const std::string& pointer) {
  return R"(
  %who = or i32 %tid, %rank
  %stores = icmp eq i32 %who, 0
  br i1 %stores, label %store, label %end
store:
  store float )" +
         value + ", ptr addrspace(1) " + pointer + R"(, align 4
  br label %end
end:
)";
}

/// A use of a value: NVPTX leaves out what nothing uses.
inline std::string keep(const std::string& type, const std::string& value) {
  const char* constraint = type == "float" ? "f" : type == "i32" ? "r" : "l";
  return "  call void asm sideeffect \"\", \"" + std::string(constraint) + "\"(" + type + " " + value + ")\n";
}

inline const std::string kBarrier = "  call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0)\n";

}  // namespace normc::emulator
