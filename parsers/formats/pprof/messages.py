"""Reads a pprof profile, the protobuf message of github.com/google/pprof, `proto/profile.proto`.

A profile has samples: values, one for each sample type, labels, and a stack of locations, the innermost first. A
location has a line for each function that is inlined there, the innermost first. All texts are numbers of entries of
one table, which a writer puts at the end as a rule: of a file that is cut, the stacks are there and their names not.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import cache, partial
from itertools import chain

import numpy as np
from google.protobuf.message import DecodeError

from tpuprof.parsers.base.budget import Budget, inflated_room
from tpuprof.parsers.base.errors import ProfileError
from tpuprof.parsers.base.record import dataclass
from tpuprof.parsers.base.text import counted, printable
from tpuprof.parsers.base.urls import printable_url
from tpuprof.parsers.files.file_kinds import of_another_tool
from tpuprof.parsers.files.folder_search import BEGIN_BYTES
from tpuprof.parsers.files.inflate import Inflation, content
from tpuprof.parsers.files.logdir import is_remote, local_path
from tpuprof.parsers.formats.pprof import pprof_pb2
from tpuprof.parsers.formats.pprof.files import CHUNK, beginning, begins_like_pprof, opened
from tpuprof.parsers.formats.xspace.source import ByteSource, MemorySource
from tpuprof.parsers.formats.xspace.walk import text, windows

MOST_MESSAGES = 2_000_000
"""Samples, locations, functions and texts altogether; JAX writes some thousands."""

MOST_FRAMES = 20_000_000
"""Frames of all stacks together."""

_KEPT, _NESTED = (1, 2, 4, 5, 6), (2, 4)  # fields that are read, and those whose messages hold others
_MESSAGE, _BYTE, _NUMBER = 700, 24, 24  # bytes that a message, a byte of one that holds others, and a frame take, about
LARGEST_BYTES = 256 << 20
"""Inflated; JAX's are some megabytes."""

_FLOOR = 4 << 20  # stacks share most of their frames: they shrink some 3 to 30 times
_AGAIN = "write it again: jax.profiler.save_device_memory_profile(FILE)"


@dataclass(frozen=True, slots=True)
class Frame:
    """One call of a stack.

    Attributes:
        function: its name; empty where the file has lost it.
        file: as the program knows it; empty where the file has lost it.
        line: 0 where there is none.
    """

    function: str
    file: str
    line: int

    @property
    def place(self) -> str:
        """``train.py:88``, with the file's folder; empty without a file."""
        return f"{self.file}:{self.line}" if self.file and self.line else self.file


@dataclass(frozen=True, slots=True)
class SampleType:
    """What a value of each sample counts: ``space`` in ``bytes``, ``cpu`` in ``nanoseconds``."""

    name: str
    unit: str


@dataclass(frozen=True, slots=True)
class Sample:
    """One sample: a value for each sample type, texts and numbers by label, and the stack, the innermost frame first.

    Samples of one stack share the tuple.
    """

    values: tuple[int, ...]
    labels: dict[str, str]
    stack: tuple[Frame, ...]


@dataclass(frozen=True, slots=True)
class Pprof:
    """A profile.

    Attributes:
        types: of the samples' values.
        samples: in the file's order.
        time_ns: since 1970; None where the writer does not say, as JAX does not.
        notes: what is wrong with it, a sentence each.
    """

    types: tuple[SampleType, ...]
    samples: tuple[Sample, ...]
    time_ns: int | None
    notes: tuple[str, ...]


def read_pprof(path: str) -> Pprof:
    """Reads a profile, compressed or not; a URL is fetched into the cache first.

    Raises:
        ProfileError: `not_found`, `unreadable`, `not_a_file`, `empty_file`, `not_pprof`, `too_large`, `corrupt`; for a
            URL also what `parsers.files.remote.cache.open_remote` raises.
    """
    is_far = is_remote(path)
    name = printable_url(path) if is_far else printable(os.path.basename(path))
    out, notes = bytearray(), []
    with opened(path if is_far else local_path(path), is_far) as descriptor:
        size = os.fstat(descriptor).st_size
        if not size:
            raise ProfileError("empty_file", f"{name} holds 0 bytes.", _AGAIN)
        most = min(LARGEST_BYTES, inflated_room(size, _FLOOR))
        try:
            pieces = content(descriptor, most, CHUNK)
            out += beginning(pieces)
            if not begins_like_pprof(out):
                if (found := of_another_tool(bytes(out[:BEGIN_BYTES]))) is not None:
                    raise found.error(path)
                raise ProfileError("not_pprof", f"{name} does not start like a pprof profile.", _AGAIN)
            for piece in pieces:
                out += piece
        except Inflation as stopped:
            if stopped.stop == "too_large":
                sentence = f"{name} inflates to more than {most:,} bytes, too many for a profile of memory."
                raise ProfileError("too_large", sentence, "is it another file?") from stopped
            what = "ends early" if stopped.stop == "cut" else "is damaged"
            notes.append(f"the file's gzip stream {what}, after {stopped.given:,} bytes of the profile")
    profile = read_messages(MemorySource(out, name), name, Budget(size, name))
    return Pprof(profile.types, profile.samples, profile.time_ns, (*notes, *profile.notes))


