"""What is shown goes to a file, and a source line to the user's editor."""

from __future__ import annotations

import csv
import json
import os
import threading
from pathlib import Path

import pytest

from tests.support.app.scene import after, press, scene
from tests.support.app.stage import ENVIRONMENT, LOOK, frame, make_demo_app, settled
from tests.support.app.stand import on_stand
from tests.tui.app.test_popups import held_arrays
from tests.tui.cli.calls import Call
from tests.tui.pages.ops.test_view import table
from tpuprof.parsers.base.errors import ProfileError
from tpuprof.parsers.files.logdir import HostFile, Run
from tpuprof.tui.pages.commands.live_arrays.screen import LiveArraysScreen
from tpuprof.tui.report.output import Produce, text_pieces
from tpuprof.tui.report.shared.exporting import Export, default_path, kind_of, kinds_of_screen


async def test_two_keys_write_the_table_as_it_is_filtered_and_sorted(here: Path) -> None:
    async with scene(keys=["3", "v", "slash", *"fusion", "enter", "S"]) as (app, pilot):
        view = table(app)
        text = await after(pilot, "E", "enter")
        assert f"Wrote {len(view.rows)} rows to ops.csv" in text
        rows = list(csv.DictReader((here / "ops.csv").read_text().splitlines()))
        names = view.table()[1].table.name
        assert [row["name"] for row in rows] == [names[row] for row in view.rows.tolist()]
        assert all("fusion" in row["name"] + row["category"] + row["framework_op"] for row in rows)
        assert "Wrote " in await after(pilot, "E", "enter") and (here / "ops-2.csv").exists(), "another name by itself"


@pytest.mark.parametrize(("end", "begin"), [("json", "{"), ("md", "# ops"), ("svg", "<svg"), ("html", "<!DOCTYPE")])
async def test_the_end_of_the_name_says_what_is_written(here: Path, end: str, begin: str) -> None:
    async with scene(keys=["3", "v", "slash", *"fusion", "enter"]) as (_, pilot):
        assert f"to out.{end}" in await after(pilot, "E", "ctrl+u", *f"out.{end}", "enter")
        text = (here / f"out.{end}").read_text()
        assert text.startswith(begin) and "fusion" in text
        if end == "json":
            document = json.loads(text)
            assert document["filter"] == "fusion" and document["matching_rows"] == len(document["rows"]) > 1


async def test_the_tree_and_the_screen(here: Path) -> None:
    async with scene(keys=["3", "E", "enter", "1", "E", "enter", "ctrl+u", *"overview.svg", "enter"]) as (_, pilot):
        assert "Wrote the screen to overview.svg" in await after(pilot)
        assert (here / "op-profile.csv").read_text().startswith("path,")
        assert "STEP TIME" in (here / "overview.svg").read_text().replace("&#160;", " ")


async def test_a_file_is_made_beside_the_thread_of_the_screen_and_only_one_at_a_time(here: Path) -> None:
    started, may_end = threading.Event(), threading.Event()

    def slow() -> tuple[Produce, str]:
        started.set()
        assert may_end.wait(10)
        return text_pieces(("x",)), "1 row"

    async with scene(keys=["3"]) as (app, pilot):
        app.main.ask_export(Export("slow.csv", {".csv": slow}))
        await pilot.press("enter")
        assert started.wait(10)
        await pilot.press("E")
        assert "Still writing slow.csv." in frame(app) and app.main.popup is None
        may_end.set()
        await settled(pilot)
        assert "Wrote 1 row to slow.csv" in frame(app)
        assert (here / "slow.csv").read_text() == "x"
        await press(pilot, "E")
        assert app.main.popup is not None


async def test_a_screen_without_a_run_writes_its_rows(here: Path) -> None:
    screen = LiveArraysScreen(held_arrays(), LOOK, environ=ENVIRONMENT)
    async with on_stand(screen) as (_, pilot):
        await press(pilot, "s", "c", "E", "enter", "E", "ctrl+u", *"a.json", "enter", "E", "ctrl+u", *"a.svg", "enter")
        rows = list(csv.DictReader((here / "live-arrays.csv").read_text().splitlines()))
        assert [row["name"] for row in rows] == [row.title for row in screen.listed.rows]
        sizes = [row.total.size_bytes for row in screen.listed.rows]
        document = json.loads((here / "a.json").read_text())
        assert [row["size_bytes"] for row in document["rows"]] == sizes and document["sort"] == "count:desc"
        assert document["rows"][0]["share_percent"] == pytest.approx(100 * sizes[0] / sum(sizes))
        assert (here / "a.svg").read_text().startswith("<svg")


def test_never_among_profiles(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A working folder that holds the profiles takes no file that nobody has named."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    folder = tmp_path / "logs" / "plugins" / "profile" / "run"
    folder.mkdir(parents=True)
    file = folder / "host.xplane.pb"
    file.write_bytes(b"")
    run = Run("run", str(folder), (HostFile("host", str(file), 0, 0.0, False),), ())
    for where in (tmp_path / "logs", folder, folder.parent):
        monkeypatch.chdir(where)
        path = default_path("ops", True, run)
        assert path == str(tmp_path / "state" / "tpuprof-tui" / "export" / "ops.csv")
    with pytest.raises(ProfileError, match="folder of profiles"):
        kind_of(str(folder / "x.txt"), Export("", kinds_of_screen(str), run))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    assert default_path("HLO ops!", False, run) == "hlo-ops-.svg"


async def test_the_same_rows_as_the_report(here: Path, call: Call) -> None:
    async with scene(make_demo_app(), ["3", "v", "slash", *"fusion", "enter", "E", "enter"]):
        pass
    call("report", "ops", "demo", "--filter", "fusion", "--format", "csv", "--limit", "0", "--output", "report.csv")
    assert (here / "ops.csv").read_text() == (here / "report.csv").read_text()


async def test_one_key_opens_the_source_line_of_any_op(here: Path) -> None:
    (here / "model.py").write_text("\n" * 200)
    async with scene(make_demo_app()) as (app, pilot):
        opened: list[tuple[str, int]] = []
        app.main.open_editor = lambda path, line: opened.append((os.path.basename(path), line)) or ""  # type: ignore[method-assign, func-returns-value]
        assert "Opened model.py:" in await after(pilot, "e"), "of what the first reason is about"
        for keys in (
            ("3", "v", "e"),
            ("j", "e"),
            ("V", "j", "l", "j", "e"),
            ("O", "e"),
            ("5", "j", "j", "e"),
            ("1", "G", "e"),
        ):
            assert "Opened model.py:" in await after(pilot, *keys), keys
        assert len(opened) == 7 and {name for name, _ in opened} == {"model.py"}
