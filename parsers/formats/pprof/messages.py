"""Reads a pprof profile, the protobuf message of github.com/google/pprof, `proto/profile.proto`.

A profile has samples: values, one for each sample type, labels, and a stack of locations, the innermost first. A
location has a line for each function that is inlined there, the innermost first. All texts are numbers of entries of
one table, which a writer puts at the end as a rule: of a file that is cut, the stacks are there and their names not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache, partial
from itertools import chain
from typing import TypeVar

from tpuprof.parsers.base.budget import Budget
from tpuprof.parsers.base.errors import ProfileError
from tpuprof.parsers.base.record import dataclass
from tpuprof.parsers.formats.xspace.core.api import split_fields
from tpuprof.parsers.formats.xspace.source import ByteSource
from tpuprof.parsers.formats.xspace.walk import LEN, VARINT, text, varint, windows

MOST_MESSAGES = 2_000_000
"""Samples, locations, functions and texts altogether; JAX writes some thousands."""

MOST_FRAMES = 20_000_000
"""Frames of all stacks together."""

_SAMPLE_TYPE, _SAMPLE, _LOCATION, _FUNCTION, _TEXT, _TIME = 1, 2, 4, 5, 6, 9
_PACKED_MOST = 1 << 20  # bytes of one list of numbers
_MESSAGE, _NUMBER = 700, 24  # bytes that a message and a number of a list take, about
_UINT64 = (1 << 64) - 1

Kept = TypeVar("Kept")


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


def read_messages(source: ByteSource, name: str, budget: Budget | None = None) -> Pprof:
    """Reads a profile; of one that is cut, as much as there is.

    Args:
        name: of the file, for sentences, fit to print.
        budget: of the file; None for that of as many bytes as the source has.

    Raises:
        ProfileError: `corrupt` where nothing of it can be read; `too_large`.
    """
    budget = budget or Budget(source.size, name)
    parts, notes = _parts(source, name, budget)
    texts = parts[_TEXT]
    if not texts or not parts[_SAMPLE_TYPE]:
        missing = "its names, which stand at its end," if parts[_SAMPLE] else "samples"
        sentence = f"{name} can't be read as a pprof profile: {missing} are missing."
        raise ProfileError("corrupt", sentence, "write or copy the file again")
    reader = _Reader(texts, budget)
    functions = dict(map(reader.function, parts[_FUNCTION]))
    locations = dict(reader.location(body, functions) for body in parts[_LOCATION])
    stack_of = cache(partial(_stack, locations, budget))
    samples, frames = [], 0
    for body in parts[_SAMPLE]:
        sample = reader.sample(body, stack_of)
        frames += len(sample.stack)
        if frames > MOST_FRAMES:
            raise _too_large(name, f"its stacks have more than {MOST_FRAMES:,} frames")
        samples.append(sample)
    types = tuple(map(reader.sample_type, parts[_SAMPLE_TYPE]))
    time = next((varint(body) for body in parts[_TIME] if body), 0)
    if reader.lost:
        notes = [*notes, "names of some functions or files are not in the file"]
    return Pprof(types, tuple(samples), time if time > 0 else None, tuple(notes))


_LOST = Frame("", "", 0)
"""Stands for a location that the file does not have."""


def _stack(locations: dict[int, tuple[Frame, ...]], budget: Budget, places: tuple[int, ...]) -> tuple[Frame, ...]:
    """The frames of a stack; a location stands for several where functions are inlined."""
    parts = [locations.get(number, (_LOST,)) for number in places]
    count = sum(map(len, parts))
    budget.takes(count, _NUMBER, steps=count)
    return tuple(chain.from_iterable(parts))


def _parts(source: ByteSource, name: str, budget: Budget) -> tuple[dict[int, list[bytes]], list[str]]:
    """The bodies of the profile's messages by field, and what is wrong with the bytes."""
    parts: dict[int, list[bytes]] = {
        number: [] for number in (_SAMPLE_TYPE, _SAMPLE, _LOCATION, _FUNCTION, _TEXT, _TIME)
    }
    notes, count = [], 0
    for window in windows(source, 0, source.size):
        kept = [number in parts for number in window.number.tolist()]
        count += sum(kept)
        budget.takes(sum(kept), _MESSAGE, steps=len(kept))
        if count > MOST_MESSAGES:
            raise _too_large(name, f"it has more than {MOST_MESSAGES:,} samples, frames and names")
        fields = zip(
            window.number.tolist(), window.wire.tolist(), window.begin.tolist(), window.end.tolist(), strict=True
        )
        for is_kept, (number, wire, begin, end) in zip(kept, fields, strict=True):
            if is_kept and wire == (VARINT if number == _TIME else LEN):
                body = window.data[begin - window.base : end - window.base]
                if len(body) < end - begin:  # it reaches past the window
                    body = source.read(begin, end - begin)
                if len(body) == end - begin:
                    parts[number].append(body)
                else:
                    notes = ["the file ends in the middle: the rest is missing"]
        if window.broken_at >= 0:
            what = "ends in the middle" if window.cut else "is damaged"
            notes = [f"the file {what} after {window.broken_at:,} bytes: the rest is missing"]
    return parts, notes