def read_messages(source: ByteSource, name: str, budget: Budget | None = None) -> Pprof:
    """Reads a profile; of one that is cut, as much as there is.

    Args:
        name: of the file, for sentences, fit to print.
        budget: of the file; None for that of as many bytes as the source has.

    Raises:
        ProfileError: `corrupt` where nothing of it can be read; `too_large`.
    """
    budget = budget or Budget(source.size, name)
    end, notes = _whole(source, name, budget)
    try:
        profile = pprof_pb2.PprofProfile.FromString(source.read(0, end))
    except DecodeError:
        profile, damaged = _undamaged(source, end)
        notes = [*notes, f"{counted(damaged, 'message in it is', 'messages in it are')} damaged and left out"]
    texts = _Texts(profile.string_table)
    if not profile.string_table or not profile.sample_type:
        missing = "its names, which stand at its end," if profile.sample else "samples"
        sentence = f"{name} can't be read as a pprof profile: {missing} are missing."
        raise ProfileError("corrupt", sentence, "write or copy the file again")
    functions = {each.id: (texts[each.name or each.system_name], texts[each.filename]) for each in profile.function}
    locations = {
        each.id: tuple(Frame(*functions.get(line.function_id, ("", "")), max(0, line.line)) for line in each.line)
        for each in profile.location
    }
    stack_of = cache(partial(_stack, locations, budget, source.size))
    samples, frames, too_large = [], 0, 0
    for each in profile.sample:
        labels: dict[str, str] = {}
        for label in each.label:
            labels.setdefault(texts[label.key], texts[label.str] if label.str else str(label.num))
        stack = stack_of(tuple(each.location_id))
        if stack is None or frames + len(stack) > MOST_FRAMES:
            stack, too_large = (), too_large + 1
        samples.append(Sample(tuple(each.value), labels, stack))
        frames += len(stack)
    if too_large:
        notes = [*notes, f"{counted(too_large, 'stack has', 'stacks have')} too many frames, which are left out"]
    types = tuple(SampleType(texts[each.type], texts[each.unit]) for each in profile.sample_type)
    if texts.lost:
        notes = [*notes, "names of some functions or files are not in the file"]
    return Pprof(types, tuple(samples), profile.time_nanos if profile.time_nanos > 0 else None, tuple(notes))


class _Texts:
    """The profile's table of texts; `lost` is whether one was not in it."""

    def __init__(self, table: Sequence[bytes]) -> None:
        self._table, self.lost = table, False
        self._text_of = cache(self._text)

    def __getitem__(self, number: int) -> str:
        return self._text_of(number)

    def _text(self, number: int) -> str:
        if 0 <= number < len(self._table):
            return text(self._table[number])
        self.lost = True
        return ""


_LOST = Frame("", "", 0)
"""Stands for a location that the file does not have."""


def _stack(
    locations: dict[int, tuple[Frame, ...]], budget: Budget, size: int, places: tuple[int, ...]
) -> tuple[Frame, ...] | None:
    """The frames of a stack; a location stands for several where functions are inlined. None where they are too many.

    Args:
        size: bytes of the profile, of which a place takes one at least.
    """
    parts = [locations.get(number) or (_LOST,) for number in places]
    count = sum(map(len, parts))
    affords = budget.part(len(places), size).affords(count, _NUMBER, steps=count)
    return tuple(chain.from_iterable(parts)) if affords else None


def _undamaged(source: ByteSource, end: int) -> tuple[pprof_pb2.PprofProfile, int]:
    """The profile without the messages that are damaged, and how many these are."""
    profile, damaged = pprof_pb2.PprofProfile(), 0
    for window in windows(source, 0, end):
        for begin, stop in zip(window.tag.tolist(), window.end.tolist(), strict=True):
            try:
                profile.MergeFrom(pprof_pb2.PprofProfile.FromString(source.read(begin, stop - begin)))
            except DecodeError:
                damaged += 1
    return profile, damaged


def _whole(source: ByteSource, name: str, budget: Budget) -> tuple[int, list[str]]:
    """Where the last whole field of the profile ends, and what is wrong behind it.

    It takes from the budget what the messages may take before any is made: they hold others of two bytes.
    """
    count = 0
    for window in windows(source, 0, source.size):
        kept = np.isin(window.number, _KEPT)
        nested = np.isin(window.number, _NESTED) * (window.end - window.begin) * _BYTE
        count += int(kept.sum())
        budget.takes(1, int(np.maximum(nested, _MESSAGE)[kept].sum()), steps=len(kept))
        if count > MOST_MESSAGES:
            too_many = f"it has more than {MOST_MESSAGES:,} samples, frames and names"
            sentence = f"{name} is too large for a profile of memory: {too_many}."
            raise ProfileError("too_large", sentence, "is it another file?")
        if len(kept) and window.end[-1] > source.size:
            return int(window.tag[-1]), ["the file ends in the middle: the rest is missing"]
        if window.broken_at >= 0:
            what = "ends in the middle" if window.cut else "is damaged"
            return window.broken_at, [f"the file {what} after {window.broken_at:,} bytes: the rest is missing"]
    return source.size, []
