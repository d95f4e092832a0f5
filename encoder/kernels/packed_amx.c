/*
** packed_amx.c: the packed products in AMX, of Intel's servers since Sapphire
** Rapids: a tile instruction multiplies 16 rows by 16 columns over 16 groups.
**
** The instructions stand here as assembly: what takes a tile takes its number as a
** part of its name, and gcc 12's own function for the configuration tells the
** optimizer that only its first eight bytes are read.
*/
#include "kernel_sets.h"

#if defined(BERT_KERNELS_AMX) && defined(__linux__)

#include "set_avx512.h"

#include <stdatomic.h>
#include <sys/syscall.h>
#include <unistd.h>

TARGET_BEGIN(AVX512)

#include "packed_512.h"

#define TILE_ZERO(N) __asm__ volatile("tilezero %%tmm" #N ::)
#define TILE_LOAD(N, p, stride)                                                                    \
  __asm__ volatile("tileloadd (%0,%1,1), %%tmm" #N ::"r"(p), "r"((size_t)(stride)) : "memory")
#define TILE_STORE(N, p, stride)                                                                   \
  __asm__ volatile("tilestored %%tmm" #N ", (%0,%1,1)" ::"r"(p), "r"((size_t)(stride)) : "memory")
#define TILE_BF16(N, A, B) __asm__ volatile("tdpbf16ps %%tmm" #B ", %%tmm" #A ", %%tmm" #N ::)
#define TILE_INT8(N, A, B) __asm__ volatile("tdpbusd %%tmm" #B ", %%tmm" #A ", %%tmm" #N ::)

#define TILES_CONFIGURE(config) __asm__ volatile("ldtilecfg %0" ::"m"(config))
#define TILES_RELEASE() __asm__ volatile("tilerelease" ::)

INLINE void finish_panel(const packed_job *job, size_t row, size_t col, const int32_t *sums) {
  V value;
  if (job->w->precision == PRECISION_BF16)
    value = _mm512_castsi512_ps(_mm512_load_si512(sums));
  else
    value = int8_value((I)_mm512_load_si512(sums), job, row, col);
  store_value(job, row, col, job->last - col, value);
}

#include "packed_amx.h"

/* The kernel gives a process tiles only on request, for they make its threads'
** saved state larger; so it is asked by the first who multiplies with them. A
** refusal, for one where an alternate signal stack is too small for that state,
** is final: the same process must go on giving the same numbers. */
static int tiles_allowed(void) {
  enum { ARCH_REQ_XCOMP_PERM = 0x1023, XFEATURE_XTILEDATA = 18 };
  enum { NOT_ASKED, ALLOWED, REFUSED };
  static atomic_int answer;
  int known = atomic_load(&answer);
  if (known == NOT_ASKED) {
    long failed = syscall(SYS_arch_prctl, ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA);
    int now = failed == 0 ? ALLOWED : REFUSED;
    if (atomic_compare_exchange_strong(&answer, &known, now)) known = now;
  }
  return known == ALLOWED;
}

void packed_linear_amx(const packed_rows *x, const packed_weights *w, size_t first, size_t last,
                       const float *bias, float *y, size_t ldy) {
  packed_job job = {x, w, last, bias, y, ldy};
  if (tiles_allowed())
    amx_linear(&job, first);
  else
    packed_linear_bf16(x, w, first, last, bias, y, ldy);
}

TARGET_END

#elif defined(BERT_KERNELS_AMX)

/* Other systems may have other ways to ask. */
void packed_linear_amx(const packed_rows *x, const packed_weights *w, size_t first, size_t last,
                       const float *bias, float *y, size_t ldy) {
  packed_linear_bf16(x, w, first, last, bias, y, ldy);
}

#else
typedef int no_packed_amx_here; /* ISO C wants a declaration in every file */
#endif
