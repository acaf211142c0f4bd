/* The Python side: addresses and sizes in, nothing out. Callers check what they give; see privet/training/native/loops.py. */

#define Py_LIMITED_API 0x030B0000
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <string.h>

#include "kernels.h"
#include "team.h"

static long round_up(long number, long unit)
{
    return (number + unit - 1) / unit * unit;
}

static int key_of(const char *bytes, Py_ssize_t size, cipher_key *to)
{
    if (size != 32 || !cipher_here()) {
        PyErr_SetString(PyExc_ValueError, "a key has 32 bytes, and the processor the instructions for it");
        return 0;
    }
    cipher_expand((const uint8_t *)bytes, to);
    return 1;
}

/* From a key, or from words if their address is given. */
static PyObject *noise(PyObject *self, PyObject *args)
{
    unsigned long long words, out;
    const char *bytes;
    Py_ssize_t length;
    double std;
    int threads;
    cipher_key key;
    noise_work work;
    (void)self;
    if (!PyArg_ParseTuple(args, "y#KKldi", &bytes, &length, &words, &out, &work.size, &std, &threads) ||
        (!words && !key_of(bytes, length, &key)))
        return NULL;
    work.key = &key;
    work.words = (const uint8_t *)(uintptr_t)words;
    work.out = (float *)(uintptr_t)out;
    work.pairs = (work.size + 1) / 2;
    work.angles = round_up(8 * work.pairs, CIPHER_BLOCK);
    work.scale = (float)(2.0 * std * std);
    Py_BEGIN_ALLOW_THREADS
    team_run(kernels_here()->noise, &work, (work.pairs + NOISE_PIECE - 1) / NOISE_PIECE, threads);
    Py_END_ALLOW_THREADS
    cipher_forget(&key);
    Py_RETURN_NONE;
}

static PyObject *stream(PyObject *self, PyObject *args)
{
    unsigned long long out, first;
    const char *bytes;
    Py_ssize_t length;
    long blocks;
    cipher_key key;
    (void)self;
    if (!PyArg_ParseTuple(args, "y#KlK", &bytes, &length, &first, &blocks, &out) || !key_of(bytes, length, &key))
        return NULL;
    cipher_stream(&key, first, blocks, (uint8_t *)(uintptr_t)out);
    cipher_forget(&key);
    Py_RETURN_NONE;
}

static PyObject *rows(PyObject *self, PyObject *args)
{
    unsigned long long given, others, squares;
    int threads;
    rows_work w;
    (void)self;
    if (!PyArg_ParseTuple(args, "KKKlllddddi", &given, &others, &squares, &w.examples, &w.size, &w.stride, &w.units,
                          &w.least, &w.least_other, &w.least_product, &threads))
        return NULL;
    w.rows = (const float *)(uintptr_t)given;
    w.others = (const float *)(uintptr_t)others;
    w.squares = (float *)(uintptr_t)squares;
    w.together = w.size < ROWS_PIECE ? ROWS_PIECE / (w.size + 1) + 1 : 1;
    Py_BEGIN_ALLOW_THREADS
    team_run(kernels_here()->rows, &w, (w.examples + w.together - 1) / w.together, threads);
    Py_END_ALLOW_THREADS
    Py_RETURN_NONE;
}

/* Whether windows are copied out: where few of a window's numbers lie together, a vector would be half empty. */
static void convolution_prepare(convolution_work *w)
{
    long run = w->window[1] * w->channels, lanes = kernels_here()->lanes;
    w->tall = w->height + 2 * w->padding[0];
    w->wide = w->width + 2 * w->padding[1];
    w->copied = run % lanes != 0 && run < 4 * lanes;
    w->run = w->copied ? run * w->window[0] : run;
    w->runs = w->copied ? 1 : w->window[0];
    w->padded_run = round_up(w->run, MOST_LANES);
    w->padded_outputs = round_up(w->outputs, MOST_LANES);
    w->scratch_each = w->rows * w->columns * (w->padded_outputs + (w->copied ? w->padded_run : 0)) +
                      w->tall * w->wide * w->channels + 2 * MOST_READ;
}

