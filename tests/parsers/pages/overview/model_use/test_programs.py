"""Which block each op belongs to, of small models that a TPU compiler compiled, against the lines they are written in.

The truth knows no name of a scope: see `compile_programs.py`. Programs of `SEEN` are those that the rules were made
with; `LATER` were compiled before the rules had met them, and of each the first share is noted beside what it is now.
"""

from __future__ import annotations

import json
import lzma
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from tpuprof.parsers.formats.hlo.modules import HloModule
from tpuprof.parsers.formats.proto import hlo_pb2
from tpuprof.parsers.pages.overview.model_use.hlo_flow import HloFlow

COMPILED = Path(__file__).parent / "compiled"

SEEN = {"flax_gpt": 0.99, "plain_lm": 0.98}
"""Least share of the time that is put into the right block; `plain_lm` has no scopes at all."""

LATER = {
    # name: what it is now, what it was at first sight
    "haiku_lm": (0.99, 0.770),
    "equinox_lm": (0.99, 0.994),
    "nnx_llama": (0.99, 0.985),
    "maxtext_moe": (0.99, 0.938),
    "vit_flax": (0.98, 0.987),
    "t5_flax": (0.96, 0.968),
    "scan_plain": (0.96, 0.964),
    "decode_plain": (0.99, 0.998),
}
MOST_WRONG = 0.015
"""Of the time, in a block that is not the truth's, where ``other`` and ``unknown`` are no such claim."""


@cache
def flow(name: str) -> HloFlow:
    data = lzma.decompress((COMPILED / f"{name}.pb.xz").read_bytes())
    return HloFlow(HloModule(hlo_pb2.HloProto.FromString(data)))


def judged(name: str) -> Iterator[tuple[str, str, int]]:
    """Truth, answer and time of each instruction whose truth is known."""
    places = flow(name).places()
    noted: dict[str, tuple[str | None, int]] = json.loads((COMPILED / f"{name}.json").read_text())
    for op, (block, ps) in noted.items():
        if block is not None and op in places:
            yield block, places[op].block or "", ps


@pytest.mark.parametrize(("name", "least"), [*SEEN.items(), *((name, now) for name, (now, _) in LATER.items())])
def test_most_of_the_time_is_in_the_right_block(name: str, least: float) -> None:
    of = Counter[str]()
    for truth, answer, ps in judged(name):
        of["all"] += ps
        of["right"] += ps * (truth == answer)
        of["wrong"] += ps * (answer not in (truth, "other", "unknown"))
    assert of["right"] >= least * of["all"] > 0
    assert of["wrong"] <= MOST_WRONG * of["all"]


def test_no_product_of_a_program_without_scopes_is_in_a_wrong_block() -> None:
    blocks = {"attention", "mlp", "loss"}
    wrong = [
        (truth, answer) for truth, answer, ps in judged("plain_lm") if truth in blocks and answer in blocks - {truth}
    ]
    assert not wrong


def test_passes_and_layers_are_those_of_the_names() -> None:
    places = flow("flax_gpt").places().values()
    assert {place.layer for place in places if place.layer} == {f"GPT/h_{number}" for number in range(3)}
    assert {place.phase for place in places if place.block == "mlp"} >= {"forward", "backward"}
    scanned = flow("maxtext_moe").places().values()
    assert any(place.phase == "recomputed" for place in scanned)
    assert {place.layer for place in scanned if place.layer} == {"Transformer/decoder/layers", "layers"}
