/* Activation functions and their slopes, one pass over the elements: `_activation_loops` calls them.
 *
 * Formulas are those of `numpy/_activations`, which computes them where there is no driver. Exponentials are our own, so
 * that the compiler computes as many at once as fit its registers: the result for an element depends on that element
 * alone, and has the same bits on every processor. Their method is the usual one (W. J. Cody and W. Waite, "Software
 * Manual for the Elementary Functions", 1980): x = k log(2) + r, and a polynomial in r, here one of nearly equal ripples,
 * below 2e-17 in float64 and 8e-9 in float32. Largest errors seen: 0.73 and 0.78 ulp.
 */
#ifndef REACTGRAD_ACTIVATIONS
#define REACTGRAD_ACTIVATIONS

#include "_wide.h"

#if defined(__GNUC__)
#define INLINE static inline __attribute__((always_inline))
#else
#define INLINE static inline
#endif
#if defined(__GNUC__) && !defined(__clang__)
#define INDEPENDENT _Pragma("GCC ivdep")
#elif defined(__clang__)
#define INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#else
#define INDEPENDENT
#endif

/* A number in whose last bits a small integer stands after it was added. */
#define INTEGER_d 0x1.8p52
#define INTEGER_f 0x1.8p23f

/* 2**k, where `place` is k + INTEGER. */
INLINE double power_d(double place)
{
    uint64_t bits;
    memcpy(&bits, &place, sizeof bits);
    bits = (bits + 1023) << 52;
    memcpy(&place, &bits, sizeof bits);
    return place;
}

INLINE float power_f(float place)
{
    uint32_t bits;
    memcpy(&bits, &place, sizeof bits);
    bits = (bits + 127) << 23;
    memcpy(&place, &bits, sizeof bits);
    return place;
}

