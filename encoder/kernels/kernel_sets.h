/*
** kernel_sets.h: what the files of this folder know of each other: the sets
** and the questions they ask the processor. Nobody outside includes it.
*/
#ifndef BERT_KERNEL_SETS_H
#define BERT_KERNEL_SETS_H

#include "kernels.h"

/* A set is compiled in where its target has the instructions at all; whether
** this processor has them is asked at run time. */
#if defined(__x86_64__) && defined(__GNUC__)
#define BERT_KERNELS_X86 1
#endif
#if defined(__aarch64__) && defined(__GNUC__)
#define BERT_KERNELS_NEON 1
#endif

/* Older compilers do not know VDPBF16PS, and older assemblers (binutils before 2.35) not
** AMX, for which the Makefile looks; AMX falls back on bf16. Such sets are left out. */
#ifdef BERT_KERNELS_X86
#if defined(__clang__) ? __clang_major__ >= 9 : __GNUC__ >= 10
#define BERT_KERNELS_BF16 1
#endif
#if defined(BERT_KERNELS_BF16) && !defined(BERT_NO_AMX)
#define BERT_KERNELS_AMX 1
#endif
#endif

#define INLINE static inline __attribute__((always_inline))

/* Loops over registers must be unrolled whole, or the registers become memory.
** Compilers do that from -O2 on when asked. */
#if defined(__clang__)
#define UNROLL _Pragma("clang loop unroll(full)")
#else
#define UNROLL _Pragma("GCC unroll 16")
#endif

INLINE size_t least(size_t a, size_t b) {
  return a < b ? a : b;
}

/* The row at which a tile begins; heights of tiles differ by one at most. */
INLINE size_t tile_row(size_t tile, size_t tiles, size_t rows) {
  return tile * rows / tiles;
}

/* TARGET_BEGIN("avx2,fma") … TARGET_END: the functions between may use these
** instructions, and no others of the program; no compiler flag is needed. It comes after
** the compiler's own headers. What is inlined may have fewer than what it goes into. */
#define PRAGMA(text) _Pragma(#text)
#if defined(__clang__)
#define TARGET_BEGIN(list)                                                                         \
  PRAGMA(clang attribute push(__attribute__((target(list))), apply_to = function))
#define TARGET_END PRAGMA(clang attribute pop)
#else
#define TARGET_BEGIN(list) PRAGMA(GCC push_options) PRAGMA(GCC target(list))
#define TARGET_END PRAGMA(GCC pop_options)
#endif

extern const kernels kernels_scalar;
#ifdef BERT_KERNELS_X86
extern const kernels kernels_sse2;
extern const kernels kernels_avx2;
extern const kernels kernels_avx512;
extern const kernels kernels_avx512vnni;
#endif
#ifdef BERT_KERNELS_BF16
extern const kernels kernels_avx512bf16;
#endif
#ifdef BERT_KERNELS_AMX
extern const kernels kernels_amx;
#endif
#ifdef BERT_KERNELS_NEON
extern const kernels kernels_neon;
#endif

/* cpu.c: 1 when both the processor has these instructions and the operating
** system saves the registers they use. */
int cpu_has_avx2(void);   /* AVX2, FMA and F16C */
int cpu_has_avx512(void); /* the above and AVX-512 F, VL, BW, DQ */
int cpu_has_vnni(void);   /* the above and AVX512-VNNI */
int cpu_has_bf16(void);   /* the above and AVX512-BF16 */
int cpu_has_amx(void);    /* the above and AMX-TILE, -BF16 and -INT8 */

/* cpu.c: 1 on Intel's processors, for what no bit tells. */
int cpu_is_intel(void);

/* packed_*.c: the packed products in one set of instructions. */
typedef void pack_rows_function(packed_precision p, const float *x, size_t ldx, size_t rows,
                                size_t depth, void *block, packed_rows *out);
typedef void packed_linear_function(const packed_rows *x, const packed_weights *w, size_t first,
                                    size_t last, const float *bias, float *y, size_t ldy);
pack_rows_function pack_rows_scalar;
packed_linear_function packed_linear_scalar;
#ifdef BERT_KERNELS_X86
pack_rows_function pack_rows_sse2, pack_rows_avx2, pack_rows_avx512, pack_rows_bf16;
packed_linear_function packed_linear_sse2, packed_linear_avx2, packed_linear_avx512,
    packed_linear_vnni, packed_linear_bf16, packed_linear_amx;
#endif
#ifdef BERT_KERNELS_NEON
pack_rows_function pack_rows_neon;
packed_linear_function packed_linear_neon;
#endif

/* The arguments of packed_linear. */
typedef struct packed_job {
  const packed_rows *x;
  const packed_weights *w;
  size_t last;
  const float *bias;
  float *y;
  size_t ldy;
} packed_job;

/* packed.c: bytes of a row or column of `depth` terms, and what pack_rows puts into
** *out, all but the numbers. */
size_t packed_row_bytes(packed_precision p, size_t depth);
void packed_rows_open(packed_precision p, int wide, size_t rows, size_t depth, void *block,
                      packed_rows *out);

/* Also packed.c: how numbers become codes. A number's code is the whole number
** nearest to it times `inverse`, plus `zero`; where inverse is 0, all codes are. */
typedef struct packed_scale {
  float scale, inverse;
  int32_t zero;
} packed_scale;

/* The scale of row r of x, whose numbers and 0 lie in [low, high], or are not finite
** where these are NaN; kept in x. */
packed_scale packed_rows_scale(const packed_rows *x, size_t r, float low, float high);

/* Also packed.c, in plain C: min(x[count], 0) and max(x[count], 0), or NaN both where
** not all are finite; and numbers to what is stored, inverse not being 0. */
void packed_range(const float *x, size_t count, float *low, float *high);
void packed_to_bf16(const float *x, uint16_t *codes, size_t count);
void packed_to_int8(const float *x, float inverse, int8_t *codes, size_t count);

#endif
