/* One step of a network of spiking neurons, which are Python objects: `_spikes` does the same in Python. */
#ifndef REACTGRAD_NEAT_SPIKES
#define REACTGRAD_NEAT_SPIKES

enum { SPIKE_BIAS, SPIKE_A, SPIKE_B, SPIKE_C, SPIKE_D, SPIKE_V, SPIKE_U, SPIKE_FIRED, SPIKE_CURRENT, SPIKE_INPUTS, SPIKE_NAMES };
static const char *const spike_words[SPIKE_NAMES] = {"bias", "a", "b", "c", "d", "v", "u", "fired", "current", "inputs"};
static PyObject *spike_names[SPIKE_NAMES];

static int get_spike(PyObject *neuron, int which, double *number)
{
    PyObject *found = PyObject_GetAttr(neuron, spike_names[which]);
    if (found == NULL) {
        return 0;
    }
    *number = PyFloat_AsDouble(found);
    Py_DECREF(found);
    return !(*number == -1.0 && PyErr_Occurred());
}

static int set_spike(PyObject *neuron, int which, double number)
{
    PyObject *value = PyFloat_FromDouble(number);
    const int good = value != NULL && PyObject_SetAttr(neuron, spike_names[which], value) == 0;
    Py_XDECREF(value);
    return good;
}

/* Add to `current` what comes in over the links of a neuron. */
static int take_in(PyObject *neuron, PyObject *neurons, PyObject *given, double *current)
{
    PyObject *links = PyObject_GetAttr(neuron, spike_names[SPIKE_INPUTS]);
    if (links == NULL || !PyList_Check(links)) {
        Py_XDECREF(links);
        return 0;
    }
    int good = 1;
    for (Py_ssize_t i = 0; good && i < PyList_Size(links); i++) {
        PyObject *link = PyList_GetItem(links, i);
        good = PyTuple_Check(link) && PyTuple_Size(link) == 2;
        if (!good) {
            break;
        }
        PyObject *key = PyTuple_GetItem(link, 0), *source = PyDict_GetItemWithError(neurons, key);
        double value = 0.0;
        if (source != NULL) {
            good = get_spike(source, SPIKE_FIRED, &value);
        }
        else {
            PyObject *one = PyErr_Occurred() ? NULL : PyDict_GetItemWithError(given, key);
            good = one != NULL;
            value = good ? PyFloat_AsDouble(one) : 0.0;
        }
        const double weight = good ? PyFloat_AsDouble(PyTuple_GetItem(link, 1)) : 0.0;
        good = good && !PyErr_Occurred();
        *current += value * weight;
    }
    Py_DECREF(links);
    return good;
}

static int step_neuron(PyObject *neuron, double current, double dt)
{
    double n[SPIKE_FIRED];
    for (int i = SPIKE_A; i < SPIKE_FIRED; i++) {
        if (!get_spike(neuron, i, &n[i])) {
            return 0;
        }
    }
    double v = n[SPIKE_V], u = n[SPIKE_U];
    const double half = 0.5 * dt;
    int overflows = 0;
    for (int i = 0; i < 2; i++) {
        const double square = pow(v, two);
        overflows |= isinf(square) && isfinite(v); /* Python raises there */
        v += half * (0.04 * square + 5.0 * v + 140.0 - u + current);
    }
    u += dt * n[SPIKE_A] * (n[SPIKE_B] * v - u);
    if (overflows) {
        v = n[SPIKE_C];
        u = n[SPIKE_B] * v;
    }
    const int fires = v > 30.0;
    return set_spike(neuron, SPIKE_FIRED, fires ? 1.0 : 0.0) && set_spike(neuron, SPIKE_V, fires ? n[SPIKE_C] : v) &&
           set_spike(neuron, SPIKE_U, fires ? u + n[SPIKE_D] : u);
}

/* spike(neurons, given, dt, type): make a step; return False, with nothing changed but currents, if something is
 * unusual: a neuron of another type, or an input that was not given. */
static PyObject *spike(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    if (count != 4 || !PyDict_Check(args[0]) || !PyDict_Check(args[1])) {
        Py_RETURN_FALSE;
    }
    const double dt = PyFloat_AsDouble(args[2]);
    PyObject *several = PyErr_Occurred() ? NULL : PyDict_Values(args[0]);
    if (several == NULL) {
        return NULL;
    }
    const Py_ssize_t many = PyList_Size(several);
    double *currents = PyMem_Malloc((size_t)(many + 1) * sizeof(double));
    if (currents == NULL) {
        Py_DECREF(several);
        return PyErr_NoMemory();
    }
    int good = 1, begun = 0;
    for (Py_ssize_t i = 0; good && i < many; i++) {
        PyObject *neuron = PyList_GetItem(several, i);
        good = (PyObject *)Py_TYPE(neuron) == args[3] && get_spike(neuron, SPIKE_BIAS, &currents[i]) &&
               take_in(neuron, args[0], args[1], &currents[i]) && set_spike(neuron, SPIKE_CURRENT, currents[i]);
    }
    for (Py_ssize_t i = 0; good && i < many; i++) {
        begun = 1;
        good = step_neuron(PyList_GetItem(several, i), currents[i], dt);
    }
    PyMem_Free(currents);
    Py_DECREF(several);
    if (!good && begun) {
        return PyErr_Occurred() ? NULL : PyErr_Format(PyExc_RuntimeError, "a neuron was not computed");
    }
    if (!good) {
        PyErr_Clear();
    }
    return PyBool_FromLong(good);
}

static int name_spikes(void)
{
    for (int i = 0; i < SPIKE_NAMES; i++) {
        spike_names[i] = PyUnicode_InternFromString(spike_words[i]);
        if (spike_names[i] == NULL) {
            return 0;
        }
    }
    return 1;
}

#endif
