/* Genomes as arrays, for populations that evolve by compiled loops; `_genome` is their face in Python.
 *
 * Links are sorted by source and target, nodes by key, so that two genomes are compared by one merge. Random numbers
 * come from a generator that is seeded for each call: what a call does follows from its arguments alone. Names of
 * functions are places in a list that `_genome` keeps.
 */
#ifndef REACTGRAD_NEAT_GENES
#define REACTGRAD_NEAT_GENES

typedef struct {
    int64_t source, target, innovation;
    double weight;
    int enabled;
} Link;

typedef struct {
    int64_t key;
    double bias, response, constant;
    int activation, aggregation;
} Node;

typedef struct {
    PyObject_HEAD
    intptr_t links, nodes, most_links, most_nodes;
    Link *link;
    Node *node;
} Genes;

static PyTypeObject *genes_type;

/* xoshiro256++ by Blackman and Vigna (2019), seeded by splitmix64. */
typedef struct {
    uint64_t state[4];
    double spare;
    int has_spare;
} Draw;

static Draw seeded(uint64_t seed)
{
    Draw draw = {.has_spare = 0};
    for (int i = 0; i < 4; i++) {
        uint64_t z = (seed += 0x9E3779B97F4A7C15u);
        z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
        z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
        draw.state[i] = z ^ (z >> 31);
    }
    return draw;
}

static uint64_t turned(uint64_t x, int by)
{
    return (x << by) | (x >> (64 - by));
}

static double uniform(Draw *draw)
{
    uint64_t *s = draw->state;
    const uint64_t result = turned(s[0] + s[3], 23) + s[0], t = s[1] << 17;
    s[2] ^= s[0], s[3] ^= s[1], s[1] ^= s[2], s[0] ^= s[3], s[2] ^= t;
    s[3] = turned(s[3], 45);
    return (double)(result >> 11) * 0x1.0p-53;
}

/* By the polar method of Marsaglia (1964). */
static double normal(Draw *draw)
{
    if (draw->has_spare) {
        draw->has_spare = 0;
        return draw->spare;
    }
    double x, y, r;
    do {
        x = 2.0 * uniform(draw) - 1.0;
        y = 2.0 * uniform(draw) - 1.0;
        r = x * x + y * y;
    } while (r >= 1.0 || r == 0.0);
    const double factor = sqrt(-2.0 * log(r) / r);
    draw->spare = y * factor;
    draw->has_spare = 1;
    return x * factor;
}

/* --- memory -------------------------------------------------------------------------------------- */

static int has_room(Genes *g, intptr_t links, intptr_t nodes)
{
    if (links > g->most_links) {
        Link *link = PyMem_Realloc(g->link, (size_t)links * sizeof(Link));
        if (link == NULL) {
            PyErr_NoMemory();
            return 0;
        }
        g->link = link;
        g->most_links = links;
    }
    if (nodes > g->most_nodes) {
        Node *node = PyMem_Realloc(g->node, (size_t)nodes * sizeof(Node));
        if (node == NULL) {
            PyErr_NoMemory();
            return 0;
        }
        g->node = node;
        g->most_nodes = nodes;
    }
    return 1;
}

static Genes *new_genes(intptr_t links, intptr_t nodes)
{
    Genes *g = (Genes *)((allocfunc)PyType_GetSlot(genes_type, Py_tp_alloc))(genes_type, 0);
    if (g != NULL && !has_room(g, links, nodes)) {
        Py_CLEAR(g);
    }
    return g;
}

static void dealloc_genes(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    PyMem_Free(((Genes *)self)->link);
    PyMem_Free(((Genes *)self)->node);
    ((freefunc)PyType_GetSlot(type, Py_tp_free))(self);
    Py_DECREF(type);
}

static int order_of(const Link *one, int64_t source, int64_t target)
{
    if (one->source != source) {
        return one->source < source ? -1 : 1;
    }
    return one->target < target ? -1 : one->target > target;
}

/* The place of a link, or where it would be. */
static intptr_t place_of(const Genes *g, int64_t source, int64_t target)
{
    intptr_t low = 0, high = g->links;
    while (low < high) {
        const intptr_t middle = (low + high) / 2;
        if (order_of(g->link + middle, source, target) < 0) {
            low = middle + 1;
        }
        else {
            high = middle;
        }
    }
    return low;
}

static intptr_t node_place(const Genes *g, int64_t key)
{
    intptr_t low = 0, high = g->nodes;
    while (low < high) {
        const intptr_t middle = (low + high) / 2;
        if (g->node[middle].key < key) {
            low = middle + 1;
        }
        else {
            high = middle;
        }
    }
    return low;
}

