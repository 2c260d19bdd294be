"""The second look: summaries of hosts' files, and pages made of them, in the user's cache folder.

An entry is good for files as they were (path, size, inode, times) and for the code that made it. What is damaged,
foreign or out of date is no entry; then the files are read as if there were none. Entries hold numbers, names and
texts of profiles, so that only the user may read them. Nothing is ever written beside a profile.

An entry has a tree as JSON and, behind it, the arrays, each from a multiple of eight bytes on. Arrays of integers
take as few bytes an item as their values need; counts and durations mostly take half. Nothing in the bytes can run.
"""

from __future__ import annotations

import contextlib
import json
import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from importlib import import_module
from operator import attrgetter
from struct import Struct
from typing import TYPE_CHECKING, Any
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

try:
    from _blake2 import blake2b
except ImportError:  # not in every Python
    from hashlib import blake2b  # loads OpenSSL first, which takes 2 ms

from tpuprof.parsers.base.cache import CacheFolder
from tpuprof.parsers.base.folders import status
from tpuprof.parsers.base.record import dataclass

if TYPE_CHECKING:
    from tpuprof.parsers.files.logdir import HostFile

_SIZE_BYTES = 8  # of the tree's size
_DTYPES = ("|b1", "<i8", "<u8", "<f8", "|i1", "<i2", "<i4", "|u1")
_SMALLER = (np.int8, np.int16, np.int32)

_SCALARS = {type(None), bool, int, float, str}
_MANY = 4

LARGE = 1 << 16
"""Bytes of a text of metadata from which on it is kept apart: all hosts of a program have the same."""

DAMAGED = (ImportError, ValueError, TypeError, KeyError, IndexError, AttributeError, OverflowError, RecursionError)
"""What `decode` raises for bytes that `encode` did not make."""


class _Writer:
    def __init__(self, keep: Callable[[bytes], str]) -> None:
        self._keep = keep
        self.classes: dict[str, int] = {}
        self.parts: list[bytes] = []
        self._size = 0

    def plain(self, value: object) -> object:
        """A value as JSON can have it; a list is a tuple, and a dict says what it is."""
        if value is None or isinstance(value, bool | int | float | str):
            return value
        if isinstance(value, tuple):
            return self._tuple(value)
        if isinstance(value, np.ndarray):
            return {"array": self._array(value)}
        if isinstance(value, bytes):
            return {"kept": self._keep(value)} if len(value) >= LARGE else {"bytes": [self._add(value), len(value)]}
        if isinstance(value, Mapping):
            return {"map": [[self.plain(key), self.plain(item)] for key, item in value.items()]}
        if not is_dataclass(value):
            raise TypeError(type(value).__name__)
        return {"record": self._class(type(value)), "of": [self.plain(getattr(value, of.name)) for of in fields(value)]}

    def _class(self, of_class: type) -> int:
        return self.classes.setdefault(_class_name(of_class), len(self.classes))

    def _tuple(self, values: tuple[object, ...]) -> object:
        """A list; of many records of one class, such as steps, the columns."""
        kinds = set(map(type, values))
        if kinds <= _SCALARS:
            return list(values)
        if len(kinds) > 1 or len(values) < _MANY or not (is_dataclass(values[0]) and fields(values[0])):
            return [self.plain(item) for item in values]
        columns = [self._tuple(tuple(map(attrgetter(of.name), values))) for of in fields(values[0])]
        return {"records": self._class(type(values[0])), "columns": columns}

    def _array(self, values: NDArray[Any]) -> list[object]:
        small = values
        if values.dtype == np.int64 and values.size:
            least, most = int(values.min()), int(values.max())
            fits = (kind for kind in _SMALLER if np.iinfo(kind).min <= least and most <= np.iinfo(kind).max)
            small = values.astype(next(fits, np.int64))
        return [values.dtype.str, small.dtype.str, list(values.shape), self._add(small.tobytes())]

    def _add(self, data: bytes) -> int:
        begin = self._size
        self.parts += (data, bytes(-len(data) % 8))
        self._size += len(data) + -len(data) % 8
        return begin


def encode(value: object, keep: Callable[[bytes], str]) -> bytes:
    """Some value as bytes.

    Args:
        keep: keeps a large text apart, and returns how to call it.

    Raises:
        TypeError: it holds what is none of these.
    """
    writer = _Writer(keep)
    plain = writer.plain(value)
    tree = json.dumps([list(writer.classes), plain], separators=(",", ":")).encode()
    tree += b" " * (-len(tree) % 8)
    return b"".join((len(tree).to_bytes(_SIZE_BYTES, "little"), tree, *writer.parts))


