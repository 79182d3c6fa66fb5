/* The register machine: does the instructions of `_code` by calling the compiled loops that they name.
 *
 * One file against the stable interface of CPython, without NumPy's headers: a loop is an address in a row. What
 * the numbers of a row are is said in `_code`; `_machine` is the same machine for numba.
 *
 * A row begins with the number of operands, the address of the loop, the loop's last argument, the number of
 * elements, and the extent of the result; then the addresses of the operands, then their steps.
 *
 * The loops below compute the error function and the normal distribution. Formulas, ranges and the order of operations are
 * those of `numpy/_erf`, which has the coefficients, too, so bits are the same; this needs -ffp-contract=off. Their last
 * argument is a `Formula`.
 */
#define Py_LIMITED_API 0x030B0000
#include <Python.h>

#include <math.h>
#include <stdint.h>
#include <string.h>

#if INTPTR_MAX != INT64_MAX
#error "rows have addresses of 64 bits"
#endif

enum { OPERANDS, LOOP, DATA, SIZE, EXTENT, HEAD };

/* Rows of ops have fewer operands: `where` has four, `vecdot` six. Loops of users may have any number. */
#define FEW_OPERANDS 32

typedef void (*Loop)(char **, const intptr_t *, const intptr_t *, void *);

static void copy_masked(const intptr_t *addresses, const intptr_t *steps, intptr_t size, size_t width)
{
    const char *source = (const char *)addresses[0], *mask = (const char *)addresses[1];
    char *out = (char *)addresses[2];
    for (intptr_t i = 0; i < size; i++) {
        if (*mask) {
            memcpy(out, source, width);
        }
        source += steps[0];
        mask += steps[1];
        out += steps[2];
    }
}

static void call_loop(const intptr_t *row, intptr_t *addresses, const intptr_t *size)
{
    const intptr_t *steps = row + HEAD + row[OPERANDS];
    if (row[LOOP]) {
        ((Loop)row[LOOP])((char **)addresses, size, steps, (void *)row[DATA]);
    }
    else {
        copy_masked(addresses, steps, *size, (size_t)row[DATA]);
    }
}

static const intptr_t *next(const intptr_t *row)
{
    return row + HEAD + 2 * row[OPERANDS];
}

/* Read addresses and numbers from the arguments of a Python call. */
static int read_numbers(PyObject *const *args, Py_ssize_t count, intptr_t *numbers, Py_ssize_t wanted)
{
    if (count != wanted) {
        PyErr_Format(PyExc_TypeError, "expected %zd numbers, got %zd", wanted, count);
        return 0;
    }
    for (Py_ssize_t i = 0; i < count; i++) {
        numbers[i] = (intptr_t)PyLong_AsLongLong(args[i]);
        if (numbers[i] == -1 && PyErr_Occurred()) {
            return 0;
        }
    }
    return 1;
}

static PyObject *play(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    intptr_t given[2];
    if (!read_numbers(args, count, given, 2)) {
        return NULL;
    }
    const intptr_t *row = (const intptr_t *)given[0], *end = (const intptr_t *)given[1];
    Py_BEGIN_ALLOW_THREADS
    for (; row < end; row = next(row)) {
        call_loop(row, (intptr_t *)row + HEAD, row + SIZE);
    }
    Py_END_ALLOW_THREADS
    Py_RETURN_NONE;
}

static PyObject *play_part(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    intptr_t given[4];
    if (!read_numbers(args, count, given, 4)) {
        return NULL;
    }
    const intptr_t *begin = (const intptr_t *)given[0], *end = (const intptr_t *)given[1];
    const intptr_t first = given[2], size = given[3] - given[2];
    intptr_t few[FEW_OPERANDS], *addresses = few, most = 0;
    for (const intptr_t *row = begin; row < end; row = next(row)) {
        most = row[OPERANDS] > most ? row[OPERANDS] : most;
    }
    if (most > FEW_OPERANDS) {
        addresses = PyMem_Malloc((size_t)most * sizeof(intptr_t));
        if (addresses == NULL) {
            return PyErr_NoMemory();
        }
    }
    Py_BEGIN_ALLOW_THREADS
    for (const intptr_t *row = begin; row < end; row = next(row)) {
        const intptr_t operands = row[OPERANDS];
        for (intptr_t i = 0; i < operands; i++) {
            addresses[i] = row[HEAD + i] + first * row[HEAD + operands + i];
        }
        call_loop(row, addresses, &size);
    }
    Py_END_ALLOW_THREADS
    if (addresses != few) {
        PyMem_Free(addresses);
    }
    Py_RETURN_NONE;
}