static int put_link(Genes *g, Link link)
{
    const intptr_t at = place_of(g, link.source, link.target);
    if (at < g->links && order_of(g->link + at, link.source, link.target) == 0) {
        g->link[at] = link;
        return 1;
    }
    if (g->links == g->most_links && !has_room(g, g->links + g->links / 4 + 4, 0)) {
        return 0;
    }
    memmove(g->link + at + 1, g->link + at, (size_t)(g->links - at) * sizeof(Link));
    g->link[at] = link;
    g->links++;
    return 1;
}

static int put_node(Genes *g, Node node)
{
    const intptr_t at = node_place(g, node.key);
    if (at < g->nodes && g->node[at].key == node.key) {
        g->node[at] = node;
        return 1;
    }
    if (g->nodes == g->most_nodes && !has_room(g, 0, g->nodes + g->nodes / 4 + 4)) {
        return 0;
    }
    memmove(g->node + at + 1, g->node + at, (size_t)(g->nodes - at) * sizeof(Node));
    g->node[at] = node;
    g->nodes++;
    return 1;
}

/* --- what genomes do ----------------------------------------------------------------------------- */

/* crossover(other, seed, redraws): the child of this genome, the fitter one, and another. Its structure is that of the
 * fitter one. With `redraws`, a link that is disabled in a parent is enabled in one child of four (neat-python 2.1);
 * else it is disabled in at least three of four (2.0). */
static PyObject *crossover(PyObject *self, PyObject *args)
{
    const Genes *a = (Genes *)self;
    PyObject *given;
    unsigned long long seed;
    int redraws;
    if (!PyArg_ParseTuple(args, "O!Ki", genes_type, &given, &seed, &redraws)) {
        return NULL;
    }
    const Genes *b = (Genes *)given;
    Genes *child = new_genes(a->links + 2, a->nodes + 1);
    if (child == NULL) {
        return NULL;
    }
    Draw draw = seeded(seed);
    intptr_t k = 0;
    for (intptr_t i = 0; i < a->links; i++) {
        const Link *one = a->link + i;
        Link *new = child->link + i;
        *new = *one;
        while (k < b->links && order_of(b->link + k, one->source, one->target) < 0) {
            k++;
        }
        const Link *other = b->link + k;
        if (k == b->links || order_of(other, one->source, one->target) || other->innovation != one->innovation) {
            continue;
        }
        if (uniform(&draw) <= 0.5) {
            new->weight = other->weight;
        }
        if (uniform(&draw) <= 0.5) {
            new->enabled = other->enabled;
        }
        if (!one->enabled || !other->enabled) {
            const int stays_off = uniform(&draw) < 0.75;
            new->enabled = redraws ? !stays_off : new->enabled && !stays_off;
        }
    }
    child->links = a->links;
    k = 0;
    for (intptr_t i = 0; i < a->nodes; i++) {
        const Node *one = a->node + i;
        Node *new = child->node + i;
        *new = *one;
        while (k < b->nodes && b->node[k].key < one->key) {
            k++;
        }
        if (k == b->nodes || b->node[k].key != one->key) {
            continue;
        }
        const Node *other = b->node + k;
        if (uniform(&draw) <= 0.5) {
            new->bias = other->bias;
        }
        if (uniform(&draw) <= 0.5) {
            new->response = other->response;
        }
        if (uniform(&draw) <= 0.5) {
            new->activation = other->activation;
        }
        if (uniform(&draw) <= 0.5) {
            new->aggregation = other->aggregation;
        }
        if (uniform(&draw) <= 0.5) {
            new->constant = other->constant;
        }
    }
    child->nodes = a->nodes;
    return (PyObject *)child;
}

/* The rates of a float: mutation, replacement, power; mean, deviation and kind of new ones; limits. */
enum { RATE, REPLACE, POWER, CENTER, DEVIATION, IS_UNIFORM, LEAST, MOST, FLOAT_RATES };
/* Weight, bias, response, time constant; then of `enabled` the rate and what is added to it; then of both functions the
 * rate, the number of options, and the options. */
enum { FLOATS = 4, ENABLED = FLOATS * FLOAT_RATES, FUNCTIONS = ENABLED + 3 };

static double limited(double value, const double *rates)
{
    const double below = rates[MOST] < value ? rates[MOST] : value;
    return rates[LEAST] > below ? rates[LEAST] : below;
}

