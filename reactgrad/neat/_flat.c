/* Networks as flat programs: reads a genome into arrays, and computes one sample at the speed of a loop in C.
 *
 * `_program.h` computes them, `_reading.h` makes them from genomes, `_genes.h` are genomes as arrays, `_spikes.h` is a
 * step of spiking neurons, `_playing.h` computes populations, `_training.h` trains them.
 *
 * All is written against the stable interface of CPython, without NumPy's headers. `_program` does the same in Python, and
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

#include "_program.h"

#include "_genes.h"
#include "_rows.h"

#include "_reading.h"

#include "_spikes.h"

/* --- computing --------------------------------------------------------------------------------- */

/* NumPy's type of arrays. Of other types, such as masked arrays, a buffer does not tell all. */
static PyObject *array_type;

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
    if ((PyObject *)Py_TYPE(given) != array_type || PyObject_GetBuffer(given, &view, PyBUF_FORMAT | PyBUF_STRIDES) < 0) {
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

#include "_playing.h"

#include "_training.h"

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

static PyObject *set_array_type(PyObject *module, PyObject *type)
{
    PyObject *former = array_type;
    Py_INCREF(type);
    array_type = type;
    Py_XDECREF(former);
    Py_RETURN_NONE;
}

static PyMethodDef methods[] = {
    {"spike", (PyCFunction)(void (*)(void))spike, METH_FASTCALL, PyDoc_STR("Make a step of spiking neurons.")},
    {"set_array_type", set_array_type, METH_O, PyDoc_STR("Say which type arrays have.")},
    {"read", (PyCFunction)(void (*)(void))read_program, METH_FASTCALL,
     PyDoc_STR("Return the program of a genome, or None if something about it is unusual.")},
    {"make", (PyCFunction)(void (*)(void))make, METH_FASTCALL, PyDoc_STR("Return a program made of rows.")},
    {"genes", make_genes, METH_NOARGS, PyDoc_STR("Return a genome of arrays, without any gene.")},
    {"pack", pack_genes, METH_O, PyDoc_STR("Return genomes as bytes.")},
    {"unpack", unpack_genes, METH_VARARGS, PyDoc_STR("Return the genomes in bytes.")},
    {"distances", distances, METH_VARARGS, PyDoc_STR("Compute the distances of genomes from one.")},
    {"play", play, METH_VARARGS, PyDoc_STR("Compute several programs, each for its own samples.")},
    {"play_shared", play_shared, METH_VARARGS, PyDoc_STR("Compute several programs for the same samples.")},
    {"train", train, METH_VARARGS, PyDoc_STR("Train several programs on the same samples or sequences.")},
    {"unroll", unroll, METH_VARARGS, PyDoc_STR("Compute a program with other genes, and keep what gradients need.")},
    {"slopes", slopes, METH_VARARGS, PyDoc_STR("Compute the gradient of the genes from that of the outputs.")},
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
    if (!name_spikes()) {
        return -1;
    }
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
