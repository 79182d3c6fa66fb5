/* Networks as flat programs: reads a genome into arrays, and computes one sample at the speed of a loop in C.
 *
 * One file against the stable interface of CPython, without NumPy's headers. `_program` does the same in Python, and
 * does what this leaves alone: `read` and `activate` return None for whatever is unusual.
 *
 * Results have the bits of neat-python's: the functions are those of the C library that Python's `math` calls, in the
 * order of neat-python's formulas (this needs -ffp-contract=off), and sums round as Python's `sum` does.
 *
 * Values lie in slots: the inputs, the neurons in the order in which they are computed, then nodes that are read and
 * never computed. Networks with memory have two banks of slots, and read one while they write the other.
 */
#define Py_LIMITED_API 0x030B0000
#include <Python.h>

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

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

#include "_genes.h"

/* The names of functions that nodes of `Genes` have the places of. */
static PyObject *function_names;

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

/* --- making programs --------------------------------------------------------------------------- */

static intptr_t room(intptr_t bytes)
{
    return (bytes + 15) / 16 * 16;
}

/* Return a program with arrays of these sizes, all zero. */
static Program *new_program(int kind, intptr_t inputs, intptr_t neurons, intptr_t slots, intptr_t outputs, intptr_t links)
{
    allocfunc alloc = (allocfunc)PyType_GetSlot(program_type, Py_tp_alloc);
    Program *p = (Program *)alloc(program_type, 0);
    if (p == NULL) {
        return NULL;
    }
    const intptr_t banks = kind == FEED_FORWARD ? 1 : 2, word = 8;
    const intptr_t sizes[] = {
        room(slots * word), room(outputs * word), room((neurons + 1) * word), room(links * word), room(links * word),
        room(neurons * word), room(neurons * word), room(neurons * word), room(banks * slots * word),
        room(neurons * (intptr_t)sizeof(int)), room(neurons * (intptr_t)sizeof(int)),
        room(2 * neurons * (intptr_t)sizeof(PyObject *)),
    };
    intptr_t total = 0;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        total += sizes[i];
    }
    char *at = p->memory = PyMem_Calloc(1, (size_t)total + 1);
    if (at == NULL) {
        Py_DECREF(p);
        return (Program *)PyErr_NoMemory();
    }
    const intptr_t *size = sizes;
    p->keys = (int64_t *)at, at += *size++;
    p->out = (intptr_t *)at, at += *size++;
    p->begin = (intptr_t *)at, at += *size++;
    p->source = (intptr_t *)at, at += *size++;
    p->weight = (double *)at, at += *size++;
    p->bias = (double *)at, at += *size++;
    p->response = (double *)at, at += *size++;
    p->constant = (double *)at, at += *size++;
    p->values = (double *)at, at += *size++;
    p->activation = (int *)at, at += *size++;
    p->aggregation = (int *)at, at += *size++;
    p->own = (PyObject **)at;
    p->kind = kind;
    p->inputs = inputs, p->neurons = neurons, p->slots = slots, p->outputs = outputs, p->links = links;
    return p;
}

static void give_away(Program *p)
{
    for (intptr_t i = 0; p->own != NULL && i < 2 * p->neurons; i++) {
        Py_CLEAR(p->own[i]);
    }
}

static int clear(PyObject *self)
{
    give_away((Program *)self);
    return 0;
}

static int traverse(PyObject *self, visitproc visit, void *arg)
{
    Program *p = (Program *)self;
    Py_VISIT(Py_TYPE(self));
    for (intptr_t i = 0; p->owns && i < 2 * p->neurons; i++) {
        Py_VISIT(p->own[i]);
    }
    return 0;
}

static void dealloc(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    PyObject_GC_UnTrack(self);
    if (((Program *)self)->owns) {
        give_away((Program *)self);
    }
    PyMem_Free(((Program *)self)->memory);
    ((freefunc)PyType_GetSlot(type, Py_tp_free))(self);
    Py_DECREF(type);
}

/* Set the function at `place` (0 its activation, 1 its aggregation) of a neuron, which the table knows or which is
 * the user's own; return 0 if the table does not know it at all. */
static int set_function(Program *p, intptr_t neuron, int place, PyObject *function, PyObject *table)
{
    PyObject *found = PyDict_GetItemWithError(table, function);
    if (found == NULL) {
        return 0;
    }
    const int code = (int)PyLong_AsLong(found);
    (place ? p->aggregation : p->activation)[neuron] = code;
    if (code == OWN) {
        Py_INCREF(function);
        p->own[2 * neuron + place] = function;
        p->owns = 1;
    }
    return 1;
}

/* Read a number; return 0 if it is none, or of an unusual kind, or not finite. */
static int number_of(PyObject *given, double *number)
{
    if (!PyFloat_Check(given) && !PyLong_Check(given)) {
        return 0;
    }
    *number = PyFloat_AsDouble(given);
    return isfinite(*number) && !(*number == -1.0 && PyErr_Occurred());
}

static int attribute_number(PyObject *gene, PyObject *name, double *number)
{
    PyObject *given = PyObject_GetAttr(gene, name);
    if (given == NULL) {
        return 0;
    }
    const int good = number_of(given, number);
    Py_DECREF(given);
    return good;
}

static int key_of(PyObject *given, int64_t *key)
{
    if (!PyLong_Check(given)) {
        return 0;
    }
    *key = PyLong_AsLongLong(given);
    return !(*key == -1 && PyErr_Occurred());
}

/* Numbers for keys, in the order in which they are met. */
typedef struct {
    int64_t *keys;
    intptr_t *places; /* open addressing: a number + 1, or 0 */
    intptr_t count, most, mask;
} Numbers;

/* Return the number of a key, which is a new one if it was not met; -1 if there are more than there may be. */
static intptr_t number_for(Numbers *numbers, int64_t key)
{
    uint64_t at = (uint64_t)key * 0x9E3779B97F4A7C15u;
    at ^= at >> 32;
    for (;; at++) {
        intptr_t *place = numbers->places + (at & (uint64_t)numbers->mask);
        if (*place == 0) {
            if (numbers->count == numbers->most) {
                return -1;
            }
            numbers->keys[numbers->count] = key;
            *place = ++numbers->count;
            return *place - 1;
        }
        if (numbers->keys[*place - 1] == key) {
            return *place - 1;
        }
    }
}

