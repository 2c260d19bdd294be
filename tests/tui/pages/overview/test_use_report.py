"""The page on what of the peak a model uses, in words and in every format."""

from __future__ import annotations

import pytest

from tests.tui.cli.calls import Call
from tpuprof.parsers.base.errors import EXIT_USAGE


def test_the_demo_in_words_and_as_data(call: Call) -> None:
    page = call.json("report", "model", "demo", "--tokens", "8192", "--format", "json")
    assert page["mfu_percent"] == page["hfu_percent"] == pytest.approx(37.4636, abs=1e-4)
    assert page["tokens_per_second"] == pytest.approx(8192 / (page["period_ms"] / 1000))
    assert page["model_flops_from"] == "hlo" and sum(part["percent"] for part in page["parts"]) == pytest.approx(100)
    text = call("report", "model", "demo", "--width", "80").out
    assert "MFU 37.5%, HFU 37.5%, of 4 cores in a step of 255 ms" in " ".join(text.split())
    bars = [line for line in text.partition("─ Blocks")[0].splitlines() if "█" in line]
    assert [line.split("█")[0].strip() for line in bars][-2:] == ["HFU", "MFU"]
    assert bars[-1].index("█") == bars[-2].index("█") > bars[-3].index("█"), "each bar begins where the last one ends"


@pytest.mark.parametrize(
    ("flops", "said"),
    [("4e13", "of 4 cores"), ("9e13", "gives more FLOPs than are counted"), ("9e15", "That is impossible")],
)
def test_given_flops_are_judged(flops: str, said: str, call: Call) -> None:
    text = " ".join(call("report", "model", "demo", "--model-flops", flops).out.split())
    assert said in text and "HFU 37.5%" in text
    assert "beyond the model's count" in text


@pytest.mark.parametrize("flops", ["0", "-1", "1e999", "many", "1e", "nan"])
def test_what_is_no_amount_is_refused(flops: str, call: Call) -> None:
    sentence, _ = call.error(EXIT_USAGE, "report", "model", "demo", f"--model-flops={flops}")
    assert "is not a number above 0" in sentence
    assert "for the page model" in call.error(EXIT_USAGE, "report", "ops", "demo", "--tokens", "5")[0]


def test_tokens_are_those_of_the_program_where_none_are_given(call: Call) -> None:
    page = call.json("report", "model", "demo", "--format", "json")
    assert (page["tokens"], page["tokens_from"], page["tokens_are"]) == (16_384, "hlo", "tokens")
    assert page["tokens_per_second"] == pytest.approx(16_384 / (page["period_ms"] / 1000))
    given = call.json("report", "model", "demo", "--tokens", "8192", "--format", "json")
    assert (given["tokens"], given["tokens_from"], given["tokens_are"]) == (8192, "given", None)


def test_blocks_layers_and_memory_in_every_format(call: Call) -> None:
    page = call.json("report", "model", "demo", "--format", "json")
    blocks = {(row["block"], row["pass"]): row for row in page["blocks"]}
    assert blocks["mlp", "backward"]["op"] and blocks["mlp", "backward"]["flops"] > 1e13
    assert blocks["no op", None]["flops"] is None and "unknown" in {row["block"] for row in page["blocks"]}
    text = " ".join(call("report", "model", "demo", "--width", "100").out.split())
    assert "Blocks of the mean step" in text and "Layers" in text and "Memory at the peak" in text
    markdown = call("report", "model", "demo", "--format", "md").out
    assert "## Blocks" in markdown and "| attention | backward |" in markdown and "## Lost to training" in markdown
    narrow = call("report", "model", "demo", "--width", "60").out
    assert max(map(len, narrow.splitlines())) <= 60


def test_blocks_layers_and_memory_as_csv_with_rows_and_columns_of_choice(call: Call) -> None:
    lines = call("report", "model", "demo", "--by", "block", "--format", "csv").out.splitlines()
    assert lines[0].startswith("block,pass,time_ms,percent,flops") and len(lines) > 10
    words = ("--by", "layer", "--filter", "block=mlp", "--columns", "layer,time_ms", "--format", "csv")
    layer, *rows = call("report", "model", "demo", *words).out.splitlines()
    assert layer == "layer,time_ms" and {row.split(",")[0] for row in rows} == {"layers", "no layer"}
    memory = call("report", "model", "demo", "--by", "memory", "--sort", "size_bytes", "--format", "csv").out
    sizes = [int(line.split(",")[1]) for line in memory.splitlines()[1:]]
    assert sizes == sorted(sizes, reverse=True) and sum(sizes) > 0
    assert "block, layer, memory" in call.error(EXIT_USAGE, "report", "model", "demo", "--by", "step")[0]
    call.error(EXIT_USAGE, "report", "ledger", "demo", "--by", "layer")
