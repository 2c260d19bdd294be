"""The pictures of the README: real screens, most of them over the demo profile, kept up to date by this test."""

from __future__ import annotations

import asyncio
import html
import os
import re
import shutil
from collections.abc import Callable, Sequence
from dataclasses import astuple, replace
from pathlib import Path
from typing import Any

import pytest
from textual.app import App

from tests.demo.make_profile import chunks
from tests.demo.profile.hlo_cost import Traffic
from tests.demo.profile.timeline import DemoSpec, programs
from tests.parsers.session.diff.build import example
from tests.support.app.scene import press
from tests.support.app.stage import ENVIRONMENT, NOW, demo_session, make_demo_app, on_stage, settled
from tests.support.build import session_at
from tests.support.composed.sparse_cores import BOUND, sparse_profile
from tests.support.files.counters import with_readings
from tests.support.files.kernels import traced_kernels
from tests.support.files.pprof import pprof, training
from tests.support.gpus import gpu_profile
from tests.support.made.oom import REPORT
from tests.tui.readme.film import CELL, INK, KEY, Frame, Row, film, picture, rows_of, words
from tpuprof.parsers.formats.pprof.messages import read_messages
from tpuprof.parsers.formats.xspace.source import MemorySource
from tpuprof.parsers.memory.live_arrays import live_arrays
from tpuprof.parsers.memory.oom.model import OomLog
from tpuprof.parsers.pages.overview.model import OVERVIEW
from tpuprof.parsers.session.diff.compare import compare
from tpuprof.parsers.session.diff.model import Diff
from tpuprof.tui.app.app import TpuprofApp
from tpuprof.tui.app.options import AppOptions
from tpuprof.tui.demo import demo_path
from tpuprof.tui.pages.commands.diff.screen import APP as DIFF_APP
from tpuprof.tui.pages.commands.live_arrays.screen import APP as LIVE_ARRAYS_APP
from tpuprof.tui.pages.commands.oom.screen import APP as OOM_APP
from tpuprof.tui.terminal.detect import detect
from tpuprof.tui.widgets.lists.screen import PageApp

SCREENSHOTS = Path(__file__).parents[3] / "screenshots"
LARGEST_BYTES = 400_000
COLOURS = {**ENVIRONMENT, "COLORTERM": "truecolor"}

Make = Callable[[Path], App[Any]]
"""Makes an app, with what it needs in a folder."""

KEYS = {
    "overview": [],
    "step": ["l", "enter"],
    "finding": ["enter"],
    "model": ["v", "j", "j", "j"],
    "latencies": ["v", "v"],
    "input-pipeline": ["2", "h"],
    "op-profile": ["3", "j", "l", "j", "j", "j"],
    "source": ["3", *"bbb", "j"],
    "op-table": ["3", "v", "j"],
    "roofline": ["3", *"vvvj"],
    "collectives": ["3", "V", "j"],
    "graph": ["3", "v", "u", "j"],
    "program": ["3", "v", "P", "v", "j"],
    "timeline": ["4", *["right_square_bracket"] * 2, *"jjjjjj", *["full_stop"] * 2, *"wwww", *["full_stop"] * 13],
    "memory": ["5", "j"],
    "memory-map": ["5", "v", "v", *"jj"],
    "allocators": ["5", "v"],
    "hosts": ["H", "j"],
}
"""Pages over the demo profile, and the keys that lead there: a picture more is a line more here."""

FIRST_MINUTE = (
    ("", 5, "tpuprof-tui demo", "what a step takes, and why it is slow: worth most first"),
    ("j", 1.5, "j", "the next reason"),
    ("enter", 5, "Enter", "the evidence, the arithmetic, and what to try"),
    ("o", 4.5, "o", "the op that it names, among all ops"),
    ("O", 4.5, "O", "its longest run on the timeline"),
)
"""Keys over the demo profile, how long each screen stays, and what stands below it."""
MENDED = "the scores stay on the chip now: what changed, and how much of that is noise"
FILM_COLUMNS, FILM_LINES = 104, 30


