"""Compiled programs beside real runs of them on TPUs: no op runs faster than its bound allows."""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from graphlib import TopologicalSorter
from pathlib import Path
from statistics import median
from typing import Any

import pytest

from tests.demo.profile.hlo_module import Module
from tpuprof.parsers.base.record import replace
from tpuprof.parsers.formats.hlo.modules import HloModule
from tpuprof.parsers.formats.hlo.parse import read_module_text
from tpuprof.parsers.pages.program.measured import slow_words
from tpuprof.parsers.pages.program.ops import BESIDE, COLLECTIVE, TO_HOST, Measured, program_ops
from tpuprof.tui.cli.main import main

TRAINING = "2041036616644817336"
ARRAY = r"[a-z]\w*\[[^]]*\](?:\{[^}]*\})?"
OPERAND, SHAPE, USED = re.compile(rf"({ARRAY}) %([\w.-]+)"), re.compile(ARRAY), re.compile(r"%([\w.-]+)")
CALLED, ALIAS = re.compile(r"calls=%([\w.-]+)"), re.compile(r"\{(\d*)\}: \((\d+), ")
NO_BODY = {"fusion.617"}
"""XProf does not print what this fusion holds: a slice of one layer, which counts as all layers here."""


def in_order(texts: Mapping[str, str]) -> list[str]:
    """Texts by name, each behind those that it names."""
    named = {
        name: {each for each in USED.findall(text) if each in texts and each != name} for name, text in texts.items()
    }
    return [texts[name] for name in TopologicalSorter(named).static_order()]


def fused(node: Mapping[str, Any]) -> Iterator[tuple[str, list[str]]]:
    """Computations of fusions, and the texts of what they hold: an op profile has them below the op, without runs."""
    below = [each for each in node.get("children", ()) if not each["metrics"].get("occurrences")]
    inside = [each["xla"]["expression"] for each in below if each.get("xla", {}).get("expression")]
    if inside and (match := CALLED.search(node.get("xla", {}).get("expression", ""))):
        yield match[1], inside
    for each in node.get("children", ()):
        yield from fused(each)


def computation(name: str, fusion: str, inside: Sequence[str]) -> str:
    """What a fusion calls, with what XProf leaves out: its parameters, and the tuple that it returns."""
    result, _, operands = fusion.partition(" fusion(")
    used = {name: shape for each in inside for shape, name in OPERAND.findall(each.partition(" = ")[2])}
    own = {each.split()[0][1:]: each.split()[2].partition("{")[0] for each in inside}
    given = [(f"{name}.{number}", shape, number) for number, (shape, _) in enumerate(OPERAND.findall(operands))]
    given += [(one, used[one], int(one.split("_")[1].split(".")[0])) for one in used if one.startswith("param_")][::-1]
    lines = [f"%{one} = {shape} parameter({number})" for one, shape, number in given[::-1]]
    lines += in_order({each.split()[0][1:]: each for each in inside})
    aliases = {int(place or 0): f"{name}.{number}" for place, number in ALIAS.findall(operands)}
    ordered, shapes = sorted(own, key=used.__contains__), SHAPE.findall(result.partition(" = ")[2])
    made = [[one for one in ordered if own[one] == shape.partition("{")[0]] for shape in shapes]
    roots = [found[0] if found else aliases.get(place) for place, found in enumerate(made)]
    if len(roots) > 1:
        lines.append(f"ROOT %{name}.out = ({', '.join(shapes)}) tuple({', '.join(f'%{root}' for root in roots)})")
    lines = [f"ROOT {line}" if roots == [line.split()[0][1:]] else line for line in lines]
    return "" if None in roots else "\n".join((f"%{name} () -> () {{", *(f"  {line}" for line in lines), "}\n"))


def training(folder: Path) -> tuple[HloModule, dict[str, float]]:
    """The program of a real training run, out of what XProf printed of its ops, and the mean picoseconds of each."""
    stats, profile = (
        json.loads(gzip.decompress((folder / f"{name}.json.gz").read_bytes())) for name in ("hlo_stats", "op_profile")
    )
    keys = [column["id"] for column in stats["cols"]]
    rows = [dict(zip(keys, (cell["v"] for cell in row["c"]), strict=True)) for row in stats["rows"]]
    rows = [row for row in rows if row["program_id"] == TRAINING and " while(" not in row["hlo_op_expression"]]
    bodies, texts = dict(fused(profile["byProgram"])), [row["hlo_op_expression"] for row in rows]
    every = [*(each for inside in bodies.values() for each in inside), *texts]
    calls = {match[1]: each for each in every if (match := CALLED.search(each))}
    times = {row["hlo_op_name"]: row["avg_self_time"] * 1e6 for row in rows}
    operands = {name: shape for each in texts for shape, name in OPERAND.findall(each.partition(" = ")[2])}
    given = [f"  %{name} = {shape} parameter(0)" for name, shape in operands.items() if name not in times]
    lines = in_order({name: computation(name, calls[name], bodies[name]) for name in bodies if name in calls})
    lines += [
        "ENTRY %main () -> () {",
        *given,
        *(f"  {each}" for each in in_order(dict(zip(times, texts, strict=True)))),
        "}\n",
    ]
    text = "HloModule jit_train_step, is_scheduled=true\n\n" + "\n".join(lines)
    return HloModule(read_module_text("jit_train_step", text.splitlines(keepends=True))), times