/* A genome while it is read. Nodes have numbers, inputs first. */
typedef struct {
    Numbers numbers;
    intptr_t inputs, links, outputs;
    intptr_t *from, *to, *out; /* of links, in the order of the genome */
    double *weight;
    char *enabled;
    intptr_t *begin, *incoming; /* the links to each node, in that order */
    intptr_t *order, neurons;   /* the nodes that are computed, in the order in which they are */
    intptr_t *slot;             /* the slot + 1 of each node that has one */
    void *memory;
} Genome;

static PyObject *name_enabled, *name_weight, *name_bias, *name_response, *name_activation, *name_aggregation,
    *name_constant;

static int read_keys(Genome *genome, PyObject *given, intptr_t *found)
{
    for (intptr_t i = 0; i < PyList_Size(given); i++) {
        int64_t key;
        if (!key_of(PyList_GetItem(given, i), &key)) {
            return 0;
        }
        const intptr_t number = number_for(&genome->numbers, key);
        if (number < 0) {
            return 0;
        }
        if (found != NULL) {
            found[i] = number;
        }
        else if (number != i) {
            return 0;
        }
    }
    return 1;
}

/* List the incoming links of each node, of which `begin` has the numbers. */
static void enter_links(Genome *genome)
{
    for (intptr_t i = 0; i < genome->numbers.count; i++) {
        genome->begin[i + 1] += genome->begin[i];
    }
    /* `slot` counts the links that are entered so far. */
    for (intptr_t link = 0; link < genome->links; link++) {
        const intptr_t node = genome->to[link];
        genome->incoming[genome->begin[node] + genome->slot[node]++] = link;
    }
    memset(genome->slot, 0, (size_t)genome->numbers.count * sizeof *genome->slot);
}

/* Read links into `from`, `to` and `weight`, and the incoming ones of each node; with `all`, disabled ones, too. */
static int read_links(Genome *genome, PyObject *connections, int all)
{
    PyObject *key, *gene;
    Py_ssize_t at = 0;
    const intptr_t most = genome->links;
    genome->links = 0;
    while (PyDict_Next(connections, &at, &key, &gene)) {
        int64_t from, to;
        if (genome->links == most || !PyTuple_Check(key) || PyTuple_Size(key) != 2 ||
            !key_of(PyTuple_GetItem(key, 0), &from) || !key_of(PyTuple_GetItem(key, 1), &to)) {
            return 0;
        }
        Py_INCREF(gene);
        PyObject *enabled = PyObject_GetAttr(gene, name_enabled);
        const int is = enabled == NULL ? -1 : PyObject_IsTrue(enabled);
        Py_XDECREF(enabled);
        PyObject *weight = is == 1 ? PyObject_GetAttr(gene, name_weight) : NULL;
        Py_DECREF(gene);
        if (is < 0 || (is == 1 && weight == NULL)) {
            return 0;
        }
        if (is == 1 || all) {
            const intptr_t link = genome->links++;
            genome->from[link] = number_for(&genome->numbers, from);
            genome->to[link] = number_for(&genome->numbers, to);
            genome->enabled[link] = (char)is;
            if (genome->from[link] < 0 || genome->to[link] < 0) {
                Py_XDECREF(weight);
                return 0;
            }
            genome->begin[genome->to[link] + 1]++;
            genome->weight[link] = NAN;
            if (is == 1 && !number_of(weight, &genome->weight[link])) {
                genome->weight[link] = NAN; /* is an error only where the link is needed */
                PyErr_Clear();
            }
        }
        Py_XDECREF(weight);
    }
    enter_links(genome);
    return 1;
}

/* The same from arrays. */
static int read_link_arrays(Genome *genome, const Genes *genes, int all)
{
    genome->links = 0;
    for (intptr_t i = 0; i < genes->links; i++) {
        const Link *one = genes->link + i;
        if (one->enabled || all) {
            const intptr_t link = genome->links++;
            genome->from[link] = number_for(&genome->numbers, one->source);
            genome->to[link] = number_for(&genome->numbers, one->target);
            genome->enabled[link] = (char)one->enabled;
            genome->weight[link] = one->weight;
            if (genome->from[link] < 0 || genome->to[link] < 0) {
                return 0;
            }
            genome->begin[genome->to[link] + 1]++;
        }
    }
    enter_links(genome);
    return 1;
}

/* Find the nodes that lead to the outputs, sources first; return 0 if there is a cycle. */
static int find_order(Genome *genome, intptr_t *path, intptr_t *next)
{
    enum { OPEN = -1 };
    intptr_t *slot = genome->slot;
    for (intptr_t i = 0; i < genome->inputs; i++) {
        slot[i] = i + 1;
    }
    for (intptr_t k = 0; k < genome->outputs; k++) {
        if (slot[genome->out[k]]) {
            continue;
        }
        intptr_t depth = 0;
        path[0] = genome->out[k];
        next[0] = genome->begin[path[0]];
        slot[path[0]] = OPEN;
        while (depth >= 0) {
            const intptr_t node = path[depth];
            if (next[depth] == genome->begin[node + 1]) {
                genome->order[genome->neurons] = node;
                slot[node] = genome->inputs + ++genome->neurons;
                depth--;
                continue;
            }
            const intptr_t source = genome->from[genome->incoming[next[depth]++]];
            if (slot[source] == OPEN) {
                return 0;
            }
            if (slot[source] == 0) {
                slot[source] = OPEN;
                path[++depth] = source;
                next[depth] = genome->begin[source];
            }
        }
    }
    return 1;
}

/* Find the nodes that a network with memory computes: those that enabled links lead to, in the order of these; keep
 * only the links that they read. Return 0 if a link leads to an input. */
