/* A feed-forward program for a block of samples that all programs share: loops that the compiler makes vectors of. */
#ifndef REACTGRAD_NEAT_BLOCKS
#define REACTGRAD_NEAT_BLOCKS

/* Samples that are computed together: their partial sums stay in the nearest cache. */
#define BLOCK 256

/* Loops that exist twice, for machines with wide vectors and for others; both have the same bits. */
#if defined(__GNUC__) && !defined(__clang__) && defined(__x86_64__) && defined(__GLIBC__)
#define WIDE __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define WIDE
#endif

/* exp(z) for z from -708 to 700, by Cody and Waite (1980): z = n log(2) + r, and exp(z) = s + s q with s = 2^n and
 * q = exp(r) - 1, |r| < 0.35, as in `_loops`. The sum of z / log(2) and 1.5 2^52 has n in its last bits. NaN stays. */
static inline double exp_parts(double z, double *q)
{
    const double shifted = z * 1.4426950408889634 + 6755399441055744.0, n = shifted - 6755399441055744.0;
    const double r = (z - n * 6.93147180369123816490e-01) - n * 1.90821492927058770002e-10;
    const double r2 = r * r, r4 = r2 * r2;
    const double low = (0.5 + r * (1.0 / 6.0)) + r2 * (1.0 / 24.0 + r * (1.0 / 120.0));
    const double middle = (1.0 / 720.0 + r * (1.0 / 5040.0)) + r2 * (1.0 / 40320.0 + r * (1.0 / 362880.0));
    const double high = (1.0 / 3628800.0 + r * (1.0 / 39916800.0)) + r2 * (1.0 / 479001600.0 + r * (1.0 / 6227020800.0));
    *q = r + r2 * (low + r4 * (middle + r4 * high));
    uint64_t bits;
    double s;
    memcpy(&bits, &shifted, sizeof bits);
    bits = (bits + 1023) << 52;
    memcpy(&s, &bits, sizeof s);
    return s;
}

static inline double exp_of(double z)
{
    double q;
    const double s = exp_parts(z, &q);
    return s + s * q;
}

static inline double within(double z, double limit)
{
    const double below = z < limit ? z : limit;
    return below > -limit ? below : -limit;
}

WIDE static void activate_row(int code, double bias, double response, double *restrict row, intptr_t size)
{
    switch (code) {
    case SIGMOID:
        for (intptr_t s = 0; s < size; s++) {
            row[s] = 1.0 / (1.0 + exp_of(-within(5.0 * (bias + response * row[s]), 60.0)));
        }
        break;
    case TANH:
        for (intptr_t s = 0; s < size; s++) {
            double q;
            const double z = within(2.5 * (bias + response * row[s]), 60.0), scale = exp_parts(2.0 * fabs(z), &q);
            const double e = scale * q + (scale - 1.0), t = e / (e + 2.0); /* e = exp(2 |z|) - 1 */
            row[s] = z < 0.0 ? -t : t;
        }
        break;
    case GAUSS:
        for (intptr_t s = 0; s < size; s++) {
            const double z = within(bias + response * row[s], 3.4);
            row[s] = exp_of(-5.0 * (z * z));
        }
        break;
    case RELU:
        for (intptr_t s = 0; s < size; s++) {
            const double z = bias + response * row[s];
            row[s] = z > 0.0 ? z : 0.0;
        }
        break;
    case IDENTITY:
        for (intptr_t s = 0; s < size; s++) {
            row[s] = bias + response * row[s];
        }
        break;
    default:
        for (intptr_t s = 0; s < size; s++) {
            row[s] = activated(code, bias + response * row[s]);
        }
    }
}

/* The values of a slot in a block. Slots of inputs are not copied. */
static inline const double *row_at(const Program *p, intptr_t slot, const double *x, intptr_t stride, const double *values)
{
    return slot < p->inputs ? x + slot * stride : values + slot * BLOCK;
}

/* Add weighted sources one after the other, four in one pass. */
WIDE static void weigh_rows(const Program *p, intptr_t neuron, const double *x, intptr_t stride, intptr_t size,
                            const double *values, double *restrict row)
{
    intptr_t k = p->begin[neuron];
    const intptr_t end = p->begin[neuron + 1];
    memset(row, 0, (size_t)size * sizeof(double));
    for (; k + 4 <= end; k += 4) {
        const double *a = row_at(p, p->source[k], x, stride, values), *b = row_at(p, p->source[k + 1], x, stride, values);
        const double *c = row_at(p, p->source[k + 2], x, stride, values), *d = row_at(p, p->source[k + 3], x, stride, values);
        const double u = p->weight[k], v = p->weight[k + 1], w = p->weight[k + 2], t = p->weight[k + 3];
        for (intptr_t s = 0; s < size; s++) {
            row[s] = (((row[s] + a[s] * u) + b[s] * v) + c[s] * w) + d[s] * t;
        }
    }
    for (; k < end; k++) {
        const double *from = row_at(p, p->source[k], x, stride, values), weight = p->weight[k];
        for (intptr_t s = 0; s < size; s++) {
            row[s] += from[s] * weight;
        }
    }
}

/* The same as Python's `sum` from 3.12 on does it; see `sum_of`. */
WIDE static void weigh_compensated(const Program *p, intptr_t neuron, const double *x, intptr_t stride, intptr_t size,
                                   const double *values, double *restrict row)
{
    double lost[BLOCK];
    memset(row, 0, (size_t)size * sizeof(double));
    memset(lost, 0, sizeof lost);
    for (intptr_t k = p->begin[neuron]; k < p->begin[neuron + 1]; k++) {
        const double *from = row_at(p, p->source[k], x, stride, values), weight = p->weight[k];
        for (intptr_t s = 0; s < size; s++) {
            const double one = from[s] * weight, total = row[s], next = total + one;
            lost[s] += fabs(total) >= fabs(one) ? (total - next) + one : (one - next) + total;
            row[s] = next;
        }
    }
    for (intptr_t s = 0; s < size; s++) {
        row[s] += fabs(lost[s]) < INFINITY ? lost[s] : 0.0;
    }
}

/* Compute a program for a block; `values` has a row of BLOCK numbers for each slot. */
static void play_block(const Program *p, const double *x, intptr_t stride, intptr_t size, double *values, double *terms)
{
    for (intptr_t i = p->inputs + p->neurons; i < p->slots; i++) {
        memset(values + i * BLOCK, 0, (size_t)size * sizeof(double));
    }
    for (intptr_t i = 0; i < p->neurons; i++) {
        double *row = values + (p->inputs + i) * BLOCK;
        if (p->aggregation[i] == SUM) {
            (compensated ? weigh_compensated : weigh_rows)(p, i, x, stride, size, values, row);
        }
        else {
            const intptr_t first = p->begin[i], count = p->begin[i + 1] - first;
            for (intptr_t s = 0; s < size; s++) {
                for (intptr_t k = 0; k < count; k++) {
                    terms[k] = row_at(p, p->source[first + k], x, stride, values)[s] * p->weight[first + k];
                }
                row[s] = aggregated(p->aggregation[i], terms, count);
            }
        }
        activate_row(p->activation[i], p->bias[i], p->response[i], row, size);
    }
}

#endif
