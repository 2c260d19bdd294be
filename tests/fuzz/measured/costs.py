"""What reading cost at most: the worst inputs of each reader that fuzzing has found, and by which measure.

`python -m tests.fuzz --costs` writes them to ``corpus/costs/worst.txt``: a line each, ``READER NUMBER MIB MILLISECONDS
BASE64`` of the packed input; the number says how it is read. `test_fuzz.py` reads them again, and holds each to the
budget.
"""

from __future__ import annotations

import base64
import zlib
from collections.abc import Iterator
from dataclasses import dataclass

from tests.fuzz.corpus import FOLDER
from tests.fuzz.trial import Outcome
from tpuprof.parsers.base.budget import memory_room

COSTS = FOLDER / "costs" / "worst.txt"
MOST_BYTES = 30_000
"""Larger inputs are not kept: what they cost is not much for their size."""

OVERHEAD = 96 << 20
"""Bytes that a command takes at any size: modules that it imports, a page, windows of files, buffers of libraries."""


@dataclass(frozen=True)
class Cost:
    """What an input cost.

    Attributes:
        target: which reader; number: of the input, which says how it was read.
        size: of the input in bytes.
        grown: bytes of memory; seconds: of the processor.
    """

    target: str
    number: int
    data: bytes
    grown: int
    seconds: float

    @property
    def memory_share(self) -> float:
        """Of the memory that a file of this size may take."""
        return self.grown / (memory_room(len(self.data)) + OVERHEAD)


class Worst:
    """The inputs of each reader that took most memory and most time by their size."""

    def __init__(self) -> None:
        self._found: dict[tuple[str, str], tuple[float, Cost]] = {}

    def add(self, target: str, number: int, data: bytes, outcome: Outcome) -> None:
        """Takes note of what an input cost."""
        if len(data) > MOST_BYTES:
            return
        cost = Cost(target, number, data, outcome.grown, outcome.seconds)
        measures = {"memory": cost.memory_share, "time": outcome.seconds / (1000 + len(data))}
        for measure, value in measures.items():
            if value > self._found.get((target, measure), (-1.0, cost))[0]:
                self._found[target, measure] = value, cost

    def costs(self) -> Iterator[tuple[str, Cost]]:
        """The measure and the worst input of each reader by it."""
        for (_, measure), (_, cost) in sorted(self._found.items(), key=lambda item: item[0]):
            yield measure, cost

    def table(self) -> str:
        """A line for each."""
        lines = [f"{'reader':<10} {'measure':<7} {'bytes':>8} {'MiB':>7} {'ms':>7}  B of memory a byte"]
        for measure, cost in self.costs():
            figures = f"{len(cost.data):>8,} {cost.grown / (1 << 20):>7.1f} {1000 * cost.seconds:>7.0f}"
            lines.append(f"{cost.target:<10} {measure:<7} {figures}  {cost.grown / max(1, len(cost.data)):,.0f}")
        return "\n".join(lines)

    def keep(self) -> None:
        """Writes them to the corpus."""
        kept = dict.fromkeys(cost for _, cost in self.costs())
        COSTS.write_text("".join(map(_line, kept)), "ascii")


def _line(cost: Cost) -> str:
    text = base64.b64encode(zlib.compress(cost.data, 9)).decode()
    return f"{cost.target} {cost.number} {cost.grown / (1 << 20):.1f} {1000 * cost.seconds:.0f} {text}\n"


def kept_costs() -> Iterator[Cost]:
    """Those of the corpus."""
    for line in COSTS.read_text("ascii").splitlines():
        target, number, grown, took, text = line.split()
        data = zlib.decompress(base64.b64decode(text, validate=True))
        yield Cost(target, int(number), data, int(float(grown) * (1 << 20)), float(took) / 1000)