static int find_recurrent(Genome *genome, intptr_t *pending, intptr_t *required)
{
    intptr_t *slot = genome->slot, left = 0;
    memset(required, 0, (size_t)genome->numbers.count * sizeof *required);
    for (intptr_t k = 0; k < genome->outputs; k++) {
        if (!required[genome->out[k]]) {
            required[genome->out[k]] = 1;
            pending[left++] = genome->out[k];
        }
    }
    while (left) {
        const intptr_t node = pending[--left];
        for (intptr_t i = genome->begin[node]; i < genome->begin[node + 1]; i++) {
            const intptr_t source = genome->from[genome->incoming[i]];
            if (source >= genome->inputs && !required[source]) {
                required[source] = 1;
                pending[left++] = source;
            }
        }
    }
    for (intptr_t i = 0; i < genome->inputs; i++) {
        slot[i] = i + 1;
    }
    for (intptr_t link = 0; link < genome->links; link++) {
        const intptr_t from = genome->from[link], to = genome->to[link];
        genome->enabled[link] = genome->enabled[link] && (required[to] || required[from]);
        if (!genome->enabled[link]) {
            continue;
        }
        if (to < genome->inputs) {
            return 0;
        }
        if (slot[to] == 0) {
            genome->order[genome->neurons] = to;
            slot[to] = genome->inputs + ++genome->neurons;
        }
    }
    return 1;
}

static int read_neuron(Program *p, intptr_t at, PyObject *gene, PyObject *const *given)
{
    if (!attribute_number(gene, name_bias, &p->bias[at]) || !attribute_number(gene, name_response, &p->response[at]) ||
        (p->kind >= EULER && !attribute_number(gene, name_constant, &p->constant[at]))) {
        return 0;
    }
    for (int place = 0; place < 2; place++) {
        PyObject *name = PyObject_GetAttr(gene, place ? name_aggregation : name_activation);
        if (name == NULL) {
            return 0;
        }
        PyObject *function = PyDict_GetItemWithError(given[place], name);
        const int known = function != NULL && set_function(p, at, place, function, given[2]);
        Py_DECREF(name);
        if (!known) {
            return 0;
        }
    }
    return 1;
}

/* The same from arrays. */
static int read_node(Program *p, intptr_t at, const Node *node, PyObject *const *given)
{
    p->bias[at] = node->bias;
    p->response[at] = node->response;
    p->constant[at] = node->constant;
    for (int place = 0; place < 2; place++) {
        PyObject *name = PyList_GetItem(function_names, place ? node->aggregation : node->activation);
        PyObject *function = name == NULL ? NULL : PyDict_GetItemWithError(given[place], name);
        if (function == NULL || !set_function(p, at, place, function, given[2])) {
            return 0;
        }
    }
    return isfinite(node->bias) && isfinite(node->response);
}

/* Read the neuron in a slot from a dict of nodes or from arrays; return 0 if there is none. A node that is read and
 * never computed must be there, too. */
static int read_slot(Program *p, intptr_t slot, PyObject *nodes, PyObject *const *given)
{
    const intptr_t at = slot - p->inputs;
    const int is_resting = at >= p->neurons;
    if (PyObject_TypeCheck(nodes, genes_type)) {
        const Genes *genes = (Genes *)nodes;
        const intptr_t place = node_place(genes, p->keys[slot]);
        return place < genes->nodes && genes->node[place].key == p->keys[slot] &&
               (is_resting || read_node(p, at, genes->node + place, given));
    }
    PyObject *key = PyLong_FromLongLong(p->keys[slot]);
    PyObject *gene = key == NULL ? NULL : PyDict_GetItemWithError(nodes, key);
    Py_XDECREF(key);
    Py_XINCREF(gene);
    const int good = gene != NULL && (is_resting || read_neuron(p, at, gene, given));
    Py_XDECREF(gene);
    return good;
}

/* Return the program of a genome that has its order; NULL, perhaps without an error, if something is unusual.
 * `given` are the config's activations and aggregations, and the table of codes. */
static Program *program_of(Genome *genome, int kind, PyObject *nodes, PyObject *const *given)
{
    intptr_t slots = genome->inputs + genome->neurons, links = 0;
    for (intptr_t i = 0; i < genome->neurons; i++) {
        const intptr_t node = genome->order[i];
        for (intptr_t k = genome->begin[node]; k < genome->begin[node + 1]; k++) {
            const intptr_t link = genome->incoming[k], source = genome->from[link];
            if (!genome->enabled[link]) {
                continue;
            }
            links++;
            if (genome->slot[source] == 0) { /* read and never computed */
                genome->slot[source] = ++slots;
            }
        }
    }
    for (intptr_t k = 0; k < genome->outputs; k++) {
        if (genome->slot[genome->out[k]] == 0) {
            genome->slot[genome->out[k]] = ++slots;
        }
    }
    Program *p = new_program(kind, genome->inputs, genome->neurons, slots, genome->outputs, links);
    if (p == NULL) {
        return NULL;
    }
    for (intptr_t number = 0; number < genome->numbers.count; number++) {
        const intptr_t slot = genome->slot[number] - 1;
        if (slot < 0) {
            continue;
        }
        p->keys[slot] = genome->numbers.keys[number];
        if (slot < genome->inputs) {
            continue;
        }
        if (!read_slot(p, slot, nodes, given)) {
            Py_DECREF(p);
            return NULL;
        }
    }
    links = 0;
    for (intptr_t i = 0; i < genome->neurons; i++) {
        const intptr_t node = genome->order[i];
        for (intptr_t k = genome->begin[node]; k < genome->begin[node + 1]; k++) {
            const intptr_t link = genome->incoming[k];
            if (!genome->enabled[link]) {
                continue;
            }
            p->source[links] = genome->slot[genome->from[link]] - 1;
            p->weight[links++] = genome->weight[link];
            if (isnan(genome->weight[link])) {
                Py_DECREF(p);
                return NULL;
            }
        }
        p->begin[i + 1] = links;
        if (links - p->begin[i] > p->widest) {
            p->widest = links - p->begin[i];
        }
    }
    for (intptr_t k = 0; k < genome->outputs; k++) {
        p->out[k] = genome->slot[genome->out[k]] - 1;
    }
    return p;
}