/* A quotient of polynomials: the lengths of both, and the coefficients, highest power first, those of the numerator
 * before those of the denominator. */
typedef struct {
    intptr_t top, bottom;
    const double *coefficients;
} Ratio;

typedef struct {
    intptr_t exp, exp_data; /* NumPy's loop for exponentials, and its last argument */
    Ratio near, far;
    const double *numbers; /* rate, scale, the reach beyond which the far formula counts, and a limit */
} Formula;

/* Elements of a stretch: all intermediate results of it stay in the first-level cache. */
#define STRETCH 256

static double divide(Ratio ratio, double z)
{
    const double *c = ratio.coefficients, *d = c + ratio.top;
    double top = c[0], bottom = d[0];
    for (intptr_t i = 1; i < ratio.top; i++) {
        top = top * z + c[i];
    }
    for (intptr_t i = 1; i < ratio.bottom; i++) {
        bottom = bottom * z + d[i];
    }
    return top / bottom;
}

/* The same for a stretch: one pass for each coefficient, which compilers turn into vector instructions. */
static void divide_each(Ratio ratio, const double *restrict z, double *restrict quotients, intptr_t size)
{
    const double *c = ratio.coefficients, *d = c + ratio.top;
    double bottoms[STRETCH];
    for (intptr_t i = 0; i < size; i++) {
        quotients[i] = c[0];
        bottoms[i] = d[0];
    }
    for (intptr_t k = 1; k < ratio.top; k++) {
        for (intptr_t i = 0; i < size; i++) {
            quotients[i] = quotients[i] * z[i] + c[k];
        }
    }
    for (intptr_t k = 1; k < ratio.bottom; k++) {
        for (intptr_t i = 0; i < size; i++) {
            bottoms[i] = bottoms[i] * z[i] + d[k];
        }
    }
    for (intptr_t i = 0; i < size; i++) {
        quotients[i] /= bottoms[i];
    }
}

static void exponentials(const Formula *formula, double *numbers, intptr_t size)
{
    char *addresses[2] = {(char *)numbers, (char *)numbers};
    const intptr_t steps[2] = {sizeof(double), sizeof(double)};
    ((Loop)formula->exp)(addresses, &size, steps, (void *)formula->exp_data);
}

static intptr_t at_most(intptr_t one, intptr_t other)
{
    return one < other ? one : other;
}

/* As Python's `min` of a number and a limit: NaN stays. */
static double below(double one, double limit)
{
    return limit < one ? limit : one;
}

/* The small side of the function at `found` of `places`, where |x| = z is large. */
static void tail(const Formula *formula, const double *z, const intptr_t *places, intptr_t found, double *small)
{
    const double rate = formula->numbers[0], scale = formula->numbers[1];
    double parts[2 * STRETCH];
    for (intptr_t k = 0; k < found; k++) {
        const double one = below(z[places[k]], 40.0), high = (double)(float)one;
        parts[k] = rate * high * high;
        parts[found + k] = rate * (one - high) * (one + high);
    }
    exponentials(formula, parts, 2 * found);
    for (intptr_t k = 0; k < found; k++) {
        const double one = below(z[places[k]], 40.0), exponential = parts[k] * parts[found + k];
        small[places[k]] = divide(formula->far, one * one * (-2.0 * rate)) * exponential / (one * scale);
    }
}

#define UPPER(NAME, REAL, HALF)                                                                                        \
    static void NAME(char **args, const intptr_t *sizes, const intptr_t *steps, void *data)                           \
    {                                                                                                                  \
        const Formula *formula = data;                                                                                 \
        const double rate = formula->numbers[0], reach = formula->numbers[2];                                         \
        const REAL *x = (const REAL *)args[0];                                                                         \
        REAL *out = (REAL *)args[1];                                                                                   \
        double z[STRETCH], small[STRETCH], exponents[STRETCH];                                                         \
        intptr_t places[STRETCH];                                                                                      \
        for (intptr_t begin = 0; begin < sizes[0]; begin += STRETCH) {                                                 \
            const intptr_t size = at_most(STRETCH, sizes[0] - begin);                                                  \
            intptr_t found = 0;                                                                                        \
            for (intptr_t i = 0; i < size; i++) {                                                                      \
                const double one = (double)x[begin + i];                                                               \
                z[i] = fabs(one);                                                                                      \
                exponents[i] = one * rate * one;                                                                       \
                if (exponents[i] <= reach) {                                                                           \
                    places[found++] = i;                                                                               \
                }                                                                                                      \
            }                                                                                                          \
            divide_each(formula->near, z, small, size);                                                                \
            exponentials(formula, exponents, size);                                                                    \
            for (intptr_t i = 0; i < size; i++) {                                                                      \
                small[i] *= exponents[i];                                                                              \
            }                                                                                                          \
            if (found) {                                                                                               \
                tail(formula, z, places, found, small);                                                                \
            }                                                                                                          \
            for (intptr_t i = 0; i < size; i++) {                                                                      \
                const double one = (double)x[begin + i];                                                               \
                out[begin + i] = (REAL)(HALF);                                                                         \
            }                                                                                                          \
        }                                                                                                              \
    }

