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

extern const kernels kernels_scalar;
#ifdef BERT_KERNELS_X86
extern const kernels kernels_avx2;
extern const kernels kernels_avx512;
#endif
#ifdef BERT_KERNELS_NEON
extern const kernels kernels_neon;
#endif

/* cpu.c: 1 when both the processor has these instructions and the operating
** system saves the registers they use. */
int cpu_has_avx2(void);   /* AVX2, FMA and F16C */
int cpu_has_avx512(void); /* the above and AVX-512 F, VL, BW, DQ */

#endif