static Program *read_genome(int kind, PyObject *const *args)
{
    PyObject *nodes = args[1], *connections = args[2], *inputs = args[3], *outputs = args[4];
    const Genes *genes = PyObject_TypeCheck(nodes, genes_type) ? (Genes *)nodes : NULL;
    if ((genes == NULL && (!PyDict_Check(nodes) || !PyDict_Check(connections))) || !PyList_Check(inputs) || !PyList_Check(outputs) ||
        !PyDict_Check(args[5]) || !PyDict_Check(args[6]) || !PyDict_Check(args[7])) {
        return NULL;
    }
    Genome genome = {.inputs = PyList_Size(inputs), .outputs = PyList_Size(outputs), };
    genome.links = genes != NULL ? genes->links : PyDict_Size(connections);
    const intptr_t count = genes != NULL ? genes->nodes : PyDict_Size(nodes);
    const intptr_t most = genome.inputs + genome.outputs + count + 8, links = genome.links;
    intptr_t places = 16;
    while (places < 2 * most) {
        places *= 2;
    }
    const size_t words = (size_t)(7 * most + 2 + places + genome.outputs + 4 * links);
    intptr_t *at = genome.memory = PyMem_Calloc(words * 8 + (size_t)links, 1);
    if (at == NULL) {
        return NULL;
    }
    intptr_t *path, *next;
    genome.numbers = (Numbers){.keys = (int64_t *)at, .places = at + most, .most = most, .mask = places - 1};
    at += most + places;
    genome.begin = at, at += most + 2;
    genome.order = at, at += most;
    genome.slot = at, at += most;
    path = at, at += most;
    next = at, at += most;
    genome.out = at, at += genome.outputs;
    genome.from = at, at += links;
    genome.to = at, at += links;
    genome.incoming = at, at += links;
    genome.weight = (double *)at, at += links;
    genome.enabled = (char *)at;
    Program *found = NULL;
    if (read_keys(&genome, inputs, NULL) && read_keys(&genome, outputs, genome.out) &&
        (genes != NULL ? read_link_arrays(&genome, genes, kind != FEED_FORWARD)
                       : read_links(&genome, connections, kind != FEED_FORWARD)) &&
        (kind == FEED_FORWARD ? find_order(&genome, path, next) : find_recurrent(&genome, path, next))) {
        found = program_of(&genome, kind, nodes, args + 5);
    }
    PyMem_Free(genome.memory);
    return found;
}

/* read(kind, nodes, connections, inputs, outputs, activations, aggregations, table) */
static PyObject *read_program(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    if (count != 8) {
        return PyErr_Format(PyExc_TypeError, "expected 8 arguments, got %zd", count);
    }
    const int kind = (int)PyLong_AsLong(args[0]);
    if (kind < FEED_FORWARD || kind > EXPONENTIAL) {
        return PyErr_Occurred() ? NULL : PyErr_Format(PyExc_ValueError, "there is no kind %d", kind);
    }
    Program *found = read_genome(kind, args);
    if (found != NULL) {
        return (PyObject *)found;
    }
    if (PyErr_Occurred()) {
        if (!PyErr_ExceptionMatches(PyExc_Exception) || PyErr_ExceptionMatches(PyExc_MemoryError)) {
            return NULL;
        }
        PyErr_Clear();
    }
    Py_RETURN_NONE;
}

/* Read a neuron of `make`: its key, functions, genes, the slots of its sources, and its time constant. */
static int make_neuron(Program *p, intptr_t at, PyObject *row, PyObject *table)
{
    PyObject *genes = PyTuple_GetItem(row, 3), *sources = PyTuple_GetItem(row, 4);
    const intptr_t count = PyTuple_Size(sources), first = p->begin[at];
    if (!key_of(PyTuple_GetItem(row, 0), &p->keys[p->inputs + at]) || PyTuple_Size(genes) != count + 2 ||
        first + count > p->links) {
        PyErr_SetString(PyExc_ValueError, "a neuron has an integer as key, and two genes more than sources");
        return 0;
    }
    for (int place = 0; place < 2; place++) {
        if (!set_function(p, at, place, PyTuple_GetItem(row, 1 + place), table)) {
            if (!PyErr_Occurred()) {
                PyErr_SetString(PyExc_KeyError, "the table does not know a function");
            }
            return 0;
        }
    }
    p->bias[at] = PyFloat_AsDouble(PyTuple_GetItem(genes, 0));
    p->response[at] = PyFloat_AsDouble(PyTuple_GetItem(genes, 1));
    p->constant[at] = PyFloat_AsDouble(PyTuple_GetItem(row, 5));
    for (intptr_t k = 0; k < count; k++) {
        p->weight[first + k] = PyFloat_AsDouble(PyTuple_GetItem(genes, k + 2));
        p->source[first + k] = PyLong_AsSsize_t(PyTuple_GetItem(sources, k));
        if (p->source[first + k] < 0 || p->source[first + k] >= p->slots) {
            PyErr_SetString(PyExc_ValueError, "a neuron has a source without a slot");
            return 0;
        }
    }
    p->begin[at + 1] = first + count;
    if (count > p->widest) {
        p->widest = count;
    }
    return !PyErr_Occurred();
}

/* make(kind, inputs, neurons, resting, outputs, links, table): keys of the inputs, rows of neurons, keys of nodes that
 * are read and never computed, slots of the outputs, and the number of links in all. */
static PyObject *make(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    if (count != 7) {
        return PyErr_Format(PyExc_TypeError, "expected 7 arguments, got %zd", count);
    }
    PyObject *inputs = args[1], *neurons = args[2], *resting = args[3], *outputs = args[4];
    if (!PyTuple_Check(inputs) || !PyTuple_Check(neurons) || !PyTuple_Check(resting) || !PyTuple_Check(outputs) ||
        !PyDict_Check(args[6])) {
        PyErr_SetString(PyExc_TypeError, "inputs, neurons, resting and outputs are tuples, the table is a dict");
        return NULL;
    }
    const int kind = (int)PyLong_AsLong(args[0]);
    const intptr_t links = PyLong_AsSsize_t(args[5]), in = PyTuple_Size(inputs), many = PyTuple_Size(neurons),
                   still = PyTuple_Size(resting), out = PyTuple_Size(outputs);
    if (PyErr_Occurred()) {
        return NULL;
    }
    Program *p = new_program(kind, in, many, in + many + still, out, links);
    if (p == NULL) {
        return NULL;
    }
    int good = 1;
    for (intptr_t i = 0; good && i < in; i++) {
        good = key_of(PyTuple_GetItem(inputs, i), &p->keys[i]);
    }
    for (intptr_t i = 0; good && i < still; i++) {
        good = key_of(PyTuple_GetItem(resting, i), &p->keys[in + many + i]);
    }
    for (intptr_t i = 0; good && i < many; i++) {
        PyObject *row = PyTuple_GetItem(neurons, i);
        good = PyTuple_Check(row) && PyTuple_Size(row) == 6 && make_neuron(p, i, row, args[6]);
    }
    for (intptr_t i = 0; good && i < out; i++) {
        p->out[i] = PyLong_AsSsize_t(PyTuple_GetItem(outputs, i));
        good = p->out[i] >= 0 && p->out[i] < p->slots;
    }
    if (!good) {
        Py_DECREF(p);
        if (!PyErr_Occurred()) {
            PyErr_SetString(PyExc_ValueError, "keys are integers, neurons tuples of six, outputs slots");
        }
        return NULL;
    }
    return (PyObject *)p;
}