#define RISING (0.5 + copysign(0.5, one)) - copysign(small[i], one)
#define FALLING (1.0 - copysign(1.0, one)) + copysign(small[i], one)

UPPER(norm_cdf_d, double, RISING)
UPPER(norm_cdf_f, float, RISING)
UPPER(erfc_d, double, FALLING)
UPPER(erfc_f, float, FALLING)

#define ERF(NAME, REAL)                                                                                                \
    static void NAME(char **args, const intptr_t *sizes, const intptr_t *steps, void *data)                           \
    {                                                                                                                  \
        const Formula *formula = data;                                                                                 \
        const double reach = formula->numbers[2];                                                                      \
        const REAL *x = (const REAL *)args[0];                                                                         \
        REAL *out = (REAL *)args[1];                                                                                   \
        double squares[STRETCH], quotients[STRETCH], parts[STRETCH], far[STRETCH];                                     \
        intptr_t places[STRETCH];                                                                                      \
        for (intptr_t begin = 0; begin < sizes[0]; begin += STRETCH) {                                                 \
            const intptr_t size = at_most(STRETCH, sizes[0] - begin);                                                  \
            intptr_t found = 0;                                                                                        \
            for (intptr_t i = 0; i < size; i++) {                                                                      \
                const double one = (double)x[begin + i];                                                               \
                squares[i] = one * one;                                                                                \
                if (squares[i] >= reach) {                                                                                 \
                    places[found] = begin + i;                                                                         \
                    far[found] = one;                                                                                  \
                    const double limited = below(fabs(one), 6.5);                                                      \
                    parts[found++] = -limited * limited;                                                               \
                }                                                                                                      \
            }                                                                                                          \
            divide_each(formula->near, squares, quotients, size);                                                      \
            for (intptr_t i = 0; i < size; i++) {                                                                      \
                out[begin + i] = (REAL)((double)x[begin + i] * quotients[i]);                                          \
            }                                                                                                          \
            if (found) {                                                                                               \
                exponentials(formula, parts, found);                                                                   \
                for (intptr_t k = 0; k < found; k++) {                                                                 \
                    const double one = far[k];                                                                         \
                    const double small = parts[k] * divide(formula->far, below(fabs(one), 6.5));                       \
                    out[places[k]] = (REAL)copysign(1.0 - small, one);                                                 \
                }                                                                                                      \
            }                                                                                                          \
        }                                                                                                              \
    }

ERF(erf_d, double)
ERF(erf_f, float)

