/* Softmax, its logarithm, their gradients, and logarithms of sums of exponentials: `_row_loops` calls them.
 *
 * An element of these loops is a block of `length` rows of `inner` numbers, of which the first `width` are taken: sums
 * go over its columns, or over all of it if `inner` is 1. Formulas are those of `blocks/_rows`. The order of a sum
 * follows from the block's own lengths, so that a block has the same bits wherever it stands.
 */
#ifndef REACTGRAD_ROW_LOOPS
#define REACTGRAD_ROW_LOOPS

#include "_activations.h"

/* A row is added up by pieces, whose sums are added to a long total. */
enum { PIECE = 512, LANES = 8, MANY = 32 };
/* Columns at once, and rows of these that are added up before they go to long totals. */
enum { TILE = 128, CHUNK = 8 };

typedef struct {
    intptr_t length, inner, width;
} Block;

/* A sum with what its additions have lost (A. Neumaier, 1974). */
typedef struct {
    double sum, lost;
} Total;

INLINE void add_to(Total *total, double one)
{
    const double sum = total->sum + one;
    total->lost += fabs(total->sum) >= fabs(one) ? (total->sum - sum) + one : (one - sum) + total->sum;
    total->sum = sum;
}

/* What was lost is no number once the sum is infinite. */
INLINE double rounded(const Total *total)
{
    return fabs(total->sum) <= 1.7976931348623157e308 ? total->sum + total->lost : total->sum;
}

/* log(1 + x) for x from 0 on, for -1, and for NaN. */
INLINE double log_of_more(double x)
{
    const double all = 1 + x, lost = x < 1 ? x - (all - 1) : 1 - (all - x);
    uint64_t bits, place;
    memcpy(&bits, &all, sizeof bits);
    place = bits >> 52 | 0x4330000000000000u;
    bits = (bits & 0xFFFFFFFFFFFFFu) | 0x3FF0000000000000u;
    double power, one;
    memcpy(&power, &place, sizeof power);
    memcpy(&one, &bits, sizeof one);
    const int far = one > 1.4142135623730951;
    power = (power - (0x1p52 + 1023)) + (far ? 1.0 : 0.0);
    const double f = (far ? one * 0.5 : one) - 1;
    const double s = f / (2 + f), z = s * s, half = 0.5 * f * f;
    const double high = power * 0x1.62e42fefa2000p-1, low = power * 7.371002565167799e-13 + lost / all;
    const double found = high - ((half - (s * (half + RATIO_d(z)) + low)) - f);
    const double special = x == -1 ? -INFINITY : x;
    return x >= 0 && x <= 1.7976931348623157e308 ? found : special;
}

INLINE intptr_t piece_end(intptr_t begin, intptr_t size)
{
    return size - begin < PIECE ? size : begin + PIECE;
}

/* The sum of `many` numbers, at most PIECE: halves are added to each other until few are left. */
#define FOLD(T, SUFFIX)                                                                                                \
    INLINE double folded_##SUFFIX(T *parts, intptr_t many)                                                             \
    {                                                                                                                  \
        intptr_t size = LANES;                                                                                         \
        while (size < many) {                                                                                          \
            size *= 2;                                                                                                 \
        }                                                                                                              \
        for (intptr_t i = many; i < size; i++) {                                                                       \
            parts[i] = 0;                                                                                              \
        }                                                                                                              \
        for (size /= 2; size >= LANES; size /= 2) {                                                                    \
            INDEPENDENT for (intptr_t i = 0; i < size; i++)                                                            \
            {                                                                                                          \
                parts[i] = parts[i] + parts[i + size];                                                                 \
            }                                                                                                          \
        }                                                                                                              \
        double sum = 0;                                                                                                \
        for (int i = 0; i < LANES; i++) {                                                                              \
            sum += parts[i];                                                                                           \
        }                                                                                                              \
        return sum;                                                                                                    \
    }

FOLD(double, d)
FOLD(float, f)

