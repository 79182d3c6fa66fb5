/* From genomes, dicts of neat-python's genes or arrays, to flat programs. */
#ifndef REACTGRAD_NEAT_READING
#define REACTGRAD_NEAT_READING

/* The names of functions that nodes of `Genes` have the places of. */
static PyObject *function_names;

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

#endif
