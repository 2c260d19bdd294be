/* The loops of the decoder in C. What the functions do is written down in api.py and op_pass.py; here is how.
 *
 * The loops run without the GIL over buffers that Python owns. They trust nothing: lengths and alignment are checked on
 * entry, outputs may not overlap anything, and every span, key and byte position is checked where it is used, from a
 * local copy. Arithmetic that may wrap around is unsigned.
 *
 * Stable ABI from Python 3.11 on (the buffer protocol joined it there), the plain one on 3.10.
 */
#include <patchlevel.h>
#if PY_VERSION_HEX >= 0x030B0000
#define Py_LIMITED_API 0x030B0000
#endif
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#ifdef __GLIBC__
#include <malloc.h>
#endif

/* None, counted. Py_RETURN_NONE of Python 3.12 does not count it, and Python 3.11 aborts after some hundred calls. */
static PyObject *none(void) { return Py_NewRef(Py_None); }

#if defined(__GNUC__) || defined(__clang__)
#define LIKELY(x) __builtin_expect(!!(x), 1)
#define UNLIKELY(x) __builtin_expect(!!(x), 0)
#define INLINE static inline __attribute__((always_inline))
#else
#define LIKELY(x) (x)
#define UNLIKELY(x) (x)
#define INLINE static inline
#endif

#if defined(__GNUC__) && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define WORDS 1 /* a varint of up to eight bytes is read at once */
#endif

enum { OK = 0, INCOMPLETE = 1, MALFORMED = 2, FULL = 3, WIDE_ID = 4 };
enum { VARINT = 0, FIXED64 = 1, LEN = 2, FIXED32 = 5 };
enum { HAS_OFFSET = 1, HAS_OCCURRENCES = 2, EVENT_MALFORMED = 4, HAS_TEXT = 8 };
enum { KIND_ABSENT = 0, KIND_EMPTY = 1 };
enum { MAX_TAG_BYTES = 5, MAX_VARINT_BYTES = 10 };

/* ---- one field ---- */

typedef struct {
    uint32_t number;
    uint32_t wire;
    int64_t begin;  /* the value's bytes */
    int64_t end;    /* may be past the message for LEN */
    uint64_t value; /* of a varint */
} Field;

/* The bytes that may be read. A message inside them has its own, nearer end. */
typedef struct {
    const uint8_t *data;
    int64_t size;
} Bytes;

#ifdef WORDS
/* Reads a varint of up to eight bytes, all of which may be read; returns 0 for a longer one. */
INLINE int read_short(const uint8_t *data, int64_t *at, uint64_t *value) {
    uint64_t word, last;
    memcpy(&word, data + *at, 8);
    if (!(word & 0x80)) {
        *value = word & 0x7f;
        *at += 1;
        return 1;
    }
    last = ~word & 0x8080808080808080u;
    if (UNLIKELY(last == 0))
        return 0;
    *at += (__builtin_ctzll(last) >> 3) + 1;
    word &= (last ^ (last - 1)) & 0x7f7f7f7f7f7f7f7fu;
    word = (word & 0x007f007f007f007fu) | (word & 0x7f007f007f007f00u) >> 1;
    word = (word & 0x00003fff00003fffu) | (word & 0x3fff00003fff0000u) >> 2;
    *value = (word & 0x000000000fffffffu) | (word & 0x0fffffff00000000u) >> 4;
    return 1;
}
#endif

/* Reads the varint at *at, which must end before `stop`; moves *at behind it. */
INLINE int read_varint(Bytes bytes, int64_t *at, int64_t stop, int max_bytes, uint64_t *value) {
    int64_t p = *at;
    if (LIKELY(p < stop && bytes.data[p] < 0x80)) {
        *value = bytes.data[p];
        *at = p + 1;
        return OK;
    }
#ifdef WORDS
    if (LIKELY(max_bytes >= 8 && bytes.size - p >= 8)) {
        int64_t next = p;
        if (LIKELY(read_short(bytes.data, &next, value))) { /* which reads eight bytes, perhaps beyond `stop` */
            if (UNLIKELY(next > stop))
                return INCOMPLETE;
            *at = next;
            return OK;
        }
    }
#endif
    uint64_t sum = 0;
    for (int i = 0; i < max_bytes; i++) {
        if (UNLIKELY(p + i >= stop))
            return INCOMPLETE;
        uint64_t byte = bytes.data[p + i];
        sum |= (byte & 0x7f) << (7 * i); /* the tenth byte's upper bits fall off, as in protobuf */
        if (byte < 0x80) {
            *value = sum;
            *at = p + i + 1;
            return OK;
        }
    }
    return MALFORMED;
}

/* Reads a length: as a varint, but bits beyond the 63rd are a fault. */
INLINE int read_length(Bytes bytes, int64_t *at, int64_t stop, int64_t *length) {
    uint64_t value;
    int64_t begin = *at;
    int status = read_varint(bytes, at, stop, MAX_VARINT_BYTES, &value);
    if (UNLIKELY(status != OK))
        return status;
    if (UNLIKELY(*at - begin == MAX_VARINT_BYTES && bytes.data[*at - 1] != 0))
        return MALFORMED;
    if (UNLIKELY(value > (uint64_t)(INT64_MAX - *at)))
        return MALFORMED;
    *length = (int64_t)value;
    return OK;
}

/* Reads the field whose tag is at data[at] in a message that ends at `stop`. */
INLINE int read_field(Bytes bytes, int64_t at, int64_t stop, Field *field) {
    uint64_t tag;
    int64_t length;
    int status = read_varint(bytes, &at, stop, MAX_TAG_BYTES, &tag);
    if (UNLIKELY(status != OK))
        return status;
    if (UNLIKELY(tag < 8 || tag > UINT32_MAX))
        return MALFORMED;
    field->number = (uint32_t)(tag >> 3);
    field->wire = (uint32_t)(tag & 7);
    field->value = 0;
    field->begin = at;
    switch (field->wire) {
    case VARINT:
        status = read_varint(bytes, &at, stop, MAX_VARINT_BYTES, &field->value);
        field->end = at;
        return status;
    case LEN:
        status = read_length(bytes, &at, stop, &length);
        if (UNLIKELY(status != OK))
            return status;
        field->begin = at;
        field->end = at + length;
        return OK;
    case FIXED64:
        field->end = at + 8;
        return stop - at >= 8 ? OK : INCOMPLETE;
    case FIXED32:
        field->end = at + 4;
        return stop - at >= 4 ? OK : INCOMPLETE;
    default: /* groups and unassigned wire types */
        return MALFORMED;
    }
}

/* The same for a field inside a message that is all there: a payload past its end is a fault. */
INLINE int read_inner(Bytes bytes, int64_t at, int64_t stop, Field *field) {
    int status = read_field(bytes, at, stop, field);
    return LIKELY(status == OK) && UNLIKELY(field->end > stop) ? INCOMPLETE : status;
}

/* ---- arguments ---- */

enum { MAX_ARRAYS = 32 };

typedef struct {
    Py_buffer view[MAX_ARRAYS];
    int count;
} Arrays;

static void release(Arrays *arrays) {
    for (int i = 0; i < arrays->count; i++)
        PyBuffer_Release(&arrays->view[i]);
    arrays->count = 0;
}

static PyObject *refuse(Arrays *arrays, const char *message) {
    release(arrays);
    PyErr_SetString(PyExc_ValueError, message);
    return NULL;
}

/* Takes `inputs` readable buffers, then `outputs` writable ones. Fails with an exception, everything released. */
static int acquire(Arrays *arrays, PyObject *const *args, int inputs, int outputs) {
    arrays->count = 0;
    for (int i = 0; i < inputs + outputs; i++) {
        if (PyObject_GetBuffer(args[i], &arrays->view[i], i < inputs ? PyBUF_SIMPLE : PyBUF_WRITABLE) < 0) {
            release(arrays);
            return 0;
        }
        arrays->count++;
    }
    for (int i = inputs; i < arrays->count; i++) {
        uintptr_t from = (uintptr_t)arrays->view[i].buf, to = from + (uintptr_t)arrays->view[i].len;
        for (int j = 0; j < i; j++) {
            uintptr_t other = (uintptr_t)arrays->view[j].buf;
            if (from < to && other < to && from < other + (uintptr_t)arrays->view[j].len)
                return refuse(arrays, "an output overlaps another array") != NULL;
        }
    }
    return 1;
}

