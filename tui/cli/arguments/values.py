"""What stands behind an option: numbers, times, sizes and names, each in one grammar wherever it is taken."""

from __future__ import annotations

import argparse
import math
from collections.abc import Mapping

from tpuprof.parsers.base.errors import EXIT_USAGE, ProfileError
from tpuprof.parsers.base.regex import pattern
from tpuprof.parsers.base.text import instant_ps
from tpuprof.parsers.base.tpus import generation_named

_NUMBER = pattern(r"([0-9]{1,30}(?:\.[0-9]{1,30})?) ?([a-z%]*)")
_AMOUNT = pattern(r"[0-9]{1,30}(?:\.[0-9]{1,30})?(?:[eE]\+?[0-9]{1,3})?")
_TIMES = {"": 1, "ms": 0.001, "s": 1, "m": 60, "h": 3600}
_SIZES = {"kb": 10**3, "mb": 10**6, "gb": 10**9}
_DAY = 86_400.0
FILE_FORMATS = ("text", "json", "csv", "md", "html", "parquet")  # that other programs take after -o


def _number(text: str, units: Mapping[str, float], least: float, most: float, what: str) -> float:
    """A number with one of some units, in a range."""
    match = _NUMBER.fullmatch(text.strip().lower())
    if match and match[2] in units and least <= float(match[1]) * units[match[2]] <= most:
        return float(match[1]) * units[match[2]]
    raise argparse.ArgumentTypeError(f"{text!r} is not {what}")


def whole_number(text: str, least: int = 0, most: int | None = None) -> int:
    """A whole number of an option, in a range."""
    if text.isascii() and text.isdigit() and len(text) < 10 and least <= int(text) <= (most or int(text)):
        return int(text)
    bounds = f"{least} on" if most is None else f"{least} to {most:,}"
    raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from {bounds}")


def seconds(text: str, least: float = 1, most: float = _DAY) -> float:
    """Seconds of ``30``, ``30s``, ``500ms``, ``10m`` or ``2h``, in a range of seconds."""
    bounds = f"from {least:g} s on" if most == math.inf else f"from {least:g} s to {most:g} s"
    return _number(text, _TIMES, least, most, f"a time such as 30s, 500ms, 10m or 2h, {bounds}")


def whole_seconds(text: str, least: float = 1) -> int:
    """A time, rounded up to seconds."""
    return math.ceil(seconds(text, least))


def any_time(text: str) -> float:
    """Seconds of a time that may be longer than a day."""
    return seconds(text, most=math.inf)


def milliseconds(text: str) -> int:
    """Milliseconds, or another unit that is named, as picoseconds, exactly; what is finer is cut."""
    if (instant := instant_ps(text)) is None:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of milliseconds from 0 on, such as 12.5, nor 20.3s")
    return instant


def percent(text: str) -> float:
    """A fraction, of ``5%`` or ``5``."""
    return _number(text, {"": 1, "%": 1}, 0, 9999, "a percentage from 0 on, such as 5%") / 100


def amount(text: str) -> float:
    """A number above 0, such as ``4.2e15``."""
    if not _AMOUNT.fullmatch(text) or not 0 < float(text) < math.inf:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number above 0, such as 4.2e15")
    return float(text)


def ratio(text: str) -> float:
    """A ratio above 1, such as ``1.2`` or ``1.2x``."""
    return _number(text, {"": 1, "x": 1}, math.nextafter(1, 2), 100, "a ratio above 1, such as 1.2")


def size(text: str) -> int:
    """Bytes of ``100MB`` or ``2GB``; at least one MB."""
    return round(_number(text, _SIZES, 10**6, math.inf, "a size of 1 MB or more, such as 100MB or 2GB"))


def device(text: str) -> str:
    """A type of TPU as profiles write it, of what people call it."""
    generation = generation_named(text)
    if generation is None:
        raise argparse.ArgumentTypeError(f"the memory of {text!r} is unknown; one of: v2 v3 v4 v5e v5p v6e 7x")
    return generation


def group(text: str) -> str:
    """The name of a group of cores, of its number."""
    return f"group {whole_number(text, least=1)}"


def file_name(text: str) -> str:
    """The name of a file to write.

    Raises:
        ProfileError: it is a format, as other programs have it in ``-o json``.
    """
    if text in FILE_FORMATS:
        raise ProfileError("usage", f"{text} is a format, not a file.", f"--format {text}", EXIT_USAGE)
    return text
