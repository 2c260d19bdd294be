"""Reads the use of slots that a compiler writes as text, ``…-final_hlo-static-per-bundle-utilization.txt``.

It has two headed parts: names of the units with how many slots each has, and for each bundle a line of numbers in the
order of the names; no regions, instructions or lines of source. It is of the last pass, some bundles shorter than the
schedule of `module.py`, which the compiler writes before that.
"""

from __future__ import annotations

import numpy as np

from tpuprof.parsers.formats.llo.schedule import UNITS, Instructions, Regions, Schedule
from tpuprof.parsers.formats.llo.wire import Damaged
from tpuprof.parsers.formats.xspace.walk import text

_USE = b"== UTILIZATION:"
_SPILLS, _FILLS = "VSTORE:SPILL", "VLOAD:FILL"
_MOST_UNITS = 64


def read_use(data: bytes, instruction: str) -> Schedule:
    """The schedule of an instruction as far as the text has it: `used`, `slots`, `spills` and `fills`.

    Raises:
        Damaged: the bytes are not such a text.
    """
    head, found, rows = data.partition(_USE)
    lines = [line for line in text(head).splitlines() if line.strip()]
    names = [name.strip() for name in lines[1].split(",")] if len(lines) == 3 else []
    if not found or not set(UNITS) <= set(names) or len(names) > _MOST_UNITS:
        raise Damaged("it does not name the units")
    capacity, numbers = _numbers(lines[2].encode()), _numbers(rows)
    if len(capacity) != len(names) or len(numbers) % len(names):
        raise Damaged("a line does not have one number for each unit")
    by_unit = dict(zip(names, np.minimum(numbers.reshape(-1, len(names)).T, 255).astype(np.uint8), strict=True))
    bundles, none, one = len(numbers) // len(names), np.zeros(0, np.int64), np.zeros(1, np.int64)
    nothing = np.zeros(bundles, np.uint8)
    return Schedule(
        instruction=instruction,
        program="",
        bundles=bundles,
        used=np.stack([by_unit[unit] for unit in UNITS]),
        slots=tuple(int(capacity[names.index(unit)]) for unit in UNITS),
        spills=by_unit.get(_SPILLS, nothing),
        fills=by_unit.get(_FILLS, nothing),
        regions=Regions(("program",), one, one, one + bundles, one - 1, one - 1),
        instructions=Instructions(none, none, none, none),
        origins=(),
        allocations=(),
    )


def _numbers(words: bytes) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """Numbers between spaces, none of them negative."""
    split = words.split()
    if any(len(word) > 9 or not word.isdigit() for word in split):
        raise Damaged("it holds something other than numbers")
    return np.array(split, dtype=np.int64) if split else np.zeros(0, np.int64)