/* --- computing --------------------------------------------------------------------------------- */

/* Read one sample into `inputs`; return 0 if it is no list or tuple of as many numbers, and no array. */
static int read_sample(PyObject *given, double *inputs, intptr_t count)
{
    const int is_list = PyList_Check(given);
    if (is_list || PyTuple_Check(given)) {
        if ((is_list ? PyList_Size(given) : PyTuple_Size(given)) != count) {
            return 0;
        }
        for (intptr_t i = 0; i < count; i++) {
            PyObject *one = is_list ? PyList_GetItem(given, i) : PyTuple_GetItem(given, i);
            if (!PyFloat_Check(one) && !PyLong_Check(one)) {
                return 0;
            }
            inputs[i] = PyFloat_AsDouble(one);
            if (inputs[i] == -1.0 && PyErr_Occurred()) {
                PyErr_Clear();
                return 0;
            }
        }
        return 1;
    }
    Py_buffer view;
    if (!PyObject_CheckBuffer(given) || PyObject_GetBuffer(given, &view, PyBUF_FORMAT | PyBUF_STRIDES) < 0) {
        PyErr_Clear();
        return 0;
    }
    const char kind = view.format != NULL && view.format[1] == 0 ? view.format[0] : 0;
    const int good = view.ndim == 1 && view.shape[0] == count && (kind == 'd' || kind == 'f');
    for (intptr_t i = 0; good && i < count; i++) {
        const char *at = (const char *)view.buf + i * view.strides[0];
        if (kind == 'd') {
            memcpy(&inputs[i], at, sizeof(double));
        }
        else {
            float one;
            memcpy(&one, at, sizeof one);
            inputs[i] = (double)one;
        }
    }
    PyBuffer_Release(&view);
    return good;
}

enum { FEW = 64 };

/* Do the work of `activate` and `advance`: one step of `dt` in time, if the network has memory. */
static int step(Program *p, const double *inputs, double dt)
{
    const size_t bank = (size_t)p->slots * sizeof(double), given = (size_t)p->inputs * sizeof(double);
    double few[FEW], *terms = few;
    if (p->widest > FEW || p->owns) {
        /* Where Python code runs, the step is made aside: it may fail, and it may call this network. */
        terms = PyMem_Malloc((size_t)(p->widest + 2 * p->slots + 1) * sizeof(double));
        if (terms == NULL) {
            PyErr_NoMemory();
            return 0;
        }
    }
    const int other = p->kind == FEED_FORWARD ? 0 : 1 - p->active;
    double *from = p->values + p->active * p->slots, *to = p->values + other * p->slots;
    double *old = from, *new = to;
    if (p->owns) {
        old = memcpy(terms + p->widest, from, bank);
        new = from == to ? old : memcpy(old + p->slots, to, bank);
    }
    memcpy(old, inputs, given);
    memcpy(new, inputs, given);
    const int good = compute(p, old, new, terms, dt);
    if (good && p->owns) {
        memcpy(from, old, bank);
        memcpy(to, new, bank);
    }
    if (good) {
        p->active = other;
        p->given = 1;
    }
    if (terms != few) {
        PyMem_Free(terms);
    }
    return good;
}

static PyObject *outputs_of(const Program *p, const double *values)
{
    PyObject *list = PyList_New(p->outputs);
    for (intptr_t i = 0; list != NULL && i < p->outputs; i++) {
        PyObject *one = PyFloat_FromDouble(values[p->out[i]]);
        if (one == NULL || PyList_SetItem(list, i, one) < 0) {
            Py_CLEAR(list);
        }
    }
    return list;
}

static PyObject *activate(PyObject *self, PyObject *given)
{
    Program *p = (Program *)self;
    double few[FEW], *inputs = few;
    if (p->inputs > FEW) {
        inputs = PyMem_Malloc((size_t)p->inputs * sizeof(double));
        if (inputs == NULL) {
            return PyErr_NoMemory();
        }
    }
    PyObject *result = Py_None;
    if (read_sample(given, inputs, p->inputs)) {
        p->ran = p->kind != FEED_FORWARD || !p->given ||
                 memcmp(inputs, p->values, (size_t)p->inputs * sizeof(double)) != 0;
        result = !p->ran || step(p, inputs, 0.0) ? outputs_of(p, p->values + p->active * p->slots) : NULL;
    }
    else {
        Py_INCREF(result);
    }
    if (inputs != few) {
        PyMem_Free(inputs);
    }
    return result;
}

/* advance(inputs, begin, end, step): make steps from one time to another; return the time that is reached, and the
 * slots that were written last, or None as `activate` does. */
static PyObject *advance(PyObject *self, PyObject *args)
{
    Program *p = (Program *)self;
    PyObject *given;
    double now, end, most;
    if (!PyArg_ParseTuple(args, "Oddd", &given, &now, &end, &most)) {
        return NULL;
    }
    double *inputs = PyMem_Malloc((size_t)(p->inputs + 1) * sizeof(double));
    if (inputs == NULL) {
        return PyErr_NoMemory();
    }
    if (!read_sample(given, inputs, p->inputs)) {
        PyMem_Free(inputs);
        Py_RETURN_NONE;
    }
    int good = 1;
    while (good && now < end) {
        /* As Python's `min(most, end - now)`. */
        const double dt = end - now < most ? end - now : most;
        good = step(p, inputs, dt) && !PyErr_CheckSignals();
        now += dt;
    }
    PyMem_Free(inputs);
    return good ? PyFloat_FromDouble(now) : NULL;
}

