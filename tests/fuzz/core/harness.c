/* A harness of libFuzzer for the compiled core: the functions that walk over a profile's bytes, on any bytes.
 *
 * The first byte of an input chooses the function and how large its outputs are; the rest are the profile's bytes. Every
 * buffer is a block of its own that is exactly as long as it claims, so that AddressSanitizer sees what lies beyond it. */

#define PY_SSIZE_T_CLEAN
#include CORE

#include <stdlib.h>

enum { MOST_HELD = 16 };

static PyObject *held[MOST_HELD];
static void *blocks[MOST_HELD];
static int count;

static void *buffer(Py_ssize_t size, const void *content) {
    void *block = malloc(size ? (size_t)size : 1);
    if (!block)
        abort();
    if (content)
        memcpy(block, content, (size_t)size);
    else
        memset(block, 0, (size_t)size);
    blocks[count] = block;
    held[count++] = PyMemoryView_FromMemory(block, size, PyBUF_WRITE);
    return block;
}

static void number(int64_t value) {
    blocks[count] = NULL;
    held[count++] = PyLong_FromLongLong(value);
}

/* Calls a function of the core with what is held, and lets go of it; -1 where that was refused. */
static int64_t call(PyObject *(*function)(PyObject *, PyObject *const *, Py_ssize_t)) {
    PyObject *answer = function(NULL, held, count);
    int64_t first = -1;
    if (answer && PyTuple_Check(answer))
        first = PyLong_AsLongLong(PyTuple_GetItem(answer, 0));
    Py_XDECREF(answer);
    if (PyErr_Occurred()) {
        if (!PyErr_ExceptionMatches(PyExc_ValueError))
            abort(); /* the core refuses with nothing else */
        PyErr_Clear();
        first = -1;
    }
    for (int i = 0; i < count; i++)
        Py_DECREF(held[i]);
    return first;
}

static void let_go(void) {
    for (int i = 0; i < count; i++)
        free(blocks[i]);
    count = 0;
}

int LLVMFuzzerInitialize(int *argc, char ***argv) {
    (void)argc;
    (void)argv;
    Py_InitializeEx(0);
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (!size)
        return 0;
    int how = *data++;
    Py_ssize_t length = (Py_ssize_t)size - 1, n = how & 8 ? length : how >> 4;
    static const int64_t wanted[4] = {1, 2, 3, 7};
    static const uint8_t chosen[4] = {0, 1, 0, 1};
    int k = how & 3 ? how >> 6 : 0;
    if (how % 4 == 3) { /* scan */
        buffer(length, data);
        buffer(8 * k, wanted);
        buffer(how & 32 ? 4 : 0, chosen);
        buffer((how & 4 ? 4 : 8) * n, NULL);
        for (int i = 0; i < 2; i++)
            buffer(8 * n, NULL);
        buffer(n, NULL);
        buffer(how & 16 ? 8 * n : 0, NULL);
        buffer(how & 16 ? 4 * n : 0, NULL);
        buffer(n * k, NULL);
        buffer(8 * n * k, NULL);
        buffer(4 * n * k, NULL);
        number(0), number(0), number(0);
        call(core_scan);
        let_go();
        return 0;
    }
    buffer(length, data);
    buffer(4 * length, NULL);
    buffer(length, NULL);
    int64_t *begin = buffer(8 * length, NULL), *end = buffer(8 * length, NULL);
    number(0);
    int64_t fields = call(core_split), whole = 0;
    int64_t *spans = malloc(16 * (size_t)(fields > 0 ? fields : 0) + 1);
    if (!spans)
        abort();
    for (int64_t i = 0; i < fields; i++)
        whole += end[i] <= length;
    for (int64_t i = 0, to = 0; i < fields; i++)
        if (end[i] <= length) {
            spans[to] = begin[i];
            spans[whole + to++] = end[i];
        }
    let_go();
    if (fields > 0 && how % 4) {
        buffer(length, data);
        buffer(8 * whole, spans);
        buffer(8 * whole, spans + whole);
        buffer(8 * k, wanted);
        buffer(whole * k, NULL);
        for (int i = 0; i < 2; i++)
            buffer(8 * whole * k, NULL);
        number(4);
        call(core_stats);
        let_go();
    }
    free(spans);
    return 0;
}