/* The bell curve scale * exp(rate * x * x) of `numpy/_gaussian`; the fourth number is the largest |x| that counts. */
#define GAUSSIAN(NAME, REAL)                                                                                           \
    static void NAME(char **args, const intptr_t *sizes, const intptr_t *steps, void *data)                           \
    {                                                                                                                  \
        const Formula *formula = data;                                                                                 \
        const double rate = formula->numbers[0], scale = formula->numbers[1];                                         \
        const double reach = formula->numbers[2], limit = formula->numbers[3];                                        \
        const REAL *x = (const REAL *)args[0];                                                                         \
        REAL *out = (REAL *)args[1];                                                                                   \
        double exponents[STRETCH], far[STRETCH], parts[2 * STRETCH];                                                   \
        intptr_t places[STRETCH];                                                                                      \
        for (intptr_t begin = 0; begin < sizes[0]; begin += STRETCH) {                                                 \
            const intptr_t size = at_most(STRETCH, sizes[0] - begin);                                                  \
            intptr_t found = 0;                                                                                        \
            for (intptr_t i = 0; i < size; i++) {                                                                      \
                const double one = (double)x[begin + i];                                                               \
                exponents[i] = one * rate * one;                                                                       \
                if (exponents[i] <= reach) {                                                                           \
                    places[found] = begin + i;                                                                         \
                    far[found++] = below(fabs(one), limit);                                                            \
                }                                                                                                      \
            }                                                                                                          \
            exponentials(formula, exponents, size);                                                                    \
            for (intptr_t i = 0; i < size; i++) {                                                                      \
                out[begin + i] = (REAL)(exponents[i] * scale);                                                         \
            }                                                                                                          \
            for (intptr_t k = 0; k < found; k++) {                                                                     \
                const double high = (double)(float)far[k];                                                             \
                parts[k] = rate * high * high;                                                                         \
                parts[found + k] = rate * (far[k] - high) * (far[k] + high);                                           \
            }                                                                                                          \
            if (found) {                                                                                               \
                exponentials(formula, parts, 2 * found);                                                               \
            }                                                                                                          \
            for (intptr_t k = 0; k < found; k++) {                                                                     \
                out[places[k]] = (REAL)(scale * (parts[k] * parts[found + k]));                                        \
            }                                                                                                          \
        }                                                                                                              \
    }

GAUSSIAN(gaussian_d, double)
GAUSSIAN(gaussian_f, float)

/* A loop for each row. The last argument is the number of its operands, at most half of `FEW_OPERANDS`. Behind their
 * addresses stand the number of rows, that of the elements of a row, the loop, and its last argument; behind their steps
 * from element to element those from row to row. */
static void by_rows(char **args, const intptr_t *sizes, const intptr_t *steps, void *data)
{
    const intptr_t operands = (intptr_t)data;
    const intptr_t *more = (const intptr_t *)args + operands;
    char *addresses[FEW_OPERANDS];
    memcpy(addresses, args, (size_t)operands * sizeof(char *));
    for (intptr_t count = more[0]; count > 0; count--) {
        ((Loop)more[2])(addresses, more + 1, steps, (void *)more[3]);
        for (intptr_t i = 0; i < operands; i++) {
            addresses[i] += steps[operands + i];
        }
    }
}

/* A product of matrices by the loop of `matmul`. Behind the three addresses stand the three lengths, the loop, and its
 * last argument; the steps are those inside of the matrices. */
static void product(char **args, const intptr_t *sizes, const intptr_t *steps, void *data)
{
    const intptr_t *more = (const intptr_t *)args + 3;
    const intptr_t lengths[4] = {1, more[0], more[1], more[2]};
    intptr_t all[9] = {0};
    memcpy(all + 3, steps, 6 * sizeof(intptr_t));
    ((Loop)more[3])(args, lengths, all, (void *)more[4]);
}

/* Conversions to floats: those of C are NumPy's. */
#define CAST(NAME, FROM, TO)                                                                                           \
    static void NAME(char **args, const intptr_t *sizes, const intptr_t *steps, void *data)                           \
    {                                                                                                                  \
        const char *x = args[0];                                                                                       \
        char *out = args[1];                                                                                           \
        for (intptr_t i = 0; i < sizes[0]; i++) {                                                                      \
            *(TO *)out = (TO) * (const FROM *)x;                                                                       \
            x += steps[0];                                                                                             \
            out += steps[1];                                                                                           \
        }                                                                                                              \
    }

CAST(cast_bool_f, uint8_t, float)
CAST(cast_bool_d, uint8_t, double)
CAST(cast_i_f, int32_t, float)
CAST(cast_i_d, int32_t, double)
CAST(cast_l_f, int64_t, float)
CAST(cast_l_d, int64_t, double)
CAST(cast_f_d, float, double)
CAST(cast_d_f, double, float)

/* The gradient where x is above 0 or NaN, and 0 elsewhere. Operands lie without gaps, but for a gradient of one number. */
#define RELU_GRAD(NAME, REAL)                                                                                          \
    static void NAME(char **args, const intptr_t *sizes, const intptr_t *steps, void *data)                           \
    {                                                                                                                  \
        const REAL *restrict g = (const REAL *)args[0], *restrict x = (const REAL *)args[1];                          \
        REAL *restrict out = (REAL *)args[2];                                                                          \
        if (steps[0]) {                                                                                                \
            for (intptr_t i = 0; i < sizes[0]; i++) {                                                                  \
                out[i] = x[i] <= 0 ? 0 : g[i];                                                                         \
            }                                                                                                          \
        }                                                                                                              \
        else {                                                                                                         \
            for (intptr_t i = 0; i < sizes[0]; i++) {                                                                  \
                out[i] = x[i] <= 0 ? 0 : *g;                                                                           \
            }                                                                                                          \
        }                                                                                                              \
    }