/* play(programs, X, state, out, samples, terms): see `_networks`. Of programs with memory, `state` has the slots of
 * each sample of each program, one program after the other. */
static int play_one(const Program *p, const double *x, double *state, double *out, intptr_t samples, double *space)
{
    double *terms = space, *values = space + p->widest, *before = values + p->slots;
    memcpy(values, p->values, (size_t)p->slots * sizeof(double));
    for (intptr_t i = 0; i < samples; i++) {
        double *from = values;
        if (p->kind != FEED_FORWARD) {
            from = memcpy(before, state + i * p->slots, (size_t)p->slots * sizeof(double));
            memcpy(values, from, (size_t)p->slots * sizeof(double));
        }
        memcpy(values, x + i * p->inputs, (size_t)p->inputs * sizeof(double));
        memcpy(from, x + i * p->inputs, (size_t)p->inputs * sizeof(double));
        if (!compute(p, from, values, terms, 0.0)) {
            return 0;
        }
        if (p->kind != FEED_FORWARD) {
            memcpy(state + i * p->slots, values, (size_t)p->slots * sizeof(double));
        }
        for (intptr_t k = 0; k < p->outputs; k++) {
            out[i * p->outputs + k] = values[p->out[k]];
        }
    }
    return 1;
}

static PyObject *play(PyObject *module, PyObject *args)
{
    PyObject *programs;
    Py_buffer x, state, out;
    Py_ssize_t samples;
    if (!PyArg_ParseTuple(args, "O!y*w*w*n", &PyTuple_Type, &programs, &x, &state, &out, &samples)) {
        return NULL;
    }
    intptr_t widest = 0, slots = 0, in = 0, results = 0, kept = 0;
    int good = 1, owns = 0;
    const Py_ssize_t count = PyTuple_Size(programs);
    for (Py_ssize_t i = 0; i < count; i++) {
        const Program *p = (Program *)PyTuple_GetItem(programs, i);
        if (!PyObject_TypeCheck((PyObject *)p, program_type) || p->kind > RECURRENT) {
            PyErr_SetString(PyExc_TypeError, "these are no programs of steps");
            good = 0;
            break;
        }
        widest = p->widest > widest ? p->widest : widest;
        slots = p->slots > slots ? p->slots : slots;
        in += p->inputs;
        results += p->outputs;
        kept += p->kind == FEED_FORWARD ? 0 : p->slots;
        owns |= p->owns;
    }
    const intptr_t word = sizeof(double);
    if (good && (samples < 0 || x.len != in * samples * word || out.len != results * samples * word ||
                 state.len != kept * samples * word)) {
        PyErr_SetString(PyExc_ValueError, "the arrays have other sizes than the programs need");
        good = 0;
    }
    double *space = good ? PyMem_Malloc((size_t)(widest + 2 * slots + 1) * sizeof(double)) : NULL;
    if (good && space == NULL) {
        PyErr_NoMemory();
        good = 0;
    }
    if (good) {
        const double *xs = x.buf;
        double *states = state.buf, *outs = out.buf;
        PyThreadState *saved = owns ? NULL : PyEval_SaveThread();
        for (Py_ssize_t i = 0; good && i < count; i++) {
            const Program *p = (Program *)PyTuple_GetItem(programs, i);
            good = play_one(p, xs, states, outs, samples, space);
            xs += p->inputs * samples;
            outs += p->outputs * samples;
            states += p->kind == FEED_FORWARD ? 0 : p->slots * samples;
        }
        if (saved != NULL) {
            PyEval_RestoreThread(saved);
        }
    }
    PyMem_Free(space);
    PyBuffer_Release(&x);
    PyBuffer_Release(&state);
    PyBuffer_Release(&out);
    if (!good) {
        return NULL;
    }
    Py_RETURN_NONE;
}

/* Samples that are computed together: their partial sums stay in the nearest cache. */
#define BLOCK 256

/* One feed-forward program for a block of shared samples; `values` has a row of BLOCK numbers for each slot. */
static void play_block(const Program *p, const double *x, intptr_t stride, intptr_t size, double *values, double *terms)
{
    for (intptr_t i = 0; i < p->inputs; i++) {
        memcpy(values + i * BLOCK, x + i * stride, (size_t)size * sizeof(double));
    }
    for (intptr_t i = 0; i < p->neurons; i++) {
        const intptr_t first = p->begin[i], count = p->begin[i + 1] - first;
        double *restrict row = values + (p->inputs + i) * BLOCK;
        if (p->aggregation[i] == SUM && !compensated) {
            memset(row, 0, (size_t)size * sizeof(double));
            for (intptr_t k = first; k < first + count; k++) {
                const double *from = values + p->source[k] * BLOCK, weight = p->weight[k];
                for (intptr_t s = 0; s < size; s++) {
                    row[s] += from[s] * weight;
                }
            }
        }
        else {
            for (intptr_t s = 0; s < size; s++) {
                for (intptr_t k = 0; k < count; k++) {
                    terms[k] = values[p->source[first + k] * BLOCK + s] * p->weight[first + k];
                }
                row[s] = aggregated(p->aggregation[i], terms, count);
            }
        }
        const double bias = p->bias[i], response = p->response[i];
        const int activation = p->activation[i];
        for (intptr_t s = 0; s < size; s++) {
            row[s] = activated(activation, bias + response * row[s]);
        }
    }
}

