/* Mutations of a genome's structure, then of its numbers, in one call; see `_genome` for what is asked of Python. */
#ifndef REACTGRAD_NEAT_STRUCTURE
#define REACTGRAD_NEAT_STRUCTURE

/* Probabilities; then whether at most one happens, whether one that finds nothing to do does the next best, whether
 * cycles are refused, whether nodes that lead nowhere are removed; then what new genes are by default, -1 at random. */
enum {
    ADD_NODE, DELETE_NODE, ADD_LINK, DELETE_LINK, IS_SINGLE, IS_SURER, IS_FORWARD, PRUNES,
    SWITCH, ACTIVATION, AGGREGATION, STRUCTURE
};

typedef struct {
    Genes *genes;
    Draw draw;
    const double *structure, *rates;
    const int64_t *inputs, *outputs;
    intptr_t input_count, output_count;
    PyObject *config, *number, *split;
} Mutation;

static intptr_t below(Draw *draw, intptr_t count)
{
    return (intptr_t)(uniform(draw) * (double)count);
}

static int is_output(const Mutation *m, int64_t key)
{
    for (intptr_t i = 0; i < m->output_count; i++) {
        if (m->outputs[i] == key) {
            return 1;
        }
    }
    return 0;
}

/* The key of a node that is no output: the one after so many others; the last node's key if there are fewer. */
static int64_t hidden_key(const Mutation *m, intptr_t number)
{
    const Genes *g = m->genes;
    int64_t key = 0;
    for (intptr_t i = 0; i < g->nodes && number >= 0; i++) {
        if (!is_output(m, g->node[i].key)) {
            key = g->node[i].key;
            number--;
        }
    }
    return key;
}

static intptr_t hidden_count(const Mutation *m)
{
    intptr_t count = 0;
    for (intptr_t i = 0; i < m->genes->nodes; i++) {
        count += !is_output(m, m->genes->node[i].key);
    }
    return count;
}

/* Ask Python for the number of a new link; return 0 if it raised. */
static int ask_number(const Mutation *m, int64_t source, int64_t target, int64_t *number)
{
    PyObject *found = PyObject_CallFunction(m->number, "OLL", m->config, (long long)source, (long long)target);
    if (found == NULL) {
        return 0;
    }
    *number = PyLong_AsLongLong(found);
    Py_DECREF(found);
    return !PyErr_Occurred();
}

/* Mutations return 0 if Python code raised, or there was no memory. */
static int add_link(Mutation *m)
{
    Genes *g = m->genes;
    if (!g->nodes) {
        return 1;
    }
    const int64_t target = g->node[below(&m->draw, g->nodes)].key;
    const intptr_t choice = below(&m->draw, m->input_count + hidden_count(m));
    const int64_t source = choice < m->input_count ? m->inputs[choice] : hidden_key(m, choice - m->input_count);
    const intptr_t at = place_of(g, source, target);
    if (at < g->links && order_of(g->link + at, source, target) == 0) {
        g->link[at].enabled |= m->structure[IS_SURER] != 0.0;
        return 1;
    }
    if (m->structure[IS_FORWARD] != 0.0) {
        const int closes = leads_back(g, source, target);
        if (closes) {
            return closes > 0;
        }
    }
    Link link = {.source = source, .target = target};
    if (!ask_number(m, source, target, &link.innovation)) {
        return 0;
    }
    link.weight = new_float(m->rates, &m->draw);
    const double on = m->structure[SWITCH];
    link.enabled = on < 0.0 ? uniform(&m->draw) < 0.5 : on != 0.0;
    return put_link(g, link);
}

static int new_name(Mutation *m, double by_default, const double *options)
{
    return (int)(by_default >= 0.0 ? by_default : options[2 + below(&m->draw, (intptr_t)options[1])]);
}

static PyObject *genes_keys(PyObject *self, PyObject *ignored);

static int add_node(Mutation *m)
{
    Genes *g = m->genes;
    if (!g->links) {
        return m->structure[IS_SURER] == 0.0 || add_link(m);
    }
    const Link former = g->link[below(&m->draw, g->links)];
    PyObject *keys = genes_keys((PyObject *)g, NULL);
    if (keys == NULL) {
        return 0;
    }
    PyObject *found = PyObject_CallFunction(m->split, "OLLN", m->config, (long long)former.source,
                                            (long long)former.target, keys);
    long long key, first, second;
    if (found == NULL || found == Py_None) {
        Py_XDECREF(found);
        return found != NULL;
    }
    const int good = PyTuple_Check(found) && PyArg_ParseTuple(found, "LLL", &key, &first, &second);
    Py_DECREF(found);
    if (!good) {
        return 0;
    }
    /* Without a bias, so that little changes at first. */
    Node node = {.key = key, .bias = 0.0};
    const double *names = m->rates + FUNCTIONS;
    node.response = new_float(m->rates + 2 * FLOAT_RATES, &m->draw);
    node.activation = new_name(m, m->structure[ACTIVATION], names);
    node.aggregation = new_name(m, m->structure[AGGREGATION], names + 2 + (intptr_t)names[1]);
    node.constant = new_float(m->rates + 3 * FLOAT_RATES, &m->draw);
    Link off = former, in = {former.source, key, first, 1.0, 1}, out = {key, former.target, second, former.weight, 1};
    off.enabled = 0;
    return put_node(g, node) && put_link(g, off) && put_link(g, in) && put_link(g, out);
}

