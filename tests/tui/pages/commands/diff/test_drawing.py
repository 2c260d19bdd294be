"""The comparison in cells."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.parsers.session.diff.build import MS, US, Program, diff_of, layers
from tests.parsers.session.diff.test_compare import BASE, steady
from tests.parsers.session.diff.test_kinship import INFERENCE, TRAINING
from tests.support.golden import check_golden, check_lines
from tests.support.golden import frame as text
from tpuprof.parsers.session.diff.model import Change, Diff
from tpuprof.tui.draw.pen import Composed, Pen
from tpuprof.tui.draw.spans import ASCII, BLOCK, PLAIN, Glyphs, plain
from tpuprof.tui.pages.commands.diff.changes import VIEWS, ViewName, entries
from tpuprof.tui.pages.commands.diff.details import change_card, meaning_lines, summary
from tpuprof.tui.pages.commands.diff.drawing import (
    ORDERS,
    DiffView,
    compose,
    head_line,
    shown,
    steps_lines,
    verdict_lines,
)
from tpuprof.tui.pages.commands.diff.verdict import verdict
from tpuprof.tui.pages.commands.diff.words import noise_words, relative, signed, signed_percent

GOLDEN = Path(__file__).parent / "golden"


@pytest.fixture(scope="module")
def clones(tmp_path_factory: pytest.TempPathFactory) -> Diff:
    """Sixty layers, each 1 % slower, which is within its noise."""
    return diff_of(tmp_path_factory.mktemp("clones"), layers(60, MS), layers(60, 1010 * US))


def frame(diff: Diff, view: DiffView, width: int, height: int, glyphs: Glyphs = BLOCK) -> Composed:
    every = entries(diff, view.name, view.apart)
    rows = shown(every, view)
    return compose(diff, view, rows, len(every), Pen(width, glyphs), height)


@pytest.mark.parametrize("glyphs", [BLOCK, PLAIN, ASCII], ids=["block", "plain", "ascii"])
@pytest.mark.parametrize(("width", "height"), [(60, 13), (80, 22), (120, 38), (200, 48)])
@pytest.mark.parametrize("name", VIEWS)
def test_every_view_fits(diff: Diff, name: ViewName, width: int, height: int, glyphs: Glyphs) -> None:
    for words in ("", "nothing holds this"):
        composed = frame(diff, DiffView(name=name, words=words), width, height, glyphs)
        assert len(composed.lines) <= height
        check_lines((*composed.lines, head_line(diff, Pen(width, glyphs))), width, glyphs)
        assert "+18.7 ms a step" in text(composed.lines) and f"{VIEWS.index(name) + 1} " in text(composed.lines)


@pytest.mark.parametrize("name", VIEWS)
def test_golden_of_the_views(diff: Diff, name: ViewName) -> None:
    composed = frame(diff, DiffView(name=name, hides_same=False), 80, 22)
    check_golden(GOLDEN / f"diff-{name}-80x22.txt", text([head_line(diff, Pen(80, BLOCK)), *composed.lines]))


def test_golden_of_clones(clones: Diff) -> None:
    together = frame(clones, DiffView(hides_same=False), 80, 12).lines
    apart = frame(clones, DiffView(hides_same=False, apart=True), 80, 12).lines
    of_group = change_card(clones, entries(clones, "ops")[0], Pen(80, BLOCK))
    check_golden(GOLDEN / "diff-clones-80.txt", text([*together, *apart, *of_group]))


def test_clones_are_one_entry_of_the_summary(clones: Diff) -> None:
    assert summary(clones).endswith(" | more +600 us +1.0% fusion.10 (60 ops)")


# --- the verdict ---------------------------------------------------------------------------------------------------


def test_the_verdict_names_what_it_was(diff: Diff) -> None:
    assert verdict(diff) == (
        "+18.7 ms a step (+18.7%): all-gather.3 is new (+21.7 ms), copy.812 is gone (-5.00 ms), fusion.52 +2.00 ms; "
        "the rest, +20.0 µs, is noise (±154 µs)."
    )
    assert "+20.0 us" in verdict(diff, True) and verdict(diff, True).isascii()


def test_the_verdict_on_equal_runs(tmp_path: Path) -> None:
    assert verdict(diff_of(tmp_path, BASE, BASE)) == "The same within ±0.1%: 100.0 ms a step before, 100.0 ms after."


def test_changes_that_do_not_show_in_the_step(tmp_path: Path) -> None:
    moved = replace(BASE, steps=steady(("fusion.1", 60 * MS), ("copy.2", 12 * MS), ("all-reduce.3", 18 * MS)))
    words = verdict(diff_of(tmp_path, BASE, moved))
    assert words.endswith("2 ops changed all the same: all-reduce.3 -2.00 ms, copy.2 +2.00 ms.")


def test_the_verdict_on_idle_time(tmp_path: Path) -> None:
    words = verdict(diff_of(tmp_path, BASE, replace(BASE, idle_ps=4 * MS)))
    assert words.startswith("-6.00 ms a step (-6.0%): host -6.00 ms; the rest, 0, is noise")


def test_many_small_changes_are_told_by_category(tmp_path: Path) -> None:
    names = [f"fusion.{number}" for number in range(30)]
    before = Program(steps=[[(name, MS) for name in names]] * 6, texts={name: f"f32[{name[7:]}] x()" for name in names})
    after = replace(before, steps=[[(name, MS + MS // 5) for name in names]] * 6)
    words = verdict(diff_of(tmp_path, before, after))
    assert words.startswith("+6.00 ms a step (+20.0%): loop fusion +6.00 ms; the rest, 0, is noise")


def test_a_rest_that_cancels_out_is_told_in_both_directions(tmp_path: Path) -> None:
    first = {"dot.1": 100, "dot.2": 90, "dot.3": 80, "dot.4": 10, "dot.5": 60, "dot.6": 5}
    then = {"dot.1": 200, "dot.2": 180, "dot.3": 160, "dot.4": 60, "dot.5": 1, "dot.6": 5}
    texts = {name: f"f32[{number}] dot()" for number, name in enumerate(first)}
    runs = [
        Program(steps=steady(*((name, time * MS) for name, time in times.items())), idle_ps=MS, texts=texts)
        for times in (first, then)
    ]
    found = diff_of(tmp_path, *runs)
    words = verdict(found)
    assert words.startswith("+261 ms a step (+75.4%): dot.1 +100 ms, dot.2 +90.0 ms, dot.3 +80.0 ms; the rest, ")
    assert "; the rest, -9.00 ms, is +50.0 ms and -59.0 ms over 2 other ops (noise ±" in words
    runs[1] = replace(runs[1], idle_ps=40 * MS)
    words = verdict(diff_of(tmp_path / "idle", *runs))
    assert "is +89.0 ms and -59.0 ms over 2 other ops and host (noise" in words
    one_way = replace(runs[1], steps=steady(*((name, time * MS) for name, time in {**then, "dot.5": 60}.items())))
    words = verdict(diff_of(tmp_path / "one", runs[0], one_way))
    assert "; the rest, +89.0 ms, is spread over 1 other op and host (noise" in words


def test_different_programs_get_a_verdict_of_their_own(tmp_path: Path) -> None:
    found = diff_of(tmp_path, TRAINING, INFERENCE)
    lines = text(verdict_lines(found, Pen(80, BLOCK)))
    assert lines.startswith(" DIFFERENT ") and "so their times can't be compared" in " ".join(lines.split())
    assert "SLOWER" not in text(frame(found, DiffView(), 80, 24).lines)
    assert "different programs" in summary(found) and verdict(found, True).isascii()


def test_odd_steps_get_a_sentence(tmp_path: Path) -> None:
    many = replace(BASE, steps=[*BASE.steps] * 4, idle_ps=[10 * MS] * 40)
    stalls = [10 * MS if number % 5 else 150 * MS for number in range(40)]
    words = verdict(diff_of(tmp_path, many, replace(many, idle_ps=stalls)))
    assert words.startswith("+28.0 ms in the mean step (+28.0%), by odd steps (0 of 40 before, 8 of 40 after), ")
    assert "most of it host +28.0 ms; the typical step is the same within ±0.1%" in words
    slower = [[*step, ("dot.4", 5 * MS)] for step in many.steps]
    words = verdict(diff_of(tmp_path / "slower", many, replace(many, steps=slower, idle_ps=stalls)))
    assert words.endswith("Odd steps (0 of 40 before, 8 of 40 after) change the mean by another +28.0 ms a step.")


def test_the_verdict_without_steps(tmp_path: Path) -> None:
    short = replace(BASE, marked=False, steps=BASE.steps[:2])
    longer = replace(short, steps=[[*step, ("dot.4", 5 * MS)] for step in short.steps])
    found = diff_of(tmp_path / "runs", short, longer)
    assert verdict(found) == (
        "+5.00 ms a run of jit_step (+5.3%): 95.00 ms before, 100.0 ms after; whether that is noise is unknown. "
        "Most of the difference: dot.4 is new (+5.00 ms)."
    )
    assert "CAN'T TELL" in text(verdict_lines(found, Pen(80, BLOCK)))
    bare = replace(short, runs=False)
    assert "in the whole capture" in verdict(diff_of(tmp_path / "bare", bare, replace(bare, steps=BASE.steps[:5])))
    empty = replace(bare, steps=[])
    words = verdict(diff_of(tmp_path / "empty", empty, empty))
    assert words.startswith("There is no time to compare: A: no XLA Ops line in this profile;")


def test_verdict_lines_are_cut_with_a_sign(diff: Diff) -> None:
    lines = verdict_lines(diff, Pen(60, BLOCK), 2)
    assert len(lines) == 2 and plain(lines[1]).rstrip().endswith(("...", "…"))


# --- tables, cards, words ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("sort", ORDERS)
def test_orders(diff: Diff, sort: str) -> None:
    rows = shown(entries(diff, "ops"), DiffView(sort=sort, hides_same=False))
    names = [row.name for row in rows]
    firsts = {
        "change": "all-gather.3",
        "slower": "all-gather.3",
        "faster": "copy.812",
        "relative": "all-gather.3",
        "A": "fusion.397",
        "B": "fusion.397",
        "what": "all-gather.3",
    }
    assert names[0] == firsts.get(sort, names[0]) and len(names) == 5


def test_filter_and_hiding(diff: Diff) -> None:
    every = entries(diff, "ops")
    assert {row.name for row in shown(every, DiffView(words="norm", hides_same=False))} == {"fusion.52"}
    assert {row.name for row in shown(every, DiffView(words="fusion.41", hides_same=False))} == {"fusion.52"}  # in A
    assert {row.name for row in shown(every, DiffView(words="gone", hides_same=False))} == {"copy.812"}
    assert {row.change.mark for row in shown(every, DiffView())} == {"new", "gone", "more"}
    rows = shown(entries(diff, "time"), DiffView(name="time", sort="what"))
    assert [row.name for row in rows][-3:] == ["mean step", "odd steps", "typical step"]  # what adds up keeps its order


def test_the_card_of_an_op(diff: Diff) -> None:
    rows = {row.name: row for row in entries(diff, "ops")}
    words = text(change_card(diff, rows["fusion.52"], Pen(76, BLOCK)))
    for part in ("+2.00 ms (+22.2%)", "in A     fusion.41", "renumbered it", "jit(step)/norm/mul", "HLO A", "HLO B"):
        assert part in words
    new = text(change_card(diff, rows["all-gather.3"], Pen(76, BLOCK)))
    assert "A        not there" in new and "HLO B    %all-gather.3 = " in new and "HLO A" not in new
    same = text(change_card(diff, rows["all-reduce.9"], Pen(76, BLOCK)))
    assert "HLO      %all-reduce.9" in same and "1 time a step" in same
    assert "noise" in text(change_card(diff, entries(diff, "time")[0], Pen(60, ASCII)))


def test_the_summary_is_short_and_plain(diff: Diff) -> None:
    words = summary(diff)
    assert words.isascii() and words.startswith("A run_a -> B run_b | ")
    assert words.split(" | ")[2] == "new +21.7 ms all-gather.3"


def test_names_are_hostile(tmp_path: Path) -> None:
    evil = "fusion\x1b[31m.1"
    found = diff_of(tmp_path, BASE, replace(BASE, steps=steady((evil, 60 * MS))))
    for name in VIEWS:
        assert "\x1b" not in text(frame(found, DiffView(name=name, hides_same=False), 120, 40).lines)
    assert "\x1b" not in verdict(found) and "\x1b" not in summary(found)
    row = next(row for row in entries(found, "ops") if row.name == evil)
    assert "\x1b" not in text(change_card(found, row, Pen(80, BLOCK)))


def test_help_has_the_cautions(tmp_path: Path, diff: Diff) -> None:
    words = text(meaning_lines(diff, Pen(80, BLOCK)))
    assert "beyond" not in words and "the same" in words
    other = diff_of(tmp_path, BASE, replace(BASE, cores=2, device="TPU other"))
    assert "the devices differ" in text(meaning_lines(other, Pen(80, BLOCK)))
    assert "the devices differ" in text(Pen(80, BLOCK).notes(other.warnings, ()))


def test_steps_that_are_unknown_say_why(tmp_path: Path) -> None:
    bare = replace(BASE, marked=False, runs=False)
    assert "no Steps line and no XLA Modules" in text(steps_lines(diff_of(tmp_path, bare, BASE), Pen(80, BLOCK)))


def test_words() -> None:
    assert signed(217e9, "time", False) == "+217 ms" and signed(-5e6, "time", True) == "-5.00 us"
    assert signed(0.0, "time", False) == "0" and signed(None, "time", False) == "n/a"
    assert signed(-(2.0**30), "bytes", False) == "-1.00 GiB" and signed(0.01, "percent", False) == "0 pp"
    assert signed_percent(11.62) == "+11.6%" and signed_percent(0.01) == "<0.1%" and signed_percent(-100) == "-100%"
    assert signed_percent(1250) == "+12.5x"
    assert relative(Change(None, 5.0, 1.0, "new")) == "" and relative(Change(0.0, 5.0, 1.0, "more")) == ""
    assert noise_words(Change(100.0, 100.0, 1.1, "same"), False) == "±1.1%"
    assert noise_words(Change(100.0, 100.0, None, "unknown"), False) == "n/a"
