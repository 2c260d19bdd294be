"""A trace for a viewer on every tab and in every report: what it holds is shown, and the page says what it lacks."""

from __future__ import annotations

import contextlib
import gzip
import io
from pathlib import Path

import pytest

from tests.support.app.scene import app_over, press, scene
from tests.support.app.stage import check_cells, check_golden, frame
from tests.support.files.chrome import packed, xprof_trace
from tpuprof.parsers.base.errors import EXIT_OK
from tpuprof.parsers.formats.proto.xplane_pb2 import XSpace
from tpuprof.tui.app.options import AppOptions
from tpuprof.tui.cli.main import main
from tpuprof.tui.demo import demo_path
from tpuprof.tui.pages import PAGES

MISSING = "it has no HLO modules, memory events"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of the demo's first core: the profile cut off at its head, and the trace that XProf wrote beside it."""
    space = XSpace.FromString(gzip.decompress(Path(demo_path()).read_bytes()))
    kept = [plane for plane in space.planes if plane.name in (b"/device:TPU:0", b"/host:CPU")]
    made = tmp_path_factory.mktemp("traces") / "plugins" / "profile" / "2026_01_11_21_26_41"
    made.mkdir(parents=True)
    (made / "host0.xplane.pb").write_bytes(space.SerializeToString()[:60])
    (made / "host0.trace.json.gz").write_bytes(packed(xprof_trace(XSpace(planes=kept))))
    return made


@pytest.mark.parametrize(("width", "height", "ascii_only"), [(80, 24, False), (120, 40, False), (80, 24, True)])
async def test_every_tab_of_a_trace(width: int, height: int, ascii_only: bool, folder: Path) -> None:
    frames = {}
    async with scene(app_over(folder, AppOptions(ascii=ascii_only)), (), width, height) as (app, pilot):
        for key, name in enumerate(("overview", "input", "ops", "timeline", "memory"), 1):
            await press(pilot, str(key))
            check_cells(app)
            frames[name] = frame(app)
    look = f"{width}x{height}{'-ascii' * ascii_only}"
    for name in ("overview", "ops", "memory"):
        check_golden(f"trace-{name}-{look}", frames[name])
    assert "A trace for a" in frames["memory"]
    assert "XLA Ops" in frames["timeline"] and "incomplete" not in frames["timeline"]
    assert not ascii_only or "".join(frames.values()).isascii()


@pytest.mark.parametrize("page", [page.name for page in PAGES if page.name != "live-arrays"])
def test_every_report_of_a_trace(page: str, folder: Path, tmp_path: Path) -> None:
    for form in ("text", "json", "csv", "md"):
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            code = main(["report", page, str(folder), "--format", form, "--width", "120", "--no-cache"])
        assert "Traceback" not in err.getvalue()
        is_of_hlo = page in ("graph", "program") or page.startswith("memory")
        assert code == EXIT_OK or (is_of_hlo and "trace for a viewer" in err.getvalue()), err.getvalue()
        if form == "text" and page in ("overview", "ops", "input", "inference", "timeline", "hosts"):
            said = " ".join(out.getvalue().split())
            assert MISSING in said and "the file beside it is read instead: host0.trace.json.gz" in said
