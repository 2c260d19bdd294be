"""No character of a hostile profile reaches a terminal as a control character, on whichever page it is shown."""

from __future__ import annotations

import gzip
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from tests.support.app.scene import app_over, press, scene
from tests.support.app.stage import check_cells, strips
from tests.tui.cli.calls import Call
from tpuprof.parsers.formats.proto.hlo_pb2 import HloProto
from tpuprof.parsers.formats.proto.xplane_pb2 import XSpace, XStat
from tpuprof.tui.demo import demo_path
from tpuprof.tui.pages import PAGES

EVIL = "\x1b]0;owned\x07\u202e\n日\x9b31m"
WITHOUT_PROFILE = ("live-arrays",)
"""Pages that are of no profile."""
WALK = (
    "1 down enter escape i escape 2 down enter escape 3 down enter escape v down enter escape v down "
    "4 down right enter escape 5 down enter escape H escape R escape"
)
"""Every tab, what opens of its rows, the hosts and the runs."""


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The demo's profile, with an escape sequence in every name that a program, a host or a user gives."""
    space = XSpace.FromString(gzip.decompress(Path(demo_path()).read_bytes()))
    space.hostnames[:] = [name + EVIL.encode() for name in space.hostnames]
    for plane in space.planes:
        names = {number: stat.name for number, stat in plane.stat_metadata.items()}
        _taint_texts(plane.stats, names)
        for line in plane.lines if plane.name.startswith(b"/host:") else ():
            line.name += EVIL.encode()
        for event in plane.event_metadata.values():
            _taint_texts(event.stats, names)
            if event.display_name:
                event.display_name += EVIL.encode()
            elif plane.name == b"/host:CPU":
                event.name += EVIL.encode()
    folder = tmp_path_factory.mktemp("hostile") / "plugins" / "profile" / f"2026_01_01_00_00_00{EVIL}"
    folder.mkdir(parents=True)
    (folder / f"host{EVIL}.xplane.pb").write_bytes(space.SerializeToString())
    return folder.parents[2]


def _taint_texts(stats: Iterable[XStat], names: dict[int, Any]) -> None:
    for stat in stats:
        name = names[stat.metadata_id]
        if name == b"Hlo Proto":
            stat.bytes_value = _tainted_module(stat.bytes_value)
        elif stat.WhichOneof("value") == "str_value" and name != b"hlo_category":  # the classes of ops hang on it
            stat.str_value += EVIL.encode()


def _tainted_module(data: bytes) -> bytes:
    proto = HloProto.FromString(data)
    for computation in proto.hlo_module.computations:
        for instruction in computation.instructions:
            instruction.name = _tainted(instruction.name)
            instruction.metadata.op_name = _tainted(instruction.metadata.op_name)
    return proto.SerializeToString()


def _tainted(text: Any) -> Any:
    return text + (EVIL.encode() if isinstance(text, bytes) else EVIL)


@pytest.mark.parametrize("page", [page.name for page in PAGES if page.name not in WITHOUT_PROFILE])
@pytest.mark.parametrize("options", [[], ["--ascii"]])
def test_reports(page: str, options: list[str], hostile: Path, call: Call) -> None:
    out = call("report", page, hostile, "--width", "120", *options).out
    assert out.replace("\n", "").isprintable() and "日" not in out and (out.isascii() or not options)
    assert "owned" in out


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
