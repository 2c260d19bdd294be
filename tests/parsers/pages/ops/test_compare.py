"""Two ops side by side: what the sentences say."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.support.made.big_table import big_page
from tpuprof.parsers.ops.roofline import table_rates
from tpuprof.parsers.ops.table import OpTable
from tpuprof.parsers.pages.ops.compare import arrays_of, compare_ops
from tpuprof.parsers.pages.ops.ops import OpsPage

TEXT = "%{name} = bf16[{rows},{columns}]{{1,0:T(8,128)(2,1)}} fusion(f32[64,128]{{1,0:T(8,128)}} %p)"


def page_of(
    monkeypatch: pytest.MonkeyPatch, total_us: tuple[int, int], tflops: tuple[float, float], shapes: tuple[str, str]
) -> OpsPage:
    """Two ops that ran once each, with FLOPs and a text, on a device of 100 TFLOP/s."""
    page = big_page(2)
    total = np.array(total_us, np.int64) * 1_000_000
    flops = np.array(tflops) * 1e12
    table = replace(
        page.table,
        name=("fast.1", "slow.2"),
        category=("loop fusion", "loop fusion"),
        occurrences=np.ones(2, np.int64),
        total_ps=total,
        self_ps=total,
        normalized_ps=total.astype(np.float64),
        flops=flops,
        model_flops=flops,
        bytes_accessed=np.full(2, 1e6),
        traffic=np.array([[1e6, *[0.0] * 6]] * 2),
    )
    monkeypatch.setattr(OpTable, "expression", lambda _, row: shapes[row])
    return replace(page, table=table, rates=table_rates(table, page.peaks))


SAME = (TEXT.format(name="fast.1", rows=64, columns=128), TEXT.format(name="slow.2", rows=64, columns=128))


@pytest.mark.parametrize(
    ("total_us", "tflops", "sentence"),
    [
        ((10, 20), (5e-4, 1e-3), "it has 2 times the FLOPs, at about the same rate"),
        ((10, 20), (5e-4, 5e-4), "as much work (FLOPs) at a lower rate, 25.0% of the roof against 50.0%"),
        (
            (10, 40),
            (5e-4, 1e-3),
            "2 times of that is more FLOPs, the rest a lower rate (25.0% of the roof against",
        ),
        ((10, 11), (5e-4, 1e-3), "it has 2 times the FLOPs, done at a higher rate"),
        ((10, 20), (1e-3, 5e-4), "it has only 0.5 times the FLOPs, at a much lower rate"),
        ((10, 20), (5e-3, 1e-3), "its rates mean nothing"),
    ],
)
def test_why_one_takes_longer(
    monkeypatch: pytest.MonkeyPatch, total_us: tuple[int, int], tflops: tuple[float, float], sentence: str
) -> None:
    pages = page_of(monkeypatch, total_us, tflops, SAME)
    for pair in (compare_ops(pages, 0, 1), compare_ops(pages, 1, 0)):  # whichever is marked
        assert (
            pair.sentences[0].startswith("A run of slow.2 takes ") and "as long as one of fast.1: " in pair.sentences[0]
        )
        assert sentence in pair.sentences[0]
        assert pair.sentences[-1] == "Their shapes and layouts are the same."


def test_equal_times_and_unknown_ones() -> None:
    page = big_page(2)
    table = replace(page.table, total_ps=np.array([100, 101]), occurrences=np.ones(2, np.int64))
    assert (
        compare_ops(replace(page, table=table), 0, 1).sentences[0]
        == "A run of either takes the same time, within 5.0%."
    )
    none = replace(page.table, total_ps=np.array([100, 0]))
    assert compare_ops(replace(page, table=none), 0, 1).sentences[0] == "The profile has no time for one of them."
    assert "lacks the HLO text" in compare_ops(page, 0, 1).sentences[-1]


def test_what_is_made_differently(monkeypatch: pytest.MonkeyPatch) -> None:
    padded = TEXT.format(name="slow.2", rows=64, columns=65)
    page = page_of(monkeypatch, (10, 20), (5e-4, 1e-3), (SAME[0], padded))
    sentences = compare_ops(page, 0, 1).sentences
    assert "Their shapes differ." in sentences
    assert any(text.startswith("Padding adds") and "slow.2" in text for text in sentences)
    in_vmem = SAME[1].replace("(2,1)}", "(2,1)S(1)}")
    page = page_of(monkeypatch, (10, 20), (5e-4, 1e-3), (SAME[0], in_vmem))
    assert "Their shapes are the same, their layouts or memories are not." in compare_ops(page, 0, 1).sentences


def test_arrays_have_their_padding() -> None:
    result, operand = arrays_of(TEXT.format(name="a", rows=64, columns=65))
    assert (result.shape, result.layout) == ("bf16[64,65]", "{1,0:T(8,128)(2,1)}")
    assert (result.plain, result.padding) == (64 * 65 * 2, 64 * 63 * 2)
    assert operand.padding == 0
    assert arrays_of("no shapes here") == ()
