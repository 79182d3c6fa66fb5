/* Steps of optimisers, one pass over the params, in stretches: `optim/_compiled` calls them.
 *
 * The order of operations is that of the rules in `optim`, which do the same by NumPy, so bits are the same. Numbers of
 * a rule are rounded to the dtype of the params first, as NumPy does with Python's.
 *
 * A row has the addresses of what a rule works on: params, gradients, new params, then each moment before the step and
 * after it.
 */
#ifndef REACTGRAD_RULES
#define REACTGRAD_RULES

#include "_wide.h"

enum { PARAMS, SLOPES, CHANGED, MOMENTS };

/* The numbers of a rule, those of every rule first. `PENALTY` on the params is added to their gradient; `CLIMBS`, which
 * changes its sign, `FIRST`, `AHEAD`, `KEEPS` and `SHRINKS` are 0 or 1. */
enum { PENALTY, CLIMBS, RATE };
enum { MOMENTUM = RATE + 1, SHARE, FIRST, AHEAD, DESCENT };
enum { MEAN = RATE + 1, SQUARE, MEAN_REST, SQUARE_REST, SCALE, LEAST, KEEPS, SHRINKS, SHRINK, ADAPTIVE };

/* NumPy's maximum: NaN where either is. */
#define LARGER(a, b) ((a) >= (b) || (a) != (a) ? (a) : (b))

#define RULES(T, NAME, ROOT)                                                                                           \
    /* The gradients of a stretch, with the penalty, up or down. */                                                    \
    static const T *slopes_##NAME(const double *numbers, const intptr_t *row, intptr_t at, intptr_t size, T *slopes)   \
    {                                                                                                                  \
        const T *restrict params = (const T *)row[PARAMS] + at, *given = (const T *)row[SLOPES] + at;                  \
        const T penalty = (T)numbers[PENALTY];                                                                         \
        if (numbers[CLIMBS] != 0.0) {                                                                                  \
            for (intptr_t i = 0; i < size; i++) {                                                                      \
                slopes[i] = -given[i];                                                                                 \
            }                                                                                                          \
            given = slopes;                                                                                            \
        }                                                                                                              \
        if (numbers[PENALTY] != 0.0) {                                                                                 \
            for (intptr_t i = 0; i < size; i++) {                                                                      \
                slopes[i] = given[i] + params[i] * penalty;                                                            \
            }                                                                                                          \
            given = slopes;                                                                                            \
        }                                                                                                              \
        return given;                                                                                                  \
    }                                                                                                                  \
                                                                                                                       \
    WIDE static void descend_##NAME(const double *numbers, const intptr_t *row, intptr_t at, intptr_t size)            \
    {                                                                                                                  \
        T own[STRETCH], ways[STRETCH];                                                                                 \
        const T *slopes = slopes_##NAME(numbers, row, at, size, own), *way = slopes;                                   \
        const T rate = (T)numbers[RATE], momentum = (T)numbers[MOMENTUM], share = (T)numbers[SHARE];                   \
        if (numbers[MOMENTUM] != 0.0) {                                                                                \
            const T *restrict before = (const T *)row[MOMENTS] + at;                                                   \
            T *restrict after = (T *)row[MOMENTS + 1] + at;                                                            \
            if (numbers[FIRST] != 0.0) {                                                                               \
                for (intptr_t i = 0; i < size; i++) {                                                                  \
                    after[i] = slopes[i];                                                                              \
                }                                                                                                      \
            } else if (numbers[SHARE] == 1.0) {                                                                        \
                for (intptr_t i = 0; i < size; i++) {                                                                  \
                    after[i] = before[i] * momentum + slopes[i];                                                       \
                }                                                                                                      \
            } else {                                                                                                   \
                for (intptr_t i = 0; i < size; i++) {                                                                  \
                    after[i] = before[i] * momentum + slopes[i] * share;                                               \
                }                                                                                                      \
            }                                                                                                          \
            way = after;                                                                                               \
            if (numbers[AHEAD] != 0.0) {                                                                               \
                for (intptr_t i = 0; i < size; i++) {                                                                  \
                    ways[i] = slopes[i] + after[i] * momentum;                                                         \
                }                                                                                                      \
                way = ways;                                                                                            \
            }                                                                                                          \
        }                                                                                                              \
        const T *restrict params = (const T *)row[PARAMS] + at;                                                        \
        T *restrict changed = (T *)row[CHANGED] + at;                                                                  \
        for (intptr_t i = 0; i < size; i++) {                                                                          \
            changed[i] = params[i] - way[i] * rate;                                                                    \
        }                                                                                                              \
    }                                                                                                                  \
                                                                                                                       \
    WIDE static void adapt_##NAME(const double *numbers, const intptr_t *row, intptr_t at, intptr_t size)              \
    {                                                                                                                  \
        T own[STRETCH], shrunk[STRETCH];                                                                               \
        const T *slopes = slopes_##NAME(numbers, row, at, size, own);                                                  \
        const T mean = (T)numbers[MEAN], square = (T)numbers[SQUARE], mean_rest = (T)numbers[MEAN_REST];               \
        const T square_rest = (T)numbers[SQUARE_REST], scale = (T)numbers[SCALE], least = (T)numbers[LEAST];           \
        const T rate = (T)numbers[RATE], shrink = (T)numbers[SHRINK];                                                  \
        const T *restrict means = (const T *)row[MOMENTS] + at, *restrict squares = (const T *)row[MOMENTS + 2] + at;  \
        T *restrict new_means = (T *)row[MOMENTS + 1] + at, *restrict new_squares = (T *)row[MOMENTS + 3] + at;        \
        for (intptr_t i = 0; i < size; i++) {                                                                          \
            new_means[i] = means[i] * mean + slopes[i] * mean_rest;                                                    \
            new_squares[i] = squares[i] * square + slopes[i] * slopes[i] * square_rest;                                \
        }                                                                                                              \
        const T *roots = new_squares, *params = (const T *)row[PARAMS] + at;                                           \
        if (numbers[KEEPS] != 0.0) {                                                                                   \
            const T *restrict tops = (const T *)row[MOMENTS + 4] + at;                                                 \
            T *restrict new_tops = (T *)row[MOMENTS + 5] + at;                                                         \
            for (intptr_t i = 0; i < size; i++) {                                                                      \
                new_tops[i] = LARGER(tops[i], new_squares[i]);                                                         \
            }                                                                                                          \
            roots = new_tops;                                                                                          \
        }                                                                                                              \
        if (numbers[SHRINKS] != 0.0) {                                                                                 \
            for (intptr_t i = 0; i < size; i++) {                                                                      \
                shrunk[i] = params[i] * shrink;                                                                        \
            }                                                                                                          \
            params = shrunk;                                                                                           \
        }                                                                                                              \
        T *restrict changed = (T *)row[CHANGED] + at;                                                                  \
        for (intptr_t i = 0; i < size; i++) {                                                                          \
            changed[i] = params[i] - new_means[i] / (ROOT(roots[i]) * scale + least) * rate;                           \
        }                                                                                                              \
    }