/* Whether array `i` holds `count` items of `size` bytes (a power of two), aligned. */
static int holds(const Arrays *arrays, int i, Py_ssize_t count, Py_ssize_t size) {
    const Py_buffer *view = &arrays->view[i];
    return view->len % size == 0 && view->len / size == count && (uintptr_t)view->buf % (uintptr_t)size == 0;
}

/* Whether `len` bytes are rows of `width` that have this one; -1 is none, and asks for nothing. */
static int has_row(Py_ssize_t row, Py_ssize_t width, Py_ssize_t len) {
    return row == -1 || (row >= 0 && (width == 0 || row < len / width));
}

static Bytes bytes_of(const Arrays *arrays) {
    Bytes bytes = {arrays->view[0].buf, arrays->view[0].len};
    return bytes;
}

/* Takes the arguments of a function: buffers as `acquire`, then numbers; 0 with an error set where they are others. */
static int take(Arrays *arrays, PyObject *const *args, Py_ssize_t given, int inputs, int outputs, int numbers,
                Py_ssize_t *number) {
    Py_ssize_t wanted = inputs + outputs + numbers;
    if (given != wanted) {
        PyErr_Format(PyExc_TypeError, "%zd arguments wanted, %zd given", wanted, given);
        return 0;
    }
    for (int i = 0; i < numbers; i++) {
        number[i] = PyLong_AsSsize_t(args[inputs + outputs + i]);
        if (number[i] == -1 && PyErr_Occurred())
            return 0;
    }
    return acquire(arrays, args, inputs, outputs);
}

/* Ends a function that only writes its outputs; `message` says what is wrong where they are not `whole`. */
static PyObject *finish(Arrays *arrays, int whole, const char *message) {
    if (!whole)
        return refuse(arrays, message);
    release(arrays);
    return none();
}

/* Ends a function that returns a number, -1 where something is wrong. */
static PyObject *finish_with(Arrays *arrays, int64_t number, const char *message) {
    if (number == -1)
        return refuse(arrays, message);
    release(arrays);
    return PyLong_FromLongLong(number);
}

/* ---- split ---- */

typedef struct {
    int64_t count;
    int64_t next;
    int status;
} Split;

static Split split_loop(Bytes bytes, int64_t start, int64_t capacity, uint32_t *number,
                        uint8_t *wire, int64_t *begin, int64_t *end) {
    Split out = {0, start, OK};
    while (out.next < bytes.size) {
        Field field;
        if (UNLIKELY(out.count == capacity)) {
            out.status = FULL;
            break;
        }
        int status = read_field(bytes, out.next, bytes.size, &field);
        if (UNLIKELY(status != OK)) {
            out.status = status;
            break;
        }
        number[out.count] = field.number;
        wire[out.count] = (uint8_t)field.wire;
        begin[out.count] = field.begin;
        end[out.count] = field.end;
        out.count++;
        out.next = field.end;
    }
    return out;
}

/* split(buf, number, wire, begin, end, start) -> (count, next, status); status FULL: call again from `next`. */
static PyObject *core_split(PyObject *Py_UNUSED(module), PyObject *const *args, Py_ssize_t given) {
    Arrays a;
    Split out;
    Py_ssize_t start;
    if (!take(&a, args, given, 1, 4, 1, &start))
        return NULL;
    Py_ssize_t size = a.view[0].len, n = a.view[2].len;
    if (!holds(&a, 1, n, 4) || !holds(&a, 3, n, 8) || !holds(&a, 4, n, 8) || start < 0 || start > size)
        return refuse(&a, "outputs of different lengths, not aligned, or a start outside the bytes");
    Py_BEGIN_ALLOW_THREADS
    out = split_loop(bytes_of(&a), start, n, a.view[1].buf, a.view[2].buf, a.view[3].buf, a.view[4].buf);
    Py_END_ALLOW_THREADS
    release(&a);
    return Py_BuildValue("LLi", (long long)out.count, (long long)out.next, out.status);
}

/* ---- stats ---- */

typedef struct {
    uint64_t id;
    uint64_t value;
    int64_t length;
    uint8_t kind;
} Stat;

INLINE int read_stat(Bytes bytes, int64_t at, int64_t stop, Stat *stat) {
    stat->id = 0;
    stat->value = 0;
    stat->length = 0;
    stat->kind = KIND_EMPTY;
    while (at < stop) {
        Field field;
        int status = read_inner(bytes, at, stop, &field);
        if (UNLIKELY(status != OK))
            return status;
        at = field.end;
        /* number and wire type of XStat's fields: id; double; uint64, int64, ref; str, bytes, compressed_str */
        switch (field.number << 3 | field.wire) {
        case 1 << 3 | VARINT:
            stat->id = field.value;
            break;
        case 2 << 3 | FIXED64:
            stat->kind = 2;
            stat->length = 0;
            memcpy(&stat->value, bytes.data + field.begin, 8);
            break;
        case 3 << 3 | VARINT:
        case 4 << 3 | VARINT:
        case 7 << 3 | VARINT:
            stat->kind = (uint8_t)field.number;
            stat->length = 0;
            stat->value = field.value;
            break;
        case 5 << 3 | LEN:
        case 6 << 3 | LEN:
        case 8 << 3 | LEN:
            stat->kind = (uint8_t)field.number;
            stat->length = field.end - field.begin;
            stat->value = (uint64_t)field.begin;
            break;
        default:
            break;
        }
    }
    return OK;
}

enum { NO_ROW = -1, SEVERAL_ROWS = -2 };

typedef struct {
    const int64_t *id;
    int64_t count;
    int8_t row[64]; /* of the id that ends in these six bits; or NO_ROW, or SEVERAL_ROWS */
} Wanted;

static Wanted wanted_ids(const int64_t *id, int64_t count) {
    Wanted wanted = {id, count, {0}};
    memset(wanted.row, NO_ROW, sizeof wanted.row);
    for (int64_t row = 0; row < count; row++) {
        int8_t *known = &wanted.row[(uint64_t)id[row] & 63];
        *known = *known == NO_ROW && row <= INT8_MAX ? (int8_t)row : SEVERAL_ROWS;
    }
    return wanted;
}

INLINE int64_t row_of(const Wanted *wanted, uint64_t id) {
    int64_t row = wanted->row[id & 63];
    if (row >= 0)
        return (uint64_t)wanted->id[row] == id ? row : NO_ROW;
    if (LIKELY(row == NO_ROW))
        return NO_ROW;
    for (row = 0; row < wanted->count; row++)
        if ((uint64_t)wanted->id[row] == id)
            return row;
    return NO_ROW;
}

static int64_t stats_loop(Bytes bytes, int64_t n, const int64_t *begin, const int64_t *end,
                          int64_t stats_field, Wanted wanted, uint8_t *kind, int64_t *value, int64_t *length) {
    for (int64_t i = 0; i < n; i++) {
        int64_t at = begin[i], stop = end[i], missing = wanted.count;
        if (UNLIKELY(at < 0 || at > stop || stop > bytes.size))
            return i;
        for (int64_t row = 0; row < wanted.count; row++) {
            kind[row * n + i] = KIND_ABSENT;
            value[row * n + i] = 0;
            length[row * n + i] = 0;
        }
        while (at < stop && missing) {
            Field field;
            Stat stat;
            if (UNLIKELY(read_inner(bytes, at, stop, &field) != OK))
                break;
            at = field.end;
            if (field.number != stats_field || field.wire != LEN)
                continue;
            if (UNLIKELY(read_stat(bytes, field.begin, field.end, &stat) != OK))
                continue;
            int64_t row = row_of(&wanted, stat.id);
            if (row < 0 || kind[row * n + i] != KIND_ABSENT)
                continue;
            kind[row * n + i] = stat.kind;
            value[row * n + i] = (int64_t)stat.value;
            length[row * n + i] = stat.length;
            missing--;
        }
    }
    return n;
}

