"""A Chrome trace as the XSpace that it was made from, as far as its events allow.

Processes are planes, threads are lines, arguments are stats: an op's own go to its metadata, those of one occurrence
to its event. What XProf hides follows where it can: an op's program from the module run around it. Rows that viewers
derive from ops are left out, as they are derived again.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from hashlib import blake2b
from struct import pack, unpack
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tpuprof.parsers.base.errors import ProfileError
from tpuprof.parsers.base.intervals import Int64s, grouped, no_ints
from tpuprof.parsers.base.text import printable
from tpuprof.parsers.formats.proto.xplane_pb2 import XEventMetadata, XLine, XPlane, XStat
from tpuprof.parsers.formats.xspace.chrome.document import Broken, Document
from tpuprof.parsers.formats.xspace.chrome.threads import COUNTERS, ROOM, Thread, Threads, TooMuch, Values
from tpuprof.parsers.formats.xspace.chrome.torch import device_of, row_name
from tpuprof.parsers.formats.xspace.metadata import KIND_DOUBLE, KIND_INT64, KIND_REF, KIND_STR, KIND_UINT64
from tpuprof.parsers.formats.xspace.spool import Spool, SpoolSource
from tpuprof.parsers.formats.xspace.walk import header

_AT_ONCE = 1 << 14
_FIELDS = {number: field.name for number, field in XStat.DESCRIPTOR.fields_by_number.items()}


class Column(NamedTuple):
    """A stat of a line's events.

    Attributes:
        number: its metadata id.
        rows: int64[k]; the events that have it, ascending.
        kind: uint8[k]; which field of XStat holds it: a double, an integer or a reference.
        value: int64[k]; a double by its bits.
    """

    number: int
    rows: Int64s
    kind: NDArray[np.uint8]
    value: Int64s


def set_value(stat: XStat, kind: int, value: int | bytes) -> None:
    """Gives a stat its value: a text, an integer by the 64 bits that hold it, or a double by its bits."""
    held: float | bytes = value
    if isinstance(value, int) and kind == KIND_DOUBLE:
        held = unpack("<d", pack("<q", value))[0]
    elif isinstance(value, int) and kind in (KIND_UINT64, KIND_REF):
        held = value & (1 << 64) - 1
    setattr(stat, _FIELDS[kind], held)


def events(ids: Int64s, offset_ps: Int64s, duration_ps: Int64s, columns: Sequence[Column]) -> Iterator[bytes]:
    """The events of a line, some thousand at a time."""
    for first in range(0, len(ids), _AT_ONCE):
        chosen = slice(first, first + _AT_ONCE)
        times = (column[chosen].tolist() for column in (ids, offset_ps, duration_ps))
        line = XLine()
        made = [
            line.events.add(metadata_id=number, offset_ps=offset, duration_ps=duration)
            for number, offset, duration in zip(*times, strict=True)
        ]
        for column in columns:
            part = slice(*np.searchsorted(column.rows, (first, first + len(made))).tolist())
            cells = ((column.rows[part] - first).tolist(), column.kind[part].tolist(), column.value[part].tolist())
            for row, kind, value in zip(*cells, strict=True):
                set_value(made[row].stats.add(metadata_id=column.number), kind, value)
        yield line.SerializeToString()


MOST_EVENTS = (1_000_000, 5_000_000)
"""XProf writes no more events than this, those that begin first; the number was raised."""

_PLANES, _LINES = 1, 3  # fields of XSpace and of XPlane
_LARGEST_DEVICE = 500  # number of a process that is a device

_OPS, _MODULES = "XLA Ops", ("XLA Modules", "Sparse Core Modules")
_PROGRAM = re.compile(r"\((\d{1,20})\)$", re.ASCII)
_DERIVED = range(0xDEADBEEF, 0xDEADBEEF + 1000)
_OF_STREAM = re.compile(r" - from #\d+$", re.ASCII)
"""End of the names of rows that XProf derives from one stream of a GPU: ``XLA Ops - from #16``."""
_WITH_HOST = re.compile(r"(\S+) (/(?:device|host):.*)", re.DOTALL)
"""A process with its host in front, as XProf names them: ``host0 /device:TPU:0``."""
_HOST, _STEP_NUMBER, _ROOT = "/host:CPU", "step_num", "_r"
_GROUP, _STEP_NAME, _NUMBERED = "group_id", "step_name", re.compile(r" \d+\Z", re.ASCII)
"""What XProf adds to events when it groups them by steps."""
_CORRELATION, _EXTERNAL = "correlation_id", "External id"
_LONG_NAME, _MODEL_FLOPS, _FLOPS = "long_name", "model_flops", "flops"
_BYTES, _BREAKDOWN, _UNREADABLE = "bytes_accessed", "memory_access_breakdown", b"\xff"
"""Bytes by memory are there, and hidden: without them all bytes would count as HBM's."""

