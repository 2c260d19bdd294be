"""The view of units on the ops tab: rows of a core, other cores, the counters themselves, cards and jumps."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from textual.pilot import Pilot

from tests.support.app.stage import check_cells, check_golden, frame, on_stage, ops_tab, settled, timeline_tab, until
from tests.support.files.counters import with_custom_calls, with_readings
from tpuprof.tui.app.app import TpuprofApp
from tpuprof.tui.app.options import AppOptions
from tpuprof.tui.terminal.detect import detect
from tpuprof.tui.widgets.tab import Jump

Scene = Callable[[TpuprofApp, Pilot[None]], Awaitable[None]]


def shown(app: TpuprofApp) -> str:
    """The screen's text without the rule between list and card, which is laid out after these."""
    return "\n".join(line.replace(" │ ", "   ").replace(" │", "  ").rstrip() for line in frame(app).splitlines()) + "\n"


def run(
    folder: Path, data: bytes, scene: Scene, size: tuple[int, int] = (120, 40), options: AppOptions | None = None
) -> None:
    """Plays a scene over a profile, in the view of units."""
    (folder / "host0.xplane.pb").write_bytes(data)

    async def play() -> None:
        environ = {"TERM": "xterm-256color", "COLORTERM": "truecolor", "LANG": "C.UTF-8"}
        chosen = options or AppOptions()
        looks = detect(environ, color=chosen.color, ascii_only=chosen.ascii, custom=chosen.custom)
        app = TpuprofApp(str(folder), chosen, looks, environ=environ)
        async with on_stage(app, *size) as pilot:
            await pilot.press("3")
            await settled(pilot)
            await pilot.press("V")
            await settled(pilot)
            await scene(app, pilot)

    asyncio.run(play())


@pytest.mark.parametrize(("width", "height"), [(80, 24), (120, 40)])
def test_units_of_a_core(width: int, height: int, tmp_path: Path) -> None:
    async def scene(app: TpuprofApp, pilot: Pilot[None]) -> None:
        check_golden(f"counters-units-{width}x{height}", shown(app))
        check_cells(app)
        await pilot.press("b")
        await settled(pilot)
        check_golden(f"counters-raw-{width}x{height}", shown(app))

    run(tmp_path, with_readings("TPU v7x"), scene, (width, height))


def test_in_ascii_with_16_colours(tmp_path: Path) -> None:
    async def scene(app: TpuprofApp, _: Pilot[None]) -> None:
        text = frame(app)
        check_golden("counters-units-80x24-ascii", text)
        assert text.isascii()

    run(tmp_path, with_readings("TPU v6 Lite"), scene, (80, 24), AppOptions(ascii=True, color="16"))


def test_other_cores_orders_and_filters(tmp_path: Path) -> None:
    async def scene(app: TpuprofApp, pilot: Pilot[None]) -> None:
        tab = ops_tab(app)
        await pilot.press("l", "l")
        await settled(pilot)
        assert "TPU 0 #1" in frame(app) and tab.selection == "ICI (Read)"
        await pilot.press("h", "h", "s")
        await settled(pilot)
        assert tab.selection == "No XLU Busy"  # most of the cycles
        assert tab.search("matrix") == "9 rows" and tab.selection == "No MXU Busy"
        tab.end_search()
        await pilot.press("b", "slash", *"mxu_busy_2", "enter")
        await settled(pilot)
        assert tab.selection == "vf_chip_register_a668a1d8"
        await pilot.press("enter")
        await settled(pilot)
        assert "TC 0 MXU_BUSY_2" in frame(app)

    run(tmp_path, with_readings("TPU v7x"), scene)


def test_a_sampled_unit_leads_to_its_track(tmp_path: Path) -> None:
    async def scene(app: TpuprofApp, pilot: Pilot[None]) -> None:
        tab = ops_tab(app)
        check_golden("counters-calls-120x40", shown(app))
        assert tab.jump("on_timeline") == Jump("timeline", "counter", "/device:TPU:0 / MXU")
        await pilot.press("O")
        await settled(pilot)
        assert "TPU core 0, MXU: " in timeline_tab(app).note or "MXU" in frame(app)
        check_golden("counters-track-120x40", shown(app))

    run(tmp_path, with_custom_calls(), scene)


def test_the_card_of_a_custom_call_has_its_scopes(tmp_path: Path) -> None:
    async def scene(app: TpuprofApp, pilot: Pilot[None]) -> None:
        ops_tab(app).go_to("op", "attention.1")
        await until(pilot, lambda: "in acc, 60.0 µs: MXU 90.0%" in frame(app))
        await settled(pilot)
        check_golden("counters-card-120x40", shown(app))

    run(tmp_path, with_custom_calls(), scene)


def test_help_and_notes_say_what_was_never_seen(tmp_path: Path) -> None:
    async def scene(app: TpuprofApp, pilot: Pilot[None]) -> None:
        await pilot.press("w")
        await settled(pilot)
        assert "no profile of hardware" in " ".join(frame(app).split())
        await pilot.press("escape", "question_mark")
        await settled(pilot)
        for _ in range(3):
            if "Next, previous core" in frame(app):
                break
            await pilot.press("pagedown")
            await settled(pilot)
        assert "Next, previous core" in frame(app)

    run(tmp_path, with_readings("TPU v6 Lite"), scene)


def test_a_profile_without_counters_has_no_such_view(tmp_path: Path) -> None:
    from tests.support.build import tpu_plane
    from tpuprof.parsers.formats.proto.xplane_pb2 import XSpace

    async def scene(app: TpuprofApp, _: Pilot[None]) -> None:
        assert "Units" not in frame(app)

    tpu_plane(space := XSpace(), 0, [("fusion.1", "loop fusion", 0, 5)])
    run(tmp_path, space.SerializeToString(), scene)