async def shots(keys: Sequence[str], columns: int, lines: int) -> list[dict[int, Row]]:
    """The screen over the demo profile at first, and after each key."""
    app = make_demo_app(COLOURS)
    async with on_stage(app, columns, lines) as pilot:
        made = [rows_of(app.export_screenshot())]
        for key in keys:
            await press(pilot, key)
            made.append(rows_of(app.export_screenshot()))
    return made


async def shot(app: App[Any], keys: Sequence[str], columns: int, lines: int) -> dict[int, Row]:
    """The screen of another app after some keys."""
    async with app.run_test(size=(columns, lines)) as pilot:
        for key in ("", *keys):
            if key:
                await pilot.press(key)
            await (settled(pilot) if isinstance(app, TpuprofApp) else pilot.pause())
        return rows_of(app.export_screenshot())


def said(svg: str) -> str:
    """What a picture says, without how it looks: that depends on the versions of Textual and Rich."""
    return html.unescape("\n".join(re.findall(r"<text[^>]*>(.*?)</text>", svg, re.DOTALL))).replace("\xa0", " ")


def check_picture(name: str, svg: str) -> None:
    """Compares with the stored picture, or stores it."""
    path = SCREENSHOTS / f"{name}.svg"
    if os.environ.get("UPDATE_GOLDEN"):
        path.write_text(svg, encoding="utf-8")
    assert said(svg) == said(path.read_text(encoding="utf-8")), f"{path.name} is old: UPDATE_GOLDEN=1 renews it"
    assert len(svg.encode()) <= LARGEST_BYTES
    texts = re.findall(r'x="([\d.]+)"[^>]*textLength="([\d.]+)">([^<]*)<', svg)
    at_the_edge = [text for x, length, text in texts if float(x) + float(length) > 119.5 * CELL]
    assert name == "oom" or not any(re.search(r"[^\W\d_]{2}", text) for text in at_the_edge), at_the_edge


@pytest.mark.parametrize("name", KEYS)
def test_pictures_show_what_the_screen_shows(name: str) -> None:
    svg = picture(asyncio.run(shots(KEYS[name], 120, 40))[-1], 120, 40)
    assert "SIMULATED" in said(svg)
    check_picture(name, svg)


def made_app(data: bytes) -> Make:
    """The app over the bytes of a made-up profile."""

    def make(folder: Path) -> TpuprofApp:
        (folder / "train").mkdir()
        (folder / "train" / "host0.xplane.pb").write_bytes(data)
        return TpuprofApp("train", AppOptions(), detect(COLOURS), environ=COLOURS)

    return make


def runs_app(folder: Path) -> TpuprofApp:
    """Three captures of the demo's program, so many hours old."""
    for name, hours in (("before", 26), ("warm-up", 5), ("train", 1)):
        run = folder / "logs" / "plugins" / "profile" / name
        run.mkdir(parents=True)
        shutil.copy(demo_path(), run / "host0.xplane.pb.gz")
        os.utime(run / "host0.xplane.pb.gz", (NOW - 3600 * hours,) * 2)
    return TpuprofApp(
        *("logs", AppOptions(), detect(COLOURS)),
        open_session=lambda run, on_progress, is_cancelled: demo_session(),
        now=lambda: NOW,
        environ=COLOURS,
    )


def oom_app(_: Path) -> PageApp:
    """A log with an error."""
    return OOM_APP(OomLog((REPORT,), (), 50_000, 4_000_000), "train.log", detect(COLOURS), environ=COLOURS)


def arrays_app(_: Path) -> PageApp:
    """A device memory profile."""
    page = live_arrays(read_messages(MemorySource(pprof(training(12))), "memory.prof"), "memory.prof", "memory.prof")
    return LIVE_ARRAYS_APP(page, detect(COLOURS), environ=COLOURS)


