"""The view of collectives: frames of the demo and of two slices, and what its keys do."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import numpy as np
import pytest
from textual.pilot import Pilot

from tests.support.app.scene import press, scene
from tests.support.app.stage import answer, check_cells, check_golden, frame, make_demo_app, ops_tab, settled
from tests.support.build import session_at
from tests.support.composed import slices
from tests.support.gpus import session_of
from tpuprof.parsers.pages.collectives.model import CollectivesPage
from tpuprof.parsers.pages.collectives.page import COLLECTIVES
from tpuprof.parsers.session.session import Session
from tpuprof.tui.app.app import TpuprofApp
from tpuprof.tui.app.options import AppOptions
from tpuprof.tui.demo import demo_path
from tpuprof.tui.draw.pen import Pen
from tpuprof.tui.draw.spans import BLOCK
from tpuprof.tui.pages import load_of, views_there
from tpuprof.tui.pages.collectives.view import CollectivesView
from tpuprof.tui.widgets.tab import Jump


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return slices.write_run(tmp_path_factory.mktemp("slices"))


@pytest.fixture(scope="module")
def page(run: Path) -> CollectivesPage:
    return session_at(run).page(COLLECTIVES)


@asynccontextmanager
async def on_collectives(app: TpuprofApp, width: int, height: int) -> AsyncIterator[tuple[TpuprofApp, Pilot[None]]]:
    """A scene that begins in the view of collectives."""
    async with scene(app, "3", width, height) as (_, pilot):
        ops_tab(app).go_to("collectives", "")
        await settled(pilot)
        yield app, pilot


def shown(app: TpuprofApp, width: int, height: int, *keys: str) -> str:
    async def played() -> str:
        async with on_collectives(app, width, height) as (_, pilot):
            await press(pilot, *keys)
            check_cells(app)
            return frame(app)

    return asyncio.run(played())


def test_the_demo() -> None:
    check_golden("collectives-80x24", shown(make_demo_app(), 80, 24))
    assert shown(make_demo_app(ascii=True), 80, 24).isascii()


def test_a_step_and_each_one() -> None:
    check_golden("collectives-step-120x40", shown(make_demo_app(), 120, 40, "l", "l", "j"))
    check_golden("collectives-each-80x24", shown(make_demo_app(), 80, 24, "j", "enter"))


def test_how_rows_are_grouped_and_who_is_late_stand_on_a_small_screen(run: Path) -> None:
    app = TpuprofApp(str(run), AppOptions(), open_session=lambda chosen, *_: Session(chosen))
    text = shown(app, 80, 24, "b", "b")
    assert "1 of 3, by axis" in text
    assert "waits for slice0-host1:1, 60.0 µs late in 4 of 4 steps." in text
    check_golden("collectives-axis-80x24", text.replace(str(run), "RUN"))


def test_two_slices(run: Path) -> None:
    app = TpuprofApp(str(run), AppOptions(), open_session=lambda chosen, *_: Session(chosen))
    text = shown(app, 120, 40)
    check_golden("collectives-slices-120x40", text.replace(str(run), "RUN"))
    assert "ntested on hardware" in " ".join(text.split())


def test_keys_lead_from_a_row(page: CollectivesPage) -> None:
    view = CollectivesView(page)
    assert view.selection == "all-reduce"
    assert view.op_name == "send.1"  # between slices, the op that begins it
    view.move(0, 1)
    assert view.op_name == "all-reduce.1"
    assert view.enter() and view.selection == "all-reduce.1" and not view.enter()
    view.move(1, 0)
    assert view.status() == "1 of 1, one group"
    view.group()
    assert len(view.rows) == 5


def test_a_jump_leads_to_an_op(page: CollectivesPage) -> None:
    view = CollectivesView(page)
    assert view.show_named("reduce-scatter.1") == ""
    assert view.selection == "reduce-scatter.1"
    assert view.show_named("fusion.1") == "no collective fusion.1 in the steps"


async def test_the_timeline_is_one_key_away(run: Path) -> None:
    app = make_demo_app()
    async with on_collectives(app, 100, 30) as (app, pilot):
        tab = ops_tab(app)
        name = tab.other_view.op_name if tab.other_view is not None else None
        assert name is not None and answer(tab, "O") == Jump("timeline", "op", name, 886625774024249734)
        await press(pilot, "o")
        assert ops_tab(app).selection == name


def test_it_is_offered_where_there_are_some(run: Path, tmp_path: Path) -> None:
    assert _offered(session_at(run))
    assert not _offered(_only(tmp_path / "alone", b"fusion"))
    assert _offered(_only(tmp_path / "across", b"send", b"recv"))  # between slices alone
    sent = _only(tmp_path / "sent", b"send", module=False)  # to the host, for all that is known
    assert not _offered(sent)
    told: list[str] = []
    load_of("collectives")(session_at(run), session_at(run).run, None, lambda part, _: told.append(part))
    assert told == ["collectives"]


def _offered(session: Session) -> bool:
    return "collectives" in {view.name for view in views_there("op-profile", session, None)}


def _only(folder: Path, *beginnings: bytes, module: bool = True) -> Session:
    """A host that runs only the ops whose names begin so."""
    space = slices.host_space("host0")
    for plane in space.planes:
        if plane.name.startswith(b"/device"):
            for line in plane.lines:
                names = ((event, plane.event_metadata[event.metadata_id].display_name) for event in line.events)
                kept = [event for event, name in names if not name or name.startswith(beginnings)]
                del line.events[:]
                line.events.extend(kept)
    if not module:
        space.planes.remove(next(plane for plane in space.planes if plane.name == b"/host:metadata"))
    return session_of(space, folder)


def test_moving_makes_no_rows_anew(page: CollectivesPage, monkeypatch: pytest.MonkeyPatch) -> None:
    """A step of the cursor draws the rows that show, whatever there are."""
    view, made = CollectivesView(page), []
    monkeypatch.setattr("tpuprof.tui.pages.collectives.view.rows_by", lambda *_: made.append("rows"))
    monkeypatch.setattr("tpuprof.tui.pages.collectives.view.single", lambda *_: made.append("single"))
    for _ in range(3):
        view.move(0, 1)
        assert len(view.draw(Pen(80, BLOCK), 3)) == 3 and view.card(Pen(80, BLOCK)) and view.op_name
    assert made == []


def test_steps_without_figures_are_no_zeros(tmp_path: Path) -> None:
    one = session_of(slices.host_space("host0"), tmp_path).page(COLLECTIVES)
    assert np.isfinite(one.step_ps).all() and one.waiting_ps == 0
    assert session_at(demo_path()).page(COLLECTIVES).log_line == "77.5% of transfers hidden, 14.4% of the step exposed"
