"""What holds for every list of the program, whatever keys are pressed: cursor, filter, order, and the way back."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cache
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests import EXAMPLES
from tests.parsers.session.diff.build import MS, diff_of, layers
from tests.parsers.session.diff.phased import served
from tests.support.app.stage import LOOK
from tests.support.build import session_at, write_run
from tests.support.composed import slices
from tests.support.composed.sparse_cores import BOUND, sparse_profile
from tests.support.files.counters import with_readings
from tests.support.files.kernels import US, KernelRun, with_kernels
from tests.support.files.pprof import pprof, training
from tests.support.gpus import gpu_profile, session_of
from tests.support.made.big_table import big_page
from tests.support.made.many_hosts import straggling_page
from tests.support.made.oom import load_triage, made_up_triage, made_up_trial
from tests.support.made.op_views import pages_of
from tests.support.made.runs import NOW, RUNS, facts_of
from tests.support.made.timelines import two_cores
from tpuprof.parsers.base.text import has_words
from tpuprof.parsers.formats.pprof.messages import read_messages
from tpuprof.parsers.formats.xspace.source import MemorySource
from tpuprof.parsers.memory.live_arrays import live_arrays
from tpuprof.parsers.ops.filtering.field_term import NULL, FieldTerm
from tpuprof.parsers.ops.filtering.filter import parse_filter
from tpuprof.parsers.ops.filtering.nearest import completions
from tpuprof.parsers.pages.collectives.page import COLLECTIVES
from tpuprof.parsers.pages.counters.page import COUNTERS
from tpuprof.parsers.pages.ops.framework_ops import framework_ops_page
from tpuprof.parsers.pages.ops.kernels.page import TPU_KERNELS
from tpuprof.parsers.pages.ops.key import OPS
from tpuprof.parsers.pages.sparse_core.page import SPARSE_CORE
from tpuprof.parsers.timeline.measure import measure
from tpuprof.tui.draw.pen import Pen
from tpuprof.tui.draw.spans import ASCII, BLOCK, line_width, plain
from tpuprof.tui.pages.collectives.view import CollectivesView
from tpuprof.tui.pages.commands.diff.screen import ChangeList
from tpuprof.tui.pages.commands.live_arrays.screen import ArraysList
from tpuprof.tui.pages.commands.oom.screen import TriageList
from tpuprof.tui.pages.counters.view import UnitsView
from tpuprof.tui.pages.hosts.popup import HostsList
from tpuprof.tui.pages.ops.details.card_cache import CardCache
from tpuprof.tui.pages.ops.kernels_view import KernelsView
from tpuprof.tui.pages.ops.table_views import FrameworkView, HloView, KernelView, RooflineView
from tpuprof.tui.pages.runs.popup import RunsList
from tpuprof.tui.pages.sparse_core.view import SparseCoreView
from tpuprof.tui.pages.timeline.popup import EventList, found_list, measured_list
from tpuprof.tui.pages.timeline.state import TimelineView
from tpuprof.tui.terminal.grammar import Opened
from tpuprof.tui.widgets.lists.popup import ChoiceList, ChoiceRow, PanelList, SortPopup, letters_of, sort_rows
from tpuprof.tui.widgets.lists.table import RowsView
from tpuprof.tui.widgets.lists.view import ListView

Lists = Mapping[str, Callable[[], ListView[Any]]]

WIDTH, HEIGHT = 100, 20
RUN = KernelRun(steps=16, wait_y_ps=3 * US, body_ps=900_000)
SIZES = [
    replace(RUN, op=f"mm-bm_{size}-.1", framework_op=f"jit(tune)/mm-bm_{size}-/pallas_call", program=size, flops=None)
    for size in (128, 256, 512)
]
FOREVER = 12  # screens and closed things after which a list has an end


def measured() -> EventList:
    found = two_cores()
    of = measure(found, found.first_ps, found.last_ps)
    return measured_list(found, of, {"FLOPS": 0.5, "HBM": None}, print, (0, 2))


def found() -> EventList:
    view = TimelineView(two_cores())
    view.search("f")
    return found_list(view, print)


@cache
def cards() -> CardCache:
    return CardCache(pages_of(big_page(60)), lambda *_: None)


def of_choices() -> ChoiceList[int]:
    words = ["train", "serve", "fusion", "copy", "all", "reduce", "host", "core"]
    choices = [ChoiceRow((f"{words[at % 8]} {at}", f"{at * 7 % 10} MB"), at, possible=at % 5 > 0) for at in range(40)]
    return ChoiceList(("name", "size"), choices, print, start=3, about=lambda _: [])


def of_runs() -> RunsList:
    return RunsList(RUNS, facts_of, print, lambda *_: None, lambda: NOW)


@pytest.fixture(scope="module")
def lists(tmp_path_factory: pytest.TempPathFactory) -> Lists:
    """What makes each list of the program anew."""
    places = {
        name: tmp_path_factory.mktemp(name)
        for name in ("diff", "phases", "counters", "sparse", "slices", "gpu", "kernels")
    }
    arrays = live_arrays(read_messages(MemorySource(pprof(training(12))), "a.prof"), "a.prof", "/runs/a.prof")
    diff = diff_of(places["diff"], layers(4, MS), layers(4, 2 * MS))
    phases = served(places["phases"])
    (places["counters"] / "host0.xplane.pb").write_bytes(with_readings("TPU v7x"))
    (places["sparse"] / "host0.xplane.pb").write_bytes(sparse_profile((BOUND,), 2).SerializeToString())
    units = session_at(places["counters"]).page(COUNTERS)
    sparse = session_at(places["sparse"]).page(SPARSE_CORE)
    collectives = session_at(slices.write_run(places["slices"])).page(COLLECTIVES)
    gpu = CardCache(pages_of(session_of(gpu_profile(), places["gpu"]).page(OPS)), lambda *_: None)
    of_kernels = session_at(write_run(places["kernels"], host0=with_kernels((RUN, *SIZES))))
    kernels, framework = of_kernels.page(TPU_KERNELS), framework_ops_page(cards().pages.ops, [])
    return {
        "choices": of_choices,
        "runs": of_runs,
        "hosts": lambda: HostsList(straggling_page(), print),
        "measured": measured,
        "found": found,
        "buffers of errors": lambda: TriageList((made_up_triage(), load_triage()), try_out=made_up_trial),
        "changes": lambda: ChangeList(diff),
        "changes of programs": lambda: ChangeList(phases),
        "live arrays": lambda: ArraysList(arrays),
        "HLO ops": lambda: HloView(cards()),
        "framework ops": lambda: FrameworkView(cards(), framework),
        "roofline": lambda: RooflineView(cards()),
        "kernels of GPUs": lambda: KernelView(gpu),
        "kernels": lambda: KernelsView(kernels),
        "collectives": lambda: CollectivesView(collectives),
        "units": lambda: UnitsView(units),
        "SparseCores": lambda: SparseCoreView(sparse),
    }


NAMES = (
    *("choices", "runs", "hosts", "measured", "buffers of errors", "changes", "changes of programs", "live arrays"),
    *("HLO ops", "framework ops", "roofline", "kernels of GPUs", "kernels"),
    *("collectives", "units", "SparseCores", "found"),
)
every_list = pytest.mark.parametrize("name", NAMES)


def members(shown: ListView[Any]) -> list[str]:
    """The rows, in their order."""
    return [repr(shown.rows[place]) for place in range(len(shown.rows))]


def words_of(shown: ListView[Any]) -> list[str]:
    """Words that a filter finds, and one that it does not."""
    texts = shown.names if isinstance(shown, RowsView) else shown.searched
    return [*(word for text in list(texts)[:9] for word in text.split()[:2]), "nosuchword"]


def acts_of(shown: ListView[Any]) -> list[Callable[..., object]]:
    """What can be done with its rows, but for what leads elsewhere."""
    return [
        act for key in shown.keys for verb, act in key.acts.items() if verb not in ("open", "whole", "compare_runs")
    ]


def opened_of(shown: ListView[Any]) -> Mapping[str, Callable[..., object]]:
    """What is open on it, by its name: how to close it. Of a list in a popup Escape closes one thing at a time."""
    if not isinstance(shown, PanelList):
        return shown.opened
    key = shown.leave_key
    return {key.short: key.acts["back"]} if key.acts else {}


def check(shown: ListView[Any]) -> None:
    """What is seen: the cursor is on a row and that row is drawn, and each drawn row is found by its line."""
    for pen, height in ((Pen(61, ASCII), 9), (Pen(WIDTH, BLOCK), HEIGHT)):
        lines = shown.draw(pen, height)
        assert len(lines) <= height and all(line_width(line) <= pen.width for line in lines)
        assert not pen.glyphs.is_ascii or all(plain(line).isascii() for line in lines)
    assert 0 <= shown.cursor < max(1, shown.count)
    drawn = [row for line in range(HEIGHT) if (row := shown.row_at(line)) is not None]
    assert drawn == list(range(drawn[0], drawn[0] + len(drawn))) if drawn else True
    assert not drawn or shown.cursor in drawn or shown.cursor >= len(shown.rows)  # or on a note below them
    if isinstance(shown, RowsView):
        assert shown.row is None or shown.names == () or shown.selection in shown.names
    table = shown.shown_table
    assert table is None or len(table.rows) == len(shown.rows)


@every_list
@given(data=st.data())
@settings(max_examples=EXAMPLES // 2)
def test_whatever_is_pressed_the_cursor_is_on_a_row_that_shows(name: str, data: st.DataObject, lists: Lists) -> None:
    shown, opened = lists[name](), Opened()
    for _ in range(data.draw(st.integers(1, 8))):
        kind = data.draw(st.sampled_from(("step", "page", "point", "act", "filter", "enter", "back")))
        if kind == "step":
            shown.step(data.draw(st.integers(-50, 50)))
        elif kind == "page":
            shown.step(0, data.draw(st.sampled_from((-1, -0.5, 0.5, 1, 1e7))))
        elif kind == "point":
            shown.point(data.draw(st.integers(-2, 60)))
        elif kind == "act":
            if acts := acts_of(shown):
                data.draw(st.sampled_from(acts))()
        elif kind == "filter":
            shown.search(data.draw(st.sampled_from(words_of(shown))))
        elif kind == "enter" and not isinstance(shown, PanelList):
            shown.enter()
        elif kind == "back":
            opened.close(opened_of(shown))
        opened.note(opened_of(shown))
        check(shown)
    for _ in range(FOREVER):  # what was opened last is closed first, and at last nothing is open
        opened.note(opened_of(shown))
        before = list(opened._order)
        assert list(opened_of(shown)) == [] or before[-1] in opened_of(shown)
        if not opened.close(opened_of(shown)):
            break
        assert before[-1] not in opened_of(shown)
        check(shown)
    assert not opened_of(shown)


@every_list
def test_a_column_is_one_thing_in_its_head_the_menu_and_the_commands(name: str, lists: Lists) -> None:
    """A click on each head sorts by that column, again turns it round; each has a letter, and is found by its title."""
    shown, seen = lists[name](), []
    every = sorted(members(shown))
    shown.draw(Pen(700, BLOCK), HEIGHT)
    assert shown.composed is not None
    line, at = shown.composed.first_row_line - 1, 0
    for text, _ in shown.composed.lines[line] if shown.orders else ():
        head, at = text.partition(",")[0].strip(" ▼▲"), at + len(text)
        if head in ("│", "late by step"):  # beside and behind the columns: a card, a graph
            break
        for is_reversed in sorted({shown.orders.get(shown.listing.sort) == head, True}) if head else ():
            assert shown.clicked(at - 2, line, False) == "", head
            assert (shown.orders[shown.listing.sort], shown.listing.is_reversed) == (head, is_reversed)
        seen += [head] if head else []
    titles = [*shown.orders.values()]
    assert {*seen} <= {*titles} and len({*titles}) == len({*letters_of(titles)}) == len(titles)
    for order, title, letter in zip(shown.orders, titles, letters_of(titles), strict=True):
        wanted = has_words(f"sort by {title}".casefold())
        assert f"Sort by {title}" in [row.cells[0] for row in sort_rows(shown, wanted)]
        SortPopup(LOOK, shown).press(letter, letter)
        assert shown.listing.sort == order
        assert sorted(members(shown)) == every
        first, _ = members(shown), shown.reverse()
        assert sorted(members(shown)) == every
        shown.reverse()
        assert members(shown) == first


@every_list
def test_a_filter_knows_each_column_by_its_title_in_any_case(name: str, lists: Lists) -> None:
    shown = lists[name]()
    if not isinstance(shown, RowsView):  # which takes words alone, and says so
        shown.search("size>1")
        assert shown.is_filter_wrong or not shown.searched
        return
    of, (table, source) = shown.search_columns, shown.table()
    for title in shown.orders.values():
        for word in (title.replace(" ", "_"), title.replace(" ", "_").upper()):
            term = parse_filter(f"{word}={NULL}", of.keys, of.titles).terms[0].condition
            assert isinstance(term, FieldTerm) and term.key == table.sorted_by[title].key, title
            assert len(term.mask(of)) == table.length(source)
            assert title.replace(" ", "_") in completions(word, of)


@every_list
def test_a_filter_keeps_some_rows_and_none_has_all_again(name: str, lists: Lists) -> None:
    shown = lists[name]()
    every = members(shown)
    for word in words_of(shown):
        before, _ = members(shown), shown.search(word)
        kept = members(shown)
        assert [row for row in every if row in kept] == kept
        assert shown.is_filter_wrong == (word == "nosuchword" and not isinstance(shown, HostsList))
        assert kept == (before if shown.keeps_last else []) if shown.is_filter_wrong else kept
        shown.search("")
        assert members(shown) == every


@every_list
def test_screens_lead_to_the_last_row_and_back(name: str, lists: Lists) -> None:
    shown = lists[name]()
    check(shown)
    shown.step(-(10**9))
    assert shown.cursor == 0
    for _ in range(FOREVER * 4):
        shown.step(0, 1.0)
        check(shown)
    assert shown.cursor == shown.count - 1
    shown.step(-(10**9))
    assert shown.cursor == 0