Span = tuple[int, int]


def chrome_source(pieces: Iterable[bytes], name: str, why_cut: Callable[[], str], room: int = ROOM) -> SpoolSource:
    """A Chrome trace as the bytes of an XSpace.

    Args:
        pieces: the trace's bytes, inflated.
        name: for messages.
        why_cut: says, after the pieces, why they end early; empty where they do not.
        room: bytes that its columns and texts may take.

    Raises:
        ProfileError: `corrupt` for JSON that is no trace, or one without events; `disk_full`.
    """
    document, threads = Document(pieces), Threads(min(room, ROOM))
    notes = []
    try:
        threads.read(document.events())
    except Broken as error:
        raise _no_trace(name, "holds no list of traceEvents") from error
    except TooMuch:
        notes.append(f"it holds more than a profile can; nothing is read after {threads.slices:,} events")
    threads.finish()
    if not any(thread.parts for thread in threads.threads.values()):
        raise _no_trace(name, document.note or "has no events")
    notes += [note for note in (why_cut() or document.note,) if note]
    if len(hosts := _hosts(threads.processes)) > 1:
        notes.append(f"it holds {len(hosts)} hosts, of which only {printable(hosts[0])} is read")
    if threads.slices in MOST_EVENTS:
        notes.append(f"it holds {threads.slices:,} events, the most that the profiler writes: later events are missing")
    spool = Spool()
    try:
        spans = _Space(spool, threads).spans()
    except BaseException:
        spool.close()
        raise
    return SpoolSource(spool, spans, name, "; ".join(notes), _origin(name.rpartition("/")[2], threads))


