"""Advice applied literally: which knobs of a program it turns."""

from __future__ import annotations

from collections.abc import Mapping

from tests.bench.oom_proof.cases import Case, Knob
from tpuprof.parsers.memory.oom.model import Change

_KNOBS: Mapping[str, Mapping[str, Knob]] = {
    "attention": {"flash": 1},
    "loss": {"chunks": 8},
    "remat": {"checkpoint": 1},
    "bf16": {"dtype": "bfloat16"},
    "optimizer": {"state": "bfloat16"},
    "gradients": {"gradients": "bfloat16"},
    "duplicates": {"params": "bfloat16"},
    "donation": {"donate": 1},
    "padding": {"points_last": 1},
    "single": {"buffers": 1},
}
CHIPS = {"v5e": 8, "v6e": 8, "v5p": 4, "7x": 4}  # of the worker's topologies; of a 7x two cores are a chip
_TARGETS = {"batch": "batch", "limit": "limit", "shard": "replicas"}


def knobs_after(case: Case, changes: tuple[Change, ...]) -> dict[str, Knob] | None:
    """The program's knobs once all of these changes are made; None where it has no knob for one, or has it turned."""
    knobs = dict(case.knobs)
    for change in changes:
        turned = _turned(case, knobs, change)
        if turned is None:
            return None
        knobs |= turned
    return knobs


def _turned(case: Case, knobs: Mapping[str, Knob], change: Change) -> Mapping[str, Knob] | None:
    target = change.target
    if change.key == "scoped" and target and "block_m" in knobs:
        return {"block_m": int(knobs["block_m"]) // target}
    if change.key in _TARGETS and target:
        wanted: Mapping[str, Knob] = {_TARGETS[change.key]: target}
        if change.key == "shard":
            chips = target * int(knobs.get("replicas", 1))
            if chips * (int(knobs.get("tensor", 0)) or 1) > CHIPS[case.chip]:
                return None  # more chips than the bench compiles for
            wanted = {"replicas": chips, "fsdp": 1}
    else:
        wanted = _KNOBS.get(change.key, {})
    is_new = any(knobs.get(name) != value for name, value in wanted.items())
    return wanted if wanted and wanted.keys() <= knobs.keys() and is_new else None
