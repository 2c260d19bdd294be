"""What chip the modules of a compiler's dump are for: ``*.target_arguments.pb``, or ``.txt``, beside them says it."""

from __future__ import annotations

import contextlib
import os
import re

from tpuprof.parsers.base.folders import opened
from tpuprof.parsers.base.regex import pattern
from tpuprof.parsers.formats.xspace.core.api import split_fields

_STEM = pattern(r"((?:\d+\.)?module_\d+\..+?(?:\.cl_\d+)?)\.[^.]*?\.?(?:hlo\.pb|pb|txt)(?:\.gz)?", re.DOTALL)
_VARINT, _BYTES = 0, 2  # wire types
_VERSIONS = {2: "TPU v3", 3: "TPU v4", 4: "TPU v5p", 5: "TPU v6e", 6: "TPU7x"}
"""The chip by the number that the compiler gives it; of 4 a ``lite`` one is a v5e."""

_NAMED = pattern(rb"version: TPU_VERSION_([A-Z]{1,40})")
_NAMES = {b"PUFFERFISH": "TPU v4", b"VIPERFISH": "TPU v5p", b"GHOSTLITE": "TPU v6e"}
"""The same by the name that stands in texts."""


def stem_of(path: str) -> str:
    """The path without what the files of one module differ by; the path itself where it is of no dump."""
    match = _STEM.fullmatch(os.path.basename(path))
    return path if match is None else os.path.join(os.path.dirname(path), match[1])


def device_of(path: str) -> str | None:
    """Which chip a module of a dump was compiled for, ``TPU v5e``, by the path of its file; None where no dump says."""
    stem = stem_of(path)
    with contextlib.suppress(ValueError):
        inner = _first(_begin_of(stem + ".target_arguments.pb"), 6, _BYTES)
        if version := _first(inner, 1, _VARINT):
            return "TPU v5e" if _first(inner, 2, _BYTES) == b"lite" else _VERSIONS.get(version[0])
    said = _begin_of(stem + ".target_arguments.txt")
    if (match := _NAMED.search(said)) is None:
        return None
    return "TPU v5e" if match[1] == b"VIPERFISH" and b'"lite"' in said else _NAMES.get(match[1])


def _begin_of(path: str) -> bytes:
    with contextlib.suppress(OSError, ValueError), open(opened(path), "rb") as file:
        return file.read(1 << 16)
    return b""


def _first(data: bytes, wanted: int, kind: int) -> bytes:
    """The first field of that number and wire type; empty without one."""
    fields = split_fields(data)
    for number, wire, begin, end in zip(fields.number, fields.wire, fields.begin, fields.end, strict=True):
        if (number, wire) == (wanted, kind):
            return data[int(begin) : int(end)]
    return b""