static int convolution_sizes(PyObject *sizes, convolution_work *w)
{
    return PyArg_ParseTuple(sizes, "lllllllllllll", &w->examples, &w->channels, &w->height, &w->width, &w->outputs,
                            &w->rows, &w->columns, &w->window[0], &w->window[1], &w->stride[0], &w->stride[1],
                            &w->padding[0], &w->padding[1]);
}

static PyObject *convolution_room(PyObject *self, PyObject *sizes)
{
    convolution_work work;
    (void)self;
    if (!convolution_sizes(sizes, &work))
        return NULL;
    convolution_prepare(&work);
    return PyLong_FromLong(work.scratch_each);
}

static PyObject *convolution(PyObject *self, PyObject *args)
{
    unsigned long long inputs, gradient, out, squares, scratch;
    PyObject *sizes;
    int threads;
    convolution_work work;
    (void)self;
    if (!PyArg_ParseTuple(args, "KKKKKOddi", &inputs, &gradient, &out, &squares, &scratch, &sizes, &work.units,
                          &work.least, &threads) ||
        !convolution_sizes(sizes, &work))
        return NULL;
    convolution_prepare(&work);
    work.offsets = PyMem_Malloc((size_t)(work.rows * work.columns) * sizeof(long));
    if (work.offsets == NULL)
        return PyErr_NoMemory();
    for (long y = 0; y < work.rows; y++)
        for (long x = 0; x < work.columns; x++)
            work.offsets[y * work.columns + x] =
                (y * work.stride[0] * work.wide + x * work.stride[1]) * work.channels;
    work.inputs = (const float *)(uintptr_t)inputs;
    work.gradient = (const float *)(uintptr_t)gradient;
    work.out = (float *)(uintptr_t)out;
    work.squares = (float *)(uintptr_t)squares;
    work.scratch = (float *)(uintptr_t)scratch;
    Py_BEGIN_ALLOW_THREADS
    team_run(kernels_here()->convolution, &work, work.examples, threads);
    Py_END_ALLOW_THREADS
    PyMem_Free(work.offsets);
    Py_RETURN_NONE;
}

static long positions_scratch(long positions, long size)
{
    return size * round_up(positions, MOST_LANES) + MOST_READ;
}

static PyObject *positions_room(PyObject *self, PyObject *args)
{
    long positions, size;
    (void)self;
    if (!PyArg_ParseTuple(args, "ll", &positions, &size))
        return NULL;
    return PyLong_FromLong(positions_scratch(positions, size));
}

static int factor_of(PyObject *given, factor *to)
{
    unsigned long long numbers;
    if (!PyArg_ParseTuple(given, "Klll", &numbers, &to->size, &to->strides[0], &to->strides[1]))
        return 0;
    to->numbers = (const float *)(uintptr_t)numbers;
    return 1;
}

static PyObject *positions(PyObject *self, PyObject *args)
{
    unsigned long long squares, scratch;
    int threads;
    PyObject *left, *rights, *rooms;
    positions_work w;
    (void)self;
    if (!PyArg_ParseTuple(args, "O!O!O!KKllddi", &PyTuple_Type, &left, &PyTuple_Type, &rights, &PyTuple_Type,
                          &rooms, &squares, &scratch, &w.examples, &w.positions, &w.least, &w.unit, &threads) ||
        !factor_of(left, &w.left))
        return NULL;
    w.count = (long)PyTuple_Size(rights);
    if (w.count > MOST_RIGHTS || PyTuple_Size(rooms) != w.count) {
        PyErr_SetString(PyExc_ValueError, "too many factors");
        return NULL;
    }
    w.squares = (float *)(uintptr_t)squares;
    w.scratch = (float *)(uintptr_t)scratch;
    w.scratch_each = w.left.size;
    for (long k = 0; k < w.count; k++) {
        if (!factor_of(PyTuple_GetItem(rights, k), w.rights + k))
            return NULL;
        w.scratch_each += w.rights[k].size;
        w.rooms[k] = PyFloat_AsDouble(PyTuple_GetItem(rooms, k));
    }
    w.scratch_each = positions_scratch(w.positions, w.scratch_each);
    Py_BEGIN_ALLOW_THREADS
    team_run(kernels_here()->positions, &w, w.examples, threads);
    Py_END_ALLOW_THREADS
    Py_RETURN_NONE;
}

