"""The HBM that the compiled modules with the most time need in both runs."""

from __future__ import annotations

from collections.abc import Sequence

from tpuprof.parsers.base.errors import ProfileError
from tpuprof.parsers.memory.model import HBM, SpaceMemory
from tpuprof.parsers.pages.memory.compiled import CompiledModules
from tpuprof.parsers.pages.ops.ops import UNKNOWN_PROGRAM
from tpuprof.parsers.session.diff.measure import BatchedTimes
from tpuprof.parsers.session.diff.model import ModuleMemory, plain_change

MOST_MODULES = 4
_LEAST_SHARE = 0.005
"""A main program takes at least this share of a step."""


def modules_memory(
    before: BatchedTimes,
    after: BatchedTimes,
    modules: tuple[CompiledModules, CompiledModules],
    labels: tuple[Sequence[str], Sequence[str]],
) -> tuple[ModuleMemory, ...]:
    """The main programs of two runs, those with the most time first.

    Args:
        labels: the program of each row of a run's op table, ``jit_step(7)``.
    """
    compared = []
    for name in _main_programs(before, after):
        problems: list[str] = []
        old, new = (
            _hbm(next((programs[op.row] for op in run.ops if op.program == name), None), compiled, problems)
            for run, compiled, programs in zip((before, after), modules, labels, strict=True)
        )
        compared.append(
            ModuleMemory(
                name=name,
                peak=plain_change(*(None if side is None else side.peak_bytes for side in (old, new))),
                arguments=plain_change(*(None if side is None else side.arguments_bytes for side in (old, new))),
                temporaries=plain_change(*(None if side is None else side.temporaries_bytes for side in (old, new))),
                problem=" ".join(dict.fromkeys(problems)),
            )
        )
    return tuple(compared)


def _main_programs(before: BatchedTimes, after: BatchedTimes) -> list[str]:
    times: dict[str, float] = {}
    for run in (before, after):
        whole = run.whole.mean
        for op, time in zip(run.ops, run.means.tolist(), strict=True):
            if op.program != UNKNOWN_PROGRAM and whole > 0:
                times[op.program] = times.get(op.program, 0.0) + time / whole
    main = sorted((name for name, share in times.items() if share >= _LEAST_SHARE), key=lambda name: -times[name])
    return main[:MOST_MODULES]


def _hbm(label: str | None, modules: CompiledModules, problems: list[str]) -> SpaceMemory | None:
    if label is None:
        problems.append("The program runs in one of the two only.")
        return None
    try:
        return modules.space(modules.find(label), HBM)
    except ProfileError as error:
        unknown = error.code == "unknown_module"
        problems.append(f"The compiled HLO of {label} is not in its profile." if unknown else error.sentence)
        return None