/* stats(buf, begin, end, wanted, kind, value, length, stats_field) -> None; row r of the outputs is wanted[r]. */
static PyObject *core_stats(PyObject *Py_UNUSED(module), PyObject *const *args, Py_ssize_t given) {
    Arrays a;
    int64_t done;
    Py_ssize_t stats_field;
    if (!take(&a, args, given, 4, 3, 1, &stats_field))
        return NULL;
    Py_ssize_t n = a.view[1].len / 8, k = a.view[3].len / 8, cells = a.view[4].len;
    int fits = holds(&a, 1, n, 8) && holds(&a, 2, n, 8) && holds(&a, 3, k, 8) && holds(&a, 5, cells, 8) &&
               holds(&a, 6, cells, 8) && (n == 0 || k == 0 ? cells == 0 : cells % n == 0 && cells / n == k);
    if (!fits)
        return refuse(&a, "arrays of different lengths, or not aligned");
    Wanted wanted = wanted_ids(a.view[3].buf, k);
    Py_BEGIN_ALLOW_THREADS
    done = stats_loop(bytes_of(&a), n, a.view[1].buf, a.view[2].buf, stats_field, wanted,
                      a.view[4].buf, a.view[5].buf, a.view[6].buf);
    Py_END_ALLOW_THREADS
    return finish(&a, done == n, "a span lies outside the bytes, or ends before it begins");
}

/* ---- a whole line in one pass ---- */

enum { EVENTS_FIELD = 4, STATS_FIELD = 4 };

/* Where the columns of events go; row r of the stats is kind[r * capacity], ... */
typedef struct {
    int64_t capacity;
    int wide; /* ids have eight bytes, else four */
    void *metadata_id;
    int64_t *offset;
    int64_t *duration;
    uint8_t *flags;
    int64_t *begin;   /* NULL when places are not wanted */
    uint32_t *length; /* likewise */
    uint8_t *kind;         /* zero before, written where an event has the stat */
    int64_t *value;        /* likewise */
    uint32_t *stat_length; /* zero before, written for text and bytes only */
} Columns;

typedef struct {
    int64_t count;
    int64_t next;
    int status;
    int seen; /* flags of all events, or-ed */
} Scan;

/* The ids of the events to decode; all where there are none. */
typedef struct {
    const uint8_t *is;
    int64_t count;
} Chosen;

INLINE int is_chosen(const Chosen *chosen, uint64_t id) {
    return id < (uint64_t)chosen->count && chosen->is[id];
}

#ifdef WORDS
/* Reads the metadata id of an event of the usual form; returns 0 for any other. Eight bytes behind its end may be read. */
INLINE int read_usual_id(const uint8_t *data, int64_t at, int64_t end, uint64_t *id) {
    uint64_t other;
    *id = 0;
    while (at < end) {
        switch (data[at++]) {
        case STATS_FIELD << 3 | LEN:
            at += 1 + data[at]; /* for a length of several bytes, no less than 0x80 here, beyond the end */
            break;
        case 1 << 3 | VARINT:
            if (UNLIKELY(!read_short(data, &at, id)))
                return 0;
            break;
        case 2 << 3 | VARINT:
        case 3 << 3 | VARINT:
        case 5 << 3 | VARINT:
            if (UNLIKELY(!read_short(data, &at, &other)))
                return 0;
            break;
        default:
            return 0;
        }
    }
    return at == end;
}

/* Decodes an event of the usual form into place i: short, its plain fields first to last in bounds, its stats an id and
 * one value. Eight bytes behind its end may be read. Returns 0 for any other event, which scan_event decodes. */
INLINE int scan_usual(const uint8_t *data, int64_t base, int64_t begin, int64_t end, const Wanted *wanted,
                      const Columns *to, int64_t i, int *seen) {
    int64_t at = begin, missing = wanted->count;
    uint64_t id = 0, first = 0, duration = 0;
    uint8_t flag = 0;
    while (at < end) {
        uint64_t *field = &id;
        switch (data[at]) {
        case STATS_FIELD << 3 | LEN: {
            int64_t p = at + 2, stop = p + data[at + 1], row;
            uint64_t stat_id, value;
            uint8_t tag;
            if (UNLIKELY(stop > end)) /* also for a length of several bytes, which is no less than 0x80 here */
                return 0;
            at = stop;
            if (!missing)
                continue;
            if (UNLIKELY(data[p++] != (1 << 3 | VARINT) || !read_short(data, &p, &stat_id) || p >= stop))
                return 0;
            row = row_of(wanted, stat_id);
            tag = data[p++];
            switch (tag) {
            case 3 << 3 | VARINT:
            case 4 << 3 | VARINT:
            case 7 << 3 | VARINT:
                if (UNLIKELY(!read_short(data, &p, &value) || p != stop))
                    return 0;
                break;
            case 2 << 3 | FIXED64:
                if (UNLIKELY(p + 8 != stop))
                    return 0;
                memcpy(&value, data + p, 8);
                break;
            case 5 << 3 | LEN:
            case 6 << 3 | LEN:
                if (row >= 0 || p + 1 + data[p] != stop)
                    return 0;
                continue;
            default:
                return 0;
            }
            if (row < 0 || to->kind[row * to->capacity + i] != KIND_ABSENT)
                continue;
            to->kind[row * to->capacity + i] = tag >> 3;
            to->value[row * to->capacity + i] = (int64_t)value;
            missing--;
            continue;
        }
        case 1 << 3 | VARINT:
            break;
        case 2 << 3 | VARINT:
            field = &first;
            flag = HAS_OFFSET;
            break;
        case 3 << 3 | VARINT:
            field = &duration;
            break;
        case 5 << 3 | VARINT:
            field = &first;
            flag = HAS_OCCURRENCES;
            break;
        default:
            return 0;
        }
        at++;
        if (UNLIKELY(!read_short(data, &at, field)))
            return 0;
    }
    if (UNLIKELY(at != end))
        return 0;
    if (to->wide)
        ((int64_t *)to->metadata_id)[i] = (int64_t)id;
    else if (LIKELY(id <= INT32_MAX))
        ((int32_t *)to->metadata_id)[i] = (int32_t)id;
    else
        return 0;
    to->offset[i] = (int64_t)first;
    to->duration[i] = (int64_t)duration;
    to->flags[i] = flag;
    *seen |= flag;
    if (to->begin) {
        to->begin[i] = (int64_t)((uint64_t)base + (uint64_t)begin);
        to->length[i] = (uint32_t)(end - begin);
    }
    return 1;
}
#endif

/* Decodes one event into place i; returns OK or WIDE_ID. */
INLINE int scan_event(Bytes bytes, int64_t base, Field body, const Wanted *wanted, const Columns *to, int64_t i,
                      int *seen) {
    int64_t at = body.begin, missing = wanted->count;
    uint64_t id = 0, first = 0, duration = 0;
    uint8_t flag = 0;
    for (int64_t row = 0; row < wanted->count; row++)
        to->kind[row * to->capacity + i] = KIND_ABSENT;
    while (at < body.end) {
        Field field;
        Stat stat;
        if (UNLIKELY(read_inner(bytes, at, body.end, &field) != OK)) {
            flag |= EVENT_MALFORMED;
            break;
        }
        at = field.end;
        switch (field.number << 3 | field.wire) {
        case 1 << 3 | VARINT:
            id = field.value;
            continue;
        case 2 << 3 | VARINT:
            first = field.value;
            flag = HAS_OFFSET;
            continue;
        case 3 << 3 | VARINT:
            duration = field.value;
            continue;
        case 5 << 3 | VARINT:
            first = field.value;
            flag = HAS_OCCURRENCES;
            continue;
        case STATS_FIELD << 3 | LEN:
            break;
        default:
            continue;
        }
        if (!missing || UNLIKELY(read_stat(bytes, field.begin, field.end, &stat) != OK))
            continue;
        int64_t row = row_of(wanted, stat.id);
        if (row < 0 || to->kind[row * to->capacity + i] != KIND_ABSENT)
            continue;
        to->kind[row * to->capacity + i] = stat.kind;
        if (UNLIKELY(stat.kind == 5 || stat.kind == 6 || stat.kind == 8)) {
            *seen |= HAS_TEXT;
            stat.value += (uint64_t)base;
            to->stat_length[row * to->capacity + i] =
                stat.length > (int64_t)UINT32_MAX ? UINT32_MAX : (uint32_t)stat.length;
        }
        to->value[row * to->capacity + i] = (int64_t)stat.value;
        missing--;
    }
    if (to->wide)
        ((int64_t *)to->metadata_id)[i] = (int64_t)id;
    else if (LIKELY((int64_t)id >= INT32_MIN && (int64_t)id <= INT32_MAX))
        ((int32_t *)to->metadata_id)[i] = (int32_t)(int64_t)id;
    else
        return WIDE_ID;
    to->offset[i] = (int64_t)first;
    to->duration[i] = (int64_t)duration;
    to->flags[i] = flag;
    *seen |= flag;
    if (to->begin) {
        int64_t length = body.end - body.begin;
        to->begin[i] = (int64_t)((uint64_t)base + (uint64_t)body.begin);
        to->length[i] = length > (int64_t)UINT32_MAX ? UINT32_MAX : (uint32_t)length;
    }
    return OK;
}

