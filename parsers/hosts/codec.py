"""What is kept of hosts as bytes and back: frozen dataclasses of `tpuprof.parsers`, tuples, arrays, texts and numbers.

The bytes are a tree as JSON, and behind it the arrays, each from a multiple of eight bytes on. Arrays of integers take
as few bytes an item as their values need; counts and durations mostly take half. Nothing in the bytes can run.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from importlib import import_module
from operator import attrgetter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tpuprof.parsers.base.record import fields, is_dataclass

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
