/* Genomes as bytes: how populations travel between processes, and lie in files.
 *
 * All are records of eight bytes: a mark, then for each genome the numbers of its nodes and links, the nodes (key,
 * bias, response, time constant, places of both functions), and the links (source, target, innovation, weight, whether
 * enabled).
 */
#ifndef REACTGRAD_NEAT_ROWS
#define REACTGRAD_NEAT_ROWS

enum { NODE_RECORDS = 6, LINK_RECORDS = 5 };

typedef union {
    int64_t whole;
    double number;
} Record;

static const int64_t MARK = 0x316E65672E6772; /* also says in which order bytes lie */

/* pack(list of genes): their bytes. */
static PyObject *pack_genes(PyObject *module, PyObject *several)
{
    if (!PyList_Check(several)) {
        PyErr_SetString(PyExc_TypeError, "pack takes a list of genes");
        return NULL;
    }
    const intptr_t count = PyList_Size(several);
    intptr_t length = 1;
    for (intptr_t i = 0; i < count; i++) {
        PyObject *one = PyList_GetItem(several, i);
        if (!PyObject_TypeCheck(one, genes_type)) {
            PyErr_SetString(PyExc_TypeError, "pack takes a list of genes");
            return NULL;
        }
        length += 2 + NODE_RECORDS * ((Genes *)one)->nodes + LINK_RECORDS * ((Genes *)one)->links;
    }
    PyObject *bytes = PyBytes_FromStringAndSize(NULL, length * (intptr_t)sizeof(Record));
    if (bytes == NULL) {
        return NULL;
    }
    Record *at = (Record *)PyBytes_AsString(bytes);
    (at++)->whole = MARK;
    for (intptr_t i = 0; i < count; i++) {
        const Genes *g = (Genes *)PyList_GetItem(several, i);
        (at++)->whole = g->nodes, (at++)->whole = g->links;
        for (intptr_t k = 0; k < g->nodes; k++) {
            const Node *one = g->node + k;
            (at++)->whole = one->key, (at++)->number = one->bias, (at++)->number = one->response;
            (at++)->number = one->constant, (at++)->whole = one->activation, (at++)->whole = one->aggregation;
        }
        for (intptr_t k = 0; k < g->links; k++) {
            const Link *one = g->link + k;
            (at++)->whole = one->source, (at++)->whole = one->target, (at++)->whole = one->innovation;
            (at++)->number = one->weight, (at++)->whole = one->enabled;
        }
    }
    return bytes;
}

/* Read one genome; return NULL without an error if these are no records of one. */
static Genes *unpacked(const Record **from, const Record *end, const int64_t *places, intptr_t known)
{
    const Record *at = *from;
    if (end - at < 2) {
        return NULL;
    }
    const int64_t nodes = (at++)->whole, links = (at++)->whole, most = end - at;
    if (nodes < 0 || links < 0 || nodes > most || links > most || NODE_RECORDS * nodes + LINK_RECORDS * links > most) {
        return NULL;
    }
    Genes *g = new_genes(links + 1, nodes + 1);
    int good = g != NULL;
    for (int64_t k = 0; good && k < nodes; k++, at += NODE_RECORDS) {
        const int64_t first = at[4].whole, second = at[5].whole;
        if (first < 0 || second < 0 || first >= known || second >= known) {
            good = 0;
            break;
        }
        const Node one = {at[0].whole, at[1].number, at[2].number, at[3].number, (int)places[first], (int)places[second]};
        good = put_node(g, one);
    }
    for (int64_t k = 0; good && k < links; k++, at += LINK_RECORDS) {
        const Link one = {at[0].whole, at[1].whole, at[2].whole, at[3].number, at[4].whole != 0};
        good = put_link(g, one);
    }
    if (!good) {
        Py_CLEAR(g);
    }
    *from = at;
    return g;
}

/* unpack(bytes, places): a list of genes. `places` has, for each place of a function there, its place here. */
static PyObject *unpack_genes(PyObject *module, PyObject *args)
{
    Py_buffer bytes, places;
    if (!PyArg_ParseTuple(args, "y*y*", &bytes, &places)) {
        return NULL;
    }
    const Record *at = bytes.buf, *end = at + bytes.len / (intptr_t)sizeof(Record);
    PyObject *found = PyList_New(0);
    int good = found != NULL && bytes.len % (intptr_t)sizeof(Record) == 0 && at < end && (at++)->whole == MARK;
    while (good && at < end) {
        Genes *one = unpacked(&at, end, places.buf, places.len / (intptr_t)sizeof(int64_t));
        good = one != NULL && PyList_Append(found, (PyObject *)one) == 0;
        Py_XDECREF((PyObject *)one);
    }
    PyBuffer_Release(&bytes);
    PyBuffer_Release(&places);
    if (good) {
        return found;
    }
    Py_XDECREF(found);
    return PyErr_Occurred() ? NULL
                            : PyErr_Format(PyExc_ValueError, "these bytes are no genomes, or of another kind of machine");
}

#endif