/* Reads the metadata id of an event: the last one, as far as the event is sound. */
INLINE uint64_t read_id(Bytes bytes, Field body) {
    int64_t at = body.begin;
    uint64_t id = 0;
    Field field;
    while (at < body.end && read_inner(bytes, at, body.end, &field) == OK) {
        at = field.end;
        if (field.number == 1 && field.wire == VARINT)
            id = field.value;
    }
    return id;
}

static Scan scan_loop(Bytes bytes, int64_t base, int64_t start, int64_t at, Wanted wanted, Chosen chosen,
                      const Columns *to) {
    Scan out = {0, start, OK, 0};
    while (out.next < bytes.size) {
        Field field;
#ifdef WORDS
        if (LIKELY(bytes.size - out.next > 2 + 0x7f + 8 && bytes.data[out.next] == (EVENTS_FIELD << 3 | LEN) &&
                   bytes.data[out.next + 1] < 0x80 && (chosen.count || at + out.count < to->capacity))) {
            int64_t begin = out.next + 2, end = begin + bytes.data[out.next + 1];
            int is_usual = 1;
            if (chosen.count) {
                uint64_t id;
                is_usual = read_usual_id(bytes.data, begin, end, &id);
                if (LIKELY(is_usual && !is_chosen(&chosen, id))) {
                    out.next = end;
                    continue;
                }
                is_usual = is_usual && at + out.count < to->capacity;
            }
            if (LIKELY(is_usual && scan_usual(bytes.data, base, begin, end, &wanted, to, at + out.count, &out.seen))) {
                out.count++;
                out.next = end;
                continue;
            }
        }
#endif
        int status = read_field(bytes, out.next, bytes.size, &field);
        if (LIKELY(status == OK && field.number == EVENTS_FIELD && field.wire == LEN)) {
            if (UNLIKELY(field.end > bytes.size))
                status = INCOMPLETE; /* the event goes on behind these bytes */
            else if (chosen.count && !is_chosen(&chosen, read_id(bytes, field))) {
                out.next = field.end;
                continue;
            } else if (UNLIKELY(at + out.count == to->capacity))
                status = FULL;
            else
                status = scan_event(bytes, base, field, &wanted, to, at + out.count, &out.seen);
            out.count += status == OK;
        }
        if (UNLIKELY(status != OK)) {
            out.status = status;
            break;
        }
        out.next = field.end;
    }
    return out;
}

/* scan(buf, wanted, chosen, metadata_id, offset, duration, flags, begin, length, kind, value, stat_length, base, start, at)
 * -> (count, next, status, seen) */
static PyObject *core_scan(PyObject *Py_UNUSED(module), PyObject *const *args, Py_ssize_t given) {
    Arrays a;
    Py_ssize_t number[3];
    if (!take(&a, args, given, 3, 9, 3, number))
        return NULL;
    Py_ssize_t capacity = a.view[6].len, k = a.view[1].len / 8, cells = a.view[9].len;
    int wide = a.view[3].len != 0 && a.view[3].len / 8 == capacity, places = a.view[7].len != 0;
    int fits = holds(&a, 1, k, 8) && holds(&a, 3, capacity, wide ? 8 : 4) && holds(&a, 4, capacity, 8) &&
               holds(&a, 5, capacity, 8) && holds(&a, 7, places ? capacity : 0, 8) &&
               holds(&a, 8, places ? capacity : 0, 4) && holds(&a, 10, cells, 8) && holds(&a, 11, cells, 4) &&
               (capacity == 0 || k == 0 ? cells == 0 : cells % capacity == 0 && cells / capacity == k);
    if (!fits || number[1] < 0 || number[1] > a.view[0].len || number[2] < 0 || number[2] > capacity)
        return refuse(&a, "columns of different lengths, not aligned, or a start outside the bytes or columns");
    Columns to = {capacity,      wide,
                  a.view[3].buf, a.view[4].buf,
                  a.view[5].buf, a.view[6].buf,
                  places ? a.view[7].buf : NULL,
                  places ? a.view[8].buf : NULL,
                  a.view[9].buf, a.view[10].buf,
                  a.view[11].buf};
    Wanted wanted = wanted_ids(a.view[1].buf, k);
    Chosen chosen = {a.view[2].buf, a.view[2].len};
    Scan out;
    Py_BEGIN_ALLOW_THREADS
    out = scan_loop(bytes_of(&a), number[0], number[1], number[2], wanted, chosen, &to);
    Py_END_ALLOW_THREADS
    release(&a);
    return Py_BuildValue("LLii", (long long)out.count, (long long)out.next, out.status, out.seen);
}

/* ---- nesting ---- */

/* The stack of open events is the chain of parents that starts at the event before. */
static int64_t nest_loop(int64_t n, const int64_t *start, const int64_t *end, int64_t *parent, int32_t *depth,
                         int64_t *self_ps) {
    for (int64_t i = 0; i < n; i++) {
        int64_t from = start[i], to = end[i], top = i - 1;
        uint64_t duration = (uint64_t)to - (uint64_t)from;
        if (UNLIKELY(i > 0 && (start[i - 1] > from || (start[i - 1] == from && end[i - 1] < to))))
            return i;
        while (top >= 0 && end[top] < to)
            top = parent[top];
        parent[i] = top;
        depth[i] = top < 0 ? 0 : (int32_t)((uint32_t)depth[top] + 1);
        self_ps[i] = (int64_t)duration;
        if (top >= 0)
            self_ps[top] = (int64_t)((uint64_t)self_ps[top] - duration);
    }
    return n;
}

/* nest(start, end, parent, depth, self_ps) -> None */
static PyObject *core_nest(PyObject *Py_UNUSED(module), PyObject *const *args, Py_ssize_t given) {
    Arrays a;
    int64_t done;
    if (!take(&a, args, given, 2, 3, 0, NULL))
        return NULL;
    Py_ssize_t n = a.view[0].len / 8;
    if (!holds(&a, 0, n, 8) || !holds(&a, 1, n, 8) || !holds(&a, 2, n, 8) || !holds(&a, 3, n, 4) ||
        !holds(&a, 4, n, 8))
        return refuse(&a, "arrays of different lengths, or not aligned");
    Py_BEGIN_ALLOW_THREADS
    done = nest_loop(n, a.view[0].buf, a.view[1].buf, a.view[2].buf, a.view[3].buf, a.view[4].buf);
    Py_END_ALLOW_THREADS
    return finish(&a, done == n, "events must be sorted by start, then by descending end");
}

/* ---- lanes ---- */

enum { FEW_LANES = 8 };

/* Gives each event from `at` on the lowest lane that is free at its start. `tree` holds when lanes are free again: its
 * second half is the lanes, each place before those is the least of its two children, and the root is at 1. Returns how
 * far it came: to n, or to the first event for which no lane is left. Returns -1 where events are not sorted. */
static int64_t lane_loop(int64_t at, int64_t n, const int64_t *start, const int64_t *end, int32_t *lane, int64_t *tree,
                         int64_t room) {
    for (int64_t i = at; i < n; i++) {
        int64_t from = start[i], stop = end[i], node = 1;
        if (UNLIKELY(i > 0 && (start[i - 1] > from || (start[i - 1] == from && end[i - 1] < end[i]))))
            return -1;
        if (stop <= from)
            stop = from == INT64_MAX ? from : from + 1;
        if (room <= FEW_LANES) { /* one after the other is faster, and nobody asks for the rest of the tree */
            for (node = room; node < 2 * room && tree[node] > from;)
                node++;
            if (UNLIKELY(node == 2 * room))
                return i;
            lane[i] = (int32_t)(node - room);
            tree[node] = stop;
            continue;
        }
        if (UNLIKELY(tree[1] > from))
            return i;
        while (node < room) {
            node *= 2;
            node += tree[node] > from;
        }
        lane[i] = (int32_t)(node - room);
        tree[node] = stop;
        while (node > 1) {
            int64_t least;
            node /= 2;
            least = tree[2 * node] < tree[2 * node + 1] ? tree[2 * node] : tree[2 * node + 1];
            if (tree[node] == least)
                break;
            tree[node] = least;
        }
    }
    return n;
}