RULES(double, double, sqrt)
RULES(float, single, sqrtf)

typedef void (*Rule)(const double *, const intptr_t *, intptr_t, intptr_t);

/* Apply a rule with so many numbers. Before these: the address of a row, the bytes of an element, and a range. */
static PyObject *apply(PyObject *const *args, Py_ssize_t count, Rule of_doubles, Rule of_singles, Py_ssize_t wanted)
{
    enum { GIVEN = 4 };
    intptr_t given[GIVEN];
    double numbers[ADAPTIVE];
    if (!read_numbers(args, count < GIVEN ? count : GIVEN, given, GIVEN)) {
        return NULL;
    }
    if (count != GIVEN + wanted) {
        return PyErr_Format(PyExc_TypeError, "expected %zd numbers, got %zd", GIVEN + wanted, count);
    }
    for (Py_ssize_t i = 0; i < wanted; i++) {
        numbers[i] = PyFloat_AsDouble(args[GIVEN + i]);
        if (numbers[i] == -1.0 && PyErr_Occurred()) {
            return NULL;
        }
    }
    const Rule rule = given[1] == sizeof(double) ? of_doubles : of_singles;
    Py_BEGIN_ALLOW_THREADS
    for (intptr_t at = given[2]; at < given[3]; at += STRETCH) {
        rule(numbers, (const intptr_t *)given[0], at, at_most(given[3] - at, STRETCH));
    }
    Py_END_ALLOW_THREADS
    Py_RETURN_NONE;
}

static PyObject *descend(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    return apply(args, count, descend_double, descend_single, DESCENT);
}

static PyObject *adapt(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    return apply(args, count, adapt_double, adapt_single, ADAPTIVE);
}

#endif