static double new_float(const double *rates, Draw *draw)
{
    if (rates[IS_UNIFORM] != 0.0) {
        const double low = fmax(rates[LEAST], rates[CENTER] - 2.0 * rates[DEVIATION]),
                     high = fmin(rates[MOST], rates[CENTER] + 2.0 * rates[DEVIATION]);
        return low + (high - low) * uniform(draw);
    }
    return limited(rates[CENTER] + rates[DEVIATION] * normal(draw), rates);
}

static void mutate_float(double *value, const double *rates, Draw *draw)
{
    const double r = uniform(draw);
    if (r < rates[RATE]) {
        *value = limited(*value + rates[POWER] * normal(draw), rates);
    }
    else if (r < rates[REPLACE] + rates[RATE]) {
        *value = new_float(rates, draw);
    }
}

static void mutate_name(int *name, const double *rates, Draw *draw)
{
    if (rates[0] > 0.0 && rates[1] > 0.0 && uniform(draw) < rates[0]) {
        *name = (int)rates[2 + (intptr_t)(uniform(draw) * rates[1])];
    }
}

static int are_rates(const Py_buffer *view)
{
    const double *names = (const double *)view->buf + FUNCTIONS;
    const intptr_t count = view->len / (intptr_t)sizeof(double);
    return count >= FUNCTIONS + 4 &&
           count == FUNCTIONS + 4 + (intptr_t)names[1] + (intptr_t)names[3 + (intptr_t)names[1]];
}

/* Mutate all numbers, switches and functions. */
static void mutate_numbers(Genes *g, const double *rates, Draw *draw)
{
    const double *names = rates + FUNCTIONS, *others = names + 2 + (intptr_t)names[1];
    for (intptr_t i = 0; i < g->links; i++) {
        Link *link = g->link + i;
        mutate_float(&link->weight, rates, draw);
        const double rate = rates[ENABLED] + rates[ENABLED + (link->enabled ? 2 : 1)];
        if (rate > 0.0 && uniform(draw) < rate) {
            link->enabled = uniform(draw) < 0.5;
        }
    }
    for (intptr_t i = 0; i < g->nodes; i++) {
        Node *node = g->node + i;
        mutate_float(&node->bias, rates + FLOAT_RATES, draw);
        mutate_float(&node->response, rates + 2 * FLOAT_RATES, draw);
        mutate_name(&node->activation, names, draw);
        mutate_name(&node->aggregation, others, draw);
        mutate_float(&node->constant, rates + 3 * FLOAT_RATES, draw);
    }
}

typedef struct {
    double disjoint, excess, weight, enabled;
    int with_nodes, by_innovation;
} Measure;

static double distance_of(const Genes *a, const Genes *b, const Measure *m)
{
    double total = 0.0, nodes = 0.0;
    intptr_t i = 0, k = 0, alone = 0, beyond = 0;
    while (m->with_nodes && (i < a->nodes || k < b->nodes)) {
        if (k == b->nodes || (i < a->nodes && a->node[i].key < b->node[k].key)) {
            alone++, i++;
        }
        else if (i == a->nodes || b->node[k].key < a->node[i].key) {
            alone++, k++;
        }
        else {
            const Node *one = a->node + i++, *other = b->node + k++;
            double d = fabs(one->bias - other->bias) + fabs(one->response - other->response);
            d += fabs(one->constant - other->constant);
            d += (one->activation != other->activation) + (one->aggregation != other->aggregation);
            nodes += d * m->weight;
        }
    }
    const intptr_t most_nodes = a->nodes > b->nodes ? a->nodes : b->nodes;
    if (m->with_nodes && most_nodes) {
        total = (nodes + m->disjoint * (double)alone) / (double)most_nodes;
    }
    int64_t newest[2] = {0, 0};
    for (intptr_t at = 0; m->by_innovation && at < a->links; at++) {
        newest[0] = a->link[at].innovation > newest[0] ? a->link[at].innovation : newest[0];
    }
    for (intptr_t at = 0; m->by_innovation && at < b->links; at++) {
        newest[1] = b->link[at].innovation > newest[1] ? b->link[at].innovation : newest[1];
    }
    double links = 0.0;
    alone = i = k = 0;
    while (i < a->links || k < b->links) {
        const Link *one = a->link + i, *other = b->link + k;
        const int order = k == b->links ? -1 : i == a->links ? 1 : order_of(one, other->source, other->target);
        const int differs = order == 0 && m->by_innovation && one->innovation != other->innovation;
        if (order == 0 && !differs) {
            links += (fabs(one->weight - other->weight) + (one->enabled != other->enabled ? m->enabled : 0.0)) * m->weight;
            i++, k++;
            continue;
        }
        if (order < 0 || differs) {
            *(m->by_innovation && one->innovation > newest[1] ? &beyond : &alone) += 1;
            i++;
        }
        if (order > 0 || differs) {
            *(m->by_innovation && other->innovation > newest[0] ? &beyond : &alone) += 1;
            k++;
        }
    }
    const intptr_t most = a->links > b->links ? a->links : b->links;
    if (most) {
        total += (links + m->disjoint * (double)alone + m->excess * (double)beyond) / (double)most;
    }
    return total;
}