/* lanes(start, end, lane, tree, at) -> how far it came; see lane_loop. The tree has 2^k places, at least 2. */
static PyObject *core_lanes(PyObject *Py_UNUSED(module), PyObject *const *args, Py_ssize_t given) {
    Arrays a;
    int64_t done;
    Py_ssize_t at;
    if (!take(&a, args, given, 2, 2, 1, &at))
        return NULL;
    Py_ssize_t n = a.view[0].len / 8, places = a.view[3].len / 8;
    if (!holds(&a, 0, n, 8) || !holds(&a, 1, n, 8) || !holds(&a, 2, n, 4) || !holds(&a, 3, places, 8) || places < 2 ||
        (places & (places - 1)) || places / 2 > INT32_MAX || at < 0 || at > n)
        return refuse(&a, "arrays of different lengths, not aligned, a tree of a wrong size, or a place outside");
    Py_BEGIN_ALLOW_THREADS
    done = lane_loop(at, n, a.view[0].buf, a.view[1].buf, a.view[2].buf, a.view[3].buf, places / 2);
    Py_END_ALLOW_THREADS
    return finish_with(&a, done, "events must be sorted by start, then by descending end");
}

/* ---- the events of a line, in order of time, from its lanes ---- */

typedef struct {
    int64_t n, lanes, keys;
    const int64_t *start, *end;
    const int32_t *key;
    const int32_t *lane; /* of the first event, the second, and so on; NULL where there is one lane */
    int64_t *next;       /* of each lane: where its next event is */
} Laid;

/* Takes the arrays from view `at` on: start, end, key and lane; and `next`. */
static int laid_events(const Arrays *a, int at, int next, Py_ssize_t keys, Laid *to) {
    const Py_buffer *v = a->view;
    Py_ssize_t n = v[at].len / 8, lanes = v[next].len / 8;
    Laid laid = {n, lanes, keys, v[at].buf, v[at + 1].buf, v[at + 2].buf, v[at + 3].len ? v[at + 3].buf : NULL,
                 v[next].buf};
    *to = laid;
    return holds(a, at, n, 8) && holds(a, at + 1, n, 8) && holds(a, at + 2, n, 4) &&
           holds(a, at + 3, laid.lane ? n : 0, 4) && holds(a, next, lanes, 8);
}

/* Where event i is; -1 where the lanes or keys do not fit. */
INLINE int64_t laid_at(const Laid *laid, int64_t i) {
    int64_t at = i;
    if (laid->lane) {
        int64_t lane = laid->lane[i];
        if (UNLIKELY(lane < 0 || lane >= laid->lanes))
            return -1;
        at = laid->next[lane];
        if (UNLIKELY(at < 0 || at >= laid->n))
            return -1;
        laid->next[lane] = at + 1;
    }
    return UNLIKELY(laid->key[at] < 0 || laid->key[at] >= laid->keys) ? -1 : at;
}

typedef struct {
    const int32_t *label; /* of each key */
    int64_t groups;
    const int64_t *group_start, *group_end;
    uint64_t most_gap;
    int nests;
    int64_t *start, *end;
    int32_t *run_label;
    uint8_t *apart;
} Runs;

/* Merges events in a row; returns how many runs there are, or -1 where lanes or keys do not fit. */
static int64_t runs_loop(const Laid *laid, const Runs *to) {
    int64_t count = 0, group = -1, reach = 0, length = 0, label_before = -1, group_before = -1;
    for (int64_t i = 0; i < laid->n; i++) {
        int64_t at = laid_at(laid, i);
        if (UNLIKELY(at < 0))
            return -1;
        int64_t label = to->label[laid->key[at]], start = laid->start[at], end = laid->end[at];
        if (label < 0)
            continue;
        while (group + 1 < to->groups && to->group_start[group + 1] <= start)
            group++;
        int64_t of = group >= 0 && start < to->group_end[group] ? group : -1;
        int is_apart = !count || of != group_before, is_new = is_apart || label != label_before;
        int resets = to->nests ? !count : is_new;
        if (of < 0 && !(to->nests ? is_apart : is_new) &&
            (int64_t)((uint64_t)start - (uint64_t)reach) > (int64_t)(to->most_gap * (uint64_t)length))
            is_apart = is_new = 1;
        if (is_new) {
            to->start[count] = start;
            to->end[count] = end;
            to->run_label[count] = (int32_t)label;
            to->apart[count++] = (uint8_t)is_apart;
        } else if (end > to->end[count - 1])
            to->end[count - 1] = end;
        reach = resets || end > reach ? end : reach;
        length = (int64_t)((uint64_t)end - (uint64_t)start);
        label_before = label;
        group_before = of;
    }
    return count;
}

/* runs(start, end, key, lane, label, group_start, group_end, next, run_start, run_end, run_label, apart, gap, nests)
 * -> how many runs */
static PyObject *core_runs(PyObject *Py_UNUSED(module), PyObject *const *args, Py_ssize_t given) {
    Arrays a;
    Laid laid;
    int64_t count;
    Py_ssize_t number[2]; /* gap, nests */
    if (!take(&a, args, given, 7, 5, 2, number))
        return NULL;
    const Py_buffer *v = a.view;
    Py_ssize_t n = v[0].len / 8, keys = v[4].len / 4, groups = v[5].len / 8;
    if (!laid_events(&a, 0, 7, keys, &laid) || !holds(&a, 4, keys, 4) || !holds(&a, 5, groups, 8) ||
        !holds(&a, 6, groups, 8) || !holds(&a, 8, n, 8) || !holds(&a, 9, n, 8) || !holds(&a, 10, n, 4) ||
        !holds(&a, 11, n, 1))
        return refuse(&a, "arrays of different lengths, or not aligned");
    Runs to = {v[4].buf,       groups,   v[5].buf, v[6].buf,  (uint64_t)number[0],
               number[1] != 0, v[8].buf, v[9].buf, v[10].buf, v[11].buf};
    Py_BEGIN_ALLOW_THREADS
    count = runs_loop(&laid, &to);
    Py_END_ALLOW_THREADS
    return finish_with(&a, count, "a key without a label, or lanes that do not fit");
}

/* Adds up self times by key, as nest tells them, but 0 for an event whose children take more time than it has. Returns
 * 1, 0 where the stack is too small, -1 where lanes or keys do not fit, -2 where the events are not in order. */
static int self_loop(const Laid *laid, int64_t *stack, int64_t room, int64_t *out) {
    enum { COLUMNS = 3, END = 0, KEY = 1, SELF = 2 };
    int64_t depth = 0, start_before = INT64_MIN, end_before = INT64_MAX;
    for (int64_t i = 0; i <= laid->n; i++) {
        int64_t at = i < laid->n ? laid_at(laid, i) : 0;
        if (UNLIKELY(at < 0))
            return -1;
        int64_t start = i < laid->n ? laid->start[at] : 0, end = i < laid->n ? laid->end[at] : 0;
        if (i < laid->n) {
            if (UNLIKELY(start < start_before || (start == start_before && end > end_before)))
                return -2;
            start_before = start;
            end_before = end;
        }
        while (depth && (i == laid->n || stack[COLUMNS * (depth - 1) + END] < end)) {
            const int64_t *top = stack + COLUMNS * --depth;
            if (top[SELF] > 0)
                out[top[KEY]] = (int64_t)((uint64_t)out[top[KEY]] + (uint64_t)top[SELF]);
        }
        if (i == laid->n)
            return 1;
        if (UNLIKELY(depth == room))
            return 0;
        uint64_t length = (uint64_t)end - (uint64_t)start;
        int64_t *top = stack + COLUMNS * depth++;
        if (depth > 1)
            top[SELF - COLUMNS] = (int64_t)((uint64_t)top[SELF - COLUMNS] - length);
        top[END] = end;
        top[KEY] = laid->key[at];
        top[SELF] = (int64_t)length;
    }
    return 1;
}

/* self_sums(start, end, key, lane, next, stack, out) -> whether the stack has room; if not, call again with a larger
 * one, with `next` and `out` as at first. */