def _too_large(name: str, how: str) -> ProfileError:
    return ProfileError("too_large", f"{name} is too large for a profile of memory: {how}.", "is it another file?")


class _Reader:
    """Reads messages of a profile with its table of texts; `lost` is whether one was not in it."""

    def __init__(self, texts: list[bytes], budget: Budget) -> None:
        self._texts = texts
        self._budget = budget
        self.lost = False
        self._label_of = cache(self._label)
        self._text_of = cache(self._text)

    def sample_type(self, body: bytes) -> SampleType:
        """A ValueType: name and unit."""
        numbers = _numbers(body)
        return SampleType(self._text_of(numbers.get(1, 0)), self._text_of(numbers.get(2, 0)))

    def function(self, body: bytes) -> tuple[int, tuple[str, str]]:
        """A Function: its id, name and file."""
        numbers = _numbers(body)
        name = numbers.get(2, 0) or numbers.get(3, 0)
        return numbers.get(1, 0), (self._text_of(name), self._text_of(numbers.get(4, 0)))

    def location(self, body: bytes, functions: dict[int, tuple[str, str]]) -> tuple[int, tuple[Frame, ...]]:
        """A Location: its id, and a frame for each of its lines."""
        number, frames = 0, []
        for field, wire, payload in _fields(body):
            if (field, wire) == (1, VARINT):
                number = varint(payload, signed=False)
            elif (field, wire) == (4, LEN):
                self._budget.takes(1, _MESSAGE, steps=1)
                line = _numbers(payload)
                name, file = functions.get(line.get(1, 0), ("", ""))
                frames.append(Frame(name, file, max(0, line.get(2, 0))))
        return number, tuple(frames) or (_LOST,)

    def _packed(self, payload: bytes) -> list[int]:
        self._budget.takes(len(payload), _NUMBER, steps=len(payload))
        return _packed(payload)

    def sample(self, body: bytes, stack_of: Callable[[tuple[int, ...]], tuple[Frame, ...]]) -> Sample:
        """A Sample."""
        places: list[int] = []
        values: list[int] = []
        labels: dict[str, str] = {}
        for field, wire, payload in _fields(body):
            if field in (1, 2) and wire in (VARINT, LEN):
                numbers = [varint(payload, signed=False)] if wire == VARINT else self._packed(payload)
                if field == 1:
                    places += numbers
                else:
                    values += [number - (1 << 64) if number >> 63 else number for number in numbers]
            elif (field, wire) == (3, LEN):
                key, value = self._label_of(payload)
                labels.setdefault(key, value)
        return Sample(tuple(values), labels, stack_of(tuple(places)))

    def _label(self, body: bytes) -> tuple[str, str]:
        numbers = _numbers(body)
        value = self._text_of(numbers[2]) if numbers.get(2) else str(numbers.get(3, 0))
        return self._text_of(numbers.get(1, 0)), value

    def _text(self, number: int) -> str:
        if 0 <= number < len(self._texts):
            return text(self._texts[number])
        self.lost = True
        return ""


def _fields(body: bytes) -> Iterator[tuple[int, int, bytes]]:
    """Number, wire type and value of a message's fields, up to a break."""
    fields = split_fields(body)
    columns = (fields.number.tolist(), fields.wire.tolist(), fields.begin.tolist(), fields.end.tolist())
    for number, wire, begin, end in zip(*columns, strict=True):
        if end <= len(body):
            yield number, wire, body[begin:end]


def _numbers(body: bytes) -> dict[int, int]:
    """A message's fields that are numbers; the last one of each counts."""
    return {number: varint(payload) for number, wire, payload in _fields(body) if wire == VARINT}


def _packed(payload: bytes) -> list[int]:
    """The numbers of a packed list, the low 64 bits of each, unsigned; what breaks off at its end is left out."""
    numbers, number, shift = [], 0, 0
    for byte in payload[:_PACKED_MOST]:
        if byte < 0x80:
            numbers.append((number | byte << shift) & _UINT64 if shift else byte)
            number = shift = 0
        elif shift < 70:
            number |= (byte & 0x7F) << shift
            shift += 7
    return numbers


def begins_like_pprof(data: bytes | bytearray) -> bool:
    """Whether the first bytes may be of a pprof profile: a ValueType of two numbers, which an XSpace has not there.

    A profile that begins with its texts, as some writers have it, begins with the empty one.
    """
    if data.startswith(b"\x32\x00"):
        return True
    if len(data) < 4 or data[0] != 0x0A or not 2 <= data[1] <= 22 or len(data) < 2 + data[1]:
        return False
    body = bytes(data[2 : 2 + data[1]])
    fields = split_fields(body)
    numbers = list(zip(fields.number.tolist(), fields.wire.tolist(), strict=True))
    return fields.next == len(body) and numbers in ([(1, VARINT), (2, VARINT)], [(2, VARINT)])
