"""The page on what of the peak a model uses, in words and in every format."""

from __future__ import annotations

import pytest

from tests.tui.cli.calls import Call
from tpuprof.parsers.base.errors import EXIT_USAGE


def test_given_flops_are_judged(call: Call) -> None:
    text = " ".join(call("report", "model", "demo", "--model-flops", "9e13").out.split())
    assert "gives more FLOPs than are counted" in text and "HFU 37.5%" in text and "beyond the model's count" in text


@pytest.mark.parametrize("flops", ["0", "-1", "1e999", "many", "1e", "nan"])
def test_what_is_no_amount_is_refused(flops: str, call: Call) -> None:
    sentence, _ = call.error(EXIT_USAGE, "report", "model", "demo", f"--model-flops={flops}")
    assert "is not a number above 0" in sentence
    assert "for the page model" in call.error(EXIT_USAGE, "report", "ops", "demo", "--tokens", "5")[0]


def test_blocks_and_layers_as_csv_with_rows_and_columns_of_choice(call: Call) -> None:
    lines = call("report", "model", "demo", "--by", "block", "--format", "csv").out.splitlines()
    assert lines[0].startswith("block,pass,time_ms,percent,flops") and len(lines) > 10
    words = ("--by", "layer", "--filter", "block=mlp", "--columns", "layer,time_ms", "--format", "csv")
    layer, *rows = call("report", "model", "demo", *words).out.splitlines()
    assert layer == "layer,time_ms" and {row.split(",")[0] for row in rows} == {"layers", "no layer"}
    assert "block, layer" in call.error(EXIT_USAGE, "report", "model", "demo", "--by", "step")[0]
    call.error(EXIT_USAGE, "report", "ledger", "demo", "--by", "layer")