static PyObject *core_self_sums(PyObject *Py_UNUSED(module), PyObject *const *args, Py_ssize_t given) {
    Arrays a;
    Laid laid;
    int done;
    if (!take(&a, args, given, 4, 3, 0, NULL))
        return NULL;
    const Py_buffer *v = a.view;
    Py_ssize_t keys = v[6].len / 8, cells = v[5].len / 8;
    if (!laid_events(&a, 0, 4, keys, &laid) || !holds(&a, 5, cells, 8) || !holds(&a, 6, keys, 8))
        return refuse(&a, "arrays of different lengths, or not aligned");
    Py_BEGIN_ALLOW_THREADS
    done = self_loop(&laid, v[5].buf, cells / 3, v[6].buf);
    Py_END_ALLOW_THREADS
    if (done < 0)
        return refuse(&a, done == -1 ? "a key outside, or lanes that do not fit"
                                     : "events must be sorted by start, then by descending end");
    release(&a);
    return PyBool_FromLong(done);
}

/* ---- memory ---- */

/* trim() -> None; gives freed memory back to the system, where the C library can. */
static PyObject *core_trim(PyObject *Py_UNUSED(module), PyObject *const *args, Py_ssize_t given) {
    Arrays none_given;
    if (!take(&none_given, args, given, 0, 0, 0, NULL))
        return NULL;
#ifdef __GLIBC__
    Py_BEGIN_ALLOW_THREADS
    malloc_trim(0);
    Py_END_ALLOW_THREADS
#endif
    return none();
}

/* ---- the ops of a line in one pass ---- */

/* Places in the state of a pass, all int64. The state holds what one block of events leaves for the next. */
enum {
    EVENTS,                                       /* how many there were */
    DEVICE_START, DEVICE_END, OWN_START,          /* of the last event */
    FIRST, LAST, OWN_FIRST, OWN_LAST,             /* hulls: by the device's clock, and on the trace's */
    DURATIONS, DEVICE_DURATIONS,                  /* sums, to see that none can overflow */
    TWO_CLOCKS,                                   /* whether any event's two starts differ */
    DEPTH,                                        /* open events on the stack */
    STEP, TABLE_STEPS, TABLE_IDS,                 /* the latest step begun; how much of the table by step is used */
    BUSY_FROM, BUSY_TO, WORK_FROM, WORK_TO,       /* the open interval of each union; empty before the first event */
    OFF_TO,                                       /* the latest end of an event off duty */
    OUTER, OUTER_START, OUTER_END, OUTER_DEVICE_START, OUTER_DEVICE_END, /* whether there is one, and the latest */
    TIME,                                         /* how many of the times are answered */
    CELLS, BUSY, WORKING, OFF, INSIDE, REDUCES, TRACED, WORK, WITHIN, /* how many rows of the outputs are written */
    RUNS,                                         /* the open run of each kind, from and to; empty before the first */
    STATE_SIZE = RUNS + 8
};
enum { DONE = 0, NO_ROOM = 1, UNUSUAL = 2 };
enum { ONLY_TIMES = 1, ALL_SPANS = 3 };
enum { STACK_COLUMNS = 5, TIME_COLUMNS = 4, OUTPUT_KINDS = RUNS - CELLS };
enum { STACK_END, STACK_ID, STACK_ROW, STACK_SELF, STACK_TRACED };
enum { TRACED_SELF = 3 }; /* the column of `traced` that is known only when the event is closed */
enum { CODE_TRACED = 2, MOST_WRITTEN = 4 /* rows of one output, but for cells, that an event or the end may write */ };
static const int64_t OUTPUT_COLUMNS[OUTPUT_KINDS] = {3, 2, 2, 2, 2, 3, 5, 3, 3};
#define FAR ((int64_t)1 << 60)
#define MOST ((int64_t)1 << 56)

typedef struct {
    int64_t *cells;
    int64_t room; /* rows */
} Rows;

typedef struct {
    const int32_t *id;
    const int64_t *offset, *duration;
    const uint8_t *kind[3]; /* of the stats device offset, device duration, all-reduce id; NULL for one that none has */
    const int64_t *value[3];
    int64_t shift;
    int64_t *device_duration; /* of each event; NULL where nobody asks */
} OpBlock;

typedef struct {
    int64_t *state;
    int64_t ids;
    const uint8_t *off_duty;
    const uint8_t *code; /* of each id; NULL where no traced events are wanted */
    int64_t *occurrences, *total, *self, *minimum;
    int64_t *table_self; /* self times and events by step that has events, and id that was given a column */
    int32_t *table_count, *column; /* the column of each id; below 0 for none so far */
    int64_t *table_step, columns; /* the step of each row of the table */
    Rows stack, out[OUTPUT_KINDS]; /* in the order of the state */
    int64_t steps, times;
    int spans; /* what else is wanted: nothing, the times, these and the unions but for `working`, or all */
    const int64_t *step_start, *step_end, *time;
    int64_t *time_span;
} OpSums;

INLINE int64_t *put(OpSums *to, int which, int64_t a, int64_t b, int64_t c) {
    int64_t columns = OUTPUT_COLUMNS[which - CELLS];
    int64_t *row = to->out[which - CELLS].cells + columns * to->state[which]++;
    row[0] = a;
    row[1] = b;
    if (columns > 2)
        row[2] = c;
    return row;
}

/* Closes the innermost open event: its self time is known now. */
INLINE void close_event(OpSums *to) {
    const int64_t *event = to->stack.cells + STACK_COLUMNS * --to->state[DEPTH];
    int64_t self = event[STACK_SELF] < 0 ? 0 : event[STACK_SELF], id = event[STACK_ID];
    if (UNLIKELY(id < 0 || id >= to->ids))
        return; /* a caller's nonsense */
    to->self[id] += self;
    if (event[STACK_TRACED] >= 0 && event[STACK_TRACED] < to->state[TRACED])
        to->out[TRACED - CELLS].cells[OUTPUT_COLUMNS[TRACED - CELLS] * event[STACK_TRACED] + TRACED_SELF] = self;
    uint64_t row = (uint64_t)event[STACK_ROW], columns = (uint64_t)to->columns; /* that of no step is far out */
    if (row >= (uint64_t)to->state[TABLE_STEPS])
        return;
    if (UNLIKELY(to->column[id] < 0) && to->state[TABLE_IDS] < to->columns)
        to->column[id] = (int32_t)to->state[TABLE_IDS]++;
    uint64_t column = (uint64_t)to->column[id], place = row * columns + column;
    if (UNLIKELY(column >= columns)) {
        put(to, CELLS, to->table_step[row], id, self);
        return;
    }
    to->table_self[place] += self;
    to->table_count[place]++;
}

/* Adds a span to a union whose open interval is at state[from] and state[from + 1]. */
INLINE void unite(OpSums *to, int which, int from, int64_t start, int64_t end) {
    int64_t *open = to->state + from;
    if (start > open[1]) {
        if (open[1] > open[0])
            put(to, which, open[0], open[1], 0);
        open[0] = start;
        open[1] = end;
    } else if (end > open[1])
        open[1] = end;
}

/* Writes the open run of a kind: for each code what adds to its time, then what interrupts it. */
INLINE void put_run(OpSums *to, int kind) {
    const int64_t *open = to->state + RUNS + 2 * kind;
    if (open[1] > open[0])
        put(to, WORK + kind / 2, open[0], open[1], kind % 2 ? -1 : 1);
}

/* Adds a span to a kind of runs: it continues the one that ends where it starts. */
INLINE void prolong(OpSums *to, int kind, int64_t start, int64_t end) {
    int64_t *open = to->state + RUNS + 2 * kind;
    if (start != open[1]) {
        put_run(to, kind);
        open[0] = start;
    }
    open[1] = end;
}

/* What an op counts as (api.py); 0 for none, and for a caller's nonsense. */
INLINE int code_of(const OpSums *to, int64_t id) {
    return id >= 0 && id < to->ids && to->code[id] <= CODE_TRACED ? to->code[id] : 0;
}

/* Keeps an event that is traced, and what changes while it is the innermost one; returns its row, or -1. */
INLINE int64_t trace_event(OpSums *to, int64_t id, int64_t outer, int64_t start, int64_t end, int64_t own_start) {
    int code = code_of(to, id), around = outer < 0 ? 0 : code_of(to, outer);
    if (code != around && end > start) {
        if (code)
            prolong(to, 2 * (code - 1), start, end);
        if (around)
            prolong(to, 2 * (around - 1) + 1, start, end);
    }
    if (code != CODE_TRACED)
        return -1;
    int64_t *row = put(to, TRACED, id, start, end);
    row[TRACED_SELF] = 0;
    row[TRACED_SELF + 1] = own_start;
    return to->state[TRACED] - 1;
}

