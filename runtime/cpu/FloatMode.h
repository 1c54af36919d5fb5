// Sets the floating-point mode of kernels during its lifetime: round to nearest, no traps, denormals flushed
// or kept. Restores the host's mode afterwards.
#pragma once

#include <cstdint>

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

namespace normc::runtime {

class FloatMode {
 public:
  explicit FloatMode(bool keepDenormals) : host_(read()) { write(keepDenormals ? kKeep : kFlush); }
  ~FloatMode() { write(host_); }
  FloatMode(const FloatMode&) = delete;

 private:
#if defined(__x86_64__)
  using Register = uint32_t;
  static constexpr Register kKeep = 0x1f80;                  // all exceptions masked
  static constexpr Register kFlush = kKeep | 0x8000 | 0x40;  // FTZ, DAZ
  static Register read() { return _mm_getcsr(); }
  static void write(Register value) { _mm_setcsr(value); }
#elif defined(__aarch64__)
  using Register = uint64_t;
  static constexpr Register kKeep = 0;
  static constexpr Register kFlush = Register{1} << 24 | Register{1} << 19;  // FZ, FZ16
  static Register read() {
    Register value;
    __asm__ volatile("mrs %0, fpcr" : "=r"(value));
    return value;
  }
  static void write(Register value) { __asm__ volatile("msr fpcr, %0" : : "r"(value)); }
#endif

  Register host_;
};

}  // namespace normc::runtime
