/* A network as a flat program: its arrays, the functions of neat-python, and how its neurons are computed. */
#ifndef REACTGRAD_NEAT_PROGRAM
#define REACTGRAD_NEAT_PROGRAM

enum { FEED_FORWARD, RECURRENT, EULER, EXPONENTIAL };

/* The codes of functions; `_program` has the same list. */
enum {
    SIGMOID, TANH, SIN, GAUSS, RELU, ELU, LELU, SELU, SOFTPLUS, IDENTITY, CLAMPED, INV, LOG, EXP, ABS, HAT, SQUARE, CUBE,
    SUM = 32, PRODUCT, MAX, MIN, MAXABS, MEDIAN, MEAN,
    OWN = -1
};

typedef struct {
    PyObject_HEAD
    intptr_t inputs, neurons, slots, outputs, links, widest;
    int kind, active, given, ran;
    int owns; /* whether any function is Python code, which may fail */
    int64_t *keys;
    intptr_t *out, *begin, *source;
    double *weight, *bias, *response, *constant, *values;
    int *activation, *aggregation;
    PyObject **own; /* for each neuron its activation and its aggregation, or NULL */
    void *memory;
} Program;

static PyTypeObject *program_type;


/* --- functions of neat-python ----------------------------------------------------------------- */

/* Python's `max` and `min` of a limit and a number: NaN becomes the limit. */
static double clamp(double z, double limit)
{
    const double below = z < limit ? z : limit;
    return below > -limit ? below : -limit;
}

/* Not known to the compiler, which else would multiply: Python calls `pow`. */
static volatile double two = 2.0, three = 3.0;

static double activated(int code, double z)
{
    const double lambda = 1.0507009873554804934193349852946, alpha = 1.6732632423543772848170429916717;
    switch (code) {
    case SIGMOID: return 1.0 / (1.0 + exp(-clamp(5.0 * z, 60.0)));
    case TANH: return tanh(clamp(2.5 * z, 60.0));
    case SIN: return sin(clamp(5.0 * z, 60.0));
    case GAUSS: return exp(-5.0 * pow(clamp(z, 3.4), two));
    case RELU: return z > 0.0 ? z : 0.0;
    case ELU: return z > 0.0 ? z : exp(z) - 1.0;
    case LELU: return z > 0.0 ? z : 0.005 * z;
    case SELU: return z > 0.0 ? lambda * z : lambda * alpha * (exp(z) - 1.0);
    case SOFTPLUS: return 0.2 * log(1.0 + exp(clamp(5.0 * z, 60.0)));
    case CLAMPED: return clamp(z, 1.0);
    case INV: return z == 0.0 ? 0.0 : 1.0 / z;
    case LOG: return log(z > 1e-7 ? z : 1e-7);
    case EXP: return exp(clamp(z, 60.0));
    case ABS: return fabs(z);
    case HAT: return 1.0 - fabs(z) > 0.0 ? 1.0 - fabs(z) : 0.0;
    case SQUARE: return pow(z, two);
    case CUBE: return pow(z, three);
    default: return z;
    }
}

static int compensated; /* Python's `sum` of floats is compensated from 3.12 on (Neumaier, 1974) */

static double sum_of(const double *terms, intptr_t count)
{
    double total = 0.0;
    if (!compensated) {
        for (intptr_t i = 0; i < count; i++) {
            total += terms[i];
        }
        return total;
    }
    double lost = 0.0;
    for (intptr_t i = 0; i < count; i++) {
        const double one = terms[i], next = total + one;
        lost += fabs(total) >= fabs(one) ? (total - next) + one : (one - next) + total;
        total = next;
    }
    return lost != 0.0 && isfinite(lost) ? total + lost : total;
}

static double median_of(double *terms, intptr_t count)
{
    for (intptr_t i = 1; i < count; i++) {
        const double one = terms[i];
        intptr_t k = i;
        for (; k > 0 && one < terms[k - 1]; k--) {
            terms[k] = terms[k - 1];
        }
        terms[k] = one;
    }
    const intptr_t middle = count / 2;
    return count % 2 ? terms[middle] : (terms[middle - 1] + terms[middle]) / 2.0;
}

static double aggregated(int code, double *terms, intptr_t count)
{
    if (code == SUM) {
        return sum_of(terms, count);
    }
    if (code == PRODUCT) {
        double product = 1.0;
        for (intptr_t i = 0; i < count; i++) {
            product *= terms[i];
        }
        return product;
    }
    if (count == 0) {
        return 0.0;
    }
    if (code == MEAN || (code == MEDIAN && count <= 2)) {
        return sum_of(terms, count) / (double)count;
    }
    if (code == MEDIAN) {
        return median_of(terms, count);
    }
    double best = terms[0];
    for (intptr_t i = 1; i < count; i++) {
        const double one = terms[i];
        if (code == MAX ? one > best : code == MIN ? one < best : fabs(one) > fabs(best)) {
            best = one;
        }
    }
    return best;
}

static int call_own(PyObject *function, PyObject *argument, double *result)
{
    if (argument == NULL) {
        return 0;
    }
    PyObject *found = PyObject_CallFunctionObjArgs(function, argument, NULL);
    Py_DECREF(argument);
    if (found == NULL) {
        return 0;
    }
    *result = PyFloat_AsDouble(found);
    Py_DECREF(found);
    return !(*result == -1.0 && PyErr_Occurred());
}

static PyObject *floats(const double *numbers, intptr_t count)
{
    PyObject *list = PyList_New(count);
    for (intptr_t i = 0; list != NULL && i < count; i++) {
        PyObject *one = PyFloat_FromDouble(numbers[i]);
        if (one == NULL || PyList_SetItem(list, i, one) < 0) {
            Py_CLEAR(list);
        }
    }
    return list;
}

/* Compute all neurons from the slots `from` into the slots `to`; return 0 if a function of the user raised. */
static int compute(const Program *p, const double *from, double *to, double *terms, double dt)
{
    const intptr_t *source = p->source;
    const double *weight = p->weight;
    const int kind = p->kind;
    double *result = to + p->inputs;
    for (intptr_t i = 0; i < p->neurons; i++) {
        const intptr_t first = p->begin[i], count = p->begin[i + 1] - first;
        const int aggregation = p->aggregation[i], activation = p->activation[i];
        double total = 0.0;
        if (aggregation == SUM && !compensated) {
            for (intptr_t k = first; k < first + count; k++) {
                total += from[source[k]] * weight[k];
            }
        }
        else {
            for (intptr_t k = 0; k < count; k++) {
                terms[k] = from[source[first + k]] * weight[first + k];
            }
            if (aggregation != OWN) {
                total = aggregated(aggregation, terms, count);
            }
            else if (!call_own(p->own[2 * i + 1], floats(terms, count), &total)) {
                return 0;
            }
        }
        double z = p->bias[i] + p->response[i] * total;
        if (activation != OWN) {
            z = activated(activation, z);
        }
        else if (!call_own(p->own[2 * i], PyFloat_FromDouble(z), &z)) {
            return 0;
        }
        if (kind < EULER) {
            result[i] = z;
        }
        else if (kind == EULER) {
            result[i] += dt / p->constant[i] * (-result[i] + z);
        }
        else {
            const double decay = exp(-dt / p->constant[i]);
            result[i] = decay * from[p->inputs + i] + (1.0 - decay) * z;
        }
    }
    return 1;
}

#endif