class _Reader:
    def __init__(self, data: memoryview, classes: list[str], kept: Callable[[str], bytes]) -> None:
        self._data = data
        self._classes = [_class(name) for name in classes]
        self._kept = kept

    def value(self, plain: Any) -> Any:  # noqa: ANN401 - what JSON holds
        if isinstance(plain, list):
            return tuple(plain if set(map(type, plain)) <= _SCALARS else map(self.value, plain))
        if not isinstance(plain, dict):
            return plain
        if "record" in plain:
            made, names = self._classes[plain["record"]]
            return made(**dict(zip(names, map(self.value, plain["of"]), strict=True)))
        if "records" in plain:
            made, names = self._classes[plain["records"]]
            columns = [self.value(column) for column in plain["columns"]]
            return tuple([made(**dict(zip(names, row, strict=True))) for row in zip(*columns, strict=True)])
        if "array" in plain:
            return self._array(*plain["array"])
        if "map" in plain:
            return {self.value(key): self.value(item) for key, item in plain["map"]}
        if "kept" in plain:
            return self._kept(plain["kept"])
        begin, size = plain["bytes"]
        return self._bytes(begin, size).tobytes()

    def _array(self, dtype: str, stored: str, shape: list[int], begin: int) -> NDArray[Any]:
        if dtype not in _DTYPES or stored not in _DTYPES or min(shape, default=0) < 0:
            raise ValueError(dtype)
        count = int(np.prod(shape, dtype=object))
        size = count * np.dtype(stored).itemsize
        return np.frombuffer(self._bytes(begin, size), stored).astype(dtype).reshape(shape)

    def _bytes(self, begin: int, size: int) -> memoryview:
        if not 0 <= begin <= begin + size <= len(self._data):
            raise ValueError(begin)
        return self._data[begin : begin + size]


def decode(data: memoryview, kept: Callable[[str], bytes]) -> object:
    """The value that bytes hold.

    Args:
        kept: a text that was kept apart, by what it is called.

    Raises:
        The exceptions of `DAMAGED`, for bytes that `encode` did not make; what `kept` raises.
    """
    size = int.from_bytes(data[:_SIZE_BYTES], "little")
    tree, rest = data[_SIZE_BYTES : _SIZE_BYTES + size], data[_SIZE_BYTES + size :]
    classes, plain = json.loads(tree.tobytes())
    return _Reader(rest, classes, kept).value(plain)


_PACKAGE = "tpuprof.parsers."


def _class_name(of_class: type) -> str:
    """``steps.aligned:AlignedSteps``.

    Raises:
        TypeError: it is no dataclass of `tpuprof.parsers`.
    """
    if not is_dataclass(of_class) or not of_class.__module__.startswith(_PACKAGE):
        raise TypeError(of_class.__name__)
    return f"{of_class.__module__.removeprefix(_PACKAGE)}:{of_class.__name__}"


def _class(name: str) -> tuple[Callable[..., object], tuple[str, ...]]:
    module, _, attribute = name.partition(":")
    if not all(map(str.isidentifier, (*module.split("."), attribute))):
        raise ValueError(name)
    of_class = getattr(import_module(_PACKAGE + module), attribute)
    if _class_name(of_class) != name:
        raise ValueError(name)
    return of_class, tuple(field.name for field in fields(of_class))


BOUND = 1_000_000_000
"""Bytes that all entries may take together where nothing else is said, and those that one may have."""

LEAST_BYTES = 2_000_000
"""Files smaller than this are read in no time."""

SETTLED_SECONDS = 2.0
"""A file that changed less than this ago may change once more without a trace in its times."""

_MAGIC = b"tpuprof of hosts"
_HEAD = Struct(f"<{len(_MAGIC)}sIIQ")  # magic, checksum of the rest, bytes of the key, bytes of the content
_PARSERS = os.path.dirname(os.path.dirname(__file__))


@dataclass(frozen=True, slots=True)
class Slot:
    """Where something about files is kept.

    Attributes:
        files: the files; what: what is kept of them.
        name: the entry's file name. A new entry replaces the one before, whatever state of the files that was of.
        key: what an entry must say to be of the files as they were when this slot was made.
    """

    files: Sequence[HostFile]
    what: str
    name: str
    key: str