/* The sum of TERM over i. READ is 1 if a term is a few reads, and 0 if it writes. */
#define SUM(T, SUFFIX, TOTAL, SIZE, READ, TERM)                                                                        \
    double TOTAL;                                                                                                      \
    {                                                                                                                  \
        Total added = {0, 0};                                                                                          \
        const intptr_t number = SIZE;                                                                                  \
        for (intptr_t begin = 0; begin < number; begin += PIECE) {                                                     \
            const intptr_t end = piece_end(begin, number);                                                             \
            if (number <= 2 * LANES) {                                                                                 \
                for (intptr_t i = begin; i < end; i++) {                                                               \
                    added.sum += TERM;                                                                                 \
                }                                                                                                      \
                break;                                                                                                 \
            }                                                                                                          \
            T parts[PIECE];                                                                                            \
            intptr_t many = end - begin;                                                                               \
            if (READ && many == PIECE) { /* the first two folds at once */                                             \
                many = PIECE / 4;                                                                                      \
                for (intptr_t k = 0; k < PIECE / 4; k++) {                                                             \
                    T one, two, three, four;                                                                           \
                    { const intptr_t i = begin + k; one = TERM; }                                                      \
                    { const intptr_t i = begin + k + PIECE / 4; two = TERM; }                                          \
                    { const intptr_t i = begin + k + PIECE / 2; three = TERM; }                                        \
                    { const intptr_t i = begin + k + PIECE / 4 * 3; four = TERM; }                                     \
                    parts[k] = (one + three) + (two + four);                                                           \
                }                                                                                                      \
            }                                                                                                          \
            else {                                                                                                     \
                for (intptr_t k = 0; k < many; k++) {                                                                  \
                    const intptr_t i = begin + k;                                                                      \
                    parts[k] = TERM;                                                                                   \
                }                                                                                                      \
            }                                                                                                          \
            add_to(&added, folded_##SUFFIX(parts, many));                                                              \
        }                                                                                                              \
        TOTAL = rounded(&added);                                                                                       \
    }

/* The largest number of a row, NaN apart: that shows in the sum. */
#define LARGEST(T, SUFFIX)                                                                                             \
    INLINE T largest_##SUFFIX(const T *x, intptr_t size)                                                               \
    {                                                                                                                  \
        T lanes[MANY], most = -INFINITY;                                                                               \
        intptr_t at = 0;                                                                                               \
        if (size >= MANY) {                                                                                            \
            for (int j = 0; j < MANY; j++) {                                                                           \
                lanes[j] = -INFINITY;                                                                                  \
            }                                                                                                          \
            for (; at + MANY <= size; at += MANY) {                                                                    \
                for (int j = 0; j < MANY; j++) {                                                                       \
                    lanes[j] = x[at + j] > lanes[j] ? x[at + j] : lanes[j];                                            \
                }                                                                                                      \
            }                                                                                                          \
            for (int j = 0; j < MANY; j++) {                                                                           \
                most = lanes[j] > most ? lanes[j] : most;                                                              \
            }                                                                                                          \
        }                                                                                                              \
        for (; at < size; at++) {                                                                                      \
            most = x[at] > most ? x[at] : most;                                                                        \
        }                                                                                                              \
        return most;                                                                                                   \
    }

LARGEST(double, d)
LARGEST(float, f)

/* Short rows are taken together, as many as fit a piece: exponentials of a few numbers would not fill the registers. */
#define TOGETHER(LENGTH) ((LENGTH) < PIECE / 2 ? PIECE / (LENGTH) : 1)

#define EACH_OF(SIZE, ...)                                                                                             \
    INDEPENDENT for (intptr_t i = 0; i < (SIZE); i++)                                                                  \
    {                                                                                                                  \
        __VA_ARGS__                                                                                                    \
    }

#define SOFTMAX(T, SUFFIX)                                                                                             \
    WIDE static void softmax_rows_##SUFFIX(const T *x, T *out, intptr_t count, intptr_t length)                        \
    {                                                                                                                  \
        const intptr_t together = TOGETHER(length);                                                                    \
        for (intptr_t row = 0; row < count; row += together) {                                                         \
            const intptr_t rows = at_most(together, count - row);                                                      \
            if (together == 1) {                                                                                       \
                const T top = largest_##SUFFIX(x, length);                                                             \
                SUM(T, SUFFIX, sum, length, 0, out[i] = exp_below_##SUFFIX(x[i] - top))                                \
                const T total = (T)sum;                                                                                \
                EACH_OF(length, out[i] = out[i] / total;)                                                              \
            }                                                                                                          \
            else {                                                                                                     \
                T apart[PIECE];                                                                                        \
                for (intptr_t k = 0; k < rows; k++) {                                                                  \
                    const T *own = x + k * length, top = largest_##SUFFIX(own, length);                                \
                    T *below = apart + k * length;                                                                     \
                    EACH_OF(length, below[i] = own[i] - top;)                                                          \
                }                                                                                                      \
                EACH_OF(rows *length, apart[i] = exp_below_##SUFFIX(apart[i]);)                                        \
                for (intptr_t k = 0; k < rows; k++) {                                                                  \
                    const T *e = apart + k * length;                                                                   \
                    T *found = out + k * length;                                                                       \
                    SUM(T, SUFFIX, sum, length, 1, e[i])                                                               \
                    const T total = (T)sum;                                                                            \
                    EACH_OF(length, found[i] = e[i] / total;)                                                          \
                }                                                                                                      \
            }                                                                                                          \
            x += rows * length;                                                                                        \
            out += rows * length;                                                                                      \
        }                                                                                                              \
    }                                                                                                                  \
                                                                                                                       \
    WIDE static void softmax_grad_rows_##SUFFIX(const T *g, const T *y, T *out, intptr_t count, intptr_t length)       \
    {                                                                                                                  \
        for (; count; count--, g += length, y += length, out += length) {                                              \
            SUM(T, SUFFIX, sum, length, 1, g[i] * y[i])                                                                \
            const T mean = (T)sum;                                                                                     \
            SUM(T, SUFFIX, rest, length, 1, (g[i] - mean) * y[i])                                                      \
            const T more = (T)rest;                                                                                    \
            EACH_OF(length, out[i] = ((g[i] - mean) - more) * y[i];)                                                   \
        }                                                                                                              \
    }

SOFTMAX(double, d)
SOFTMAX(float, f)

/* The largest exponentials are 1 each, and counted; the others are added up. */
#define REST(T, SUFFIX)                                                                                                \
    INLINE T less_than_one_##SUFFIX(T below)                                                                           \
    {                                                                                                                  \
        const T power = exp_below_##SUFFIX(below);                                                                     \
        return below == 0 ? 0 : power;                                                                                 \
    }                                                                                                                  \
                                                                                                                       \
    INLINE double rest_##SUFFIX(const T *x, T top, intptr_t length)                                                    \
    {                                                                                                                  \
        SUM(T, SUFFIX, sum, length, 0, less_than_one_##SUFFIX(x[i] - top))                                             \
        intptr_t equal = 0;                                                                                            \
        for (intptr_t begin = 0; begin < length; begin += PIECE) {                                                     \
            const intptr_t end = piece_end(begin, length);                                                             \
            int same = 0;                                                                                              \
            for (intptr_t i = begin; i < end; i++) {                                                                   \
                same += x[i] == top;                                                                                   \
            }                                                                                                          \
            equal += same;                                                                                             \
        }                                                                                                              \
        return sum + (double)(equal - 1);                                                                              \
    }

REST(double, d)
REST(float, f)

/* What follows is done for the rows `k` of those that are taken together: `tops` are the numbers that were subtracted
 * before exponentials were added up, `logs` the logarithms of the sums. */
#define LOGARITHMS_OF_SUMS(T, SUFFIX, TOP, STEP, ...)                                                                  \
    const intptr_t together = TOGETHER(length);                                                                        \
    T apart[PIECE], tops[PIECE];                                                                                       \
    double logs[PIECE];                                                                                                \
    for (intptr_t row = 0; row < count; row += together, x += together * length, out += together * (STEP)) {           \
        const intptr_t rows = at_most(together, count - row);                                                          \
        for (intptr_t k = 0; k < rows; k++) {                                                                          \
            const T *own = x + k * length, most = largest_##SUFFIX(own, length);                                       \
            tops[k] = TOP;                                                                                             \
        }                                                                                                              \
        if (together == 1) {                                                                                           \
            logs[0] = rest_##SUFFIX(x, tops[0], length);                                                               \
        }                                                                                                              \
        else {                                                                                                         \
            for (intptr_t k = 0; k < rows; k++) {                                                                      \
                const T *own = x + k * length, top = tops[k];                                                          \
                T *below = apart + k * length;                                                                         \
                int equal = 0;                                                                                         \
                for (intptr_t i = 0; i < length; i++) {                                                                \
                    below[i] = own[i] - top;                                                                           \
                    equal += own[i] == top;                                                                            \
                }                                                                                                      \
                logs[k] = equal - 1;                                                                                   \
            }                                                                                                          \
            EACH_OF(rows *length, apart[i] = less_than_one_##SUFFIX(apart[i]);)                                        \
            for (intptr_t k = 0; k < rows; k++) {                                                                      \
                const T *e = apart + k * length;                                                                       \
                SUM(T, SUFFIX, sum, length, 1, e[i])                                                                   \
                logs[k] = sum + logs[k];                                                                               \
            }                                                                                                          \
        }                                                                                                              \
        EACH_OF(rows, logs[i] = log_of_more(logs[i]);)                                                                 \
        for (intptr_t k = 0; k < rows; k++) {                                                                          \
            __VA_ARGS__                                                                                                \
        }                                                                                                              \
    }

/* The logarithm of the sum where a number is infinite or none. */
#define BEYOND_NUMBERS(T, SUFFIX)                                                                                      \
    INLINE T beyond_numbers_##SUFFIX(const T *x, intptr_t length, intptr_t inner)                                      \
    {                                                                                                                  \
        T found = 0;                                                                                                   \
        for (intptr_t i = 0; i < length; i++) {                                                                        \
            const T one = x[i * inner];                                                                                \
            found = one != one || one == INFINITY ? found + one : found;                                               \
        }                                                                                                              \
        return found;                                                                                                  \
    }

BEYOND_NUMBERS(double, d)
BEYOND_NUMBERS(float, f)

#define LOGARITHM(T, SUFFIX)                                                                                           \
    WIDE static void log_softmax_rows_##SUFFIX(const T *x, T *out, intptr_t count, intptr_t length)                    \
    {                                                                                                                  \
        LOGARITHMS_OF_SUMS(T, SUFFIX, most, length, const T *own = x + k * length, top = tops[k], log = (T)logs[k];    \
                           T *found = out + k * length; EACH_OF(length, found[i] = (own[i] - top) - log;))             \
    }                                                                                                                  \
                                                                                                                       \
    WIDE static void logsumexp_rows_##SUFFIX(const T *x, T *out, intptr_t count, intptr_t length)                      \
    {                                                                                                                  \
        LOGARITHMS_OF_SUMS(T, SUFFIX, most - most == 0 ? most : 0, 1, out[k] = (T)((double)tops[k] + logs[k]);         \
                           if (out[k] != out[k]) { out[k] = beyond_numbers_##SUFFIX(x + k * length, length, 1); })     \
    }                                                                                                                  \
                                                                                                                       \
    WIDE static void log_softmax_grad_rows_##SUFFIX(const T *g, const T *y, T *out, intptr_t count, intptr_t length)   \
    {                                                                                                                  \
        const intptr_t together = TOGETHER(length);                                                                    \
        for (intptr_t row = 0; row < count; row += together) {                                                         \
            const intptr_t rows = at_most(together, count - row);                                                      \
            EACH_OF(rows *length, out[i] = exp_below_##SUFFIX(y[i]);)                                                  \
            for (intptr_t k = 0; k < rows; k++, g += length, y += length, out += length) {                             \
                SUM(T, SUFFIX, sum, length, 1, g[i])                                                                   \
                const T all = (T)sum;                                                                                  \
                SUM(T, SUFFIX, rest, length, 1, g[i] - out[i] * all)                                                   \
                const T more = (T)rest;                                                                                \
                EACH_OF(length, out[i] = (g[i] - out[i] * all) - out[i] * more;)                                       \
            }                                                                                                          \
        }                                                                                                              \
    }

LOGARITHM(double, d)
LOGARITHM(float, f)

/* For all rows of a tile: `i` is the place of a number, `j` its column. */
#define EACH_PLACE(...)                                                                                                \
    for (intptr_t row = 0; row < length; row++) {                                                                      \
        INDEPENDENT for (intptr_t j = 0; j < width; j++)                                                               \
        {                                                                                                              \
            const intptr_t i = row * inner + j;                                                                        \
            __VA_ARGS__                                                                                                \
        }                                                                                                              \
    }

/* Totals of columns, as those of rows. */
typedef struct {
    double sum[TILE], lost[TILE];
} Totals;

#define ADD_EACH(T, SUFFIX)                                                                                            \
    INLINE void add_each_##SUFFIX(Totals *totals, const T *part, intptr_t width)                                       \
    {                                                                                                                  \
        INDEPENDENT for (intptr_t j = 0; j < width; j++)                                                               \
        {                                                                                                              \
            Total total = {totals->sum[j], totals->lost[j]};                                                           \
            add_to(&total, part[j]);                                                                                   \
            totals->sum[j] = total.sum;                                                                                \
            totals->lost[j] = total.lost;                                                                              \
        }                                                                                                              \
    }

ADD_EACH(double, d)
ADD_EACH(float, f)

INLINE double rounded_at(const Totals *totals, intptr_t j)
{
    const Total total = {totals->sum[j], totals->lost[j]};
    return rounded(&total);
}

/* The sums of TERM over the columns of a tile, by chunks of rows. */
#define COLUMN_SUMS(T, SUFFIX, SUMS, TERM)                                                                             \
    {                                                                                                                  \
        T part[TILE];                                                                                                  \
        Totals totals;                                                                                                 \
        memset(&totals, 0, sizeof totals);                                                                             \
        for (intptr_t begin = 0; begin < length; begin += CHUNK) {                                                     \
            for (intptr_t j = 0; j < width; j++) {                                                                     \
                part[j] = 0;                                                                                           \
            }                                                                                                          \
            for (intptr_t row = begin; row < length && row < begin + CHUNK; row++) {                                   \
                for (intptr_t j = 0; j < width; j++) {                                                                 \
                    const intptr_t i = row * inner + j;                                                                \
                    part[j] += TERM;                                                                                   \
                }                                                                                                      \
            }                                                                                                          \
            add_each_##SUFFIX(&totals, part, width);                                                                   \
        }                                                                                                              \
        for (intptr_t j = 0; j < width; j++) {                                                                         \
            SUMS[j] = (T)rounded_at(&totals, j);                                                                       \
        }                                                                                                              \
    }

/* Write exponentials of the differences from the largest numbers `tops` by rows, of narrow tiles by several, where they
 * are added up; KEEP is done with each, `e` at the place `i`. */
#define COLUMN_EXPONENTIALS(T, SUFFIX, TERM, KEEP)                                                                     \
    for (intptr_t begin = 0; begin < length; begin += CHUNK) {                                                         \
        const intptr_t end = length - begin < CHUNK ? length : begin + CHUNK, step = width < LANES ? CHUNK : 1;        \
        for (intptr_t j = 0; j < width; j++) {                                                                         \
            part[j] = 0;                                                                                               \
        }                                                                                                              \
        for (intptr_t first = begin; first < end; first += step) {                                                     \
            const intptr_t last = end - first < step ? end : first + step;                                             \
            for (intptr_t row = first; row < last; row++) {                                                            \
                T *e = apart + (row - first) * width;                                                                  \
                EACH_OF(width, e[i] = x[row * inner + i] - tops[i];)                                                   \
            }                                                                                                          \
            EACH_OF((last - first) * width, const T below = apart[i], power = exp_below_##SUFFIX(below);               \
                    apart[i] = TERM;)                                                                                  \
            for (intptr_t row = first; row < last; row++) {                                                            \
                INDEPENDENT for (intptr_t j = 0; j < width; j++)                                                       \
                {                                                                                                      \
                    const intptr_t i = row * inner + j;                                                                \
                    const T e = apart[(row - first) * width + j];                                                      \
                    part[j] += e;                                                                                      \
                    KEEP                                                                                               \
                }                                                                                                      \
            }                                                                                                          \
        }                                                                                                              \
        add_each_##SUFFIX(&totals, part, width);                                                                       \
    }

#define COLUMN_TOPS(T)                                                                                                 \
    T tops[TILE], part[TILE], apart[PIECE];                                                                            \
    Totals totals;                                                                                                     \
    double equal[TILE];                                                                                                \
    memset(&totals, 0, sizeof totals);                                                                                 \
    for (intptr_t j = 0; j < width; j++) {                                                                             \
        tops[j] = -INFINITY;                                                                                           \
        equal[j] = 0;                                                                                                  \
    }                                                                                                                  \
    EACH_PLACE(tops[j] = x[i] > tops[j] ? x[i] : tops[j];)

/* Kernels for tiles: at most TILE columns of `length` rows, whose numbers are `inner` apart. */
#define COLUMNS(T, SUFFIX)                                                                                             \
    WIDE static void softmax_tile_##SUFFIX(const T *x, T *out, intptr_t length, intptr_t inner, intptr_t width)        \
    {                                                                                                                  \
        COLUMN_TOPS(T)                                                                                                 \
        (void)equal;                                                                                                   \
        COLUMN_EXPONENTIALS(T, SUFFIX, power, out[i] = e;)                                                             \
        for (intptr_t j = 0; j < width; j++) {                                                                         \
            tops[j] = (T)rounded_at(&totals, j);                                                                       \
        }                                                                                                              \
        EACH_PLACE(out[i] = out[i] / tops[j];)                                                                         \
    }                                                                                                                  \
                                                                                                                       \
    WIDE static void log_softmax_tile_##SUFFIX(const T *x, T *out, intptr_t length, intptr_t inner, intptr_t width)    \
    {                                                                                                                  \
        COLUMN_TOPS(T)                                                                                                 \
        COLUMN_EXPONENTIALS(T, SUFFIX, below == 0 ? 0 : power, equal[j] += x[i] == tops[j];)                           \
        INDEPENDENT for (intptr_t j = 0; j < width; j++)                                                               \
        {                                                                                                              \
            part[j] = (T)log_of_more(rounded_at(&totals, j) + (equal[j] - 1));                                         \
        }                                                                                                              \
        EACH_PLACE(out[i] = (x[i] - tops[j]) - part[j];)                                                               \
    }                                                                                                                  \
                                                                                                                       \
    WIDE static void logsumexp_tile_##SUFFIX(const T *x, T *out, intptr_t length, intptr_t inner, intptr_t width)      \
    {                                                                                                                  \
        COLUMN_TOPS(T)                                                                                                 \
        for (intptr_t j = 0; j < width; j++) {                                                                         \
            tops[j] = tops[j] - tops[j] == 0 ? tops[j] : 0;                                                            \
        }                                                                                                              \
        COLUMN_EXPONENTIALS(T, SUFFIX, below == 0 ? 0 : power, equal[j] += x[i] == tops[j];)                           \
        INDEPENDENT for (intptr_t j = 0; j < width; j++)                                                               \
        {                                                                                                              \
            out[j] = (T)((double)tops[j] + log_of_more(rounded_at(&totals, j) + (equal[j] - 1)));                      \
        }                                                                                                              \
        for (intptr_t j = 0; j < width; j++) {                                                                         \
            out[j] = out[j] == out[j] ? out[j] : beyond_numbers_##SUFFIX(x + j, length, inner);                        \
        }                                                                                                              \
    }                                                                                                                  \
                                                                                                                       \
    WIDE static void softmax_grad_tile_##SUFFIX(const T *g, const T *y, T *out, intptr_t length, intptr_t inner,       \
                                                intptr_t width)                                                        \
    {                                                                                                                  \
        T mean[TILE], more[TILE];                                                                                      \
        COLUMN_SUMS(T, SUFFIX, mean, g[i] * y[i])                                                                      \
        COLUMN_SUMS(T, SUFFIX, more, (g[i] - mean[j]) * y[i])                                                          \
        EACH_PLACE(out[i] = ((g[i] - mean[j]) - more[j]) * y[i];)                                                      \
    }                                                                                                                  \
                                                                                                                       \
    WIDE static void log_softmax_grad_tile_##SUFFIX(const T *g, const T *y, T *out, intptr_t length, intptr_t inner,   \
                                                    intptr_t width)                                                    \
    {                                                                                                                  \
        T all[TILE], more[TILE];                                                                                       \
        COLUMN_SUMS(T, SUFFIX, all, g[i])                                                                              \
        if (width == inner) {                                                                                          \
            EACH_OF(length *width, out[i] = exp_below_##SUFFIX(y[i]);)                                                 \
        }                                                                                                              \
        else {                                                                                                         \
            EACH_PLACE(out[i] = exp_below_##SUFFIX(y[i]);)                                                             \
        }                                                                                                              \
        COLUMN_SUMS(T, SUFFIX, more, g[i] - out[i] * all[j])                                                           \
        EACH_PLACE(out[i] = (g[i] - out[i] * all[j]) - out[i] * more[j];)                                              \
    }

COLUMNS(double, d)
COLUMNS(float, f)

/* Loops over blocks, as the machine calls them. */
#define OF_BLOCKS(NAME, T, SUFFIX, ROWS, TILES)                                                                        \
    static void NAME##_##SUFFIX(char **args, const intptr_t *sizes, const intptr_t *steps, void *data)                 \
    {                                                                                                                  \
        const Block *block = data;                                                                                     \
        const intptr_t length = block->length, inner = block->inner;                                                   \
        if (inner == 1) {                                                                                              \
            NAME##_rows_##SUFFIX ROWS;                                                                                 \
            return;                                                                                                    \
        }                                                                                                              \
        for (intptr_t n = 0; n < sizes[0]; n++) {                                                                      \
            for (intptr_t at = 0; at < block->width; at += TILE) {                                                     \
                const intptr_t width = at_most(TILE, block->width - at);                                               \
                NAME##_tile_##SUFFIX TILES;                                                                            \
            }                                                                                                          \
        }                                                                                                              \
    }
#define OPERAND(T, K) ((T *)(args[K] + n * steps[K]) + at)
#define OF_ONE(NAME, T, SUFFIX)                                                                                        \
    OF_BLOCKS(NAME, T, SUFFIX, ((const T *)args[0], (T *)args[1], sizes[0], length),                                   \
              (OPERAND(T, 0), OPERAND(T, 1), length, inner, width))
#define OF_TWO(NAME, T, SUFFIX)                                                                                        \
    OF_BLOCKS(NAME, T, SUFFIX, ((const T *)args[0], (const T *)args[1], (T *)args[2], sizes[0], length),               \
              (OPERAND(T, 0), OPERAND(T, 1), OPERAND(T, 2), length, inner, width))
#define ROW_LOOPS_OF(T, SUFFIX)                                                                                        \
    OF_ONE(softmax, T, SUFFIX)                                                                                         \
    OF_ONE(log_softmax, T, SUFFIX)                                                                                     \
    OF_ONE(logsumexp, T, SUFFIX)                                                                                       \
    OF_TWO(softmax_grad, T, SUFFIX)                                                                                    \
    OF_TWO(log_softmax_grad, T, SUFFIX)

ROW_LOOPS_OF(double, d)
ROW_LOOPS_OF(float, f)

#define ROW_LOOPS BOTH(softmax), BOTH(softmax_grad), BOTH(log_softmax), BOTH(log_softmax_grad), BOTH(logsumexp),

#endif
