"""Pages that are views of the ops tab: read when they are shown first, with sentence, keys and jumps of their own."""

from __future__ import annotations

import sys
from dataclasses import replace
from types import ModuleType
from typing import TYPE_CHECKING, Any, ClassVar

import pytest
from textual.pilot import Pilot

from tests.support.app.scene import after, press, scene
from tests.support.app.stage import answer, frame, make_demo_app, ops_tab, settled
from tpuprof.parsers.base.errors import ProfileError
from tpuprof.parsers.base.record import dataclass
from tpuprof.parsers.pages.shared.key import PageKey
from tpuprof.tui import pages
from tpuprof.tui.app.app import TpuprofApp
from tpuprof.tui.draw.pen import Pen
from tpuprof.tui.draw.spans import Line
from tpuprof.tui.report.fields import ColumnSpec, Field, Table
from tpuprof.tui.report.units import TEXT
from tpuprof.tui.widgets.lists.table import RowsView
from tpuprof.tui.widgets.tab import Jump

if TYPE_CHECKING:
    from tpuprof.tui.report.fields import Rows

OP = "fusion.1"


@dataclass(frozen=True)
class Rooms:
    """A page: some names."""

    names: tuple[str, ...]


def names_of(page: Rooms, rows: Rows) -> list[str]:
    return [page.names[row] for row in rows]


NAME: Field[Rooms] = Field(
    "name", TEXT, names_of, "A name.", screen=ColumnSpec("name", 12, is_left=True), filter=("name",)
)


class RoomsView(RowsView):
    """Shows them."""

    FIRST_SORT = "name"
    NO_ROWS = "no rooms"
    commands = ("reverse",)
    MEANINGS: ClassVar[dict[str, str]] = {"room": "something with a door."}

    def __init__(self, page: Rooms) -> None:
        self._page = page
        super().__init__()

    def table(self) -> tuple[Table[Any], Any]:
        return Table("rooms", (NAME,), lambda page: len(page.names), ("name",), screen=("name",)), self._page

    @property
    def headline(self) -> str:
        return f"There are {len(self._page.names)} rooms."

    def card(self, pen: Pen) -> list[Line]:
        return [pen.fit([("a room with a view", "text")])]

    @property
    def selection(self) -> str | None:
        return None if self.row is None else self._page.names[self.row]

    @property
    def op_name(self) -> str | None:
        return self.selection

    @property
    def on_timeline(self) -> Jump | None:
        return Jump("timeline", "counter", "doors")

    def show_named(self, name: str) -> str:
        if name not in self._page.names:
            return f"no room {name}"
        self._go_to(self._page.names.index(name))
        return ""


def plug_in(monkeypatch: pytest.MonkeyPatch, *, fails: bool = False) -> list[str]:
    """Registers the page as a view of the ops tab; each load of it adds its name to the list that is returned."""
    read: list[str] = []

    def rooms(*_: object) -> Rooms:
        read.append("rooms")
        if fails:
            raise ProfileError("no_rooms", "The rooms cannot be read.", "Build some.")
        return Rooms((OP, "hall"))

    maker, module = ModuleType("tpuprof.parsers.pages.rooms"), ModuleType("tpuprof.tui.pages.rooms")
    vars(maker).update(ROOMS=PageKey(rooms), HAS_ROOMS=PageKey(lambda *_: True))
    vars(module).update(RoomsView=RoomsView)
    for made in (maker, module):
        monkeypatch.setitem(sys.modules, made.__name__, made)
    view = pages.TabView("rooms", "Rooms", "rooms:RoomsView", "rooms:ROOMS", "rooms:HAS_ROOMS")
    tabs = tuple(replace(tab, views=(*tab.views, view)) if tab.name == "op-profile" else tab for tab in pages.TABS)
    monkeypatch.setattr(pages, "TABS", tabs)
    monkeypatch.setitem(pages._VIEWS, "rooms", "op-profile")
    monkeypatch.setitem(pages._LOADS, "rooms", view.page)
    monkeypatch.setitem(pages._SHOWS, "rooms", view.view)
    return read


async def at_rooms(app: TpuprofApp, pilot: Pilot[None]) -> None:
    """Goes to the view: the last one, so one back from the first."""
    await press(pilot, "3", "V")


async def test_a_view_is_read_when_it_is_shown_first(monkeypatch: pytest.MonkeyPatch) -> None:
    read = plug_in(monkeypatch)
    async with scene(make_demo_app(), ["3"], 100, 30) as (app, pilot):
        assert not read and "Rooms" in frame(app)
        shown = await after(pilot, "V")
        assert read == ["rooms"] and "There are 2 rooms." in shown and "[Rooms]" in shown and "a room with" in shown
        await press(pilot, "v", "V")
        assert read == ["rooms"] and ops_tab(app).selection == OP
        assert "something with a door" in await after(pilot, "?", "pagedown")


async def test_keys_lead_on_from_a_row(monkeypatch: pytest.MonkeyPatch) -> None:
    plug_in(monkeypatch)
    async with scene(make_demo_app(), (), 100, 30) as (app, pilot):
        await at_rooms(app, pilot)
        tab = ops_tab(app)
        assert answer(tab, "O") == Jump("timeline", "counter", "doors")
        assert tab.go_to("rooms", "hall") == "" and tab.selection == "hall"
        assert tab.go_to("rooms", "cellar") == "no room cellar"
        assert answer(tab, "o") is None, "the hall is no op"
        assert tab.search("hall") == "1 row" and tab.selection == "hall"


async def test_a_jump_leads_to_a_row_that_is_still_to_be_read(monkeypatch: pytest.MonkeyPatch) -> None:
    read = plug_in(monkeypatch)
    async with scene(make_demo_app(), ["3"], 100, 30) as (app, pilot):
        ops_tab(app).go_to("rooms", "hall")
        await settled(pilot)
        assert read == ["rooms"] and ops_tab(app).selection == "hall"


async def test_what_cannot_be_read_says_why_and_is_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    read = plug_in(monkeypatch, fails=True)
    async with scene(make_demo_app(), (), 100, 30) as (app, pilot):
        await at_rooms(app, pilot)
        assert "The rooms cannot be read." in frame(app) and "Build some." in frame(app)
        assert "no_rooms" not in await after(pilot, "v") and ops_tab(app).view is not None
        await press(pilot, "V")
        assert read == ["rooms"] and "Build some." in frame(app)
