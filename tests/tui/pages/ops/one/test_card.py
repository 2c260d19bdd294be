"""The detail card: padding, the matrix unit, what bounds an op, and what is unknown."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.demo.profile.hlo_module import Module
from tests.support.build import present
from tests.support.made.big_table import big_page
from tpuprof.parsers.files.source_lines import SourceExcerpt
from tpuprof.parsers.formats.hlo.matrix import MatrixWork
from tpuprof.parsers.formats.hlo.modules import HloModule
from tpuprof.parsers.formats.hlo.shapes import parse_shape
from tpuprof.parsers.ops.roofline import AWAITED, ESTIMATED, STARTED, UNEXPLAINED, above_peak
from tpuprof.parsers.pages.ops.details import OpDetails, ShapeNote, op_details
from tpuprof.parsers.pages.program.ops import Measured, op_of
from tpuprof.tui.draw.pen import Pen
from tpuprof.tui.draw.spans import ASCII, BLOCK, Glyphs, Line, line_width, plain
from tpuprof.tui.pages.ops.details.card import op_card

PAGE = big_page(20)


def note(text: str) -> ShapeNote:
    return ShapeNote(0, len(text), text, present(parse_shape(text)))


def details(*shapes: str, matrix: tuple[MatrixWork, ...] = (), row: int = 0) -> OpDetails:
    return OpDetails(row, "%fusion.0 = f32[8] fusion()", False, "", (), tuple(map(note, shapes)), matrix, 128)


def card(known: OpDetails, width: int = 60, glyphs: Glyphs = BLOCK, excerpt: SourceExcerpt | None = None) -> str:
    lines = op_card(PAGE, known, Pen(width, glyphs), excerpt)
    assert all(line_width(line) == width for line in lines)
    return "\n".join(plain(line).rstrip() for line in lines)


def test_padding_says_from_what_to_what_and_how_much() -> None:
    text = card(details("f32[4,512,512,64]{3,0,2,1:T(4,128)(2,1)}"), width=90)
    assert "2.00× f32[4,512,512,64→128] tile (4,128)(2,1): 268 MB → 537 MB" in text


def test_the_most_wasteful_shapes_come_first_and_small_ones_are_not_named() -> None:
    text = card(details("s32[]{:T(128)}", "f32[1000,100]{1,0:T(8,128)}", "bf16[4096,65]{1,0:T(8,128)(2,1)}"), width=90)
    assert "s32[]" not in text
    assert text.index("bf16[4,096,65→128]") < text.index("f32[1,000,100→128]")


def test_no_padding_and_unknown_padding_are_told_apart() -> None:
    assert "none: its arrays fill" in card(details("f32[8,128]{1,0:T(8,128)}"))
    assert "padding" not in card(details("f32[8,128]"))


def test_host_memory_is_named() -> None:
    assert "host memory" in card(details("f32[8,128]{1,0:T(8,128)S(5)}"))
    assert "host memory" not in card(details("f32[8,128]{1,0:T(8,128)S(1)}"))


@pytest.mark.parametrize(
    ("op", "said"),
    [
        ("fusion.397", "told 3.00 ms to 7.01 ms, at least 2.79 ms; took 1.40x of told"),
        ("fusion.315", "at least 2.79 ms; no more is claimed: functions such as tanh"),
        ("copy.69", ""),
    ],
)
def test_tiles_and_what_they_tell(op: str, said: str) -> None:
    """Of a product; of one of which nothing is claimed; and of what has no tiles."""
    found = present(op_of(HloModule(Module("jit_train_step").proto), op, "TPU v5 lite"))
    lines = op_card(PAGE, details(), Pen(110, BLOCK), compiled=replace(found, measured=Measured(3, 7.006e9)))
    text = "\n".join(map(plain, lines))
    assert said in text and bool(said) == ("tiles" in text)
    if op == "fusion.397":
        assert "16 x 15 x 4 tiles stream get-tuple-element.2520 16 times and async-collective-done.3 15 times" in text


def work(share: float | None, n: int, padded_n: int) -> MatrixWork:
    padded = None if padded_n == n else "n"
    meaning = None if padded is None else "output features"
    return MatrixWork("dot.1", "dot", 4096, 8192, n, 1, 4096, 8192, padded_n, share, padded, meaning)


def test_the_matrix_unit() -> None:
    text = card(details(matrix=(work(1.0, 128, 128), work(100 / 128, 100, 128))), width=110)
    assert "78.1% of 128×128 filled (estimate): m 4,096 × k 8,192 × n 100→128; padded most: n (output features)" in text
    assert "(output features); 1 more inside" in " ".join(text.split())
    assert "matrix" not in card(details(matrix=(replace(work(None, 1, 1), reason="grouped"),)))


def test_source_lines_are_shown_with_their_numbers() -> None:
    excerpt = SourceExcerpt("model.py", 61, ("def mlp(x):", "    return x @ w", "# \x1b[31m"), 1)
    known = replace(details(), source="model.py:62", source_stack=("train.py:14", "model.py:62"))
    lines = card(known, excerpt=excerpt).splitlines()
    assert any(line.startswith("▸") and "62     return x @ w" in line for line in lines)
    assert any("61 def mlp(x):" in line for line in lines)
    assert any("train.py:14" in line for line in lines)
    assert not any("\x1b" in line for line in lines)


def test_an_op_with_more_work_than_its_time_allows() -> None:
    efficiency = PAGE.rates.efficiency.copy()
    efficiency[0] = 40.0
    page = replace(PAGE, rates=replace(PAGE.rates, efficiency=efficiency))
    text = " ".join(plain(line).strip() for line in op_card(page, details(), Pen(60, BLOCK)))
    assert "bound by unknown: its work would take 40 times the peak" in text


@pytest.mark.parametrize(
    ("name", "category", "words"),
    [
        ("copy-start.3", "copy-start", STARTED),
        ("async-collective-done.5", "custom fusion", AWAITED),
        ("splash_mha", "custom-call", ESTIMATED),
        ("fusion.1", "loop fusion", UNEXPLAINED),
    ],
)
def test_a_card_says_why_an_op_is_above_its_peak(name: str, category: str, words: str) -> None:
    used = PAGE.rates.bandwidth_utilization.copy()
    used[0, 0] = 8.0
    table = replace(PAGE.table, name=(name, *PAGE.table.name[1:]), category=(category, *PAGE.table.category[1:]))
    page = replace(PAGE, table=table, rates=replace(PAGE.rates, bandwidth_utilization=used))
    text = " ".join(" ".join(plain(line).split()) for line in op_card(page, details(), Pen(200, BLOCK)))
    assert f">100% {words}" in text and " >100% " in text
    assert above_peak(page.table, page.rates, [0, 1]) == [words, None]


def test_cards_are_ascii_where_asked() -> None:
    text = card(details("f32[4,512,512,64]{3,0,2,1:T(4,128)}", matrix=(work(0.5, 64, 128),)), glyphs=ASCII)
    assert text.isascii()


def test_reading_the_details_of_an_op_without_metadata() -> None:
    found = op_details(PAGE, 3)
    assert (found.expression, found.source, found.shapes, found.matrix) == ("", "", (), ())


@pytest.mark.parametrize("height", [0, 1, 3, 50])
def test_a_cut_card_counts_what_is_cut(height: int) -> None:
    lines: list[Line] = [((f"{at:<40}", "text"),) for at in range(10)]
    cut = Pen(40, BLOCK).shortened(lines, height)
    assert len(cut) == min(height, 10)
    if 0 < height < 10:
        assert f"{10 - height + 1} more line" in plain(cut[-1])