OTHERS: dict[str, tuple[Make, list[str], str]] = {
    "runs": (runs_app, ["R"], "jit_train_step"),
    "kernels": (made_app(gpu_profile().SerializeToString()), ["3", "V", "V"], "cutlass"),
    "kernels-tpu": (made_app(traced_kernels()), ["3", "V", "V"], "[Kernels]"),
    "kernel": (made_app(traced_kernels()), ["3", "V", "V", "enter"], "One grid step"),
    "sparse-core": (made_app(sparse_profile((BOUND,), 2).SerializeToString()), ["3", "V"], "[SparseCore]"),
    "counters": (made_app(with_readings("TPU v7x")), ["3", "V", "j"], "[Units]"),
    "oom": (oom_app, ["2"], "OVER BY"),
    "diff": (lambda folder: DIFF_APP(example(folder), detect(COLOURS), environ=COLOURS), ["j"], "SLOWER"),
    "live-arrays": (arrays_app, [], "LIVE ARRAYS"),
}
"""Pages over something else: what makes the app, keys, and what is to be seen."""

TALL = ("oom", "kernels-tpu", "kernel")
"""Those that have more to show than 24 lines."""


@pytest.mark.parametrize("name", OTHERS)
def test_pictures_of_what_the_demo_does_not_have(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    make, keys, seen = OTHERS[name]
    lines = 40 if name in TALL else 24
    svg = picture(asyncio.run(shot(make(tmp_path), keys, 120, lines)), 120, lines)
    assert seen in said(svg)
    check_picture(name, svg)


def typed(command: str) -> list[Frame]:
    """A command at a prompt, while it is typed."""
    counts = (0, len(command) // 3, 2 * len(command) // 3, len(command))
    return [Frame({0: (words(1, KEY, "$"), words(3, INK, f"{command[:count]}▏"))}, 0.5) for count in counts]


def mended(folder: Path) -> Diff:
    """The demo, and its program where the ops of the finding in `FIRST_MINUTE` take only what it does not claim."""
    before, after = folder / "before", folder / "after"
    claim = demo_session().page(OVERVIEW).findings[1]
    assert claim.title == "attention keeps its scores in HBM"
    kept = {op.name.encode(): 1 - op.claimed_ps / op.time_ps for op in claim.subject.ops}
    plans = programs()
    for place, op in enumerate(plans[0].ops):
        part = kept.get(op.instruction.name, 1)
        traffic = Traffic(*(round(size * part) for size in astuple(op.traffic)))
        least, lasting = round(op.floor_ps * part), round(op.duration_ps * part)
        plans[0].ops[place] = replace(op, traffic=traffic, floor_ps=least, duration_ps=lasting)
    before.mkdir()
    shutil.copy(demo_path(), before)
    after.mkdir()
    (after / "demo.xplane.pb").write_bytes(b"".join(chunks(DemoSpec(), plans)))
    return compare(session_at(before), session_at(after))


def test_the_first_minute(tmp_path: Path) -> None:
    keys = [key for key, *_ in FIRST_MINUTE[1:]]
    screens = asyncio.run(shots(keys, FILM_COLUMNS, FILM_LINES))
    told = [
        Frame(rows, seconds, key, caption)
        for rows, (_, seconds, key, caption) in zip(screens, FIRST_MINUTE, strict=True)
    ]
    begin, command = typed("tpuprof-tui demo"), "tpuprof-tui diff before after"
    change = asyncio.run(
        shot(DIFF_APP(mended(tmp_path), detect(COLOURS), environ=COLOURS), [], FILM_COLUMNS, FILM_LINES)
    )
    frames = [*begin, *told, *typed(command), Frame(change, 6, command, MENDED)]
    svg = film(frames, FILM_COLUMNS, FILM_LINES, poster=len(begin))
    for shown in ("Why is it slow?", "saves", "bound by", "XLA Modules", "FASTER"):
        assert shown in said(svg)
    check_picture("first-minute", svg)


def test_every_picture_is_made_here_and_shown_by_the_readme() -> None:
    made = {*KEYS, *OTHERS, "first-minute"}
    assert {path.stem for path in SCREENSHOTS.iterdir()} == made
    shown = re.findall(r"\(screenshots/([\w-]+)\.svg\)", (SCREENSHOTS.parent / "README.md").read_text("utf-8"))
    assert set(shown) == made
