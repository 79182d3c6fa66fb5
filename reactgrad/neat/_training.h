/* Gradients of programs by their genes, and gradient steps: reverse mode over what a forward pass has kept.
 *
 * Samples lie side by side: each slot has a row of numbers, one a sample. A sequence has a bank of slots for each step in
 * time, and one before the first. The genes of a program are its neurons one after the other: bias, response, weights.
 */
#ifndef REACTGRAD_NEAT_TRAINING
#define REACTGRAD_NEAT_TRAINING

typedef struct {
    intptr_t samples, steps;
    double *values, *totals, *potentials; /* banks of slots; rows of neurons, for each step */
} Tape;

static intptr_t genes_of(const Program *p)
{
    return 2 * p->neurons + p->begin[p->neurons];
}

static intptr_t tape_size(const Program *p, intptr_t steps, intptr_t samples)
{
    return ((steps + 1) * p->slots + 2 * steps * p->neurons) * samples;
}

static Tape tape_in(const Program *p, double *space, intptr_t steps, intptr_t samples)
{
    Tape tape = {samples, steps, space, NULL, NULL};
    tape.totals = space + (steps + 1) * p->slots * samples;
    tape.potentials = tape.totals + steps * p->neurons * samples;
    return tape;
}

/* The slope of an activation at `z`, where its value is `a`; `_activations` has the same. */
static double slope_of(int code, double z, double a)
{
    const double lambda = 1.0507009873554804934193349852946, alpha = 1.6732632423543772848170429916717;
    switch (code) {
    case SIGMOID: return fabs(5.0 * z) <= 60.0 ? 5.0 * a * (1.0 - a) : 0.0;
    case TANH: return fabs(2.5 * z) <= 60.0 ? 2.5 * (1.0 - a * a) : 0.0;
    case SIN: return fabs(5.0 * z) <= 60.0 ? 5.0 * cos(5.0 * z) : 0.0;
    case GAUSS: return fabs(z) <= 3.4 ? -10.0 * z * a : 0.0;
    case RELU: return z > 0.0 ? 1.0 : 0.0;
    case ELU: return z > 0.0 ? 1.0 : a + 1.0;
    case LELU: return z > 0.0 ? 1.0 : 0.005;
    case SELU: return z > 0.0 ? lambda : a + lambda * alpha;
    case SOFTPLUS: return fabs(5.0 * z) <= 60.0 ? 1.0 / (1.0 + exp(-5.0 * z)) : 0.0;
    case CLAMPED: return fabs(z) <= 1.0 ? 1.0 : 0.0;
    case INV: return z == 0.0 ? 0.0 : -1.0 / (z * z);
    case LOG: return z >= 1e-7 ? 1.0 / z : 0.0;
    case EXP: return fabs(z) <= 60.0 ? a : 0.0;
    case ABS: return z > 0.0 ? 1.0 : z < 0.0 ? -1.0 : 0.0;
    case HAT: return fabs(z) < 1.0 ? (z > 0.0 ? -1.0 : z < 0.0 ? 1.0 : 0.0) : 0.0;
    case SQUARE: return 2.0 * z;
    case CUBE: return 3.0 * z * z;
    default: return 1.0;
    }
}

/* The derivative of an aggregation by each of its terms; those that are equal share it. `spare` has as many numbers. */
static void shares_of(int code, const double *terms, intptr_t count, double *share, double *spare)
{
    if (code == SUM || code == MEAN || (code == MEDIAN && count <= 2)) {
        for (intptr_t k = 0; k < count; k++) {
            share[k] = code == SUM ? 1.0 : 1.0 / (double)count;
        }
        return;
    }
    memset(share, 0, (size_t)count * sizeof(double));
    if (count == 0) {
        return;
    }
    if (code == PRODUCT) {
        for (intptr_t k = 0; k < count; k++) {
            share[k] = 1.0;
            for (intptr_t i = 0; i < count; i++) {
                share[k] *= i == k ? 1.0 : terms[i];
            }
        }
        return;
    }
    if (code == MAXABS) {
        intptr_t best = 0;
        for (intptr_t k = 1; k < count; k++) {
            best = fabs(terms[k]) > fabs(terms[best]) ? k : best;
        }
        share[best] = 1.0;
        return;
    }
    double ends[2];
    memcpy(spare, terms, (size_t)count * sizeof(double));
    ends[0] = ends[1] = aggregated(code, spare, count); /* the median sorts `spare` */
    if (code == MEDIAN) {
        ends[0] = spare[(count - 1) / 2];
        ends[1] = spare[count / 2];
    }
    for (int end = 0; end < 2; end++) {
        intptr_t equal = 0;
        for (intptr_t k = 0; k < count; k++) {
            equal += terms[k] == ends[end];
        }
        for (intptr_t k = 0; k < count; k++) {
            share[k] += terms[k] == ends[end] ? 0.5 / (double)equal : 0.0;
        }
    }
}

