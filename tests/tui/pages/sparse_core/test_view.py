"""SparseCores as a view of the ops tab, on real screens."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.app.scene import after, app_over, press, scene
from tests.support.app.stage import answer, check_cells, frame, ops_tab, until
from tests.support.composed.sparse_cores import BOUND, HEALTHY, UNUSED, Shape, sparse_profile
from tests.support.golden import check_golden
from tpuprof.tui.app.app import TpuprofApp
from tpuprof.tui.app.options import AppOptions
from tpuprof.tui.widgets.tab import Jump

GOLDEN = Path(__file__).parent / "golden"


def app_of(folder: Path, shapes: tuple[Shape, ...], options: AppOptions, chips: int = 2) -> TpuprofApp:
    place = folder / "embedding"
    place.mkdir()
    (place / "host0.xplane.pb").write_bytes(sparse_profile(shapes, chips).SerializeToString())
    return app_over(place, options)


@pytest.mark.parametrize(
    ("name", "shapes"), [("healthy", (HEALTHY, UNUSED)), ("bound", (BOUND,)), ("unused", (UNUSED,))]
)
@pytest.mark.parametrize(("size", "ascii_only"), [((80, 24), False), ((120, 40), False), ((80, 24), True)])
async def test_the_view(
    tmp_path: Path, name: str, shapes: tuple[Shape, ...], size: tuple[int, int], ascii_only: bool
) -> None:
    app = app_of(tmp_path, shapes, AppOptions(color="16", ascii=ascii_only))
    async with scene(app, "3V", *size) as (app, pilot):
        place = app.main.tab.rule_place(size[0])
        if place is not None:  # the rule is placed after the view is there
            await until(pilot, lambda: bool(frame(app).splitlines()[12][place[0] : place[0] + 3].strip()))
        check_cells(app)
        assert not ascii_only or frame(app).isascii()
        if not ascii_only and size == (80, 24):
            check_golden(GOLDEN / f"view-{name}-block-80x24.txt", frame(app))


async def test_keys_lead_over_steps_and_on(tmp_path: Path) -> None:
    async with scene(app_of(tmp_path, (BOUND,), AppOptions()), "3Vllj", 80, 24) as (app, pilot):
        tab = ops_tab(app)
        assert "step 2, 3 of 4" in frame(app)
        assert tab.selection == "scatter_fusion.2"
        assert answer(tab, "O") == Jump("timeline", "op", "scatter_fusion.2")
        assert "step 0, 1 of 4" in await after(pilot, "h", "h", "h", "h")
        assert tab.search("gather") == "1 row" and tab.selection == "gather_fusion.1"
        tab.end_search()
        await press(pilot, "s", "c")
        assert tab.search(">1ms") == "2 rows"
        tab.end_search()
        assert "[HLO ops]" in await after(pilot, "o") and tab.selection == "embed.call-start"


async def test_enter_shows_the_card_and_the_whole_step(tmp_path: Path) -> None:
    async with scene(app_of(tmp_path, (BOUND,), AppOptions()), ("3", "V", "enter"), 120, 40) as (app, _):
        check_golden(GOLDEN / "card-120x40.txt", frame(app))


async def test_the_op_profile_has_what_sparse_cores_ran_below_the_op_that_began_it(tmp_path: Path) -> None:
    async with scene(app_of(tmp_path, (HEALTHY,), AppOptions()), f"3{7 * 'j'}ljlj", 80, 24) as (app, pilot):
        tab = ops_tab(app)
        assert tab.selection == "gather_fusion.1" and tab.listed_row is not None
        check_golden(GOLDEN / "tree-80x24.txt", frame(app))
        await press(pilot, "h")
        assert tab.selection == "embed.call-start"


async def test_notes_and_help_say_what_was_never_seen(tmp_path: Path) -> None:
    async with scene(app_of(tmp_path, (BOUND,), AppOptions()), "3VW", 120, 110) as (app, pilot):
        assert "Untested on hardware" in frame(app)
        shown = await after(pilot, "escape", "?")
        assert "Next, previous step" in shown and "TensorCore alone" in shown
        assert "Untested on hardware" in shown


async def test_a_low_screen_keeps_the_rows(tmp_path: Path) -> None:
    async with scene(app_of(tmp_path, (HEALTHY,), AppOptions()), "3V", 60, 15) as (app, _):
        check_cells(app)
        assert "gather_fusion.1" in frame(app)
