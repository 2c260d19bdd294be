"""The view of units on the ops tab: rows of a core, other cores, the counters themselves, cards and jumps."""

from __future__ import annotations

from pathlib import Path

from tests.support.app.scene import Scene, after, app_over, press, scene
from tests.support.app.stage import answer, check_cells, check_golden, frame, ops_tab, settled, timeline_tab, until
from tests.support.files.counters import with_custom_calls, with_readings
from tpuprof.tui.app.app import TpuprofApp
from tpuprof.tui.app.options import AppOptions
from tpuprof.tui.widgets.tab import Jump


def shown(app: TpuprofApp) -> str:
    """The screen's text without the rule between list and card, which is laid out after these."""
    return "\n".join(line.replace(" │ ", "   ").replace(" │", "  ").rstrip() for line in frame(app).splitlines()) + "\n"


def on_units(folder: Path, data: bytes, size: tuple[int, int] = (120, 40), options: AppOptions | None = None) -> Scene:
    """A scene over a profile, in the view of units."""
    (folder / "host0.xplane.pb").write_bytes(data)
    return scene(app_over(folder, options), "3V", *size)


async def test_units_of_a_core(tmp_path: Path) -> None:
    async with on_units(tmp_path, with_readings("TPU v7x"), (80, 24)) as (app, pilot):
        check_golden("counters-units-80x24", shown(app))
        check_cells(app)
        await press(pilot, "b")
        check_golden("counters-raw-80x24", shown(app))


async def test_other_cores_orders_and_filters(tmp_path: Path) -> None:
    async with on_units(tmp_path, with_readings("TPU v7x")) as (app, pilot):
        tab = ops_tab(app)
        assert "TPU 0 #1" in await after(pilot, "l", "l") and tab.selection == "ICI (Read)"
        await press(pilot, "h", "h", "S")
        assert tab.selection == "No XLU Busy"  # most of the cycles
        assert tab.search("matrix") == "9 rows" and tab.selection == "No MXU Busy"
        tab.end_search()
        await press(pilot, "b", "/", *"mxu_busy_2", "enter")
        assert tab.selection == "vf_chip_register_a668a1d8"
        assert "TC 0 MXU_BUSY_2" in await after(pilot, "enter")


async def test_a_sampled_unit_leads_to_its_track(tmp_path: Path) -> None:
    async with on_units(tmp_path, with_custom_calls()) as (app, pilot):
        tab = ops_tab(app)
        check_golden("counters-calls-120x40", shown(app))
        assert answer(tab, "O") == Jump("timeline", "counter", "/device:TPU:0 / MXU")
        await press(pilot, "O")
        assert "TPU core 0, MXU: " in timeline_tab(app).note or "MXU" in frame(app)
        check_golden("counters-track-120x40", shown(app))


async def test_the_card_of_a_custom_call_has_its_scopes(tmp_path: Path) -> None:
    async with on_units(tmp_path, with_custom_calls()) as (app, pilot):
        ops_tab(app).go_to("op", "attention.1")
        await until(pilot, lambda: "in acc, 60.0 µs: MXU 90.0%" in frame(app))
        await settled(pilot)
        check_golden("counters-card-120x40", shown(app))


async def test_help_and_notes_say_what_was_never_seen(tmp_path: Path) -> None:
    async with on_units(tmp_path, with_readings("TPU v6 Lite")) as (_, pilot):
        assert "untested on" in " ".join((await after(pilot, "W")).split())
        await press(pilot, "escape")
        screens = [await after(pilot, key) for key in ("?", *["pagedown"] * 3)]
        assert any("Next, previous core" in text for text in screens)