/* The row of a source at a step: inputs are those of the step itself. */
static const double *row_of(const Program *p, const double *from, const double *to, intptr_t slot, intptr_t samples)
{
    return (slot < p->inputs ? to : from) + slot * samples;
}

static void forward_step(const Program *p, const double *genes, const double *from, double *to, double *totals,
                         double *potentials, intptr_t samples, double *terms)
{
    for (intptr_t i = 0; i < p->neurons; i++) {
        const intptr_t first = p->begin[i], count = p->begin[i + 1] - first;
        const double *own = genes + 2 * i + first, *weight = own + 2;
        double *restrict total = totals + i * samples, *restrict z = potentials + i * samples;
        double *restrict value = to + (p->inputs + i) * samples;
        if (p->aggregation[i] == SUM) {
            memset(total, 0, (size_t)samples * sizeof(double));
            for (intptr_t k = 0; k < count; k++) {
                const double *source = row_of(p, from, to, p->source[first + k], samples), w = weight[k];
                for (intptr_t s = 0; s < samples; s++) {
                    total[s] += source[s] * w;
                }
            }
        }
        else {
            for (intptr_t s = 0; s < samples; s++) {
                for (intptr_t k = 0; k < count; k++) {
                    terms[k] = row_of(p, from, to, p->source[first + k], samples)[s] * weight[k];
                }
                total[s] = aggregated(p->aggregation[i], terms, count);
            }
        }
        const double bias = own[0], response = own[1];
        for (intptr_t s = 0; s < samples; s++) {
            z[s] = bias + response * total[s];
        }
        const int code = p->activation[i];
        for (intptr_t s = 0; s < samples; s++) {
            value[s] = activated(code, z[s]);
        }
    }
}

static double dot(const double *a, const double *b, intptr_t count)
{
    /* Four sums, so that additions do not wait for each other. */
    double sums[4] = {0.0, 0.0, 0.0, 0.0};
    intptr_t s = 0;
    for (; s + 4 <= count; s += 4) {
        for (int k = 0; k < 4; k++) {
            sums[k] += a[s + k] * b[s + k];
        }
    }
    double total = (sums[0] + sums[1]) + (sums[2] + sums[3]);
    for (; s < count; s++) {
        total += a[s] * b[s];
    }
    return total;
}

/* Add the gradient of the genes to `grad`. `adjoint` has that of the values in `to`; that of the values in `from` is
 * added to `carry`, which is `adjoint` itself where a network has no memory. */
static void backward_step(const Program *p, const double *genes, const double *from, const double *to,
                          const double *totals, const double *potentials, intptr_t samples, const double *adjoint,
                          double *carry, double *grad, double *terms, double *by_potential, const double *ones)
{
    double *share = terms + p->widest, *spare = share + p->widest;
    for (intptr_t i = p->neurons - 1; i >= 0; i--) {
        const intptr_t first = p->begin[i], count = p->begin[i + 1] - first, at = 2 * i + first;
        const double response = genes[at + 1], *weight = genes + at + 2;
        const double *total = totals + i * samples, *z = potentials + i * samples;
        const double *value = to + (p->inputs + i) * samples, *a = adjoint + (p->inputs + i) * samples;
        double *restrict dz = by_potential;
        const int code = p->activation[i];
        for (intptr_t s = 0; s < samples; s++) {
            dz[s] = a[s] == 0.0 ? 0.0 : a[s] * slope_of(code, z[s], value[s]);
        }
        grad[at] += dot(dz, ones, samples);
        grad[at + 1] += dot(dz, total, samples);
        if (p->aggregation[i] == SUM) {
            for (intptr_t k = 0; k < count; k++) {
                const intptr_t slot = p->source[first + k];
                const double *source = row_of(p, from, to, slot, samples), by_weight = response * weight[k];
                grad[at + 2 + k] += response * dot(dz, source, samples);
                if (slot >= p->inputs) {
                    double *restrict to_source = carry + slot * samples;
                    for (intptr_t s = 0; s < samples; s++) {
                        to_source[s] += dz[s] * by_weight;
                    }
                }
            }
            continue;
        }
        for (intptr_t s = 0; s < samples; s++) {
            for (intptr_t k = 0; k < count; k++) {
                terms[k] = row_of(p, from, to, p->source[first + k], samples)[s] * weight[k];
            }
            shares_of(p->aggregation[i], terms, count, share, spare);
            for (intptr_t k = 0; k < count; k++) {
                const intptr_t slot = p->source[first + k];
                const double by_term = dz[s] * response * share[k];
                grad[at + 2 + k] += by_term * row_of(p, from, to, slot, samples)[s];
                if (slot >= p->inputs) {
                    carry[slot * samples + s] += by_term * weight[k];
                }
            }
        }
    }
}