/* distances(genes, others, measure, out): from one genome to several. */
static PyObject *distances(PyObject *module, PyObject *args)
{
    PyObject *one, *others;
    Py_buffer out;
    Measure m;
    if (!PyArg_ParseTuple(args, "O!O!(ddddii)w*", genes_type, &one, &PyList_Type, &others, &m.disjoint, &m.excess,
                          &m.weight, &m.enabled, &m.with_nodes, &m.by_innovation, &out)) {
        return NULL;
    }
    const intptr_t count = PyList_Size(others);
    int good = out.len == count * (intptr_t)sizeof(double);
    for (intptr_t i = 0; good && i < count; i++) {
        PyObject *other = PyList_GetItem(others, i);
        good = PyObject_TypeCheck(other, genes_type);
        if (good) {
            ((double *)out.buf)[i] = distance_of((Genes *)one, (Genes *)other, &m);
        }
    }
    PyBuffer_Release(&out);
    if (!good) {
        PyErr_SetString(PyExc_TypeError, "distances takes genes and as many numbers");
        return NULL;
    }
    Py_RETURN_NONE;
}

/* Whether links, also disabled ones, lead from the target to the source; -1 without memory. */
static int leads_back(const Genes *g, int64_t source, int64_t target)
{
    if (source == target) {
        return 1;
    }
    char *reached = PyMem_Calloc((size_t)g->nodes + 1, 1);
    int64_t *pending = PyMem_Malloc((size_t)(g->nodes + 2) * sizeof(int64_t));
    if (reached == NULL || pending == NULL) {
        PyMem_Free(reached);
        PyMem_Free(pending);
        PyErr_NoMemory();
        return -1;
    }
    intptr_t left = 0;
    int closes = 0;
    pending[left++] = target;
    while (left && !closes) {
        const int64_t key = pending[--left];
        for (intptr_t i = place_of(g, key, INT64_MIN); i < g->links && g->link[i].source == key; i++) {
            const int64_t next = g->link[i].target;
            const intptr_t at = node_place(g, next);
            closes |= next == source;
            if (at < g->nodes && g->node[at].key == next && !reached[at]) {
                reached[at] = 1;
                pending[left++] = next;
            }
        }
    }
    PyMem_Free(reached);
    PyMem_Free(pending);
    return closes;
}

/* Remove the link at a place; a node with all its links. */
static void remove_link(Genes *g, intptr_t at)
{
    g->links--;
    memmove(g->link + at, g->link + at + 1, (size_t)(g->links - at) * sizeof(Link));
}

static void remove_node(Genes *g, int64_t key)
{
    intptr_t kept = 0;
    for (intptr_t i = 0; i < g->links; i++) {
        if (g->link[i].source != key && g->link[i].target != key) {
            g->link[kept++] = g->link[i];
        }
    }
    g->links = kept;
    const intptr_t at = node_place(g, key);
    if (at < g->nodes && g->node[at].key == key) {
        g->nodes--;
        memmove(g->node + at, g->node + at + 1, (size_t)(g->nodes - at) * sizeof(Node));
    }
}

#include "_structure.h"

/* --- what Python asks ---------------------------------------------------------------------------- */

static PyObject *genes_put_link(PyObject *self, PyObject *args)
{
    long long source, target, innovation;
    Link link;
    if (!PyArg_ParseTuple(args, "LLLdp", &source, &target, &innovation, &link.weight, &link.enabled)) {
        return NULL;
    }
    link.source = source, link.target = target, link.innovation = innovation;
    if (!put_link((Genes *)self, link)) {
        return NULL;
    }
    Py_RETURN_NONE;
}

static PyObject *genes_put_node(PyObject *self, PyObject *args)
{
    long long key;
    Node node;
    if (!PyArg_ParseTuple(args, "Ldddii", &key, &node.bias, &node.response, &node.constant, &node.activation,
                          &node.aggregation)) {
        return NULL;
    }
    node.key = key;
    if (!put_node((Genes *)self, node)) {
        return NULL;
    }
    Py_RETURN_NONE;
}

