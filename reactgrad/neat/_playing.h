/* Several programs in one call: each with samples of its own, or all with the same. */
#ifndef REACTGRAD_NEAT_PLAYING
#define REACTGRAD_NEAT_PLAYING

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

#include "_blocks.h"

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
        /* A block of samples stays in the cache while all programs take it. */
        for (intptr_t begin = 0; begin < samples; begin += BLOCK) {
            const intptr_t size = samples - begin < BLOCK ? samples - begin : BLOCK;
            double *to = outs;
            for (Py_ssize_t i = 0; i < count; i++) {
                const Program *p = (Program *)PyTuple_GetItem(programs, i);
                play_block(p, xs + begin, samples, size, space, space + slots * BLOCK);
                for (intptr_t k = 0; k < p->outputs; k++) {
                    const double *row = row_at(p, p->out[k], xs + begin, samples, space);
                    for (intptr_t s = 0; s < size; s++) {
                        to[(begin + s) * p->outputs + k] = row[s];
                    }
                }
                to += samples * p->outputs;
            }
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

#endif