/* Compute steps from the bank before the first one. `x` has for each step a row of samples for each input. */
static void forward_all(const Program *p, const double *genes, const double *x, Tape tape, double *terms)
{
    const intptr_t samples = tape.samples, bank = p->slots * samples, rows = p->neurons * samples;
    for (intptr_t t = 0; t < tape.steps; t++) {
        double *from = tape.values + t * bank, *to = from + bank;
        memset(to, 0, (size_t)bank * sizeof(double));
        memcpy(to, x + t * p->inputs * samples, (size_t)(p->inputs * samples) * sizeof(double));
        forward_step(p, genes, p->kind == FEED_FORWARD ? to : from, to, tape.totals + t * rows,
                     tape.potentials + t * rows, samples, terms);
    }
}

/* Add the gradient of the genes; `seed` has that of the outputs, for each step a row of samples for each output. No
 * gradient passes the beginning of a window of steps. `space` has two banks, a row, a row of ones, and terms. */
static void backward_all(const Program *p, const double *genes, Tape tape, const double *seed, intptr_t window,
                         double *grad, double *space)
{
    const intptr_t samples = tape.samples, bank = p->slots * samples, rows = p->neurons * samples;
    double *adjoint = space, *carry = space + bank, *row = carry + bank, *ones = row + samples, *terms = ones + samples;
    for (intptr_t s = 0; s < samples; s++) {
        ones[s] = 1.0;
    }
    memset(adjoint, 0, (size_t)bank * sizeof(double));
    for (intptr_t t = tape.steps - 1; t >= 0; t--) {
        for (intptr_t k = 0; k < p->outputs; k++) {
            double *to = adjoint + p->out[k] * samples;
            const double *from = seed + (t * p->outputs + k) * samples;
            for (intptr_t s = 0; s < samples; s++) {
                to[s] += from[s];
            }
        }
        const int memory = p->kind != FEED_FORWARD;
        if (memory) {
            memset(carry, 0, (size_t)bank * sizeof(double));
        }
        const double *from = tape.values + t * bank, *to = from + bank;
        backward_step(p, genes, memory ? from : to, to, tape.totals + t * rows, tape.potentials + t * rows, samples,
                      adjoint, memory ? carry : adjoint, grad, terms, row, ones);
        if (memory) {
            double *spare = adjoint;
            adjoint = carry;
            carry = spare;
        }
        if (!memory || t % window == 0) {
            memset(adjoint, 0, (size_t)bank * sizeof(double));
        }
    }
}

static intptr_t space_size(const Program *p, intptr_t samples)
{
    return 2 * p->slots * samples + 2 * samples + 3 * p->widest + 3;
}

static void genes_into(const Program *p, double *genes)
{
    for (intptr_t i = 0; i < p->neurons; i++) {
        *genes++ = p->bias[i];
        *genes++ = p->response[i];
        for (intptr_t k = p->begin[i]; k < p->begin[i + 1]; k++) {
            *genes++ = p->weight[k];
        }
    }
}

typedef struct {
    intptr_t steps, samples, window, rounds;
    double rate;
    const double *x, *y;
} Lesson;

/* Return the mean of squared differences over a lesson; add its gradient to `grad`, if there is one. A window of steps is
 * kept at a time. */
static double mean_square(const Program *p, const Lesson *lesson, const double *genes, double *grad, double *space,
                          double *seed)
{
    const intptr_t samples = lesson->samples, out = p->outputs * samples, bank = p->slots * samples;
    const double count = (double)(lesson->steps * out);
    double total = 0.0, *tape_space = seed + lesson->window * out;
    memset(tape_space, 0, (size_t)bank * sizeof(double));
    for (intptr_t begin = 0; begin < lesson->steps; begin += lesson->window) {
        const intptr_t rest = lesson->steps - begin, steps = rest < lesson->window ? rest : lesson->window;
        Tape tape = tape_in(p, tape_space, steps, samples);
        forward_all(p, genes, lesson->x + begin * p->inputs * samples, tape, space);
        for (intptr_t t = 0; t < steps; t++) {
            for (intptr_t k = 0; k < p->outputs; k++) {
                const double *value = tape.values + (t + 1) * bank + p->out[k] * samples;
                const double *wanted = lesson->y + ((begin + t) * p->outputs + k) * samples;
                double *to = seed + (t * p->outputs + k) * samples;
                for (intptr_t s = 0; s < samples; s++) {
                    const double error = value[s] - wanted[s];
                    total += error * error;
                    to[s] = 2.0 * error / count;
                }
            }
        }
        if (grad != NULL) {
            backward_all(p, genes, tape, seed, steps, grad, space);
        }
        memmove(tape_space, tape.values + steps * bank, (size_t)bank * sizeof(double));
    }
    return total / count;
}