def _origin(name: str, threads: Threads) -> str:
    """A sentence on what a trace lacks."""
    keys = {argument for parts in threads.keys for argument in parts[1 : (len(parts) + 1) // 2]}
    if threads.labels:
        return (
            f"{name} is a trace of PyTorch's profiler, {threads.slices:,} events: its steps, threads, streams and "
            "kernels are read; it has no HLO, FLOPs, bytes, or type and peaks of the device; figures that need them "
            "are unknown"
        )
    parts = ["HLO modules", "memory events"]
    parts += [] if any("_a" in thread.value_parts for thread in threads.threads.values()) else ["asynchronous ops"]
    said = "figures that need them are unknown"
    if _BYTES in keys:
        parts.append("bytes by memory")
    if _MODEL_FLOPS in keys and _FLOPS not in keys:
        said += ", FLOPs are the model's"
    return (
        f"{name} is a trace for a viewer, not the profile: it has no {', '.join(parts)}, or type and peaks of the "
        f"device; {said}"
    )


def _no_trace(name: str, why: str) -> ProfileError:
    hint = "a trace is called HOST.trace.json.gz, and lies beside the profile of its host, HOST.xplane.pb"
    return ProfileError("corrupt", f"{name} is JSON, but not a trace of a profiler: it {why}.", hint)


def _steps_of_torch(threads: Threads) -> Thread:
    """The annotations that number steps in a trace of PyTorch, numbered as the groups that their events form."""
    found = [
        np.stack(thread.columns())[:, values.rows]
        for thread in (threads.threads.values() if threads.labels else ())
        if (values := thread.values().get(_STEP_NUMBER)) is not None
    ]
    if not found:
        return Thread()
    start, duration, key = (columns := np.concatenate(found, axis=1))[:, np.argsort(columns[0], kind="stable")]
    rows = np.arange(len(start))
    groups = Values(rows, np.full(len(start), KIND_INT64, np.uint8), rows)
    return Thread(len(start), parts=[(start, duration, key)], value_parts={_GROUP: [groups]})


def _of_first_host(processes: Mapping[object, str]) -> dict[object, str]:
    """Names of processes without the host in front. Of several hosts only the first one's lose it: two hosts have
    devices of one name, and a profile is of one host.
    """
    first = next(iter(_hosts(processes)), None)
    return {
        pid: name.removeprefix(f"{first} ") if first is not None and _WITH_HOST.fullmatch(name) else name
        for pid, name in processes.items()
    }


def _hosts(processes: Mapping[object, str]) -> list[str]:
    """The hosts that the names of processes begin with."""
    return list(dict.fromkeys(match[1] for name in processes.values() if (match := _WITH_HOST.fullmatch(name))))


class _Space:
    """Writes planes into a spool."""

    def __init__(self, spool: Spool, threads: Threads) -> None:
        self.spool = spool
        self._threads = threads
        self.keys = threads.keys
        self.texts = threads.texts
        self.stats: list[str] = []
        self._stat_ids: dict[str, int] = {}
        self._ops: dict[int, XEventMetadata] = {}
        self.names_of_processes = _of_first_host(threads.processes)
        self.names_of_processes |= {pid: device_of(label) or label for pid, label in threads.labels.items()}
        self.numbered: set[int] = set()
        """Keys of annotations to whose names XProf added the number of the step that they mark."""
        self.is_linked_by_op = bool(threads.labels) and not any(
            _CORRELATION in thread.value_parts for thread in threads.threads.values()
        )
        """Whether a trace of PyTorch's has no calls of the runtime: the op that launched a kernel is known then."""
        self.steps = _steps_of_torch(threads)
        self.has_device = any(name.startswith("/device:") for name in self.names_of_processes.values())

    def spans(self) -> list[Span]:
        """Spans of the spool that are the XSpace, in order."""
        threads = [(pid, tid, thread) for (pid, tid), thread in self._threads.threads.items()]
        members = grouped((self.names_of_processes.get(of[0]) or f"process {of[0]}", of) for of in threads)
        out: list[Span] = []
        for name in sorted(members, key=lambda name: _in_order(members[name][0][0])):
            out += _Plane(self, name, members[name]).spans()
        return out

    def names(self, members: Sequence[tuple[object, object, Thread]]) -> list[str]:
        """Names of threads, made up from their ids where the trace has none."""
        known, of_process = self._threads.names, self.names_of_processes
        streams = {pid for pid in self._threads.labels if of_process[pid].startswith("/device:")}
        return [
            "_counters_" if tid is COUNTERS else known.get((pid, tid)) or row_name(tid, pid in streams)
            for pid, tid, _ in members
        ]

    def stat(self, name: str) -> int:
        """The metadata id of a stat's name, or of a text."""
        number = self._stat_ids.get(name)
        if number is None:
            self.stats.append(name)
            number = self._stat_ids[name] = len(self.stats)
        return number

    def op(self, key: int) -> XEventMetadata:
        """What all events of a key have in common; it has no id."""
        if key not in self._ops:
            parts = self.keys[key]
            middle = (len(parts) + 1) // 2
            args = dict(zip(parts[1:middle], parts[middle:], strict=True))
            name = _NUMBERED.sub("", str(parts[0])) if key in self.numbered else parts[0]
            shown, long_name = _bytes(name), args.pop(_LONG_NAME, None)
            if _MODEL_FLOPS in args:  # XProf hides the others, which differ for narrow types alone
                args.setdefault(_FLOPS, args[_MODEL_FLOPS])
            made = XEventMetadata(name=shown)
            if long_name is not None:
                made.name, made.display_name = _bytes(long_name), shown
            if _BYTES in args:
                made.stats.add(metadata_id=self.stat(_BREAKDOWN), bytes_value=_UNREADABLE)
            for name, value in args.items():
                kind, number = self._threads.typed(name, value)
                if kind:
                    held = (KIND_STR, _bytes(value)) if kind == KIND_REF else (kind, number)
                    set_value(made.stats.add(metadata_id=self.stat(name)), *held)
            self._ops[key] = made
        return self._ops[key]


class _Plane:
    """Writes one process."""

    def __init__(self, space: _Space, name: str, members: Sequence[tuple[object, object, Thread]]) -> None:
        self._space = space
        self._name = name
        self._members = members
        self._stats: dict[int, None] = {}
        """Metadata ids of names of stats, and of texts that stats refer to."""
        self._events: dict[tuple[int, int], int] = {}
        """Metadata ids of events, by key and program."""
        self._is_numbered = False

    def spans(self) -> list[Span]:
        """Spans that are the plane, its tag and length included."""
        lines = self._kept_lines()
        if self._name == _HOST and not self._space.has_device:
            for _, _, thread in lines:
                self._find_numbered(thread)
        runs = self._module_runs(lines)
        body: list[Span] = []
        for tid, name, thread in lines:
            body += self._line(tid, name, thread, runs)
        pid = self._members[0][0]
        is_device = isinstance(pid, int) and 0 < pid <= _LARGEST_DEVICE and self._name.startswith("/device:")
        plane = XPlane(id=pid - 1 if is_device and isinstance(pid, int) else 0, name=_bytes(self._name))
        self._add_metadata(plane)
        return self._message(_PLANES, plane.SerializeToString(deterministic=True), body)

    def _message(self, field: int, head: bytes, body: list[Span]) -> list[Span]:
        """Spans that are a message with its tag and length: its first fields, and what is in the spool already."""
        size = len(head) + sum(end - begin for begin, end in body)
        return [self._space.spool.append(header(field, size) + head), *body]

    def _kept_lines(self) -> list[tuple[object, str, Thread]]:
        """Id, name and events of each thread; without rows that are derived from a TPU's ops or a GPU's streams."""
        names = self._space.names(self._members)
        is_tpu = self._name.startswith("/device:TPU:") and _OPS in names
        is_gpu = self._name.startswith("/device:GPU:")
        return [
            (tid, name, thread)
            for (_, tid, thread), name in zip(self._members, names, strict=True)
            if not (is_tpu and isinstance(tid, int) and tid in _DERIVED) and not (is_gpu and _OF_STREAM.search(name))
        ] + [(_DERIVED[0], "Steps", self._space.steps)] * (is_gpu and self._space.steps.count > 0)

    def _module_runs(self, lines: Sequence[tuple[object, str, Thread]]) -> tuple[Int64s, Int64s, Int64s]:
        """Start, end and program of each run of a module, in order of time; programs are 64 bits without a sign."""
        parts = [(no_ints(),) * 3]
        for _, name, thread in lines:
            if name in _MODULES:
                start, duration, key = thread.columns()
                parts.append((start, start + duration, np.array([self._program_of(k) for k in key.tolist()], np.int64)))
        start, end, program = (np.concatenate(column) for column in zip(*parts, strict=True))
        order = np.argsort(start, kind="stable")
        return start[order], end[order], program[order]

    def _program_of(self, key: int) -> int:
        match = _PROGRAM.search(str(self._space.keys[key][0]))
        number = int(match[1]) if match else 0
        return 0 if number >= 1 << 64 else _signed(number)

    def _line(self, tid: object, name: str, thread: Thread, runs: tuple[Int64s, Int64s, Int64s]) -> list[Span]:
        """Spans that are a line. Events lie in order of time, the longer first."""
        start, duration, key = thread.columns()
        order = np.lexsort((-duration, start))
        order = order[duration[order] >= 0]
        row = np.full(len(start), -1, np.int64)
        row[order] = np.arange(len(order))
        values = thread.values()
        if self._space.is_linked_by_op and _EXTERNAL in values:
            values = {**values, _CORRELATION: values[_EXTERNAL]}
        if self._is_numbered:  # groups are made again, as of the profile
            values = {name: column for name, column in values.items() if name not in (_GROUP, _STEP_NAME)}
        columns = list(self._columns(self._with_roots(values), row))
        start, duration, key = start[order], duration[order], key[order]
        ids = self._ids(key, start, runs)
        number = _signed(tid) if isinstance(tid, int) else 0
        head = XLine(id=number, name=_bytes(name), display_id=number).SerializeToString()
        written = [self._space.spool.append(data) for data in events(ids, start, duration, columns)]
        return self._message(_LINES, head, written)

    def _find_numbered(self, thread: Thread) -> None:
        """Notes the keys of a line's annotations that mark steps and are called as their step (`_STEP_NAME`)."""
        values = thread.values()
        marks, named = values.get(_STEP_NUMBER), values.get(_STEP_NAME)
        if marks is None or named is None:
            return
        _, _, key = thread.columns()
        for at in np.flatnonzero(np.isin(named.rows, marks.rows) & (named.kind == KIND_REF)).tolist():
            of = int(key[named.rows[at]])
            if self._space.keys[of][0] == self._space.texts[int(named.value[at])]:
                self._space.numbered.add(of)
                self._is_numbered = True

    def _with_roots(self, values: dict[str, Values]) -> dict[str, Values]:
        """The arguments of a line's events, with the mark of those that begin a step: a trace hides it."""
        steps = values.get(_STEP_NUMBER)
        if steps is None or _ROOT in values or self._name != _HOST:
            return values
        ones = np.ones(len(steps.rows), np.int64)
        return {**values, _ROOT: Values(steps.rows, np.full(len(ones), KIND_INT64, np.uint8), ones)}

    def _columns(self, values: dict[str, Values], row: Int64s) -> Iterator[Column]:
        """The arguments of a line's events, as stats of the events in their order."""
        for name, column in values.items():
            places = row[column.rows]
            kept = (places >= 0) & (column.kind > 0)
            order = np.argsort(places[kept], kind="stable")
            kind, value = column.kind[kept][order], column.value[kept][order]
            is_text = kind == KIND_REF
            texts, which = np.unique(value[is_text], return_inverse=True)
            ids = [self._stat(self._space.texts[index]) for index in texts.tolist()]
            value[is_text] = np.array(ids, np.int64)[which]
            yield Column(self._stat(name), places[kept][order], kind, value)

    def _ids(self, key: Int64s, start: Int64s, runs: tuple[Int64s, Int64s, Int64s]) -> Int64s:
        """Metadata ids of events; an op is another one in another program."""
        program = np.zeros(len(key), np.int64)
        if len(runs[0]):
            run = np.searchsorted(runs[0], start, side="right") - 1
            is_inside = (run >= 0) & (start < runs[1][run])
            program = np.where(is_inside, runs[2][run], 0)
        keys, at = np.unique(key, return_inverse=True)  # a thread has few of them, a trace many
        is_op = np.array([len(self._space.keys[each]) > 1 for each in keys.tolist()], np.bool_)
        program[~is_op[at]] = 0
        programs, place = np.unique(program, return_inverse=True)
        pairs, which = np.unique(key * len(programs) + place, return_inverse=True)
        ids = []
        for pair in pairs.tolist():
            of, at = divmod(pair, len(programs))
            ids.append(self._events.setdefault((of, int(programs[at])), len(self._events) + 1))
        return np.array(ids, np.int64)[which]

    def _stat(self, name: str) -> int:
        """The metadata id of a stat's name, or of a text, which is the same in all planes."""
        number = self._space.stat(name)
        self._stats[number] = None
        return number

    def _add_metadata(self, plane: XPlane) -> None:
        for (key, program), number in self._events.items():
            made = plane.event_metadata[number]
            made.CopyFrom(self._space.op(key))
            made.id = number
            self._stats |= dict.fromkeys(stat.metadata_id for stat in made.stats)
            if program:
                name = _bytes(self._space.keys[key][0])  # of an op, of which a program has no other
                symbol = int.from_bytes(blake2b(name, digest_size=8).digest(), "little") | 1
                for stat, value in (("program_id", program), ("symbol_id", symbol)):
                    set_value(made.stats.add(metadata_id=self._stat(stat)), KIND_UINT64, value)
        for number in self._stats:
            plane.stat_metadata[number].id = number
            plane.stat_metadata[number].name = _bytes(self._space.stats[number - 1])


def _signed(number: int) -> int:
    """The number of 64 bits with a sign that has the same bits."""
    return (number + (1 << 63)) % (1 << 64) - (1 << 63)


def _in_order(pid: object) -> tuple[int, int, str]:
    """Sorts processes as a viewer does: by number, then by name."""
    return (0, pid, "") if isinstance(pid, int) else (1, 0, str(pid))


def _bytes(text: object) -> bytes:
    """Text as UTF-8; half a character of two becomes a replacement."""
    return ("" if text is None else str(text)).encode("utf-8", "replace")
