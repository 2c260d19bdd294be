"""What rows of a table say."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.insight.cases.reader import read_table
from tests.insight.cases.scenes import TRAIN_V5E
from tests.insight.cases.shape import Plant, Shape
from tests.insight.simulator.parts import Kernel, Lookup, OnSome
from tests.insight.simulator.play import MS, Chore
from tests.insight.simulator.stack import Uneven


def _read(folder: Path, text: str) -> Shape:
    (folder / "some.txt").write_text(text)
    return read_table(folder / "some.txt")[-1]


@pytest.mark.parametrize(
    ("rows", "plant"),
    [
        ("  each: Lookup rows=9_000 scope=a/b", {"part": Lookup(rows=9_000, scope="a/b"), "into": "each"}),
        ("  once of program 1: Kernel 0.05 size=2MiB", {"part": Kernel(0.05, size=2 << 20), "program": 1}),
        ("  once: Uneven (0.5 1.5)\n      (Kernel bad=no)", {"part": Uneven((0.5, 1.5), Kernel(bad=False))}),
        ("  once: PART\n  instead: nothing", {"part": OnSome((1, 2)), "instead": ()}),
        ('  loop: batch_ps=1.5ms fetch=""', {"loop": {"batch_ps": 1.5 * MS, "fetch": ""}}),
        ('  scene: turns=(turns "0*2 0,1")', {"scene": {"turns": ((0,), (0,), (0, 1))}}),
        ("  work: **CHANGES layers=2", {"work": {"tokens": 3, "layers": 2}}),
        ('  chore: "$gc collect" 3 every=4 hosts=(1)', {"chores": (Chore("$gc collect", 3 * MS, 4, hosts=(1,)),)}),
    ],
)
def test_rows_plant_what_they_say(tmp_path: Path, rows: str, plant: dict[str, object]) -> None:
    head = "PART = (OnSome (1 2))\nCHANGES = (tokens=3)\n# A comment.\n"
    shape = _read(tmp_path, f"{head}name | TRAIN_V5E | host idle | core 1, TPU:1 | every 4\n{rows}\n")
    expected = Plant("host", ("core 1", "TPU:1"), ("idle",), every=4, **plant)  # type: ignore[arg-type]
    assert shape.problems == {"name": (TRAIN_V5E, expected)}


@pytest.mark.parametrize(
    "row",
    [
        "name | NO_SCENE | host | place",
        "name | TRAIN_V5E | host | place\n  once: Lokup rows=9",
        "name | TRAIN_V5E | host | place\n  once: Lookup lines=9",
        "name | TRAIN_V5E | host",
        "pair one",
    ],
)
def test_a_row_that_cannot_be_read_is_named(tmp_path: Path, row: str) -> None:
    with pytest.raises(ValueError, match=row.split(maxsplit=1)[0]):
        _read(tmp_path, row + "\n")