/* Answers the times before `stop` by the outermost event that began last, and the one that begins at `stop`. */
INLINE void answer_times(OpSums *to, int64_t stop, int64_t device_stop, int is_last) {
    int64_t *s = to->state;
    while (s[TIME] < to->times && (is_last || to->time[s[TIME]] < stop)) {
        int64_t *span = to->time_span + TIME_COLUMNS * s[TIME];
        int inside = is_last || to->time[s[TIME]] <= s[OUTER_END];
        span[0] = inside ? s[OUTER_START] : s[OUTER_END];
        span[1] = inside ? s[OUTER_END] : stop;
        span[2] = inside ? s[OUTER_DEVICE_START] : s[OUTER_DEVICE_END];
        span[3] = inside ? s[OUTER_DEVICE_END] : device_stop;
        s[TIME]++;
    }
}

/* Whether every output has room for what one more event, or the end, may write. */
INLINE int has_room(const OpSums *to) {
    const int64_t *s = to->state;
    if (UNLIKELY(to->out[0].room - s[CELLS] < s[DEPTH] || s[DEPTH] >= to->stack.room))
        return 0;
    for (int which = BUSY; which < RUNS; which++)
        if (UNLIKELY(to->out[which - CELLS].room - s[which] < MOST_WRITTEN))
            return 0;
    return 1;
}

/* Whether event i has an integer for a stat. */
INLINE int has_integer(const OpBlock *block, int stat, int64_t i) {
    return block->kind[stat] && (block->kind[stat][i] == 3 || block->kind[stat][i] == 4);
}

/* Takes event i; returns 0 for what only the slower way by columns handles: events out of order, absurd times. */
INLINE int take_event(const OpBlock *block, int64_t i, OpSums *to) {
    int64_t *s = to->state, id = block->id[i], duration = block->duration[i], offset = block->offset[i];
    int64_t step = s[STEP];
    if (UNLIKELY(id < 0 || id >= to->ids || duration < 0 || duration > MOST || offset > FAR || offset < -FAR))
        return 0;
    int64_t own_start = offset + block->shift, own_end = own_start + duration, start = own_start, end = own_end;
    if (LIKELY(has_integer(block, 0, i) && has_integer(block, 1, i))) {
        int64_t device_duration = block->value[1][i];
        start = block->value[0][i];
        if (UNLIKELY(start > FAR || start < -FAR || device_duration < 0 || device_duration > MOST))
            return 0;
        end = start + device_duration;
    } else if (UNLIKELY((block->kind[0] && block->kind[0][i]) || (block->kind[1] && block->kind[1][i])))
        return 0;
    if (UNLIKELY(own_start > FAR || own_start < -FAR || start < s[DEVICE_START] ||
                 (start == s[DEVICE_START] && end > s[DEVICE_END]) || own_start < s[OWN_START]))
        return 0;
    s[DURATIONS] += duration;
    s[DEVICE_DURATIONS] += end - start;
    if (UNLIKELY(s[DURATIONS] > MOST || s[DEVICE_DURATIONS] > MOST))
        return 0;
    s[EVENTS]++;
    s[OWN_START] = own_start;
    s[DEVICE_START] = start;
    s[DEVICE_END] = end;
    s[TWO_CLOCKS] |= start != own_start;
    s[FIRST] = start < s[FIRST] ? start : s[FIRST];
    s[LAST] = end > s[LAST] ? end : s[LAST];
    s[OWN_FIRST] = own_start < s[OWN_FIRST] ? own_start : s[OWN_FIRST];
    s[OWN_LAST] = own_end > s[OWN_LAST] ? own_end : s[OWN_LAST];

    while (step + 1 < to->steps && to->step_start[step + 1] <= own_start)
        step++;
    s[STEP] = step;
    if (step >= 0 && own_start >= to->step_end[step])
        step = -1;
    if (step >= 0 && UNLIKELY(!s[TABLE_STEPS] || to->table_step[s[TABLE_STEPS] - 1] != step)) {
        if (UNLIKELY(s[TABLE_STEPS] >= to->steps))
            return 0;
        to->table_step[s[TABLE_STEPS]++] = step;
    }
    while (s[DEPTH] && to->stack.cells[STACK_COLUMNS * (s[DEPTH] - 1) + STACK_END] < end)
        close_event(to);
    int64_t *top = to->stack.cells + STACK_COLUMNS * s[DEPTH], length = end - start;
    if (s[DEPTH])
        top[STACK_SELF - STACK_COLUMNS] -= length;
    top[STACK_END] = end;
    top[STACK_ID] = id;
    top[STACK_ROW] = step < 0 ? -1 : s[TABLE_STEPS] - 1;
    top[STACK_SELF] = length;
    top[STACK_TRACED] = to->code ? trace_event(to, id, s[DEPTH] ? top[STACK_ID - STACK_COLUMNS] : -1, start, end, own_start) : -1;
    s[DEPTH]++;
    to->occurrences[id]++;
    to->total[id] += length;
    if (length < to->minimum[id])
        to->minimum[id] = length;
    if (block->device_duration)
        block->device_duration[i] = length;
    if (UNLIKELY(has_integer(block, 2, i)) && block->value[2][i] && step >= 0)
        put(to, REDUCES, step, block->value[2][i], length);

    if (!to->spans)
        return 1;
    if (!s[OUTER] || own_end > s[OUTER_END]) {
        if (s[OUTER])
            answer_times(to, own_start, start, 0);
        s[OUTER] = 1;
        s[OUTER_START] = own_start;
        s[OUTER_END] = own_end;
        s[OUTER_DEVICE_START] = start;
        s[OUTER_DEVICE_END] = end;
    }
    if (to->spans != ONLY_TIMES && own_end > own_start) {
        unite(to, BUSY, BUSY_FROM, own_start, own_end);
        if (LIKELY(!to->off_duty[id])) {
            if (to->spans >= ALL_SPANS)
                unite(to, WORKING, WORK_FROM, own_start, own_end);
            if (own_start <= s[OFF_TO])
                put(to, INSIDE, own_start, own_end, 0);
        } else {
            put(to, OFF, own_start, own_end, 0);
            s[OFF_TO] = own_end > s[OFF_TO] ? own_end : s[OFF_TO];
        }
    }
    return 1;
}

/* Closes all that is open behind the last event. */
INLINE void end_line(OpSums *to) {
    int64_t *s = to->state;
    while (s[DEPTH])
        close_event(to);
    if (s[BUSY_TO] > s[BUSY_FROM])
        put(to, BUSY, s[BUSY_FROM], s[BUSY_TO], 0);
    if (s[WORK_TO] > s[WORK_FROM])
        put(to, WORKING, s[WORK_FROM], s[WORK_TO], 0);
    for (int kind = 0; kind < 2 * CODE_TRACED; kind++)
        put_run(to, kind);
    if (s[OUTER])
        answer_times(to, 0, 0, 1);
}

/* add_ops(id, offset, duration, kind, value, off_duty, code, step_start, step_end, time, state, device_duration,
 *         occurrences, total, self, minimum, table_self, table_count, column, table_step, stack, cells, busy, working,
 *         off, inside, reduces, traced, work, within, time_span, shift, at, count, is_end, spans, offset_row, duration_row,
 *         reduce_row)
 * -> (at, status)
 * Takes the events [at, count) of a block; status NO_ROOM: call again from `at` with larger outputs. The last three say
 * which rows of `kind` and `value` hold the stats; -1 for none. */