RELU_GRAD(relu_grad_d, double)
RELU_GRAD(relu_grad_f, float)

#include "_row_loops.h"

static const struct {
    const char *name;
    Loop loop;
} LOOPS[] = {
    {"norm_cdf d", norm_cdf_d}, {"norm_cdf f", norm_cdf_f}, {"erfc d", erfc_d},
    {"erfc f", erfc_f},         {"erf d", erf_d},           {"erf f", erf_f},
    {"gaussian d", gaussian_d}, {"gaussian f", gaussian_f}, {"by rows", by_rows},
    {"product", product},       {"cast ?f", cast_bool_f},   {"cast ?d", cast_bool_d},
    {"cast if", cast_i_f},      {"cast id", cast_i_d},      {"cast lf", cast_l_f},
    {"cast ld", cast_l_d},      {"cast fd", cast_f_d},      {"cast df", cast_d_f},
    {"relu_grad d", relu_grad_d}, {"relu_grad f", relu_grad_f}, ACTIVATION_LOOPS ROW_LOOPS
};

/* Elements of rows by their numbers: an array of (outer, length, inner) elements, with an integer for each row along
 * its middle axis. */
enum { ROWS, NUMBERS, CHOSEN, OUTER, LENGTH, INNER, WIDTH, GIVEN };

static int are_in(const intptr_t *given)
{
    const uint64_t *numbers = (const uint64_t *)given[NUMBERS], length = (uint64_t)given[LENGTH];
    const intptr_t count = given[OUTER] * given[INNER];
    int wrong = 0; /* negative numbers are large ones */
    for (intptr_t i = 0; i < count; i++) {
        wrong |= numbers[i] >= length;
    }
    return !wrong;
}

#define MOVE(TYPE, TO, FROM)                                                                                           \
    for (intptr_t outer = 0, i = 0; outer < given[OUTER]; outer++) {                                                  \
        for (intptr_t inner = 0; inner < given[INNER]; inner++, i++) {                                                \
            const intptr_t at = (outer * given[LENGTH] + numbers[i]) * given[INNER] + inner;                          \
            ((TYPE *)given[TO])[TO == ROWS ? at : i] = ((const TYPE *)given[FROM])[FROM == ROWS ? at : i];            \
        }                                                                                                              \
    }

static PyObject *pick(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    intptr_t given[GIVEN];
    if (!read_numbers(args, count, given, GIVEN)) {
        return NULL;
    }
    if (!are_in(given)) {
        Py_RETURN_FALSE;
    }
    const int64_t *numbers = (const int64_t *)given[NUMBERS];
    if (given[WIDTH] == 8) {
        MOVE(uint64_t, CHOSEN, ROWS)
    }
    else {
        MOVE(uint32_t, CHOSEN, ROWS)
    }
    Py_RETURN_TRUE;
}

static PyObject *place(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    intptr_t given[GIVEN];
    if (!read_numbers(args, count, given, GIVEN)) {
        return NULL;
    }
    if (!are_in(given)) {
        Py_RETURN_FALSE;
    }
    const int64_t *numbers = (const int64_t *)given[NUMBERS];
    memset((void *)given[ROWS], 0, (size_t)(given[OUTER] * given[LENGTH] * given[INNER] * given[WIDTH]));
    if (given[WIDTH] == 8) {
        MOVE(uint64_t, ROWS, CHOSEN)
    }
    else {
        MOVE(uint32_t, ROWS, CHOSEN)
    }
    Py_RETURN_TRUE;
}

/* Return the words that lie `offset` bytes behind the beginnings of objects: for arrays, where their elements begin. */
static PyObject *words_at(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    intptr_t offset;
    if (count != 2 || !PyList_Check(args[0])) {
        PyErr_SetString(PyExc_TypeError, "expected a list and an offset");
        return NULL;
    }
    if (!read_numbers(args + 1, 1, &offset, 1)) {
        return NULL;
    }
    const Py_ssize_t length = PyList_Size(args[0]);
    PyObject *found = PyBytes_FromStringAndSize(NULL, length * (Py_ssize_t)sizeof(intptr_t));
    if (found == NULL) {
        return NULL;
    }
    char *words = PyBytes_AsString(found);
    for (Py_ssize_t i = 0; i < length; i++) {
        memcpy(words + i * (Py_ssize_t)sizeof(intptr_t), (const char *)PyList_GetItem(args[0], i) + offset, sizeof(intptr_t));
    }
    return found;
}

