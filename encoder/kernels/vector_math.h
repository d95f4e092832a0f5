/*
** vector_math.h: exp, tanh and the activations in vectors, written once for
** all sets. A set includes it through vector_kernels.h, which lists the words
** (V, v_fma, …) used here.
**
** The polynomials were fitted for this file: weighted least squares on a
** Chebyshev grid in extended precision, the weights multiplied by the local
** error and the fit repeated until the largest error stops falling (Lawson's
** iteration, which tends to the minimax fit), then rounded to float32.
** tests/unit/test_kernels.c holds every activation to a bound against double
** precision.
*/

/* The parts of exp: x = n ln 2 + r with |r| <= ln 2 / 2. ln 2 is split so that
** n * LN2_HIGH is exact for every n that occurs: x loses no digits. */
#define LOG2_E 1.44269504f
#define LN2_HIGH 0.693359375f
#define LN2_LOW (-2.12194440e-4f)

/* P(r) of exp(r) = 1 + r + r^2 P(r); the error of r^2 P is below 1.5e-8 |r|. */
INLINE V v_exp_tail(V r) {
  V p = v_set1(0x1.6d965ap-10f);
  p = v_fma(p, r, v_set1(0x1.12263cp-7f));
  p = v_fma(p, r, v_set1(0x1.55548ap-5f));
  p = v_fma(p, r, v_set1(0x1.5554b2p-3f));
  return v_fma(p, r, v_set1(0.5f));
}

/* exp(r) - 1, with all digits of a small r. */
INLINE V v_expm1_reduced(V r) {
  return v_fma(v_mul(v_exp_tail(r), r), r, r);
}

/* Added to a float below 2^22 and taken away again, this leaves the nearest integer. */
#define ROUNDER 0x1.8p23f

INLINE V v_reduce_exp(V x, V *n) {
  *n = v_sub(v_fma(x, v_set1(LOG2_E), v_set1(ROUNDER)), v_set1(ROUNDER));
  V r = v_fnma(*n, v_set1(LN2_HIGH), x);
  return v_fnma(*n, v_set1(LN2_LOW), r);
}

/* exp x for x <= 89, 1 ulp; below -104 it is 0, and the clamp only keeps n small. v_max and
** v_min give their second operand for a NaN. */
INLINE V v_exp_below(V x) {
  V n, r = v_reduce_exp(v_max(v_set1(-104.0f), x), &n);
  V one = v_set1(1.0f);
  return v_ldexp(v_fma(v_fma(v_exp_tail(r), r, one), r, one), n);
}

/* The same for all x; above 88.73 it is infinity. */
INLINE V v_exp(V x) {
  return v_exp_below(v_min(v_set1(89.0f), x));
}

/* tanh x = q / (q + 2) with q = exp(2|x|) - 1, which keeps all digits near 0.
** Beyond 10 it is 1 to float32. */
INLINE V v_tanh(V x) {
  V n, a = v_min(v_set1(10.0f), v_abs(x));
  V r = v_reduce_exp(v_add(a, a), &n);
  V two_n = v_ldexp(v_set1(1.0f), n);
  V q = v_fma(two_n, v_expm1_reduced(r), v_sub(two_n, v_set1(1.0f)));
  return v_copysign(v_div(q, v_add(q, v_set1(2.0f))), x);
}

INLINE V v_silu(V x) {
  return v_div(x, v_add(v_set1(1.0f), v_exp(v_sub(v_set1(0.0f), x))));
}

/* x Phi(x). Phi(x) - 1/2 is odd: x R(x^2), R a quotient of two polynomials of
** degree 5 with positive coefficients, lowest first here, within 9e-9 for
** |x| <= 5.56, where Phi is 0 or 1 to float32; beyond, it is exactly that. */
static const float gelu_above[6] = {0x1.988452p-2f,  0x1.16bc8ap-5f,  0x1.33166ap-8f,
                                    0x1.6515dap-13f, 0x1.a8ebd2p-18f, 0x1.814186p-26f};
static const float gelu_below[6] = {
    1.0f, 0x1.02008ep-2f, 0x1.d6dd6cp-6f, 0x1.f03380p-10f, 0x1.362ae6p-14f, 0x1.3e80b6p-20f};

#if FUSED
INLINE V v_polynomial(const float c[6], V s) {
  V p = v_set1(c[5]);
  UNROLL for (int i = 4; i >= 0; i--) p = v_fma(p, s, v_set1(c[i]));
  return p;
}

INLINE V v_phi(V x) {
  V s = v_mul(x, x);
  return v_fma(x, v_div(v_polynomial(gelu_above, s), v_polynomial(gelu_below, s)), v_set1(0.5f));
}
#else
/* Two roundings a step: in float32 they would add up to 1.4 times the error that GELU
** is allowed. */
INLINE D d_polynomial(const float c[6], D s) {
  D p = d_set1((double)c[5]);
  UNROLL for (int i = 4; i >= 0; i--) p = d_fma(p, s, d_set1((double)c[i]));
  return p;
}

INLINE D d_phi(D x) {
  D s = d_mul(x, x);
  return d_fma(x, d_div(d_polynomial(gelu_above, s), d_polynomial(gelu_below, s)), d_set1(0.5));
}

INLINE V v_phi(V x) {
  return v_join(d_phi(d_low(x)), d_phi(d_high(x)));
}
#endif

INLINE V v_gelu(V x) {
  V phi = v_phi(x);
  phi = v_if_less(v_set1(5.56f), x, v_set1(1.0f), phi);
  phi = v_if_less(x, v_set1(-5.56f), v_set1(0.0f), phi);
  return v_mul(x, phi);
}

/* x/2 (1 + tanh u) = x / (1 + exp(-2u)), in which nothing cancels. */
INLINE V v_gelu_tanh(V x) {
  const float first = -2.0f * 0.79788456f;
  V s = v_mul(x, x);
  V minus_2u = v_mul(x, v_fma(s, v_set1(first * 0.044715f), v_set1(first)));
  return v_div(x, v_add(v_set1(1.0f), v_exp(minus_2u)));
}

INLINE V v_activate(activation kind, V x) {
  switch (kind) {
  case ACTIVATION_GELU: return v_gelu(x);
  case ACTIVATION_GELU_TANH: return v_gelu_tanh(x);
  case ACTIVATION_RELU: return v_max(v_set1(0.0f), x);
  case ACTIVATION_SILU: return v_silu(x);
  case ACTIVATION_TANH: return v_tanh(x);
  case ACTIVATION_IDENTITY: break;
  }
  return x;
}

/* `kind` is a constant where this is used, so each loop has one formula. */
INLINE void activate_all(activation kind, float *x, size_t count) {
  size_t i = 0;
  for (; i + LANES <= count; i += LANES) v_store(x + i, v_activate(kind, v_load(x + i)));
  if (i < count) {
    v_store_part(x + i, v_activate(kind, v_load_part(x + i, count - i)), count - i);
  }
}

static void activate(activation kind, float *x, size_t count) {
  switch (kind) {
  case ACTIVATION_GELU: activate_all(ACTIVATION_GELU, x, count); break;
  case ACTIVATION_GELU_TANH: activate_all(ACTIVATION_GELU_TANH, x, count); break;
  case ACTIVATION_RELU: activate_all(ACTIVATION_RELU, x, count); break;
  case ACTIVATION_SILU: activate_all(ACTIVATION_SILU, x, count); break;
  case ACTIVATION_TANH: activate_all(ACTIVATION_TANH, x, count); break;
  case ACTIVATION_IDENTITY: break;
  }
}