static long lookup_scratch(long positions, long size)
{
    return size + round_up(positions, sizeof(double)) / (long)sizeof(double); /* of float64, and a byte a position */
}

static PyObject *lookup_room(PyObject *self, PyObject *args)
{
    long positions, size;
    (void)self;
    if (!PyArg_ParseTuple(args, "ll", &positions, &size))
        return NULL;
    return PyLong_FromLong(lookup_scratch(positions, size));
}

static PyObject *lookup(PyObject *self, PyObject *args)
{
    unsigned long long index, squares, scratch;
    int threads;
    PyObject *right;
    lookup_work w;
    (void)self;
    if (!PyArg_ParseTuple(args, "KO!KKlldddi", &index, &PyTuple_Type, &right, &squares, &scratch, &w.examples,
                          &w.positions, &w.units, &w.least, &w.unit, &threads) ||
        !factor_of(right, &w.right))
        return NULL;
    w.index = (const int64_t *)(uintptr_t)index;
    w.squares = (float *)(uintptr_t)squares;
    w.scratch = (double *)(uintptr_t)scratch;
    w.scratch_each = lookup_scratch(w.positions, w.right.size);
    Py_BEGIN_ALLOW_THREADS
    team_run(kernels_here()->lookup, &w, w.examples, threads);
    Py_END_ALLOW_THREADS
    Py_RETURN_NONE;
}

static PyObject *normalised(PyObject *self, PyObject *args)
{
    unsigned long long mean, rstd, scale, shift;
    long examples;
    int threads;
    PyObject *gradient, *inputs;
    normalised_work w;
    (void)self;
    if (!PyArg_ParseTuple(args, "O!O!KKKKlli", &PyTuple_Type, &gradient, &PyTuple_Type, &inputs, &mean, &rstd, &scale,
                          &shift, &examples, &w.positions, &threads) ||
        !factor_of(gradient, &w.gradient) || !factor_of(inputs, &w.inputs))
        return NULL;
    w.mean = (const float *)(uintptr_t)mean;
    w.rstd = (const float *)(uintptr_t)rstd;
    w.scale = (float *)(uintptr_t)scale;
    w.shift = (float *)(uintptr_t)shift;
    Py_BEGIN_ALLOW_THREADS
    team_run(kernels_here()->normalised, &w, examples, threads);
    Py_END_ALLOW_THREADS
    Py_RETURN_NONE;
}

/* Use the kernels of another kind of processor, if this one can run them. */
static PyObject *choose(PyObject *self, PyObject *args)
{
    const char *name;
    (void)self;
    if (!PyArg_ParseTuple(args, "s", &name))
        return NULL;
    if (!kernels_choose(name))
        Py_RETURN_FALSE;
    cipher_choose(strcmp(name, "avx512") != 0);
    Py_RETURN_TRUE;
}

static PyMethodDef methods[] = {
    {"choose", choose, METH_VARARGS, NULL},
    {"noise", noise, METH_VARARGS, NULL},
    {"stream", stream, METH_VARARGS, NULL},
    {"rows", rows, METH_VARARGS, NULL},
    {"convolution_room", convolution_room, METH_VARARGS, NULL},
    {"convolution", convolution, METH_VARARGS, NULL},
    {"positions_room", positions_room, METH_VARARGS, NULL},
    {"positions", positions, METH_VARARGS, NULL},
    {"lookup_room", lookup_room, METH_VARARGS, NULL},
    {"lookup", lookup, METH_VARARGS, NULL},
    {"normalised", normalised, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "_kernels", NULL, -1, methods, NULL, NULL, NULL, NULL,
};

PyMODINIT_FUNC PyInit__kernels(void)
{
    PyObject *module = PyModule_Create(&definition);
    if (module && (PyModule_AddStringConstant(module, "processor", kernels_here()->name) < 0 ||
                   PyModule_AddIntConstant(module, "cipher", cipher_here()) < 0 ||
                   PyModule_AddIntConstant(module, "chain", CHAIN) < 0))
        return NULL;
    return module;
}
