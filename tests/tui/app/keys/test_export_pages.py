"""Each page writes the rows that it shows, as its report does."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

from tests.parsers.session.diff.build import MS, diff_of, layers
from tests.support.app.scene import after, press, scene
from tests.support.app.stage import ENVIRONMENT, LOOK, demo_session, make_demo_app
from tests.support.app.stand import on_stand
from tests.support.made.oom import made_up_triage
from tests.tui.cli.calls import Call
from tpuprof.parsers.pages.graph.programs import GRAPHS
from tpuprof.tui.pages.commands.diff.screen import DiffScreen
from tpuprof.tui.pages.commands.oom.screen import TriageScreen
from tpuprof.tui.pages.graph.screen import GraphScreen
from tpuprof.tui.pages.timeline.view import TimelineTab
from tpuprof.tui.widgets.tab import Jump


def written_to(name: str, *chosen: str) -> tuple[str, ...]:
    """The keys that write to a file of that name, and those that choose a part of the page, or all of it."""
    return ("E", *chosen, "ctrl+u", *name, "enter")


def rows_of(path: Path) -> list[dict[str, str]]:
    return list(csv.DictReader(path.read_text().splitlines()))


@pytest.mark.parametrize(
    ("page", "keys", "chosen"),
    [
        ("overview", "1", ["enter"]),
        ("findings", "1", ["j", "enter"]),
        ("ledger", "1", ["G", "enter"]),
        ("model", "1v", []),
        ("input", "2", []),
    ],
)
async def test_a_tab_writes_its_page_as_the_report_does(
    here: Path, call: Call, page: str, keys: str, chosen: list[str]
) -> None:
    async with scene(make_demo_app(), list(keys)) as (_, pilot):
        for form in ("csv", "json", "md"):
            assert f" to out.{form}" in await after(pilot, *written_to(f"out.{form}", *chosen))
    for form in ("csv", "json", "md"):
        call("report", page, "demo", "--format", form, "--limit", "0", "--output", f"report.{form}")
        assert (here / f"out.{form}").read_text() == (here / f"report.{form}").read_text()


async def test_the_timeline_writes_the_events_of_its_interval(here: Path) -> None:
    async with scene(make_demo_app(), ["4"]) as (app, pilot):
        tab = app.main.tab
        assert isinstance(tab, TimelineTab)
        assert "Wrote " in await after(pilot, *written_to("window.json"))
        await press(pilot, "space", "l", "l", "l", "space", "escape", *written_to("marked.json"))
        assert tab._view is not None and tab._view.interval is not None
        begin, end = tab._view.interval
        await press(pilot, "F", *"Steps", "enter", *written_to("steps.csv"))
        await press(pilot, "escape", "/", *"all-reduce.6", "enter", "s", "d", *written_to("found.csv"))
    window, marked = (json.loads((here / f"{name}.json").read_text()) for name in ("window", "marked"))
    assert 0 < len(marked["events"]) < len(window["events"])
    assert marked["interval"]["from_ps"] == begin and marked["interval"]["to_ps"] == end
    assert {row["track"] for row in rows_of(here / "steps.csv")} == {"Steps"}
    lasting = [int(row["duration_ps"]) for row in rows_of(here / "found.csv")]
    assert len(lasting) > 1 and lasting == sorted(lasting, reverse=True)


async def test_groups_of_buffers_are_written_as_groups(here: Path) -> None:
    async with scene(make_demo_app(), ["5", "b"]) as (_, pilot):
        shown = await after(pilot, *written_to("groups.csv"), *written_to("groups.json"))
    rows = rows_of(here / "groups.csv")
    assert rows and all(int(row["buffer_count"]) >= 1 for row in rows) and rows[0]["name"].split("/")[-1] in shown
    sizes = [int(row["size_bytes"]) for row in rows]
    assert sizes == sorted(sizes, reverse=True)
    document = json.loads((here / "groups.json").read_text())
    assert [row["size_bytes"] for row in document["rows"]] == sizes


async def test_the_graph_writes_an_op_and_its_neighbours(here: Path) -> None:
    programs = demo_session().page(GRAPHS)
    screen = GraphScreen((programs, Jump("graph"), None), LOOK, environ=ENVIRONMENT)
    async with on_stand(screen) as (_, pilot):
        await press(pilot, *(key for form in ("csv", "json", "md", "svg") for key in written_to(f"out.{form}")))
        assert screen.here is not None
        names = [
            screen.here.program.graph.name(row) for side in ("operands", "users") for row in screen.here.rows(side)
        ]
        own = screen.here.op.name
    rows = rows_of(here / "out.csv")
    assert rows[0]["name"] == own and set(names) <= {row["name"] for row in rows}
    assert json.loads((here / "out.json").read_text())["op"]["name"] == own
    assert own in (here / "out.md").read_text() and (here / "out.svg").read_text().startswith("<svg")


async def test_oom_writes_buffers_or_their_source_lines(here: Path) -> None:
    triage = made_up_triage()
    screen = TriageScreen((triage,), LOOK, environ=ENVIRONMENT)
    async with on_stand(screen) as (_, pilot):
        await press(pilot, *written_to("buffers.csv"), "b", *written_to("lines.csv"), *written_to("lines.md"))
        lines = screen.listed.rows
    buffers = rows_of(here / "buffers.csv")
    assert [row["name"] for row in buffers] == [
        buffer.name for buffer in sorted(triage.need.buffers, key=lambda buffer: -buffer.size_bytes)
    ]
    written = rows_of(here / "lines.csv")
    assert [(row["name"], int(row["size_bytes"]), int(row["buffer_count"])) for row in written] == [
        (row.title, row.size, len(row.buffers)) for row in lines
    ]
    assert sum(int(row["size_bytes"]) for row in written) == sum(buffer.size_bytes for buffer in triage.need.buffers)


async def test_a_comparison_writes_the_rows_of_its_view(here: Path, tmp_path: Path) -> None:
    diff = diff_of(tmp_path, layers(4, MS), layers(4, 2 * MS))
    screen = DiffScreen(diff, LOOK, environ=ENVIRONMENT)
    async with on_stand(screen) as (_, pilot):
        await press(pilot, *written_to("groups.csv"), "b", *written_to("ops.csv"), "3", *written_to("time.json"))
        owners = [row.name for row in screen.listed.rows]
    ops = rows_of(here / "ops.csv")
    assert len(ops) == 4 and all(float(row["change_ms"]) > 0 for row in ops)
    assert len(rows_of(here / "groups.csv")) < 4
    assert [row["name"].split("  ")[0] for row in json.loads((here / "time.json").read_text())["rows"]] == owners