/* k, and the two parts of r: their sum is r to twice the digits. */
#define REDUCED(T, SUFFIX, LOG2_E, HIGH, LOW)                                                                          \
    const T k = (x * LOG2_E + INTEGER_##SUFFIX) - INTEGER_##SUFFIX;                                                    \
    const T high = x - k * HIGH, low = k * LOW, r = high - low, rest = (high - r) - low, square = r * r;

#define REDUCED_d REDUCED(double, d, 1.4426950408889634, 0x1.62e42fefa2000p-1, 7.371002565167799e-13)
#define REDUCED_f REDUCED(float, f, 1.44269504f, 0.693115234375f, 3.1946184945309415e-05f)

/* exp(r) - 1 - r. */
#define BEYOND_d                                                                                                       \
    (square * ((0.5 + 0.16666666666666669 * r) + square * (0.04166666666662413 + 0.008333333333330062 * r) +           \
               (square * square) *                                                                                     \
                   ((0.0013888888917213717 + 0.00019841269863053618 * r) +                                             \
                    square * (2.4801521295954376e-05 + 2.7557268459997064e-06 * r) +                                   \
                    (square * square) * (2.7620088445409746e-07 + 2.510038549551032e-08 * r))) +                       \
     rest)
#define BEYOND_f                                                                                                       \
    (square * ((0.5f + 0.16666576989698775f * r) +                                                                     \
               square * ((0.041666554617204574f + 0.008363179052722578f * r) + square * 0.0013926183587713494f)) +     \
     rest)

/* The scale is applied in two steps, so that no power leaves the dtype before the result does. */
#define EXPONENTIALS(T, SUFFIX, LEAST, MOST, SMALLEST)                                                                 \
    INLINE T exp_##SUFFIX(T x)                                                                                         \
    {                                                                                                                  \
        x = x < LEAST ? LEAST : x;                                                                                     \
        x = x > MOST ? MOST : x;                                                                                       \
        REDUCED_##SUFFIX                                                                                               \
        const T sum = 1 + r, lost = (1 - sum) + r, half = k * (T)0.5 + INTEGER_##SUFFIX;                               \
        const T other = (k - (half - INTEGER_##SUFFIX)) + INTEGER_##SUFFIX;                                            \
        return (sum + (lost + BEYOND_##SUFFIX)) * power_##SUFFIX(half) * power_##SUFFIX(other);                        \
    }                                                                                                                  \
                                                                                                                       \
    /* exp(x) - 1 for x up to 0. */                                                                                    \
    INLINE T expm1_##SUFFIX(T x)                                                                                       \
    {                                                                                                                  \
        x = x < SMALLEST ? SMALLEST : x;                                                                               \
        REDUCED_##SUFFIX                                                                                               \
        const T power = power_##SUFFIX(k + INTEGER_##SUFFIX);                                                          \
        return power * (r + BEYOND_##SUFFIX) + (power - 1);                                                            \
    }

EXPONENTIALS(double, d, -746.0, 710.0, -60.0)
EXPONENTIALS(float, f, -104.0f, 89.0f, -30.0f)

/* exp(x - less) for x from a little below the logarithm of the smallest number to 0, and a small number, in fewer
 * operations. The power of 2 is taken so much larger that it is one number. */
#define EXPONENTIALS_BELOW(T, SUFFIX, LEAST, LOG2_E, HIGH, LOW, LIFT)                                                  \
    INLINE T exp_less_##SUFFIX(T x, T less)                                                                            \
    {                                                                                                                  \
        const T place = x * LOG2_E + INTEGER_##SUFFIX, k = place - INTEGER_##SUFFIX;                                   \
        const T r = (x - k * HIGH) - (k * LOW + less), square = r * r, rest = r;                                       \
        return (1 + BEYOND_##SUFFIX) * power_##SUFFIX(place + LIFT) * power_##SUFFIX(INTEGER_##SUFFIX - LIFT);         \
    }                                                                                                                  \
                                                                                                                       \
    INLINE T exp_below_##SUFFIX(T x)                                                                                   \
    {                                                                                                                  \
        return exp_less_##SUFFIX(x < LEAST ? LEAST : x, 0);                                                            \
    }

EXPONENTIALS_BELOW(double, d, -746.0, 1.4426950408889634, 0x1.62e42fefa2000p-1, 7.371002565167799e-13, 64)
EXPONENTIALS_BELOW(float, f, -104.0f, 1.44269504f, 0.693115234375f, 3.1946184945309415e-05f, 64)

/* log(1 + x) for x from 0 to 1: with f near 0, log(1 + f) = 2 atanh(f / (2 + f)), and f = x or (x - 1) / 2. The
 * polynomials are those of 2 atanh(s) / s - 2 over s**2. */
#define RATIO_d(z)                                                                                                     \
    (z * ((0.666666666666667 + 0.3999999999989889 * z) +                                                               \
          (z * z) * ((0.28571428626253836 + 0.22222211089379496 * z) + (z * z) * ((0.1818289243253687 +                \
                     0.15331611722055008 * z) + (z * z) * 0.14617807153417325))))
#define RATIO_f(z)                                                                                                     \
    (z * ((0.6666666655404201f + 0.4000012221181065f * z) + (z * z) * (0.28550778633191964f + 0.23331614471843498f * z)))
#define LOGARITHMS(T, SUFFIX, HIGH, LOW)                                                                               \
    INLINE T log1p_##SUFFIX(T x)                                                                                       \
    {                                                                                                                  \
        const int far = x > (T)0.41421356;                                                                             \
        const T f = far ? (x - 1) * (T)0.5 : x, high = far ? HIGH : 0, low = far ? LOW : 0;                            \
        const T s = f / (2 + f), z = s * s, half = (T)0.5 * f * f;                                                     \
        return high - ((half - (s * (half + RATIO_##SUFFIX(z)) + low)) - f);                                           \
    }

LOGARITHMS(double, d, 0x1.62e42fefa2000p-1, 7.371002565167799e-13)
LOGARITHMS(float, f, 0.693115234375f, 3.1946184945309415e-05f)

#define EACH(NAME, T, ...)                                                                                             \
    WIDE static void NAME(char **args, const intptr_t *sizes, const intptr_t *steps, void *data)                       \
    {                                                                                                                  \
        const T *numbers = data, *from = (const T *)args[0];                                                           \
        T *out = (T *)args[1];                                                                                         \
        const intptr_t size = sizes[0];                                                                                \
        (void)numbers;                                                                                                 \
        INDEPENDENT for (intptr_t i = 0; i < size; i++)                                                                \
        {                                                                                                              \
            T x = from[i];                                                                                             \
            __VA_ARGS__                                                                                                \
        }                                                                                                              \
    }

/* An exponential of this leaves each dtype, and a product with this none. */
#define END 10000
#define LIMITED x = x < -END ? -END : x; x = x > END ? END : x;
/* The smaller and the larger one of sigmoid(x) and sigmoid(-x). */
#define TWO_SIDES(T, EXP, x)                                                                                           \
    const T tail = EXP((x) < 0 ? (x) : -(x)), large = 1 / (1 + tail), small = tail * large;

#define ACTIVATIONS(T, SUFFIX)                                                                                         \
    EACH(sigmoid_##SUFFIX, T, out[i] = 1 / (exp_##SUFFIX(-x) + 1);)                                                    \
    EACH(silu_##SUFFIX, T, x = x < -END ? -END : x; out[i] = x / (1 + exp_##SUFFIX(-x));)                              \
    EACH(silu_slope_##SUFFIX, T, LIMITED TWO_SIDES(T, exp_##SUFFIX, x)                                                 \
         out[i] = (x < 0 ? small : large) + x * (small * large);)                                                      \
    EACH(softplus_##SUFFIX, T, const T rise = x > 0 ? x : (x <= 0 ? 0 : x);                                            \
         const T sum = rise + log1p_##SUFFIX(exp_##SUFFIX(x < 0 ? x : -x)); out[i] = x > numbers[0] ? x : sum;)        \
    EACH(log_sigmoid_##SUFFIX, T, const T fall = x < 0 ? x : (x >= 0 ? 0 : x);                                         \
         out[i] = fall - log1p_##SUFFIX(exp_##SUFFIX(x < 0 ? x : -x));)                                                \
    EACH(elu_##SUFFIX, T, const T rise = x > 0 ? x : 0, fall = x >= 0 ? 0 : x;                                         \
         out[i] = numbers[0] * rise + numbers[1] * expm1_##SUFFIX(fall / numbers[2]);)                                 \
    EACH(mish_##SUFFIX, T, x = x < -END ? -END : x; const T e = exp_##SUFFIX(x > 40 ? 40 : x);                         \
         const T n = e * (e + 2); out[i] = x * (n / (n + 2));)

ACTIVATIONS(double, d)
ACTIVATIONS(float, f)

/* z + 4 times exp(z**2 / 2) times the probability above z, by (z - 4) / (z + 4): in float32 z from 0 to 15, and `numbers`
 * are the coefficients, and those of the line that maps the argument to -1 ... 1; in float64 z from 0 to 39 (M. Shepherd
 * and J. Laframboise, 1981, have the form). */
enum { TAIL_f = 12, TAIL_d = 24 };

static const double LONG_TAIL[TAIL_d + 2] = {
    -7.36379750267977e-11,   -1.1276213394502738e-10, 6.878055817113745e-10,   1.6822069734307139e-09,
    -2.6267794849581926e-09, -1.3775775123837805e-08, -1.7842934753851214e-09, 8.389835664626121e-08,
    1.1392855954109191e-07,  -4.353993716498129e-07,  -1.2131828185627615e-06, 2.1840200308562345e-06,
    1.046362821530737e-05,   -1.362229355921332e-05,  -8.847010388382882e-05,  0.00014720806311012012,
    0.0007374208806126963,   -0.002501459056756743,   -0.0032588461890962176,  0.04290632677694325,
    -0.15636995546798024,    0.3639067368270385,      -0.6212441022247249,     0.8153383968425169,
    -0.09302325581395349,    1.1025641025641026};

/* A number without the second half of its digits: its square is exact. */
INLINE double half_of_d(double z)
{
    uint64_t bits;
    memcpy(&bits, &z, sizeof bits);
    bits &= 0xFFFFFFFFF8000000u;
    memcpy(&z, &bits, sizeof z);
    return z;
}

INLINE float half_of_f(float z)
{
    uint32_t bits;
    memcpy(&bits, &z, sizeof bits);
    bits &= 0xFFFFF000u;
    memcpy(&z, &bits, sizeof z);
    return z;
}

/* Arguments end where the bell curve is 0. */
#define ABSOLUTE_d fabs
#define ABSOLUTE_f fabsf

/* The probability below x, and the bell curve. The polynomial has four parts, which are computed side by side. */
#define NORMAL(T, SUFFIX, REACH, TAIL)                                                                                 \
    T z = ABSOLUTE_##SUFFIX(x);                                                                                        \
    z = z > REACH ? REACH : z;                                                                                         \
    const T coarse = half_of_##SUFFIX(z), left_out = (T)0.5 * (z - coarse) * (z + coarse);                             \
    const T bell = exp_less_##SUFFIX(coarse * coarse * (T)-0.5, left_out), each = 1 / (z + 4);                         \
    const T t = ((z - 4) * each - TAIL[TAIL_##SUFFIX]) * TAIL[TAIL_##SUFFIX + 1], t2 = t * t, t4 = t2 * t2;            \
    T p3 = TAIL[0], p2 = TAIL[1], p1 = TAIL[2], p0 = TAIL[3];                                                          \
    for (int power = 4; power < TAIL_##SUFFIX; power += 4) {                                                           \
        p3 = p3 * t4 + TAIL[power];                                                                                    \
        p2 = p2 * t4 + TAIL[power + 1];                                                                                \
        p1 = p1 * t4 + TAIL[power + 2];                                                                                \
        p0 = p0 * t4 + TAIL[power + 3];                                                                                \
    }                                                                                                                  \
    const T above = ((p0 + p1 * t) + t2 * (p2 + p3 * t)) * (bell * each), below = x >= 0 ? 1 - above : above;

#define GELU(T, SUFFIX, REACH, TAIL)                                                                                   \
    EACH(gelu_##SUFFIX, T, NORMAL(T, SUFFIX, REACH, TAIL) out[i] = (x < -END ? -END : x) * below;)                     \
    EACH(gelu_slope_##SUFFIX, T, NORMAL(T, SUFFIX, REACH, TAIL)                                                        \
         out[i] = below + (x < 0 ? -z : z) * bell * (T)0.3989422804014327;)

GELU(double, d, 38.75, LONG_TAIL)
GELU(float, f, 14.5f, numbers)

/* The tanh form in float32, by float64: then the exponent, 2 u(x), is exact enough. */
#define RISING_AND_FALLING                                                                                             \
    const double wide = x, exponent = 1.5957691216057308 * wide * (1 + 0.044715 * wide * wide);                        \
    TWO_SIDES(double, exp_d, exponent)                                                                                 \
    const double upper = x < 0 ? small : large;
EACH(gelu_tanh_f, float, x = x < -END ? -END : x; RISING_AND_FALLING out[i] = (float)(wide * upper);)
EACH(gelu_tanh_slope_f, float, LIMITED RISING_AND_FALLING
     const double rate = 1.5957691216057308 * (1 + 3 * 0.044715 * wide * wide);
     out[i] = (float)(upper + wide * rate * (small * large));)

/* g * y * sigmoid(-x), where y is sigmoid(x); `g` may be one number for all. */
#define SIGMOID_BACKWARD(NAME, T, EXP)                                                                                 \
    WIDE static void NAME(char **args, const intptr_t *sizes, const intptr_t *steps, void *data)                       \
    {                                                                                                                  \
        const T *g = (const T *)args[0], *y = (const T *)args[1], *x = (const T *)args[2];                             \
        T *out = (T *)args[3];                                                                                         \
        const intptr_t size = sizes[0];                                                                                \
        if (steps[0]) {                                                                                                \
            INDEPENDENT for (intptr_t i = 0; i < size; i++)                                                            \
            {                                                                                                          \
                out[i] = g[i] * (y[i] / (EXP(x[i]) + 1));                                                              \
            }                                                                                                          \
        }                                                                                                              \
        else {                                                                                                         \
            const T one = *g;                                                                                          \
            INDEPENDENT for (intptr_t i = 0; i < size; i++)                                                            \
            {                                                                                                          \
                out[i] = one * (y[i] / (EXP(x[i]) + 1));                                                               \
            }                                                                                                          \
        }                                                                                                              \
    }

SIGMOID_BACKWARD(sigmoid_backward_d, double, exp_d)
SIGMOID_BACKWARD(sigmoid_backward_f, float, exp_f)

#define BOTH(NAME) {#NAME " d", NAME##_d}, {#NAME " f", NAME##_f}
#define ACTIVATION_LOOPS                                                                                               \
    BOTH(sigmoid), BOTH(sigmoid_backward), BOTH(silu), BOTH(silu_slope), BOTH(softplus), BOTH(log_sigmoid), BOTH(elu), BOTH(mish), \
        BOTH(gelu), BOTH(gelu_slope), {"gelu_tanh f", gelu_tanh_f},                                                    \
        {"gelu_tanh_slope f", gelu_tanh_slope_f},

#endif
