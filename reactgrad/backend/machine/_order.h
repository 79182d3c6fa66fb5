/* A stable order from one that is not: places of equal numbers, and of NaNs, are put in their order.
 *
 * NumPy's fastest sort leaves them in any. Long runs of equals are left to the caller.
 */
#ifndef REACTGRAD_ORDER
#define REACTGRAD_ORDER

#include "_wide.h"

enum { LONGEST_RUN = 32 };

#define SETTLE(T, NAME, SAME)                                                                                          \
    /* Most rows have no two equal numbers, and are read only. */                                                      \
    WIDE static int any_same_##NAME(const T *x, const int64_t *order, intptr_t length)                                 \
    {                                                                                                                  \
        int found = 0;                                                                                                 \
        for (intptr_t i = 1; i < length; i++) {                                                                        \
            const T before = x[order[i - 1]], now = x[order[i]];                                                       \
            found |= SAME;                                                                                             \
        }                                                                                                              \
        return found;                                                                                                  \
    }                                                                                                                  \
                                                                                                                       \
    static int settle_##NAME(const T *x, int64_t *order, intptr_t rows, intptr_t length)                               \
    {                                                                                                                  \
        for (; rows > 0; rows--, x += length, order += length) {                                                       \
            if (!any_same_##NAME(x, order, length)) {                                                                  \
                continue;                                                                                              \
            }                                                                                                          \
            T before = x[order[0]];                                                                                    \
            for (intptr_t i = 1, begin = 0; i < length; i++) {                                                         \
                const T now = x[order[i]];                                                                             \
                if (SAME) {                                                                                            \
                    const int64_t place = order[i];                                                                    \
                    intptr_t to = i;                                                                                   \
                    if (i - begin >= LONGEST_RUN) {                                                                    \
                        return 0;                                                                                      \
                    }                                                                                                  \
                    for (; to > begin && order[to - 1] > place; to--) {                                                \
                        order[to] = order[to - 1];                                                                     \
                    }                                                                                                  \
                    order[to] = place;                                                                                 \
                }                                                                                                      \
                else {                                                                                                 \
                    begin = i;                                                                                         \
                }                                                                                                      \
                before = now;                                                                                          \
            }                                                                                                          \
        }                                                                                                              \
        return 1;                                                                                                      \
    }

SETTLE(double, d, (now == before) | (before != before))
SETTLE(float, f, (now == before) | (before != before))
SETTLE(uint64_t, l, now == before)
SETTLE(uint32_t, i, now == before)

static PyObject *settle(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    enum { NUMBERS_AT, ORDER_AT, MANY, LENGTH_OF_ROW, BYTES, FLOATS, ARGUMENTS };
    intptr_t given[ARGUMENTS];
    if (!read_numbers(args, count, given, ARGUMENTS)) {
        return NULL;
    }
    const void *x = (const void *)given[NUMBERS_AT];
    int64_t *order = (int64_t *)given[ORDER_AT];
    const intptr_t rows = given[MANY], length = given[LENGTH_OF_ROW];
    int done;
    Py_BEGIN_ALLOW_THREADS
    if (given[BYTES] == 8) {
        done = given[FLOATS] ? settle_d(x, order, rows, length) : settle_l(x, order, rows, length);
    }
    else {
        done = given[FLOATS] ? settle_f(x, order, rows, length) : settle_i(x, order, rows, length);
    }
    Py_END_ALLOW_THREADS
    return PyBool_FromLong(done);
}

#define ORDER_METHODS                                                                                                  \
    {"settle", (PyCFunction)(void (*)(void))settle, METH_FASTCALL,                                                     \
     PyDoc_STR("Put places of equal numbers in their order. Return whether no run of them was too long.")},

#endif
