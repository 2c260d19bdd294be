"""The registry of pages, and the fields that their reports are made of."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from tests.support.build import present
from tpuprof.tui.cli.arguments.report import report_parser
from tpuprof.tui.pages import (
    COMMAND_PAGES,
    PAGE_NAMES,
    PAGES,
    TAB_NAMES,
    TABS,
    command_named,
    load_above,
    load_of,
    tab_of,
    views_of,
)
from tpuprof.tui.report.fields import Table, help_rows
from tpuprof.tui.report.page import CHECKS, FORMATS

README = Path(__file__).parents[3] / "README.md"
REPORTS = {page.name: page.load_report() for page in PAGES}
TABLES = [pytest.param(table, id=f"{page}-{table.key}") for page, report in REPORTS.items() for table in report.tables]


def test_the_command_line_and_the_readme_name_the_same_pages() -> None:
    listed = re.findall(r"^  ([a-z-]+)  ? *[a-zA-Z]", report_parser().format_help(), re.MULTILINE)
    assert listed[-len(PAGE_NAMES) :] == [*PAGE_NAMES]
    named = re.findall(r"`report ([a-z-]+)`", README.read_text("utf-8"))
    assert set(named) == set(PAGE_NAMES), "the README's table of pages has `report PAGE` of each"


def test_the_tabs_and_the_readme_name_the_same_pages() -> None:
    assert set(TAB_NAMES) <= set(PAGE_NAMES) and len(set(TAB_NAMES)) == len(TAB_NAMES)
    words = " ".join(README.read_text("utf-8").split())
    assert f"are the tabs: {', '.join(tab.title.lower() for tab in TABS)}." in words
    views = [tab.view for tab in TABS] + [view.view for tab in TABS for view in tab.views]
    folders = {view.partition(".")[0] for view in views}
    above = {"runs", "hosts", "graph", "commands"}  # their popups and screens open above the tabs
    assert {page.report.partition(".")[0] for page in PAGES} == folders | above


def test_every_view_and_what_it_loads_are_there() -> None:
    for tab in TABS:
        assert tab.load_view().__name__ == tab.view.partition(":")[2]
        assert callable(load_of(tab.name))
        assert [tab_of(view.name) for view in views_of(tab.name)] == [tab.name] * len(tab.views)
        for view in tab.views:
            assert view.name in PAGE_NAMES and callable(view.load_view()) and callable(load_of(view.name))
    for name in ("runs", "hosts", "graph", "oom", "diff", "live-arrays"):
        assert isinstance(load_above(name), type)
    for page in COMMAND_PAGES:
        assert command_named(page.name) is page
        assert callable(page.load_app())
        assert page.name in PAGE_NAMES or set(page.load_report().writers) >= {"text", "json", "md"}


@pytest.mark.parametrize("page", PAGES, ids=PAGE_NAMES)
def test_every_page_prints_every_format(page: Any) -> None:
    assert set(REPORTS[page.name].writers) - {*CHECKS} == {*FORMATS, *page.formats} - {*CHECKS}
    accepted = {action.dest for action in report_parser([page.name])._actions}
    assert set(page.options) <= accepted


@pytest.mark.parametrize("table", TABLES)
def test_every_format_takes_its_columns_from_the_fields(table: Table[Any]) -> None:
    keys = [one.key for one in table.fields]
    assert len(set(keys)) == len(keys), "a quantity is written once"
    assert table.json, "a table has columns in JSON"
    for shown in (table.json, table.csv, table.markdown, table.screen):
        assert set(shown) <= set(keys) and len(set(shown)) == len(shown)
    assert all(one.screen is not None for one in table.chosen(table.screen))
    titles = [present(one.screen).title for one in table.chosen(table.screen)]
    helped = dict(help_rows(table))
    for one, title in zip(table.chosen(table.screen), titles, strict=True):
        if title and titles.count(title) == 1:
            assert one.meaning in helped[title] and (f"n/a: {one.null}." in helped[title]) == bool(one.null)
    titles = [one.heading for one in table.chosen(table.markdown) if one.heading]
    assert len(set(titles)) == len(titles)