/* play_shared(programs, X, out): X has a row for each input, out a row of outputs for each sample of each program. */
static PyObject *play_shared(PyObject *module, PyObject *args)
{
    PyObject *programs;
    Py_buffer x, out;
    if (!PyArg_ParseTuple(args, "O!y*w*", &PyTuple_Type, &programs, &x, &out)) {
        return NULL;
    }
    const Py_ssize_t count = PyTuple_Size(programs);
    const intptr_t word = sizeof(double);
    intptr_t widest = 0, slots = 0, inputs = -1, results = 0;
    int good = 1;
    for (Py_ssize_t i = 0; good && i < count; i++) {
        const Program *p = (Program *)PyTuple_GetItem(programs, i);
        good = PyObject_TypeCheck((PyObject *)p, program_type) && p->kind == FEED_FORWARD && !p->owns &&
               (inputs < 0 || inputs == p->inputs);
        if (good) {
            inputs = p->inputs;
            widest = p->widest > widest ? p->widest : widest;
            slots = p->slots > slots ? p->slots : slots;
            results += p->outputs;
        }
    }
    const intptr_t samples = good && inputs > 0 ? x.len / word / inputs : 0;
    good = good && (count == 0 || inputs > 0) && x.len == samples * inputs * word && out.len == results * samples * word;
    double *space = good ? PyMem_Malloc((size_t)(slots * BLOCK + widest + 1) * sizeof(double)) : NULL;
    if (space != NULL && count) {
        const double *xs = x.buf;
        double *outs = out.buf;
        PyThreadState *saved = PyEval_SaveThread();
        for (Py_ssize_t i = 0; i < count; i++) {
            const Program *p = (Program *)PyTuple_GetItem(programs, i);
            for (intptr_t begin = 0; begin < samples; begin += BLOCK) {
                const intptr_t size = samples - begin < BLOCK ? samples - begin : BLOCK;
                play_block(p, xs + begin, samples, size, space, space + slots * BLOCK);
                for (intptr_t k = 0; k < p->outputs; k++) {
                    const double *row = space + p->out[k] * BLOCK;
                    for (intptr_t s = 0; s < size; s++) {
                        outs[(begin + s) * p->outputs + k] = row[s];
                    }
                }
            }
            outs += samples * p->outputs;
        }
        PyEval_RestoreThread(saved);
    }
    PyBuffer_Release(&x);
    PyBuffer_Release(&out);
    if (!good) {
        PyErr_SetString(PyExc_ValueError, "play_shared takes feed-forward programs, and arrays of their sizes");
        return NULL;
    }
    if (space == NULL) {
        return PyErr_NoMemory();
    }
    PyMem_Free(space);
    Py_RETURN_NONE;
}

/* --- what a program shows ---------------------------------------------------------------------- */

static PyObject *reset(PyObject *self, PyObject *ignored)
{
    Program *p = (Program *)self;
    memset(p->values, 0, (size_t)((p->kind == FEED_FORWARD ? 1 : 2) * p->slots) * sizeof(double));
    p->active = p->given = p->ran = 0;
    Py_RETURN_NONE;
}

/* put(slot, number): set a slot in all banks. */
static PyObject *put(PyObject *self, PyObject *args)
{
    Program *p = (Program *)self;
    Py_ssize_t slot;
    double number;
    if (!PyArg_ParseTuple(args, "nd", &slot, &number)) {
        return NULL;
    }
    if (slot < 0 || slot >= p->slots) {
        return PyErr_Format(PyExc_IndexError, "there is no slot %zd", slot);
    }
    p->values[slot] = number;
    if (p->kind != FEED_FORWARD) {
        p->values[p->slots + slot] = number;
    }
    Py_RETURN_NONE;
}

/* bank(i): the numbers in all slots; 0 or 1, as `active` says for the latest. */
static PyObject *bank(PyObject *self, PyObject *which)
{
    Program *p = (Program *)self;
    const long i = PyLong_AsLong(which);
    if (i < 0 || i > (p->kind != FEED_FORWARD)) {
        return PyErr_Occurred() ? NULL : PyErr_Format(PyExc_IndexError, "there is no bank %ld", i);
    }
    return floats(p->values + i * p->slots, p->slots);
}

/* resume(active, banks): take on the values of another program of the same network. */
static PyObject *resume(PyObject *self, PyObject *args)
{
    Program *p = (Program *)self;
    int active;
    PyObject *banks;
    if (!PyArg_ParseTuple(args, "iO!", &active, &PyList_Type, &banks)) {
        return NULL;
    }
    const intptr_t count = p->kind == FEED_FORWARD ? 1 : 2;
    if (active < 0 || active >= count || PyList_Size(banks) != count) {
        PyErr_SetString(PyExc_ValueError, "there is no such bank");
        return NULL;
    }
    for (intptr_t i = 0; i < count; i++) {
        PyObject *bank = PyList_GetItem(banks, i);
        for (intptr_t k = 0; k < p->slots; k++) {
            PyObject *one = PyList_Check(bank) ? PyList_GetItem(bank, k) : NULL;
            p->values[i * p->slots + k] = one == NULL ? 0.0 : PyFloat_AsDouble(one);
            if (PyErr_Occurred()) {
                return NULL;
            }
        }
    }
    p->active = active;
    p->given = 1;
    Py_RETURN_NONE;
}

static PyObject *get_keys(PyObject *self, void *ignored)
{
    Program *p = (Program *)self;
    PyObject *keys = PyList_New(p->slots);
    for (intptr_t i = 0; keys != NULL && i < p->slots; i++) {
        PyObject *one = PyLong_FromLongLong(p->keys[i]);
        if (one == NULL || PyList_SetItem(keys, i, one) < 0) {
            Py_CLEAR(keys);
        }
    }
    return keys;
}

static PyObject *function_of(const Program *p, intptr_t neuron, int place)
{
    PyObject *own = p->own[2 * neuron + place];
    if (own != NULL) {
        Py_INCREF(own);
        return own;
    }
    return PyLong_FromLong((place ? p->aggregation : p->activation)[neuron]);
}

