"""What the arguments of calls have to be, and the errors of one that is something else, and of unknown attributes."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Mapping, Sequence
from numbers import Integral, Real
from typing import TYPE_CHECKING, NoReturn

from tpuprof.parsers.base.errors import EXIT_USAGE, ProfileError
from tpuprof.parsers.base.text import instant_ps, printable
from tpuprof.parsers.base.tpus import generation_named
from tpuprof.parsers.ops.filtering.field_term import UNIT_PS
from tpuprof.tui.report.output import LEAST_BYTES

Kind = tuple[Callable[[object], bool], str, str]
"""Whether a value is right, what it has to be, and an example."""

_TEXT: Kind = (lambda value: isinstance(value, str | None), "a text", '{}="..."')
_NUMBER: Kind = (lambda value: value is None or (isinstance(value, Real) and math.isfinite(value)), "a number", "{}=1")
_MS: Kind = (lambda value: value is None or math.isfinite(picoseconds(value)), "milliseconds", 'events(300, "20.3s")')
_KINDS: Mapping[str, Kind] = {
    "path": (
        lambda value: isinstance(value, str | os.PathLike),
        "a path, or the bytes of a file",
        'tpuprof.open("logs")',
    ),
    "page": (lambda value: isinstance(value, str), "a text", 'table("ops")'),
    "core": (lambda value: isinstance(value, str | Integral | None), "a name or a number", "core=0"),
    "limit": (
        lambda value: isinstance(value, Integral) and int(value) >= 0,
        "a number of rows, 0 for all",
        "limit=20",
    ),
    "max_bytes": (
        lambda value: value is None or (isinstance(value, Integral) and int(value) >= LEAST_BYTES),
        "a number of bytes from 1,000 on",
        "max_bytes=20_000",
    ),
    "columns": (
        lambda value: isinstance(value, Sequence) and all(isinstance(key, str) for key in value),
        "a list of keys",
        'columns=["name", "self_time_ps"]',
    ),
    "device": (
        lambda value: value is None or (isinstance(value, str) and generation_named(value) is not None),
        "a TPU whose memory is known",
        'device="v5e"',
    ),
    **dict.fromkeys(("from_ms", "to_ms"), _MS),
    **dict.fromkeys(("from_ps", "to_ps", "around", "model_flops", "tokens", "fail_on_regression"), _NUMBER),
    **dict.fromkeys(("facts", "fit"), _NUMBER),
}
"""By the name of an argument; those of all others are texts."""


def check(**given: object) -> None:
    """Checks arguments by their names.

    Raises:
        ProfileError: one of them is not what it has to be.
    """
    for name, value in given.items():
        is_right, wanted, example = _KINDS.get(name, _TEXT)
        if not is_right(value):
            sentence = f"{name}: {printable(repr(value))} is not {wanted}."
            raise ProfileError("usage", sentence, example.format(name), EXIT_USAGE)


def picoseconds(time: object) -> float:
    """Picoseconds of milliseconds, or of a text with its unit, such as ``"20.3s"``; NaN of anything else."""
    if isinstance(time, str):
        instant = instant_ps(time)
        return math.nan if instant is None else instant
    return float(time) * UNIT_PS["ms"] if isinstance(time, Real) else math.nan


class Guiding:
    """What says in the error for an unknown attribute how to get what it may stand for."""

    def _way_to(self, name: str) -> str:
        raise NotImplementedError

    if not TYPE_CHECKING:  # type checkers still refuse unknown attributes

        def __getattr__(self, name: str) -> NoReturn:
            way = "" if name.startswith("_") else f" Try {self._way_to(name)}."
            raise AttributeError(f"A {type(self).__name__} has no attribute {printable(name)}.{way}")
