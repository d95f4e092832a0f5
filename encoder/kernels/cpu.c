/*
** cpu.c: what this processor has, by cpuid and xgetbv.
**
** A cpuid bit alone says only that the processor could: the operating system
** must also save the wide registers when it switches threads, or their upper
** halves are lost at any moment. XCR0, read by xgetbv, tells which it saves.
** Leaf and bit numbers are from the Intel SDM, volume 2, CPUID, and volume 1,
** chapter 13.
*/
#include "kernel_sets.h"

#ifdef BERT_KERNELS_X86

#include <cpuid.h>
#include <string.h>

enum {
  LEAF1_ECX_FMA = 1 << 12,
  LEAF1_ECX_OSXSAVE = 1 << 27,
  LEAF1_ECX_AVX = 1 << 28,
  LEAF1_ECX_F16C = 1 << 29,
  LEAF7_EBX_AVX2 = 1 << 5,
  LEAF7_EBX_AVX512F = 1 << 16,
  LEAF7_EBX_AVX512DQ = 1 << 17,
  LEAF7_EBX_AVX512BW = 1 << 30,
  LEAF7_ECX_AVX512VNNI = 1 << 11,
  LEAF7_EDX_AMX_BF16 = 1 << 22,
  LEAF7_EDX_AMX_TILE = 1 << 24,
  LEAF7_EDX_AMX_INT8 = 1 << 25,
  LEAF7_1_EAX_AVX512BF16 = 1 << 5,
  XCR0_YMM = 0x06,    /* SSE and AVX state */
  XCR0_ZMM = 0xe6,    /* those, the mask registers, and both zmm halves */
  XCR0_TILE = 3 << 17 /* configuration and contents of tiles */
};
#define LEAF7_EBX_AVX512VL (1u << 31)

static int has_all(unsigned have, unsigned want) {
  return (have & want) == want;
}

/* The low half of XCR0; only valid where OSXSAVE is set. Written as an
** instruction because _xgetbv needs a compiler flag of its own. */
static unsigned saved_state(void) {
  unsigned low, high;
  __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  (void)high;
  return low;
}

int cpu_has_avx2(void) {
  unsigned a, b, c, d;
  if (!__get_cpuid(1, &a, &b, &c, &d)) return 0;
  if (!has_all(c, LEAF1_ECX_FMA | LEAF1_ECX_OSXSAVE | LEAF1_ECX_AVX | LEAF1_ECX_F16C)) return 0;
  if (!has_all(saved_state(), XCR0_YMM)) return 0;
  if (!__get_cpuid_count(7, 0, &a, &b, &c, &d)) return 0;
  return has_all(b, LEAF7_EBX_AVX2);
}

int cpu_has_avx512(void) {
  unsigned a, b, c, d;
  if (!cpu_has_avx2() || !has_all(saved_state(), XCR0_ZMM)) return 0;
  if (!__get_cpuid_count(7, 0, &a, &b, &c, &d)) return 0;
  return has_all(b, (unsigned)LEAF7_EBX_AVX512F | LEAF7_EBX_AVX512DQ | LEAF7_EBX_AVX512BW |
                        LEAF7_EBX_AVX512VL);
}

int cpu_has_vnni(void) {
  unsigned a, b, c, d;
  if (!cpu_has_avx512() || !__get_cpuid_count(7, 0, &a, &b, &c, &d)) return 0;
  return has_all(c, LEAF7_ECX_AVX512VNNI);
}

int cpu_has_bf16(void) {
  unsigned a, b, c, d;
  if (!cpu_has_vnni() || !__get_cpuid_count(7, 0, &a, &b, &c, &d) || a < 1) return 0;
  if (!__get_cpuid_count(7, 1, &a, &b, &c, &d)) return 0;
  return has_all(a, LEAF7_1_EAX_AVX512BF16);
}

int cpu_has_amx(void) {
  unsigned a, b, c, d;
  if (!cpu_has_bf16() || !has_all(saved_state(), XCR0_TILE)) return 0;
  if (!__get_cpuid_count(7, 0, &a, &b, &c, &d)) return 0;
  return has_all(d, LEAF7_EDX_AMX_TILE | LEAF7_EDX_AMX_BF16 | LEAF7_EDX_AMX_INT8);
}

int cpu_is_intel(void) {
  unsigned a, b, c, d;
  char vendor[12];
  if (!__get_cpuid(0, &a, &b, &c, &d)) return 0;
  memcpy(vendor, &b, 4);
  memcpy(vendor + 4, &d, 4);
  memcpy(vendor + 8, &c, 4);
  return memcmp(vendor, "GenuineIntel", sizeof vendor) == 0;
}

#else

int cpu_is_intel(void) {
  return 0;
}

int cpu_has_avx2(void) {
  return 0;
}

int cpu_has_avx512(void) {
  return 0;
}

int cpu_has_vnni(void) {
  return 0;
}

int cpu_has_bf16(void) {
  return 0;
}

int cpu_has_amx(void) {
  return 0;
}

#endif