/* find(source, target): the place of a link, or -1. */
static PyObject *find_link(PyObject *self, PyObject *args)
{
    const Genes *g = (Genes *)self;
    long long source, target;
    if (!PyArg_ParseTuple(args, "LL", &source, &target)) {
        return NULL;
    }
    const intptr_t at = place_of(g, source, target);
    return PyLong_FromSsize_t(at < g->links && order_of(g->link + at, source, target) == 0 ? at : -1);
}

/* at(place): a link as a tuple. */
static PyObject *link_tuple(const Link *one)
{
    return Py_BuildValue("LLLdO", (long long)one->source, (long long)one->target, (long long)one->innovation, one->weight,
                         one->enabled ? Py_True : Py_False);
}

static PyObject *link_at(PyObject *self, PyObject *which)
{
    const Genes *g = (Genes *)self;
    const intptr_t at = PyLong_AsSsize_t(which);
    if (at < 0 || at >= g->links) {
        return PyErr_Occurred() ? NULL : PyErr_Format(PyExc_IndexError, "there is no link %zd", at);
    }
    return link_tuple(g->link + at);
}

static PyObject *genes_keys(PyObject *self, PyObject *ignored)
{
    const Genes *g = (Genes *)self;
    PyObject *keys = PyList_New(g->nodes);
    for (intptr_t i = 0; keys != NULL && i < g->nodes; i++) {
        PyObject *one = PyLong_FromLongLong(g->node[i].key);
        if (one == NULL || PyList_SetItem(keys, i, one) < 0) {
            Py_CLEAR(keys);
        }
    }
    return keys;
}

/* rows(): the nodes and the links as lists of tuples. */
static PyObject *genes_rows(PyObject *self, PyObject *ignored)
{
    const Genes *g = (Genes *)self;
    PyObject *nodes = PyList_New(g->nodes), *links = PyList_New(g->links);
    int good = nodes != NULL && links != NULL;
    for (intptr_t i = 0; good && i < g->nodes; i++) {
        const Node *one = g->node + i;
        PyObject *row = Py_BuildValue("Ldddii", (long long)one->key, one->bias, one->response, one->constant,
                                      one->activation, one->aggregation);
        good = row != NULL && PyList_SetItem(nodes, i, row) == 0;
    }
    for (intptr_t i = 0; good && i < g->links; i++) {
        PyObject *row = link_tuple(g->link + i);
        good = row != NULL && PyList_SetItem(links, i, row) == 0;
    }
    PyObject *both = good ? PyTuple_Pack(2, nodes, links) : NULL;
    Py_XDECREF(nodes);
    Py_XDECREF(links);
    return both;
}

static PyObject *genes_size(PyObject *self, PyObject *ignored)
{
    const Genes *g = (Genes *)self;
    intptr_t enabled = 0;
    for (intptr_t i = 0; i < g->links; i++) {
        enabled += g->link[i].enabled;
    }
    return Py_BuildValue("nnn", g->nodes, g->links, enabled);
}

/* genes(): a genome without any. */
static PyObject *make_genes(PyObject *module, PyObject *ignored)
{
    return (PyObject *)new_genes(4, 4);
}

static PyMethodDef genes_methods[] = {
    {"crossover", crossover, METH_VARARGS, PyDoc_STR("Return the child of a fitter and another genome.")},
    {"evolve", evolve, METH_VARARGS, PyDoc_STR("Mutate the structure, then numbers, switches and functions.")},
    {"put_link", genes_put_link, METH_VARARGS, PyDoc_STR("Add or replace a link.")},
    {"put_node", genes_put_node, METH_VARARGS, PyDoc_STR("Add or replace a node.")},
    {"find", find_link, METH_VARARGS, PyDoc_STR("The place of a link, or -1.")},
    {"at", link_at, METH_O, PyDoc_STR("The link at a place.")},
    {"node_keys", genes_keys, METH_NOARGS, PyDoc_STR("The keys of the nodes.")},
    {"rows", genes_rows, METH_NOARGS, PyDoc_STR("Nodes and links.")},
    {"size", genes_size, METH_NOARGS, PyDoc_STR("The numbers of nodes, links, and enabled links.")},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot genes_slots[] = {{Py_tp_dealloc, dealloc_genes}, {Py_tp_methods, genes_methods}, {0, NULL}};

static PyType_Spec genes_spec = {
    .name = "reactgrad.neat._flat.Genes",
    .basicsize = sizeof(Genes),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .slots = genes_slots,
};

#endif