/* Rows of key, activation, aggregation (codes, or functions of the user), genes, slots of sources, time constant. */
static PyObject *get_rows(PyObject *self, void *ignored)
{
    Program *p = (Program *)self;
    PyObject *rows = PyList_New(p->neurons);
    for (intptr_t i = 0; rows != NULL && i < p->neurons; i++) {
        const intptr_t first = p->begin[i], count = p->begin[i + 1] - first;
        PyObject *genes = PyTuple_New(count + 2), *sources = PyTuple_New(count), *row = NULL;
        if (genes != NULL && sources != NULL) {
            PyTuple_SetItem(genes, 0, PyFloat_FromDouble(p->bias[i]));
            PyTuple_SetItem(genes, 1, PyFloat_FromDouble(p->response[i]));
            for (intptr_t k = 0; k < count; k++) {
                PyTuple_SetItem(genes, k + 2, PyFloat_FromDouble(p->weight[first + k]));
                PyTuple_SetItem(sources, k, PyLong_FromSsize_t(p->source[first + k]));
            }
            row = Py_BuildValue("LNNOOd", (long long)p->keys[p->inputs + i], function_of(p, i, 0), function_of(p, i, 1),
                                genes, sources, p->constant[i]);
        }
        Py_XDECREF(genes);
        Py_XDECREF(sources);
        if (row == NULL || PyErr_Occurred() || PyList_SetItem(rows, i, row) < 0) {
            Py_CLEAR(rows);
        }
    }
    return rows;
}

static PyObject *get_out(PyObject *self, void *ignored)
{
    Program *p = (Program *)self;
    PyObject *slots = PyTuple_New(p->outputs);
    for (intptr_t i = 0; slots != NULL && i < p->outputs; i++) {
        PyTuple_SetItem(slots, i, PyLong_FromSsize_t(p->out[i]));
    }
    return slots;
}

static PyObject *get_number(PyObject *self, void *which)
{
    Program *p = (Program *)self;
    const intptr_t numbers[] = {p->active, p->given, p->ran, p->owns, p->inputs, p->neurons, p->slots, p->outputs, p->kind};
    return PyLong_FromSsize_t(numbers[(intptr_t)which]);
}

static PyGetSetDef members[] = {
    {"keys", get_keys, NULL, PyDoc_STR("The key of each slot."), NULL},
    {"rows", get_rows, NULL, PyDoc_STR("The neurons."), NULL},
    {"out", get_out, NULL, PyDoc_STR("The slots of the outputs."), NULL},
    {"active", get_number, NULL, PyDoc_STR("The bank with the latest values."), (void *)0},
    {"given", get_number, NULL, PyDoc_STR("Whether there was a sample."), (void *)1},
    {"ran", get_number, NULL, PyDoc_STR("Whether the latest sample was computed."), (void *)2},
    {"owns", get_number, NULL, PyDoc_STR("Whether a function is the user's own."), (void *)3},
    {"inputs", get_number, NULL, PyDoc_STR("The number of inputs."), (void *)4},
    {"neurons", get_number, NULL, PyDoc_STR("The number of neurons."), (void *)5},
    {"slots", get_number, NULL, PyDoc_STR("The number of slots."), (void *)6},
    {"outputs", get_number, NULL, PyDoc_STR("The number of outputs."), (void *)7},
    {"kind", get_number, NULL, PyDoc_STR("0 feed-forward, 1 recurrent, 2 and 3 of continuous time."), (void *)8},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyMethodDef program_methods[] = {
    {"activate", activate, METH_O, PyDoc_STR("Compute one sample; None if it is no list of as many numbers.")},
    {"advance", advance, METH_VARARGS, PyDoc_STR("Make steps in time.")},
    {"reset", reset, METH_NOARGS, PyDoc_STR("Set all values to 0.")},
    {"put", put, METH_VARARGS, PyDoc_STR("Set the value in a slot.")},
    {"resume", resume, METH_VARARGS, PyDoc_STR("Take on the values of another program of this network.")},
    {"bank", bank, METH_O, PyDoc_STR("The values in all slots.")},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot program_slots[] = {
    {Py_tp_dealloc, dealloc},         {Py_tp_traverse, traverse}, {Py_tp_clear, clear},
    {Py_tp_methods, program_methods}, {Py_tp_getset, members},    {0, NULL},
};

static PyType_Spec program_spec = {
    .name = "reactgrad.neat._flat.Program",
    .basicsize = sizeof(Program),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .slots = program_slots,
};

static PyMethodDef methods[] = {
    {"read", (PyCFunction)(void (*)(void))read_program, METH_FASTCALL,
     PyDoc_STR("Return the program of a genome, or None if something about it is unusual.")},
    {"make", (PyCFunction)(void (*)(void))make, METH_FASTCALL, PyDoc_STR("Return a program made of rows.")},
    {"genes", make_genes, METH_NOARGS, PyDoc_STR("Return a genome of arrays, without any gene.")},
    {"distances", distances, METH_VARARGS, PyDoc_STR("Compute the distances of genomes from one.")},
    {"play", play, METH_VARARGS, PyDoc_STR("Compute several programs, each for its own samples.")},
    {"play_shared", play_shared, METH_VARARGS, PyDoc_STR("Compute several programs for the same samples.")},
    {NULL, NULL, 0, NULL},
};

static int set_up(PyObject *module)
{
    compensated = Py_Version >= 0x030C0000;
    name_enabled = PyUnicode_InternFromString("enabled");
    name_weight = PyUnicode_InternFromString("weight");
    name_bias = PyUnicode_InternFromString("bias");
    name_response = PyUnicode_InternFromString("response");
    name_activation = PyUnicode_InternFromString("activation");
    name_aggregation = PyUnicode_InternFromString("aggregation");
    name_constant = PyUnicode_InternFromString("time_constant");
    program_type = (PyTypeObject *)PyType_FromSpec(&program_spec);
    genes_type = (PyTypeObject *)PyType_FromSpec(&genes_spec);
    function_names = PyList_New(0);
    if (genes_type == NULL || PyModule_AddObjectRef(module, "Genes", (PyObject *)genes_type) < 0 ||
        function_names == NULL || PyModule_AddObjectRef(module, "names", function_names) < 0) {
        return -1;
    }
    return program_type == NULL || PyModule_AddObjectRef(module, "Program", (PyObject *)program_type) < 0 ? -1 : 0;
}

static PyModuleDef_Slot slots[] = {{Py_mod_exec, (void *)set_up}, {0, NULL}};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT,
    .m_name = "_flat",
    .m_doc = "Networks as flat programs, compiled when the package was built.",
    .m_methods = methods,
    .m_slots = slots,
};

PyMODINIT_FUNC PyInit__flat(void)
{
    return PyModuleDef_Init(&definition);
}