/* Gradient steps of Adam (Kingma and Ba, 2015) on one program. Return the number of losses: training ends where one, or a
 * gene, is not finite; the genes are the last finite ones. */
static intptr_t train_one(const Program *p, const Lesson *lesson, double *genes, double *losses, double *space)
{
    const intptr_t count = genes_of(p);
    double *grad = space, *first = grad + count, *second = first + count, *moved = second + count;
    double *rest = moved + count, *seed = rest + space_size(p, lesson->samples);
    memset(first, 0, (size_t)(2 * count) * sizeof(double));
    double one = 1.0, two_ = 1.0;
    for (intptr_t step = 0; step < lesson->rounds; step++) {
        memset(grad, 0, (size_t)count * sizeof(double));
        losses[step] = mean_square(p, lesson, genes, grad, rest, seed);
        int finite = isfinite(losses[step]) != 0;
        one *= 0.9;
        two_ *= 0.999;
        for (intptr_t k = 0; k < count; k++) {
            first[k] += 0.1 * (grad[k] - first[k]);
            second[k] += 0.001 * (grad[k] * grad[k] - second[k]);
            moved[k] = genes[k] - lesson->rate * (first[k] / (1.0 - one)) / (sqrt(second[k] / (1.0 - two_)) + 1e-8);
            finite = finite && isfinite(moved[k]);
        }
        if (!finite) {
            return step + 1;
        }
        memcpy(genes, moved, (size_t)count * sizeof(double));
    }
    losses[lesson->rounds] = mean_square(p, lesson, genes, NULL, rest, seed);
    return lesson->rounds + 1;
}

static int is_trainable(const Program *p)
{
    return PyObject_TypeCheck((PyObject *)p, program_type) && p->kind <= RECURRENT && !p->owns;
}

/* train(programs, X, Y, genes, losses, counts, (steps, samples, window, rounds), rate): X has for each step in time a row
 * of samples for each input, Y likewise. Writes the genes, `rounds + 1` losses and their number for each program. */
static PyObject *train(PyObject *module, PyObject *args)
{
    PyObject *programs;
    Py_buffer x, y, genes, losses, counts;
    Lesson lesson;
    Py_ssize_t steps, samples, window, rounds;
    if (!PyArg_ParseTuple(args, "O!y*y*w*w*w*(nnnn)d", &PyTuple_Type, &programs, &x, &y, &genes, &losses, &counts, &steps,
                          &samples, &window, &rounds, &lesson.rate)) {
        return NULL;
    }
    const Py_ssize_t number = PyTuple_Size(programs);
    const intptr_t word = sizeof(double);
    intptr_t total = 0, most = 1;
    int good = steps > 0 && samples > 0 && window > 0 && window <= steps && rounds >= 0;
    for (Py_ssize_t i = 0; good && i < number; i++) {
        const Program *p = (Program *)PyTuple_GetItem(programs, i);
        good = is_trainable(p) && x.len == p->inputs * steps * samples * word && y.len == p->outputs * steps * samples * word;
        if (good) {
            const intptr_t size = 4 * genes_of(p) + space_size(p, samples) + window * p->outputs * samples +
                                  tape_size(p, window, samples);
            total += genes_of(p);
            most = size > most ? size : most;
        }
    }
    good = good && genes.len == total * word && losses.len == number * (rounds + 1) * word &&
           counts.len == number * (intptr_t)sizeof(int64_t);
    double *space = good ? PyMem_Malloc((size_t)most * sizeof(double)) : NULL;
    if (!good) {
        PyErr_SetString(PyExc_ValueError, "train takes programs of steps, and arrays of their sizes");
    }
    else if (space == NULL) {
        PyErr_NoMemory();
    }
    double *own = genes.buf;
    lesson.x = x.buf;
    lesson.y = y.buf;
    lesson.steps = steps;
    lesson.samples = samples;
    lesson.window = window;
    lesson.rounds = rounds;
    for (Py_ssize_t i = 0; space != NULL && i < number && !PyErr_Occurred(); i++) {
        const Program *p = (Program *)PyTuple_GetItem(programs, i);
        Py_BEGIN_ALLOW_THREADS
        genes_into(p, own);
        ((int64_t *)counts.buf)[i] = train_one(p, &lesson, own, (double *)losses.buf + i * (rounds + 1), space);
        Py_END_ALLOW_THREADS
        own += genes_of(p);
        PyErr_CheckSignals();
    }
    PyMem_Free(space);
    PyBuffer_Release(&x);
    PyBuffer_Release(&y);
    PyBuffer_Release(&genes);
    PyBuffer_Release(&losses);
    PyBuffer_Release(&counts);
    if (PyErr_Occurred()) {
        return NULL;
    }
    Py_RETURN_NONE;
}