@pytest.mark.shared
def test_no_op_of_a_real_training_run_is_faster_than_its_bound(shared: Path) -> None:
    """Collectives that fusions carry along, slices of layers, updates in place, arrays in VMEM.

    XProf prints no tiles, so that times are told of copies alone.
    """
    module, times = training(shared / "golden/tpu-v5p-training")
    ops = program_ops(module, "TPU v5p")
    parts = {op.name: op.bound_ps / times[op.name] for op in ops if op.bound_ps}
    errors = [abs(sum(op.told_ps) / 2 / times[op.name] - 1) for op in ops if op.told_ps is not None]
    assert len(errors) == 19 and median(errors) < 0.07
    assert {name for name, part in parts.items() if part > 1.02} == NO_BODY
    assert sum(part > 0.7 for part in parts.values()) > 80, "bounds far below the times would hold, and say nothing"


def test_what_carries_a_collective_along_does_not_move_its_arrays() -> None:
    """The op that begins it does, beside others; the one that waits for it, and those between, hand its arrays on."""
    ops = {op.name: op for op in program_ops(HloModule(Module("jit_train_step").proto), "TPU v5e")}
    begun, between, ended = (
        ops[name] for name in ("async-collective-start.6", "fusion.424", "async-collective-done.6")
    )
    assert (begun.reason, begun.bound_ps, begun.hbm_bytes, begun.category) == (BESIDE, 0, 72 << 20, "collective")
    assert (between.reason, between.hbm_bytes, between.category) == ("", (48 + 32 + 256) << 20, "product")
    assert (ended.reason, ended.bound_ps, ended.hbm_bytes, ended.category) == (COLLECTIVE, 0, 0, "collective")


def read(path: Path | str, page: str, capsys: pytest.CaptureFixture[str], *more: str) -> dict[str, Any]:
    assert main(["report", page, str(path), *more, "--json"]) == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


@pytest.mark.shared
def test_what_is_told_of_a_real_run(shared: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Most of its time is copies to and from the host, so nothing is claimed of all; its loops lie in their bands."""
    found = read(shared / "profiles/tpu-v6e-inference", "program", capsys)
    assert found["told_ms"] is None and TO_HOST in found["reason"]
    assert found["bound_ms"] <= found["measured_ms"] == pytest.approx(784, rel=0.01)
    ran = [op for op in found["ops"] if op["measured_ps"] is not None]
    assert all(op["bound_ps"] <= 1.02 * op["measured_ps"] for op in ran if op["bound_ps"])
    loops = [op for op in ran if op["told_ps"] is not None]
    assert [op["category"] for op in loops] == ["loop"] * 3
    assert all(op["told_ps"]["low"] <= op["measured_ps"] <= op["told_ps"]["high"] for op in loops)


def test_measured_is_what_other_pages_say(capsys: pytest.CaptureFixture[str]) -> None:
    found = read("demo", "program", capsys)
    ops = {op["name"]: op for op in read("demo", "ops", capsys)["ops"] if op["program"].startswith(found["module"])}
    (module,) = [row for row in read("demo", "inference", capsys)["modules"] if row["name"].startswith(found["module"])]
    assert (found["measured_ms"], found["occurrences"]) == (pytest.approx(module["average_ms"]), module["runs"])
    ran = [op for op in found["ops"] if op["measured_ps"] is not None]
    assert len(ran) > 200
    for op in ran:
        row = ops[op["name"]]
        assert (op["measured_ps"], op["occurrences"]) == (row["average_self_time_ps"], row["occurrences"])
        middle = 0 if op["told_ps"] is None else sum(op["told_ps"].values()) / 2
        assert op["times"] == (pytest.approx(op["measured_ps"] / middle) if middle else None)
    first, one = found["ops"][0], read("demo", "op", capsys, found["ops"][0]["name"])["compiled"]
    assert {key: one[key] for key in first.keys() & one.keys() - {"tiles"}} == {
        key: first[key] for key in ("bound_ps", "times", "hbm_bytes", "streamed_bytes")
    }
    assert [one["told_low_ps"], one["told_high_ps"]] == [*first["told_ps"].values()]


def test_ops_that_took_clearly_longer_than_told_are_named_by_what_they_lose() -> None:
    """What lost more in many runs comes first; what lies in its band, or lost hardly any time, is left out."""
    module = Module("jit_train_step").proto
    first, *rest = [op for op in program_ops(HloModule(module), "TPU v5e") if op.told_ps][:4]
    factors = ((first, 10, 1.5), *zip(rest, (90, 90, 1), (1.9, 1.0, 1.21), strict=True))
    ops = [replace(op, measured=Measured(runs, factor * op.guess.high)) for op, runs, factor in factors]
    second, other = slow_words(ops)
    assert second.startswith(f"{ops[1].name} took {ops[1].times:.2f} times what its tiles need, ")
    assert other.startswith(f"{first.name} took") and "told, the mean of 10 runs (model.py:62)" in other
    assert slow_words([replace(op, measured=None) for op in ops]) == []