static PyObject *core_add_ops(PyObject *Py_UNUSED(module), PyObject *const *args, Py_ssize_t given) {
    enum { INPUTS = 10, OUTPUTS = 21, NUMBERS = 8, ROWS = 5 /* the first of them */, FIRST_OUTPUT = 21, TIME_SPAN = 30 };
    Arrays a;
    Py_ssize_t number[NUMBERS];
    if (!take(&a, args, given, INPUTS, OUTPUTS, NUMBERS, number))
        return NULL;
    const Py_buffer *v = a.view;
    Py_ssize_t capacity = v[0].len / 4, ids = v[5].len, steps = v[7].len / 8, times = v[9].len / 8;
    Py_ssize_t at = number[1], count = number[2], columns = steps ? v[17].len / 4 / steps : 0;
    int fits = holds(&a, 0, capacity, 4) && holds(&a, 1, capacity, 8) && holds(&a, 2, capacity, 8) &&
               holds(&a, 4, v[3].len, 8) && (v[6].len == 0 || v[6].len == ids) &&
               holds(&a, 7, steps, 8) && holds(&a, 8, steps, 8) && holds(&a, 9, times, 8) &&
               holds(&a, 10, STATE_SIZE, 8) && (v[11].len == 0 || holds(&a, 11, capacity, 8)) &&
               holds(&a, 16, steps * columns, 8) && holds(&a, 17, steps * columns, 4) && holds(&a, 18, ids, 4) &&
               holds(&a, 19, steps, 8) && holds(&a, TIME_SPAN, TIME_COLUMNS * times, 8) && at >= 0 && at <= count &&
               count <= capacity && number[0] >= -FAR && number[0] <= FAR;
    for (int i = 12; i < 16; i++)
        fits = fits && holds(&a, i, ids, 8);
    for (int i = FIRST_OUTPUT - 1; i < TIME_SPAN; i++)
        fits = fits && holds(&a, i, v[i].len / 8, 8);
    int64_t state[STATE_SIZE]; /* a copy, which no output can be suspected to overlap: it stays in registers */
    memcpy(state, v[10].buf, v[10].len < (Py_ssize_t)sizeof state ? 0 : sizeof state);
    OpSums to = {state, ids, v[5].buf, v[6].len ? v[6].buf : NULL, v[12].buf, v[13].buf, v[14].buf, v[15].buf,
                 v[16].buf, v[17].buf, v[18].buf, v[19].buf, columns, {v[20].buf, v[20].len / 8 / STACK_COLUMNS}, {{0, 0}},
                 steps, times, (int)number[4], v[7].buf, v[8].buf, v[9].buf, v[TIME_SPAN].buf};
    for (int i = 0; i < OUTPUT_KINDS; i++) {
        to.out[i].cells = v[FIRST_OUTPUT + i].buf;
        to.out[i].room = v[FIRST_OUTPUT + i].len / 8 / OUTPUT_COLUMNS[i];
        fits = fits && state[CELLS + i] >= 0 && state[CELLS + i] <= to.out[i].room;
    }
    fits = fits && state[DEPTH] >= 0 && state[DEPTH] <= to.stack.room && state[TABLE_STEPS] >= 0 &&
           state[TABLE_STEPS] <= steps && state[TABLE_IDS] >= 0 &&
           number[4] >= 0 && number[4] <= ALL_SPANS && state[TIME] >= 0 && state[STEP] >= -1 && state[STEP] < (steps ? steps : 1);
    for (int i = ROWS; i < NUMBERS; i++)
        fits = fits && has_row(number[i], capacity, v[3].len);
    if (!fits)
        return refuse(&a, "arrays of different lengths, not aligned, or a state that does not fit them");
    OpBlock block = {v[0].buf, v[1].buf, v[2].buf, {0}, {0}, number[0], v[11].len ? v[11].buf : NULL};
    for (int i = 0; i < 3; i++)
        if (number[ROWS + i] >= 0) {
            block.kind[i] = (const uint8_t *)v[3].buf + number[ROWS + i] * capacity;
            block.value[i] = (const int64_t *)v[4].buf + number[ROWS + i] * capacity;
        }
    int status = DONE;
    Py_BEGIN_ALLOW_THREADS
    for (; at < count && status == DONE; at += status == DONE)
        status = UNLIKELY(!has_room(&to)) ? NO_ROOM : take_event(&block, at, &to) ? DONE : UNUSUAL;
    if (status == DONE && number[3]) {
        if (!has_room(&to))
            status = NO_ROOM;
        else
            end_line(&to);
    }
    memcpy(a.view[10].buf, state, sizeof state);
    Py_END_ALLOW_THREADS
    release(&a);
    return Py_BuildValue("Li", (long long)at, status);
}

/* ---- hash ---- */

enum { HASH_WORDS = 16, PACKET_BYTES = 32 };

/* The byte `from` of a word, moved to the place `to`. */
#define BYTE(word, from, to) ((word) >> 8 * (from) & 0xff) << 8 * (to)

/* Adds a pair of words to another, their sixteen bytes shuffled. */
INLINE void add_shuffled(uint64_t *low, uint64_t *high, uint64_t a, uint64_t b) {
    *low += BYTE(a, 3, 0) | BYTE(b, 4, 1) | BYTE(a, 2, 2) | BYTE(a, 5, 3) | BYTE(b, 6, 4) | BYTE(a, 1, 5) |
            BYTE(b, 7, 6) | BYTE(a, 0, 7);
    *high += BYTE(b, 3, 0) | BYTE(a, 4, 1) | BYTE(b, 2, 2) | BYTE(b, 5, 3) | BYTE(b, 1, 4) | BYTE(a, 6, 5) |
             BYTE(b, 0, 6) | BYTE(a, 7, 7);
}

/* Takes packets of four little-endian words into a HighwayHash: v0, v1, mul0 and mul1, four words each. */
static void hash_loop(const uint8_t *data, int64_t packets, uint64_t *state) {
    uint64_t s[HASH_WORDS]; /* a copy, which the bytes can't be suspected to overlap */
    uint64_t *v0 = s, *v1 = s + 4, *mul0 = s + 8, *mul1 = s + 12;
    memcpy(s, state, sizeof s);
    for (; packets > 0; packets--, data += PACKET_BYTES) {
        for (int i = 0; i < 4; i++) {
            uint64_t word = 0;
#ifdef WORDS
            memcpy(&word, data + 8 * i, 8);
#else
            for (int byte = 0; byte < 8; byte++)
                word |= (uint64_t)data[8 * i + byte] << 8 * byte;
#endif
            v1[i] += mul0[i] + word;
            mul0[i] ^= (v1[i] & UINT32_MAX) * (v0[i] >> 32);
            v0[i] += mul1[i];
            mul1[i] ^= (v0[i] & UINT32_MAX) * (v1[i] >> 32);
        }
        add_shuffled(&v0[0], &v0[1], v1[0], v1[1]);
        add_shuffled(&v0[2], &v0[3], v1[2], v1[3]);
        add_shuffled(&v1[0], &v1[1], v0[0], v0[1]);
        add_shuffled(&v1[2], &v1[3], v0[2], v0[3]);
    }
    memcpy(state, s, sizeof s);
}

/* hash_packets(data, state) -> None; whole packets only. */
static PyObject *core_hash_packets(PyObject *Py_UNUSED(module), PyObject *const *args, Py_ssize_t given) {
    Arrays a;
    if (!take(&a, args, given, 1, 1, 0, NULL))
        return NULL;
    if (a.view[0].len % PACKET_BYTES || !holds(&a, 1, HASH_WORDS, 8))
        return refuse(&a, "the bytes are no whole packets, or the state is not 16 aligned words");
    Py_BEGIN_ALLOW_THREADS
    hash_loop(a.view[0].buf, a.view[0].len / PACKET_BYTES, a.view[1].buf);
    Py_END_ALLOW_THREADS
    release(&a);
    return none();
}

/* ---- module ---- */

#define FUNCTION(name) {#name, (PyCFunction)(void (*)(void))core_##name, METH_FASTCALL, NULL}

static PyMethodDef functions[] = {
    FUNCTION(split), FUNCTION(stats), FUNCTION(scan), FUNCTION(nest), FUNCTION(lanes), FUNCTION(runs),
    FUNCTION(self_sums), FUNCTION(add_ops), FUNCTION(trim), FUNCTION(hash_packets), {NULL, NULL, 0, NULL},
};

static PyModuleDef_Slot slots[] = {{0, NULL}};

static struct PyModuleDef definition = {
    .m_base = PyModuleDef_HEAD_INIT,
    .m_name = "_core",
    .m_doc = "Loops of the decoder; see api.py.",
    .m_size = 0,
    .m_methods = functions,
    .m_slots = slots,
};

/* Where `tui/cli/main.py` wants one arena for memory: the C library itself reads the variable before that is set. */
PyMODINIT_FUNC PyInit__core(void) {
#ifdef __GLIBC__
    const char *arenas = getenv("MALLOC_ARENA_MAX");
    if (arenas && !strcmp(arenas, "1"))
        mallopt(M_ARENA_MAX, 1);
#endif
    return PyModuleDef_Init(&definition);
}