class HostCache:
    """What was read of hosts' files, by all processes of this user.

    Args:
        now: seconds since 1970.
        bound: bytes that all entries may take together; None for `BOUND`.
    """

    def __init__(self, now: Callable[[], float] = time.time, bound: int | None = None) -> None:
        self.kept = CacheFolder("hosts", BOUND if bound is None else bound)
        self._now = now
        self._code = ""
        self._texts: dict[str, bytes] = {}
        self._has_written = False

    def slot(self, files: Sequence[HostFile], what: str, given: object = None) -> Slot | None:
        """Where something about files is kept; None where one is remote or still being written, or all are small.

        None as well where the user has no home folder: nothing is kept below the current one.

        Args:
            given: what it was made with besides the files: something that `codec.encode` takes.
        """
        if not os.path.isabs(self.kept.folder):
            return None
        try:
            states = [status(file.path) for file in files]
        except OSError:
            return None
        if not all(self.is_settled(max(state.st_mtime, state.st_ctime)) for state in states):
            return None
        if sum(state.st_size for state in states) < LEAST_BYTES:
            return None
        what += "" if given is None else f" {_digest(given)}"
        times = [(state.st_size, state.st_ino, state.st_mtime_ns, state.st_ctime_ns) for state in states]
        place = f"{what} {[(file.label, os.path.realpath(file.path)) for file in files]}"
        return self._slot(files, what, place, f" {times}")

    def shelf(self, what: str) -> Slot | None:
        """Where something is kept that says itself which files it is of, as they were; None as for `slot`."""
        return self._slot((), what, what, "") if os.path.isabs(self.kept.folder) else None

    def _slot(self, files: Sequence[HostFile], what: str, text: str, times: str) -> Slot:
        place, self._code = _encoded(text), self._code or code_version()
        name = f"{crc32(place):08x}{crc32(place[::-1]):08x}"  # of what share it, one is lost
        return Slot(files, what, name, f"{place!r}{times} {self._code}")

    def is_settled(self, modified: float) -> bool:
        """Whether a file that changed then, in seconds since 1970, shows any further change in its times."""
        return modified <= self._now() - SETTLED_SECONDS

    def get(self, slot: Slot | None) -> object | None:
        """What is kept there; None where there is no good entry."""
        if slot is None:
            return None
        from tpuprof.parsers.hosts.cache import DAMAGED, decode  # noqa: PLC0415 - small files do without

        try:
            return decode(_content(self._read(slot.name), slot.key), self._text)
        except (OSError, *DAMAGED):
            return None

    def put(self, slot: Slot | None, value: object) -> None:
        """Keeps something, unless a file has changed since the slot was made; silent where that can't be done."""
        if slot is None or (slot.files and self.slot(slot.files, slot.what) != slot):
            return
        from tpuprof.parsers.hosts.cache import encode  # noqa: PLC0415

        with contextlib.suppress(OSError):
            self._write(slot.name, slot.key, encode(value, self._keep))
            self._has_written = True

    def trim(self) -> None:
        """Removes the entries that were used longest ago, where this process has written some and all are too many."""
        if not self._has_written:
            return
        self._has_written = False
        with contextlib.suppress(OSError):
            self.kept.make_room()

    # --- texts that hosts share

    def _keep(self, text: bytes) -> str:
        name = f"text-{_digest_of(text)}"
        try:
            self._text(name)
        except (OSError, ValueError):  # it is not there yet, or damaged
            self._write(name, name, text)
        return name

    def _text(self, name: str) -> bytes:
        if name not in self._texts:
            if not (name.startswith("text-") and name[5:].isalnum()):
                raise ValueError(name)
            self._texts[name] = bytes(_content(self._read(name), name))
        return self._texts[name]

    # --- files

    def _read(self, name: str) -> bytes:
        """An entry's bytes.

        Raises:
            OSError: it can't be read, or is not to be trusted.
        """
        with open(self.kept.open(name), "rb") as file:
            size = os.fstat(file.fileno()).st_size
            if size > BOUND:
                raise PermissionError(name)
            return file.read(size)

    def _write(self, name: str, key: str, data: bytes) -> None:
        said = _encoded(key)
        self.kept.put(name, (_head(said, memoryview(data)), said, data))


def _digest(value: object) -> str:
    """What distinguishes a value from any other."""
    from tpuprof.parsers.hosts.cache import encode  # noqa: PLC0415

    return _digest_of(encode(value, _digest_of))


def _digest_of(content: bytes) -> str:
    return blake2b(content, digest_size=32).hexdigest()


def code_version() -> str:
    """What distinguishes the code that makes summaries from any other version: sizes and times of the files of
    `parsers`.
    """
    facts: list[tuple[str, int, int, int]] = []
    folders = [_PARSERS]
    while folders:
        with contextlib.suppress(OSError), os.scandir(folders.pop()) as entries:
            for entry in entries:
                if not entry.is_dir():
                    status = entry.stat()
                    facts.append((entry.name, status.st_size, status.st_mtime_ns, status.st_ctime_ns))
                elif entry.name != "__pycache__":
                    folders.append(entry.path)
    return f"{len(facts)}-{crc32(_encoded(repr(sorted(facts)))):08x}"


def _head(key: bytes, data: memoryview) -> bytes:
    checksum = crc32(data, crc32(key, crc32(_HEAD.pack(_MAGIC, 0, len(key), len(data)))))
    return _HEAD.pack(_MAGIC, checksum, len(key), len(data))


def _content(entry: bytes, key: str) -> memoryview:
    """What an entry holds.

    Raises:
        ValueError: it is damaged, or of another key.
    """
    wanted = _encoded(key)
    data = memoryview(entry)[_HEAD.size + len(wanted) :]
    if entry[: _HEAD.size + len(wanted)] != _head(wanted, data) + wanted:
        raise ValueError(key)
    return data


def _encoded(key: str) -> bytes:
    return key.encode("utf-8", "surrogateescape")
