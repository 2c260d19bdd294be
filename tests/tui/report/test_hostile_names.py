"""No character of a hostile profile reaches a terminal as a control character, on whichever page it is shown."""

from __future__ import annotations

import gzip
import os
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.fence.form import check_form
from tests.fence.profiles import FEATURES, TRAIN, simulated
from tests.fence.reports import said, same_everywhere
from tests.support import documents
from tests.support.app.scene import app_over, press, scene
from tests.support.app.stage import check_cells, strips
from tests.support.build import write_run
from tpuprof.parsers.formats.proto.hlo_pb2 import HloProto
from tpuprof.parsers.formats.proto.xplane_pb2 import XSpace, XStat
from tpuprof.tui.demo import demo_path
from tpuprof.tui.pages import PAGES

EVIL = (documents.EVIL + "日").encode("utf-8", "surrogateescape")
LOOKS = ("--width 120", "--width 80 --ascii", "--format json", "--format csv", "--format md")
WALK = (
    "1 down enter escape i escape 2 down enter escape 3 down enter escape v down enter escape v down "
    "4 down right enter escape 5 down enter escape H escape R escape"
)
"""Every tab, what opens of its rows, the hosts and the runs."""


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The demo's profile, with an escape sequence in every name that a program, a host or a user gives."""
    return _write(tmp_path_factory.mktemp("hostile"), [gzip.decompress(Path(demo_path()).read_bytes())])


def _write(logdir: Path, hosts: Sequence[bytes]) -> Path:
    evil = os.fsdecode(EVIL)
    tainted = {f"host{number}{evil}": _tainted_profile(data) for number, data in enumerate(hosts)}
    return write_run(logdir, f"2026_01_01_00_00_00{evil}", **tainted)


def _tainted_profile(data: bytes) -> bytes:
    space = XSpace.FromString(data)
    space.hostnames[:] = [name + EVIL for name in space.hostnames]
    for plane in space.planes:
        names = {number: stat.name for number, stat in plane.stat_metadata.items()}
        _taint_texts(plane.stats, names)
        for line in plane.lines if plane.name.startswith(b"/host:") else ():
            line.name += EVIL
        for event in plane.event_metadata.values():
            _taint_texts(event.stats, names)
            if event.display_name:
                event.display_name += EVIL
            elif plane.name == b"/host:CPU":
                event.name += EVIL
    return space.SerializeToString()


def _taint_texts(stats: Iterable[XStat], names: dict[int, Any]) -> None:
    for stat in stats:
        name = names[stat.metadata_id]
        if name == b"Hlo Proto":
            stat.bytes_value = _tainted_module(stat.bytes_value)
        elif stat.WhichOneof("value") == "str_value" and name != b"hlo_category":  # the classes of ops hang on it
            stat.str_value += EVIL


def _tainted_module(data: bytes) -> bytes:
    proto = HloProto.FromString(data)
    for computation in proto.hlo_module.computations:
        for instruction in computation.instructions:
            instruction.name = _tainted(instruction.name)
            instruction.metadata.op_name = _tainted(instruction.metadata.op_name)
    return proto.SerializeToString()


def _tainted(text: Any) -> Any:
    return text + (EVIL if isinstance(text, bytes) else EVIL.decode("utf-8", "replace"))


@pytest.mark.parametrize("profile", ["demo", "hosts", *FEATURES])
def test_reports(profile: str, hostile: Path, tmp_path: Path) -> None:
    """Of every page in every format: neither a terminal nor Markdown nor a table takes a name for more than text."""
    if profile != "demo":
        hostile = _write(tmp_path / profile, simulated(TRAIN) if profile == "hosts" else [FEATURES[profile]()])
    with same_everywhere(tmp_path):
        for page in PAGES:
            for look in (*LOOKS, *(f"--format {form}" for form in page.formats if form == "hlo")):
                words = ("report", page.name, str(hostile), *look.split())
                printed = said(words, tmp_path).rpartition("--- 0\n")[0]
                if printed:  # a profile without modules has no graph
                    check_form(words, printed)
                    assert "owned" in printed or "json" not in words, words
                    assert "日" not in printed or "--width" not in words, words
                    if "md" in words:
                        check_markdown(printed)


def check_markdown(printed: str) -> None:
    """No name is markup, and each row of a table has as many cells as its head."""
    assert "<b>" not in printed.replace(r"\<b\>", "") and "[x](y)" not in printed
    for table in re.findall(r"(?:^\|.*\n)+", printed, re.MULTILINE):
        assert len({len(re.findall(r"(?<!\\)(?:\\\\)*\|", row)) for row in table.splitlines()}) == 1, table


@pytest.mark.parametrize(("width", "height"), [(80, 24), (160, 50)])
async def test_screens(width: int, height: int, hostile: Path) -> None:
    seen, keys = 0, WALK.split()
    async with scene(app_over(hostile), (), width, height) as (app, pilot):
        for key in keys:
            await press(pilot, key)
            check_cells(app)
            texts = [strip.text for strip in strips(app)]
            assert all(text.isprintable() and "日" not in text for text in texts), key
            seen += any("owned" in text for text in texts)
    assert seen > len(keys) / 2