/* unroll(program, genes, X, tape, out, steps, samples), with genes of None for those of the program: compute all steps
 * from zeros. The tape has room for ((steps + 1) * slots + 2 * steps * neurons) * samples numbers. */
static PyObject *unroll(PyObject *module, PyObject *args)
{
    PyObject *program;
    Py_buffer genes, x, tape, out;
    Py_ssize_t steps, samples;
    if (!PyArg_ParseTuple(args, "O!y*y*w*w*nn", program_type, &program, &genes, &x, &tape, &out, &steps, &samples)) {
        return NULL;
    }
    const Program *p = (Program *)program;
    const intptr_t word = sizeof(double);
    const int good = is_trainable(p) && steps > 0 && samples > 0 && genes.len == genes_of(p) * word &&
                     x.len == steps * p->inputs * samples * word && out.len == steps * p->outputs * samples * word &&
                     tape.len == tape_size(p, steps, samples) * word;
    double *terms = good ? PyMem_Malloc((size_t)(p->widest + 1) * sizeof(double)) : NULL;
    if (terms != NULL) {
        Tape kept = tape_in(p, tape.buf, steps, samples);
        const intptr_t bank = p->slots * samples;
        double *to = out.buf;
        Py_BEGIN_ALLOW_THREADS
        memset(kept.values, 0, (size_t)bank * sizeof(double));
        forward_all(p, genes.buf, x.buf, kept, terms);
        for (intptr_t t = 0; t < steps; t++) {
            for (intptr_t k = 0; k < p->outputs; k++, to += samples) {
                memcpy(to, kept.values + (t + 1) * bank + p->out[k] * samples, (size_t)samples * sizeof(double));
            }
        }
        Py_END_ALLOW_THREADS
        PyMem_Free(terms);
    }
    PyBuffer_Release(&genes);
    PyBuffer_Release(&x);
    PyBuffer_Release(&tape);
    PyBuffer_Release(&out);
    if (!good) {
        PyErr_SetString(PyExc_ValueError, "unroll takes a program of steps, and arrays of its sizes");
        return NULL;
    }
    if (terms == NULL) {
        return PyErr_NoMemory();
    }
    Py_RETURN_NONE;
}

/* slopes(program, genes, tape, seed, grad, steps, samples, window): write the gradient of the genes. */
static PyObject *slopes(PyObject *module, PyObject *args)
{
    PyObject *program;
    Py_buffer genes, tape, seed, grad;
    Py_ssize_t steps, samples, window;
    if (!PyArg_ParseTuple(args, "O!y*w*y*w*nnn", program_type, &program, &genes, &tape, &seed, &grad, &steps, &samples,
                          &window)) {
        return NULL;
    }
    const Program *p = (Program *)program;
    const intptr_t word = sizeof(double);
    const int good = is_trainable(p) && steps > 0 && samples > 0 && window > 0 && genes.len == genes_of(p) * word &&
                     grad.len == genes.len && seed.len == steps * p->outputs * samples * word &&
                     tape.len == tape_size(p, steps, samples) * word;
    double *space = good ? PyMem_Malloc((size_t)space_size(p, samples) * sizeof(double)) : NULL;
    if (space != NULL) {
        Py_BEGIN_ALLOW_THREADS
        memset(grad.buf, 0, (size_t)grad.len);
        backward_all(p, genes.buf, tape_in(p, tape.buf, steps, samples), seed.buf, window, grad.buf, space);
        Py_END_ALLOW_THREADS
        PyMem_Free(space);
    }
    PyBuffer_Release(&genes);
    PyBuffer_Release(&tape);
    PyBuffer_Release(&seed);
    PyBuffer_Release(&grad);
    if (!good) {
        PyErr_SetString(PyExc_ValueError, "slopes takes a program of steps, and arrays of its sizes");
        return NULL;
    }
    if (space == NULL) {
        return PyErr_NoMemory();
    }
    Py_RETURN_NONE;
}

#endif
