/* Running sums and products along the middle axis of an array of (outer, length, inner) elements.
 *
 * Totals are doubles, for floats too, whose errors must not add up. Each is computed from the one before, as by NumPy, so
 * bits are the same.
 */
#ifndef REACTGRAD_RUNNING
#define REACTGRAD_RUNNING

typedef struct {
    intptr_t outer, length, inner;
    int backwards;
} Running;

#define RUN(T, NAME, OP)                                                                                               \
    static void run_##NAME(const Running *over, const T *given, T *found)                                              \
    {                                                                                                                  \
        double totals[STRETCH];                                                                                        \
        const intptr_t inner = over->inner, step = over->backwards ? -inner : inner;                                   \
        const intptr_t begin = over->backwards ? (over->length - 1) * inner : 0;                                       \
        for (intptr_t outer = 0; outer < over->outer; outer++) {                                                       \
            for (intptr_t at = 0; at < inner; at += STRETCH) {                                                         \
                const intptr_t width = at_most(inner - at, STRETCH);                                                   \
                intptr_t row = outer * over->length * inner + begin + at;                                              \
                if (width == 1) { /* in a register */                                                                  \
                    double total = (double)given[row];                                                                 \
                    found[row] = given[row];                                                                           \
                    for (intptr_t i = 1; i < over->length; i++) {                                                      \
                        row += step;                                                                                   \
                        total = total OP (double)given[row];                                                           \
                        found[row] = (T)total;                                                                         \
                    }                                                                                                  \
                    continue;                                                                                          \
                }                                                                                                      \
                for (intptr_t j = 0; j < width; j++) {                                                                 \
                    totals[j] = (double)given[row + j];                                                                \
                    found[row + j] = given[row + j];                                                                   \
                }                                                                                                      \
                for (intptr_t i = 1; i < over->length; i++) {                                                          \
                    row += step;                                                                                       \
                    for (intptr_t j = 0; j < width; j++) {                                                             \
                        totals[j] = totals[j] OP (double)given[row + j];                                               \
                        found[row + j] = (T)totals[j];                                                                 \
                    }                                                                                                  \
                }                                                                                                      \
            }                                                                                                          \
        }                                                                                                              \
    }

RUN(double, sum_d, +)
RUN(double, product_d, *)
RUN(float, sum_f, +)
RUN(float, product_f, *)

static PyObject *accumulate(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    enum { GIVEN_AT, FOUND_AT, OUTERS, LENGTHS, INNERS, BYTES, BACKWARDS, PRODUCT, ARGUMENTS };
    intptr_t given[ARGUMENTS];
    if (!read_numbers(args, count, given, ARGUMENTS)) {
        return NULL;
    }
    const Running over = {given[OUTERS], given[LENGTHS], given[INNERS], given[BACKWARDS] != 0};
    const void *from = (const void *)given[GIVEN_AT];
    void *to = (void *)given[FOUND_AT];
    Py_BEGIN_ALLOW_THREADS
    if (given[BYTES] == sizeof(double)) {
        (given[PRODUCT] ? run_product_d : run_sum_d)(&over, from, to);
    } else {
        (given[PRODUCT] ? run_product_f : run_sum_f)(&over, from, to);
    }
    Py_END_ALLOW_THREADS
    Py_RETURN_NONE;
}

#endif
