"""Writes pprof profiles as JAX does, so that tests need no JAX; and has an example, a program that leaks."""

from __future__ import annotations

import gzip
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from tests.support.files.wire import field, varint

JAX_TYPES = (("allocations", "count"), ("space", "bytes"))
MIB = 1 << 20


class Made(NamedTuple):
    """A sample to write: its values, a stack of ``(function, file, line)`` from the innermost call out, and labels."""

    values: Sequence[int]
    stack: Sequence[tuple[str, str, int]] = ()
    labels: Mapping[str, str] = {}


def buffer(count: int, each: int, stack: Sequence[tuple[str, str, int]], device: int = 0) -> Made:
    """Buffers of one size on a TPU."""
    labels = {"kind": "buffer", "device": f"TPU_{device}(process=0,({device},0,0,0))"}
    return Made((count, count * each), stack, labels)


def executable(size: int, stack: Sequence[tuple[str, str, int]]) -> Made:
    return Made((1, size), stack, {"kind": "executable"})


def pprof(
    samples: Iterable[Made],
    types: Sequence[tuple[str, str]] = JAX_TYPES,
    *,
    packed: bool = True,
    time_ns: int = 0,
    names_first: bool = False,
) -> bytes:
    """A profile, uncompressed, its texts at the end as protobuf orders them.

    Args:
        packed: whether lists of numbers are.
        names_first: the texts stand at the beginning instead.
    """
    texts = {"": 0}
    functions: dict[tuple[str, str], int] = {}
    locations: dict[tuple[str, str, int], int] = {}

    def text(words: str) -> int:
        return texts.setdefault(words, len(texts))

    def numbers(number: int, values: Iterable[int]) -> bytes:
        if packed:
            return field(number, b"".join(map(varint, values)))
        return b"".join(field(number, value) for value in values)

    head = b"".join(field(1, field(1, text(name)) + field(2, text(unit))) for name, unit in types)
    body = b""
    for made in samples:
        for frame in made.stack:
            functions.setdefault(frame[:2], len(functions) + 1)
            locations.setdefault(frame, len(locations) + 1)
        labels = (field(3, field(1, text(key)) + field(2, text(value))) for key, value in made.labels.items())
        places = (locations[frame] for frame in made.stack)
        body += field(2, numbers(1, places) + numbers(2, made.values) + b"".join(labels))
    for (name, file, line), number in locations.items():
        body += field(4, field(1, number) + field(4, field(1, functions[name, file]) + field(2, line)))
    for (name, file), number in functions.items():
        body += field(5, field(1, number) + field(2, text(name)) + field(3, text(name)) + field(4, text(file)))
    names = b"".join(field(6, words.encode("utf-8", "surrogateescape")) for words in texts)
    time = field(9, time_ns) if time_ns else b""
    return names + head + body + time if names_first else head + body + names + time


_JAX = "/venv/lib/python3.12/site-packages/jax/_src/"
_ONES = (("full", f"{_JAX}lax/lax.py", 3625), ("ones", f"{_JAX}numpy/array_creation.py", 144))
_PUT = (("device_put", f"{_JAX}api.py", 2118),)
_COMPILE = (("compile", f"{_JAX}interpreters/pxla.py", 1239), ("cache_miss", f"{_JAX}pjit.py", 259))
_MAIN = (("main", "/home/ada/train/train.py", 210), ("<module>", "/home/ada/train/train.py", 240))
PARAMETERS = (
    *_ONES,
    ("init_layer", "/home/ada/train/model.py", 41),
    ("init_state", "/home/ada/train/train.py", 88),
    *_MAIN,
)
MOMENTS = (
    *_ONES,
    ("init", "/venv/lib/python3.12/site-packages/optax/transform.py", 70),
    ("init_state", "/home/ada/train/train.py", 91),
    *_MAIN,
)
BATCH = (*_PUT, ("next_batch", "/home/ada/train/data.py", 57), *_MAIN)
METRICS = (*_COMPILE, ("log_metrics", "/home/ada/train/metrics.py", 33), *_MAIN)
STEP = (*_COMPILE, ("train_step", "/home/ada/train/train.py", 131), *_MAIN)


def training(step: int = 0) -> list[Made]:
    """What a program on two TPUs holds: its metrics keep an array of each step, and the batches stay as they are."""
    made = [executable(48 * MIB, STEP), executable(3 * MIB, METRICS)]
    for device in (0, 1):
        made += [
            buffer(24, 64 * MIB, PARAMETERS, device),
            buffer(2, 512 * MIB, PARAMETERS, device),
            buffer(48, 64 * MIB, MOMENTS, device),
            buffer(2, 16 * MIB, BATCH, device),
        ]
        if step:
            made.append(buffer(step, 2 * MIB, METRICS, device))
    return made


def written(folder: Path, name: str = "memory.prof", step: int = 0) -> Path:
    """A file of `training`, compressed as JAX compresses it."""
    path = folder / name
    path.write_bytes(gzip.compress(pprof(training(step)), mtime=0))
    return path