/* Remove hidden nodes that lead to no output, as neat-python 2.1 does. */
static int prune(Mutation *m)
{
    Genes *g = m->genes;
    if (m->structure[PRUNES] == 0.0) {
        return 1;
    }
    char *used = PyMem_Calloc((size_t)g->nodes + 1, 1);
    if (used == NULL) {
        PyErr_NoMemory();
        return 0;
    }
    for (intptr_t i = 0; i < g->nodes; i++) {
        used[i] = (char)is_output(m, g->node[i].key);
    }
    for (int more = 1; more;) {
        more = 0;
        for (intptr_t i = 0; i < g->links; i++) {
            const Link *one = g->link + i;
            const intptr_t to = node_place(g, one->target), from = node_place(g, one->source);
            const int leads = one->enabled && to < g->nodes && g->node[to].key == one->target && used[to];
            if (leads && from < g->nodes && g->node[from].key == one->source && !used[from]) {
                used[from] = 1;
                more = 1;
            }
        }
    }
    intptr_t links = 0, nodes = 0;
    for (intptr_t i = 0; i < g->links; i++) {
        const Link *one = g->link + i;
        const intptr_t to = node_place(g, one->target), from = node_place(g, one->source);
        const int leaves = from < g->nodes && g->node[from].key == one->source && !used[from];
        if (used[to] && !leaves) {
            g->link[links++] = *one;
        }
    }
    for (intptr_t i = 0; i < g->nodes; i++) {
        if (used[i]) {
            g->node[nodes++] = g->node[i];
        }
    }
    g->links = links, g->nodes = nodes;
    PyMem_Free(used);
    return 1;
}

static int delete_node(Mutation *m)
{
    const intptr_t hidden = hidden_count(m);
    if (!hidden) {
        return 1;
    }
    remove_node(m->genes, hidden_key(m, below(&m->draw, hidden)));
    return prune(m);
}

static int delete_link(Mutation *m)
{
    if (!m->genes->links) {
        return 1;
    }
    remove_link(m->genes, below(&m->draw, m->genes->links));
    return prune(m);
}

static int change_structure(Mutation *m)
{
    static int (*const ways[])(Mutation *) = {add_node, delete_node, add_link, delete_link};
    const double *chance = m->structure;
    if (chance[IS_SINGLE] == 0.0) {
        for (int i = 0; i < 4; i++) {
            if (uniform(&m->draw) < chance[i] && !ways[i](m)) {
                return 0;
            }
        }
        return 1;
    }
    const double sum = chance[0] + chance[1] + chance[2] + chance[3];
    double left = uniform(&m->draw) * (sum > 1.0 ? sum : 1.0);
    for (int i = 0; i < 4; i++) {
        if (left < chance[i]) {
            return ways[i](m);
        }
        left -= chance[i];
    }
    return 1;
}

/* evolve(structure, inputs, outputs, rates, seed, config, number, split): mutate the structure, then all numbers.
 * `number(config, source, target)` is the number of a new link; `split(config, source, target, keys)` the key of a new
 * node and the numbers of its two links, or None. */
static PyObject *evolve(PyObject *self, PyObject *args)
{
    Py_buffer structure, inputs, outputs, rates;
    unsigned long long seed;
    Mutation m = {.genes = (Genes *)self};
    if (!PyArg_ParseTuple(args, "y*y*y*y*KOOO", &structure, &inputs, &outputs, &rates, &seed, &m.config, &m.number,
                          &m.split)) {
        return NULL;
    }
    m.draw = seeded(seed);
    m.structure = structure.buf, m.rates = rates.buf, m.inputs = inputs.buf, m.outputs = outputs.buf;
    m.input_count = inputs.len / (intptr_t)sizeof(int64_t), m.output_count = outputs.len / (intptr_t)sizeof(int64_t);
    int good = 0;
    if (structure.len != STRUCTURE * (intptr_t)sizeof(double) || !are_rates(&rates)) {
        PyErr_SetString(PyExc_ValueError, "these are no rates");
    }
    else if (change_structure(&m)) {
        mutate_numbers(m.genes, m.rates, &m.draw);
        good = 1;
    }
    PyBuffer_Release(&structure);
    PyBuffer_Release(&inputs);
    PyBuffer_Release(&outputs);
    PyBuffer_Release(&rates);
    if (!good) {
        return NULL;
    }
    Py_RETURN_NONE;
}

#endif
