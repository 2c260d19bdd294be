"""The list of runs on a screen: its frames, its keys, and facts that come while it is open."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest
from textual.geometry import Size

from tests.support.app.stage import LOOK, check_golden
from tests.support.made.runs import NOW, RUNS, facts_of
from tpuprof.parsers.base.errors import Cancelled
from tpuprof.parsers.files.logdir import Run
from tpuprof.parsers.session.run_facts import RunFacts
from tpuprof.tui.app.listings import new_run_sentence
from tpuprof.tui.app.options import AppOptions
from tpuprof.tui.app.runs import FactsReader, KeptFacts
from tpuprof.tui.pages.runs.popup import RunsList, Series
from tpuprof.tui.terminal.detect import detect
from tpuprof.tui.widgets.chrome import footer
from tpuprof.tui.widgets.line_canvas import ScreenLook
from tpuprof.tui.widgets.lists.popup import ListPopup

ASCII_LOOK = ScreenLook.of(detect({"TERM": "vt100"}))


class Desk:
    """A popup and what it answers."""

    def __init__(
        self,
        runs: Sequence[Run] = RUNS,
        facts: Callable[[Run], RunFacts | None] = facts_of,
        shown: Run | None = None,
        compares: bool = True,
        look: ScreenLook = LOOK,
        series: Series | None = None,
    ) -> None:
        self.opened: list[str] = []
        self.compared: list[tuple[str, str]] = []
        self.closed = 0
        compared = (lambda one, other: self.compared.append((one.name, other.name))) if compares else None
        self.list = RunsList(
            runs, facts, lambda run: self.opened.append(run.name), compared, lambda: NOW, shown, series=series
        )
        self.popup = ListPopup(look, "Runs in ~/logs", self.list, closed=self._close)
        self.place(80, 24)

    def _close(self) -> None:
        self.closed += 1

    def place(self, width: int, height: int) -> None:
        region = self.popup.place(Size(width, height))
        self.size = region.width, region.height
        self.frame()

    def press(self, *keys: str) -> Desk:
        names = {"/": "slash"}
        for key in keys:
            self.popup.press(names.get(key, key), key if len(key) == 1 else None)
        return self

    def foot(self) -> list[tuple[str, str]]:
        return footer(self.popup.keys)

    def frame(self) -> str:
        lines = self.popup.draw(*self.size)
        assert len(lines) == self.size[1]
        texts = ["".join(text for text, _ in line) for line in lines]
        assert {len(text) for text in texts} == {self.size[0]}
        return "".join(text + "\n" for text in texts)

    def under_cursor(self) -> str:
        return self.list.row.run.name if self.list.row is not None else ""


@pytest.mark.parametrize(("width", "height"), [(60, 15), (80, 24), (120, 40), (200, 50)])
def test_frames(width: int, height: int) -> None:
    desk = Desk(shown=RUNS[1])
    desk.place(width, height)
    shown = desk.frame()
    if width == 80:
        check_golden("runs-popup-80x24", shown)
    assert Desk(look=ASCII_LOOK).frame().isascii()


# --- opening


def test_the_cursor_begins_on_the_run_that_is_open_else_on_the_newest() -> None:
    assert Desk(shown=RUNS[2]).under_cursor() == RUNS[2].name
    assert Desk().under_cursor() == RUNS[0].name
    assert Desk(shown=replace(RUNS[2], path="/gone")).under_cursor() == RUNS[0].name


def test_enter_opens_and_closes() -> None:
    desk = Desk().press("j", "enter")
    assert desk.opened == [RUNS[1].name] and desk.closed == 1 and not desk.popup.is_open
    desk = Desk().press("escape")
    assert (desk.opened, desk.closed) == ([], 1)


def test_without_runs_nothing_opens() -> None:
    desk = Desk([]).press("j", "c", "S", "enter")
    assert desk.opened == [] and desk.popup.is_open and "no run" in desk.frame()


# --- order and filter


def test_orders_keep_the_cursor_on_its_run() -> None:
    desk = Desk(shown=RUNS[1])
    for order, first in (("size", RUNS[0].name), ("step", "serving"), ("age", RUNS[0].name)):
        desk.list.sort_by(order)
        assert (desk.list.rows[0].run.name, desk.under_cursor()) == (first, "serving")


def test_the_filter() -> None:
    desk = Desk().press("/", "v", "6")
    assert desk.popup.is_typing and desk.under_cursor() == "serving" and "1 of 4" in desk.frame()
    assert desk.press("backspace", "backspace").under_cursor() == RUNS[0].name
    desk.press("o", "l", "c", "escape")
    assert not desk.popup.is_typing and desk.list.listing.words == "" and desk.popup.is_open
    assert desk.press("/", "d", "s", "q", "x", "enter").opened == []
    assert desk.press("escape", "/", "_", "g", "p", "u", "enter").opened == ["2020_old_gpu"]


# --- two to compare


def test_c_on_two_runs_compares_them_with_the_older_as_the_baseline_whichever_was_marked() -> None:
    desk = Desk().press("j", "c")
    assert "A serving: Enter on another run compares" in desk.frame() and desk.compared == []
    assert desk.press("k", "c").compared == [("serving", RUNS[0].name)]
    assert desk.closed == 1 and desk.opened == []
    desk = Desk().press("c")
    assert f"B {RUNS[0].name}: Enter on another run compares" in desk.frame()
    assert ("Enter", "compare with B") in desk.press("j").foot()
    assert desk.press("enter").compared == [("serving", RUNS[0].name)]
    desk = Desk().press("j", "c", "j")
    assert "B serving: Enter" in desk.frame() and "A serving: Enter" in desk.press("k", "k").frame()


def test_a_mark_is_taken_back() -> None:
    desk = Desk().press("c", "c", "j", "c", "escape")
    assert desk.popup.is_open and desk.compared == [] and "A serving" not in desk.frame()
    assert not desk.press("escape").popup.is_open


def test_only_readable_runs_are_compared() -> None:
    desk = Desk().press("j", "j", "c", "k", "c", "j", "c")
    assert desk.compared == [] and desk.popup.is_open
    assert Desk(compares=False).press("c", "j", "c").compared == []
    assert ("c", "compare") in Desk().foot() and "c" not in dict(Desk(compares=False).foot())


# --- runs that come and go


def test_other_runs_leave_the_cursor_where_it_is() -> None:
    desk = Desk(shown=RUNS[1]).press("c")
    newer = replace(RUNS[0], name="newer", path="/newer", hosts=tuple(replace(h, modified=NOW) for h in RUNS[0].hosts))
    desk.list._facts = lambda _: None
    desk.list.set_runs((newer, *RUNS))
    assert desk.under_cursor() == "serving" and "A serving" in desk.frame()
    assert [row.is_newest for row in desk.list.rows] == [True, False, False, False, False]
    desk.list.set_runs((newer,))
    assert desk.under_cursor() == "newer" and "A serving" not in desk.frame()


@pytest.mark.parametrize("hosts", [1, 3])
def test_the_line_on_a_new_run(hosts: int) -> None:
    run = replace(RUNS[0], hosts=RUNS[0].hosts[:hosts], name="a\x1bb")
    words = f"{hosts} host{'s' * (hosts > 1)}, {'965' if hosts > 1 else '51.5'} MB, 5 min ago"
    assert new_run_sentence(run, NOW) == f"New run a␛b ({words}): r opens it"


# --- reading facts


class Clock:
    def __init__(self, step: float) -> None:
        self.now, self.step = 0.0, step

    def __call__(self) -> float:
        self.now += self.step
        return self.now


def test_facts_are_read_once_and_told_of() -> None:
    told: list[int] = []
    asked: list[str] = []

    def read(run: Run, is_cancelled: Callable[[], bool]) -> RunFacts:
        asked.append(run.name)
        return facts_of(run)

    reader = FactsReader(lambda: told.append(len(asked)), read, Clock(1.0))
    assert reader.facts(RUNS[0]) is None
    reader.work(reader.begin(RUNS[:2]))
    assert reader.facts(RUNS[0]) == facts_of(RUNS[0]) and told == [1, 2]
    reader.work(reader.begin(RUNS))
    assert asked == [run.name for run in RUNS] and told == [1, 2, 3, 4]
    grown = replace(RUNS[0], hosts=RUNS[0].hosts[:1])
    assert reader.facts(grown) is None


def test_telling_is_thinned_out_but_never_forgotten() -> None:
    told: list[int] = []
    reader = FactsReader(lambda: told.append(1), lambda run, _: facts_of(run), Clock(0.0))
    reader.work(reader.begin(RUNS))
    assert told == [1]
    reader.work(reader.begin(RUNS))
    assert told == [1]


def test_closing_ends_the_reading() -> None:
    started, seen = threading.Event(), threading.Event()

    def read(run: Run, is_cancelled: Callable[[], bool]) -> RunFacts:
        started.set()
        while not is_cancelled():
            threading.Event().wait(0.001)
        seen.set()
        raise Cancelled

    told: list[int] = []
    reader = FactsReader(lambda: told.append(1), read)
    desk = Desk()
    desk.popup._closed = reader.cancel
    thread = threading.Thread(target=reader.work, args=[reader.begin(RUNS)])
    thread.start()
    assert started.wait(30)
    desk.press("escape")
    thread.join(30)
    assert seen.is_set() and not thread.is_alive() and told == []


def test_a_newer_job_ends_the_older() -> None:
    reader = FactsReader(lambda: None, lambda run, _: facts_of(run))
    first = reader.begin(RUNS)
    second = reader.begin(RUNS)
    assert first.cancelled.is_set() and not second.cancelled.is_set()
    reader.work(first)
    assert reader.facts(RUNS[0]) is None


def test_the_real_reader_says_what_is_wrong() -> None:
    facts = KeptFacts(AppOptions()).read(RUNS[0], lambda: False)
    assert "does not exist" in facts.unknown["core_step_ps"]