/* Count the words of a code that are addresses of arrays; write their positions to `found`, if there is memory. */
static intptr_t count_places(const intptr_t *code, const intptr_t *end, int64_t *found)
{
    intptr_t count = 0;
    for (const intptr_t *row = code; row < end; row = next(row)) {
        const Loop loop = (Loop)row[LOOP];
        const int nests = loop == by_rows || loop == product;
        /* Behind the operands of a nested loop come lengths and the inner loop, and last the result again. */
        const intptr_t operands = loop == by_rows ? row[DATA] : loop == product ? 3 : row[OPERANDS];
        for (intptr_t i = 0; i < operands + nests; i++, count++) {
            if (found) {
                found[count] = row + HEAD + (i < operands ? i : row[OPERANDS] - 1) - code;
            }
        }
    }
    return count;
}

static PyObject *places(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    intptr_t given[2];
    if (!read_numbers(args, count, given, 2)) {
        return NULL;
    }
    const intptr_t *code = (const intptr_t *)given[0], *end = (const intptr_t *)given[1];
    PyObject *found = PyBytes_FromStringAndSize(NULL, count_places(code, end, NULL) * (Py_ssize_t)sizeof(int64_t));
    if (found != NULL) {
        count_places(code, end, (int64_t *)PyBytes_AsString(found));
    }
    return found;
}

#include "_rules.h"
#include "_running.h"
#include "_order.h"
static PyMethodDef methods[] = {
    {"play", (PyCFunction)(void (*)(void))play, METH_FASTCALL,
     PyDoc_STR("Do the instructions that lie from the address `row` to the address `end`.")},
    {"play_part", (PyCFunction)(void (*)(void))play_part, METH_FASTCALL,
     PyDoc_STR("Do the same, but only for the elements from `first` up to, not including, `last`.")},
    {"pick", (PyCFunction)(void (*)(void))pick, METH_FASTCALL,
     PyDoc_STR("Copy the elements of rows with these numbers. Return whether all numbers are in the rows.")},
    {"place", (PyCFunction)(void (*)(void))place, METH_FASTCALL,
     PyDoc_STR("Copy elements into rows of zeros, at these numbers. Return whether all numbers are in the rows.")},
    {"words_at", (PyCFunction)(void (*)(void))words_at, METH_FASTCALL,
     PyDoc_STR("Return the words that lie so many bytes behind the beginnings of objects.")},
    {"places", (PyCFunction)(void (*)(void))places, METH_FASTCALL,
     PyDoc_STR("Return the positions of the words of a code that are addresses of arrays.")},
    {"descend", (PyCFunction)(void (*)(void))descend, METH_FASTCALL,
     PyDoc_STR("Change params along their gradients, with a momentum.")},
    {"adapt", (PyCFunction)(void (*)(void))adapt, METH_FASTCALL,
     PyDoc_STR("Change params by the rule of Adam.")},
    {"accumulate", (PyCFunction)(void (*)(void))accumulate, METH_FASTCALL,
     PyDoc_STR("Write running sums, or products, along an axis.")},
    ORDER_METHODS {NULL, NULL, 0, NULL},
};

static int add_loops(PyObject *module)
{
    PyObject *found = PyDict_New();
    if (found == NULL) {
        return -1;
    }
    for (size_t i = 0; i < sizeof LOOPS / sizeof *LOOPS; i++) {
        PyObject *address = PyLong_FromVoidPtr((void *)LOOPS[i].loop);
        if (address == NULL || PyDict_SetItemString(found, LOOPS[i].name, address) < 0) {
            Py_XDECREF(address);
            Py_DECREF(found);
            return -1;
        }
        Py_DECREF(address);
    }
    const int failed = PyModule_AddObjectRef(module, "LOOPS", found);
    Py_DECREF(found);
    return failed;
}

static PyModuleDef_Slot slots[] = {{Py_mod_exec, (void *)add_loops}, {0, NULL}};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT,
    .m_name = "_driver",
    .m_doc = "The register machine, compiled when the package was built.",
    .m_methods = methods,
    .m_slots = slots,
};

PyMODINIT_FUNC PyInit__driver(void)
{
    return PyModuleDef_Init(&definition);
}
