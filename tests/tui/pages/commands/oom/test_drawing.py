"""Memory that is full, in cells: committed frames, and what must hold for every error and size."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.golden import check_golden, check_lines, frame
from tests.support.made.oom import (
    ADVICE,
    BUFFERS,
    GIB,
    LOAD,
    NEED,
    REPORT,
    TOGGLES,
    gib,
    load_triage,
    made_up_triage,
    made_up_trial,
    triage_of,
)
from tpuprof.parsers.memory.account.need import OomKind
from tpuprof.parsers.memory.model import CATEGORIES, Buffer
from tpuprof.parsers.memory.oom.model import Advice, OomReport
from tpuprof.parsers.memory.oom.triage import NO_BUFFERS, Triage, part_of, parts_of_report, triage_of_report
from tpuprof.tui.draw.buffers.fills import HELD, PADDING, USED, sign_of
from tpuprof.tui.draw.pen import Pen
from tpuprof.tui.draw.spans import ASCII, BLOCK, PLAIN, Glyphs, line_width, plain
from tpuprof.tui.draw.table import Listing
from tpuprof.tui.pages.commands.oom.draw.bars import composition, verdict_line
from tpuprof.tui.pages.commands.oom.draw.card import advice_card, buffer_card, meaning_lines, summary
from tpuprof.tui.pages.commands.oom.draw.page import compose, head_line, nothing_known, toggle_lines, why_nothing_to_try
from tpuprof.tui.pages.commands.oom.draw.table import ROWS, OomView, rows_of

GOLDEN = Path(__file__).parent / "golden"


def page(triage: Triage, view: OomView, size: str, glyphs: Glyphs, chosen: frozenset[str] | None = None) -> str:
    """The head and the page of a screen of this size, without its footer."""
    width, height = map(int, size.split("x"))
    trial = None if chosen is None else made_up_trial(triage, chosen)
    composed = compose(triage, trial, view, Pen(width, glyphs), height - 2)
    assert len(composed.lines) == height - 2
    assert {line_width(line) for line in composed.lines} == {width}
    return frame([head_line(triage, 0, 2, Pen(width, glyphs)), *composed.lines])


@pytest.mark.parametrize(
    ("name", "triage", "view", "chosen"),
    [
        ("try", made_up_triage(), OomView(cursor=2, is_trying=True), frozenset({"bf16"})),
        ("advice", made_up_triage(), OomView(cursor=0, advice=0, grouped=True), None),
        ("load", load_triage(), OomView(cursor=0), None),
    ],
)
def test_frames(name: str, triage: Triage, view: OomView, chosen: frozenset[str] | None) -> None:
    check_golden(GOLDEN / f"oom-{name}-80x24.txt", page(triage, view, "80x24", BLOCK, chosen))


def test_cards_and_summary() -> None:
    triage = made_up_triage()
    single, group = rows_of(triage, None, OomView()), rows_of(triage, None, OomView(grouped=True))
    cards = [
        *buffer_card(triage, single[1], Pen(76, BLOCK)),
        ((" ", "text"),),
        *buffer_card(triage, group[0], Pen(76, ASCII)),
    ]
    cards += [((" ", "text"),), *advice_card(triage, 0, Pen(76, BLOCK))]
    check_golden(GOLDEN / "oom-cards.txt", frame(cards))
    assert summary(triage).count(" | ") == 11
    check_golden(GOLDEN / "oom-summary.txt", summary(triage) + "\n")


# --- the verdict and the bars


def words(triage: Triage, chosen: frozenset[str] | None = None) -> str:
    trial = None if chosen is None else made_up_trial(triage, chosen)
    return plain(verdict_line(triage, trial, Pen(120, ASCII))).strip()


def test_the_verdict_says_by_how_much() -> None:
    triage = made_up_triage()
    verdict = "HBM 15.75 GiB   needs 31.81 GiB   OVER BY 16.06 GiB (+102%)"
    assert words(triage).startswith(verdict)
    assert words(triage).endswith("reserved 258.00 MiB more")
    fits = triage_of(replace(REPORT, used_bytes=gib(15.0), exceeded_bytes=None))
    assert "needs 15.00 GiB   FITS, 768.00 MiB free (95% full)" in words(fits)
    slightly = triage_of(replace(REPORT, used_bytes=gib(15.78), exceeded_bytes=round(0.03 * GIB)))
    assert "OVER BY 30.72 MiB (+0.2%)" in words(slightly)


def test_a_request_is_held_against_what_was_free() -> None:
    assert words(load_triage()) == "HBM 7.48 GiB free   asked for 13.50 GiB   SHORT BY 6.02 GiB"
    pieces = replace(load_triage(), free_bytes=gib(20))
    assert words(pieces).endswith("FREE MEMORY IS IN PIECES")
    assert "free memory unknown" in words(replace(load_triage(), free_bytes=None))


def test_toggles_are_an_estimate() -> None:
    triage = made_up_triage()
    assert "estimate 21.90 GiB   STILL OVER BY 6.15 GiB" in words(triage, frozenset({"bf16"}))
    assert "FITS, " in words(triage, frozenset({"bf16", "batch"}))
    assert words(triage, frozenset()) == words(triage)


def test_every_category_finds_its_part() -> None:
    parts, _ = parts_of_report(REPORT)
    found = {category: part_of(category, parts) for category in CATEGORIES}
    assert found["parameter"] == "arguments" and found["temporary"] == found["scoped"] == "temporaries"
    assert part_of("temporary", ()) is None


def test_bars_follow_each_other_and_the_mark_stays() -> None:
    triage = made_up_triage()
    before = [plain(line) for line in composition(triage, None, Pen(80, BLOCK), None)]
    after = [
        plain(line) for line in composition(triage, made_up_trial(triage, frozenset({"batch"})), Pen(80, BLOCK), None)
    ]
    arguments, temporaries, padding, mark = before
    assert temporaries.index("█") - 1 <= arguments.rindex("█") + 1 <= temporaries.index("█") + 1
    assert padding.rindex("█") == temporaries.rindex("█")
    assert after[-1].index("▲") == mark.index("▲")
    assert after[1].count("█") < temporaries.count("█") and after[0] == arguments


def test_parts_have_the_colours_of_the_memory_tab_and_the_limit_is_a_red_line() -> None:
    lines = composition(made_up_triage(), None, Pen(80, BLOCK), None)
    keys = [{key for text, key in line if BLOCK.full in text} for line in lines[:3]]
    assert keys == [{sign_of(area, BLOCK)[1]} for area in (HELD, USED, PADDING)]
    assert all((BLOCK.vertical, "bad") in line for line in lines[:3])
    (alone, _) = composition(made_up_triage(), None, Pen(80, PLAIN), 2)
    letters = plain(alone).split()[2]
    assert letters.startswith(":") and letters.endswith("p") and {*letters} == {*":=p|"} - {"|"} | {PLAIN.vertical}


# --- what is missing


def test_without_a_list_of_buffers_the_page_says_where_to_look() -> None:
    triage = triage_of_report(replace(REPORT, buffers=()), "train.log")
    assert triage.notes == (NO_BUFFERS,)
    text = " ".join(frame(list(compose(triage, None, OomView(), Pen(80, BLOCK), 22).lines)).split())
    assert "! The text lists no buffers: look for the list further down in the log" in text
    assert triage_of_report(REPORT, "train.log").notes == triage_of_report(LOAD, "train.log").notes == ()


def test_what_can_not_be_tried_has_a_true_reason() -> None:
    module = replace(made_up_triage(), kind="module", toggles=(), advice=())
    flags = replace(module, need=replace(NEED, memory_space="sflag"))
    empty = replace(module, need=replace(NEED, buffers=()))
    assert "the compiler chooses what a module keeps in SFlag" in why_nothing_to_try(flags)
    assert "would make these buffers smaller" in why_nothing_to_try(module)
    assert "the module has none" in why_nothing_to_try(empty) and "the text lists none" in why_nothing_to_try(
        load_triage()
    )
    drawn = [frame(nothing_known(one, Pen(200, BLOCK), None)) for one in (flags, empty, module, load_triage())]
    assert "The compiler chooses" in drawn[0] and "The module has no buffers in HBM." in drawn[1]
    assert "None of the listed buffers stands out" in drawn[2] and "was full before" in drawn[3]


def test_the_numbers_of_toggles_are_those_of_their_advice() -> None:
    triage = made_up_triage()
    assert triage.toggle_numbers == (2, 3, 4)
    lines = [plain(line) for line in toggle_lines(triage, None, Pen(80, BLOCK), None)]
    assert [line.split()[0] for line in lines] == ["2", "3", "4"]
    alone = replace(triage, advice=())
    assert alone.toggle_numbers == (1, 2, 3)
    many = replace(triage, advice=ADVICE * 4)
    assert many.toggle_numbers == (2, 3, 13)
    assert {line_width(line) for line in toggle_lines(many, None, Pen(80, BLOCK), None)} == {80}


def test_help_is_in_words() -> None:
    unknown = {"free_bytes": "the text does not give it", "used_bytes": "the text does not give it", "odd_bytes": "no"}
    lines = frame(meaning_lines(replace(made_up_triage(), unknown=unknown), Pen(120, BLOCK)))
    assert "free memory, memory in use: the text does not give it" in lines and "odd: no" in lines
    assert "_bytes" not in lines and "press the digit" in lines.replace("\n", " ")
    module = frame(meaning_lines(replace(made_up_triage(), kind="module"), Pen(120, BLOCK)))
    assert "needs: the module's peak" in module


# --- the table


def test_filtering_looks_at_all_that_is_known() -> None:
    triage = made_up_triage()
    assert {row.buffers for row in rows_of(triage, None, OomView(words="ATTENTION layer_1"))} == {(2,)}
    assert len(rows_of(triage, None, OomView(words="broadcast(constant"))) == 1
    assert rows_of(triage, None, OomView(words="nothing like it")) == ()


def test_groups_add_up() -> None:
    triage = made_up_triage()
    rows = rows_of(triage, None, OomView(grouped=True))
    assert sum(row.size for row in rows) == sum(item.size_bytes for item in BUFFERS)
    assert (rows[0].title, rows[0].buffers, rows[0].size) == ("train/models.py:53", (1, 2, 3), 3 * gib(4.0))
    assert rows[-1].title == "source unknown"


# --- whatever the text holds

_TEXT = st.one_of(st.none(), st.text(max_size=60), st.sampled_from(["\x1b[31m\n", "日本語 /a/b", "a" * 3000, "x.py:1"]))
_SIZE = st.one_of(st.integers(0, 40 * GIB), st.sampled_from([0, 1, 2**63, 10**30]))
_BUFFER = st.builds(
    Buffer,
    name=st.text(max_size=20),
    category=st.sampled_from(CATEGORIES),
    size_bytes=_SIZE,
    unpadded_bytes=st.one_of(st.none(), _SIZE),
    **dict.fromkeys(("shape", "framework_op", "source", "allocation_type", "operator", "tag", "label"), _TEXT),
)
_MAYBE = st.one_of(st.none(), _SIZE)

_KINDS = st.sampled_from(get_args(OomKind))
_SPACES = st.sampled_from([None, "hbm", "vmem", "\x07bell"])
_LONG = st.text(max_size=150)


def _advice_on(count: int) -> st.SearchStrategy[list[Advice]]:
    """Any advice on so many buffers."""
    indices = st.lists(st.integers(0, max(0, count - 1)), max_size=3 if count else 0).map(tuple)
    one = st.builds(Advice, st.just("other"), _MAYBE, _LONG, _LONG, st.text(max_size=90), _TEXT, indices)
    return st.lists(one, max_size=4)


_ADVICE = [_advice_on(count) for count in range(5)]

_REPORT = st.builds(
    OomReport,
    *(_KINDS, _SPACES, st.text(max_size=80), st.integers(1, 10**9), st.integers(1, 10**6)),
    **dict.fromkeys(("program", "device"), _TEXT),
    **dict.fromkeys(("used_bytes", "capacity_bytes", "exceeded_bytes", "requested_bytes", "free_bytes"), _MAYBE),
    **dict.fromkeys(("reserved_bytes", "program_bytes", "arguments_bytes", "hlo_temp_bytes", "padding_bytes"), _MAYBE),
    buffers=st.lists(_BUFFER, max_size=4).map(tuple),
    is_cut=st.booleans(),
)


@st.composite
def triages(draw: st.DrawFn) -> Triage:
    """Errors with anything in them."""
    found = triage_of(draw(_REPORT))
    count = len(found.need.buffers)
    shown = [replace(toggle, buffers=tuple(at for at in toggle.buffers if at < count)) for toggle in TOGGLES]
    return replace(found, advice=tuple(draw(_ADVICE[count])), toggles=tuple(shown) if count else ())


@given(
    triages(),
    st.integers(40, 220),
    st.one_of(st.none(), st.integers(13, 50)),
    st.sampled_from([BLOCK, PLAIN, ASCII]),
    st.builds(
        OomView,
        cursor=st.integers(-1, 9),
        first=st.integers(0, 9),
        advice=st.one_of(st.none(), st.integers(0, 3)),
        is_trying=st.booleans(),
        tries=st.builds(Listing, st.integers(0, 2)),
        sort=st.sampled_from([*ROWS.sorted_by]),
        grouped=st.booleans(),
    ),
    st.frozensets(st.sampled_from([toggle.key for toggle in TOGGLES])),
)
@settings(max_examples=150)
def test_every_line_is_exactly_as_wide_as_asked(
    triage: Triage, width: int, height: int | None, glyphs: Glyphs, view: OomView, chosen: frozenset[str]
) -> None:
    trial = made_up_trial(triage, chosen) if triage.toggles else None
    view = replace(view, cursor=min(view.cursor, len(rows_of(triage, trial, OomView(grouped=view.grouped))) - 1))
    composed = compose(triage, trial, view, Pen(width, glyphs), height)
    lines = [*composed.lines, head_line(triage, 0, 3, Pen(width, glyphs)), *meaning_lines(triage, Pen(width, glyphs))]
    for at in range(len(triage.advice)):
        lines += advice_card(triage, at, Pen(width, glyphs))
    for row in rows_of(triage, trial, view)[:2]:
        lines += buffer_card(triage, row, Pen(width, glyphs))
    check_lines(lines, width, glyphs)
    assert height is None or len(composed.lines) == height
    assert summary(triage).isprintable()
