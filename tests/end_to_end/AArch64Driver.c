/* Calls the phases of a kernel as runtime/abi/kernel.h says, on AArch64.
 *
 *   driver KERNELS.so < image > image
 *
 * Freestanding: it needs no C library for the other processor, only a compiler
 * and a linker. The image is memory: a header of 64-bit words, then everything
 * that the kernel reads and writes; it comes back as the kernel leaves it.
 *
 *   bytes  operands  phases  segments  rows  features  scalars-at  cuts-at
 *   operands x { at, segment_stride, row_stride, task_stride }
 *   phases x { address in KERNELS.so }
 */
#include "runtime/abi/kernel.h"

enum { kOpenAt = 56, kRead = 63, kWrite = 64, kExit = 93, kMap = 222 };

static long call(long number, long a, long b, long c, long d, long e, long f) {
  register long x8 __asm__("x8") = number;
  register long x0 __asm__("x0") = a;
  register long x1 __asm__("x1") = b;
  register long x2 __asm__("x2") = c;
  register long x3 __asm__("x3") = d;
  register long x4 __asm__("x4") = e;
  register long x5 __asm__("x5") = f;
  __asm__ volatile("svc 0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5) : "memory");
  return x0;
}

/* Ends the program with `code` where `holds` is false. */
static void check(int holds, int code) {
  if (!holds) call(kExit, code, 0, 0, 0, 0, 0);
}

static char* map(char* at, int64_t bytes, int protection, int flags, int file, int64_t offset) {
  char* memory = (char*)call(kMap, (long)at, bytes, protection, flags, file, offset);
  check((uint64_t)memory < (uint64_t)-4096, 3);
  return memory;
}

static void transfer(int write, char* data, int64_t bytes) {
  while (bytes > 0) {
    long done = call(write ? kWrite : kRead, write, (long)data, bytes, 0, 0, 0);
    check(done > 0, 4);
    data += done, bytes -= done;
  }
}

struct ElfHeader {
  unsigned char ident[16];
  uint16_t type, machine;
  uint32_t version;
  uint64_t entry, segments, sections;
  uint32_t flags;
  uint16_t size, segmentSize, segmentCount;
};
struct Segment {
  uint32_t type, flags;
  uint64_t offset, address, physical, fileBytes, memoryBytes, align;
};

/* Maps what the file says is to be loaded. A kernel object has nothing to relocate. */
static char* load(const char* path) {
  enum {
    kSpan = 1 << 26,
    kPage = 65536,
    kReadable = 1,
    kExecutable = 4,
    kPrivate = 2,
    kFixed = 16,
    kAnonymous = 32
  };
  long file = call(kOpenAt, -100, (long)path, 0, 0, 0, 0);
  check(file >= 0, 5);
  char* head = map(0, kPage, kReadable, kPrivate, file, 0);
  const struct ElfHeader* elf = (const struct ElfHeader*)head;
  char* base = map(0, kSpan, 0, kPrivate | kAnonymous, -1, 0);
  base += -(uint64_t)base & (kPage - 1);
  for (int i = 0; i < elf->segmentCount; ++i) {
    const struct Segment* s = (const struct Segment*)(head + elf->segments) + i;
    if (s->type != 1) continue;
    check(s->address + s->memoryBytes < kSpan - kPage, 6);
    uint64_t before = s->address & 4095;
    map(base + (s->address - before), s->fileBytes + before, kReadable | (s->flags & 1 ? kExecutable : 0),
        kPrivate | kFixed, file, s->offset - before);
  }
  return base;
}

__attribute__((used)) static void run(long* stack) {
  check(stack[0] == 2, 2);
  char* code = load((const char*)stack[2]);

  int64_t bytes;
  transfer(0, (char*)&bytes, sizeof bytes);
  char* image = map(0, bytes, 3, 34, -1, 0);
  int64_t* word = (int64_t*)image;
  word[0] = bytes;
  transfer(0, image + sizeof bytes, bytes - (int64_t)sizeof bytes);

  static normc_operand operands[256];
  int64_t count = word[1], phases = word[2], *next = word + 8;
  check(count <= 256, 7);
  for (int64_t i = 0; i < count; ++i, next += 4) {
    operands[i].data = image + next[0];
    operands[i].segment_stride = next[1];
    operands[i].row_stride = next[2];
    operands[i].task_stride = next[3];
  }
  normc_kernel_args args;
  args.operand = operands;
  args.segments = word[3], args.rows = word[4], args.features = word[5];
  args.scalar = (const double*)(image + word[6]);
  args.cut = (const normc_cut*)(image + word[7]);
  for (int64_t p = 0; p < phases; ++p)
    for (int64_t task = 0; task < args.cut[p].chunks; ++task) ((normc_phase)(code + next[p]))(&args, task);

  transfer(1, image, bytes);
  call(kExit, 0, 0, 0, 0, 0, 0);
}

__asm__(".global _start\n_start: mov x0, sp\n and sp, x0, #-16\n b run\n");
