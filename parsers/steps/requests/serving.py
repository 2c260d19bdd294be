"""What the modules of a program that serves do, judged by their names and arguments."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

import numpy as np

from tpuprof.parsers.base.regex import pattern
from tpuprof.parsers.base.text import printable
from tpuprof.parsers.formats.hlo.programs import HloModules
from tpuprof.parsers.steps.boundaries.cycles import Cycle, cycle_of
from tpuprof.parsers.steps.boundaries.runs import ModuleRuns

_PHASES = {"prefill": r"prefill|context_encod", "decode": r"decode|generat|token_gen", "sampling": r"sampl|logits"}


def phase_of(name: str) -> str | None:
    """What a module of a program that serves does, judged by its name: ``prefill``, ``decode``, ``sampling``."""
    found = [phase for phase, words in _PHASES.items() if re.search(words, name, re.IGNORECASE)]
    return " and ".join(found) or None


def answers_requests(name: str) -> bool:
    """Whether a module's name says that it is of a program that serves."""
    return phase_of(name) is not None or re.search(r"serv|infer|step_fun|predict", name, re.IGNORECASE) is not None


_TRAINS = pattern(r"train|grad|loss|backward|apply|update|optim|learn", re.IGNORECASE)


def serves(names: Iterable[str]) -> bool:
    """Whether modules of these names answer requests, and none trains."""
    return any(map(answers_requests, names := tuple(names))) and not trains(names)


def trains(names: Iterable[str]) -> bool:
    """Whether the name of one of some modules says that it trains."""
    return any(map(_TRAINS.search, names))


def step_cycle(cores: Sequence[ModuleRuns]) -> Cycle | None:
    """The cycle of programs that makes the steps of some cores; None without one, or where it answers requests."""
    cycle = cycle_of(cores)
    return None if cycle is None or serves(name for name, _ in cycle.blocks) else cycle


MOST_PARSED = 12
"""Compiled modules that are looked at; others get no inputs."""

MOST_INPUTS = 2
"""Arguments that are named of a module."""

_WHOLE_NUMBERS = ("s32", "s64")  # of 8 and 4 bits are quantized weights, without a sign the keys of random numbers


def batch_inputs(names: Sequence[str], programs: Sequence[HloModules]) -> dict[str, tuple[str, ...]]:
    """The arguments of modules that show what batch they take, such as ``tokens s32[8,1]``.

    These are arrays of whole numbers, such as tokens and their places, and what differs from a module of the same name
    that was compiled for other shapes. Arrays of whole numbers stand first, and of each kind smaller ones.

    Args:
        names: of modules with their program ids, ``jit_decode(7)``, the most important first.
        programs: the hosts' compiled modules, parsed as they are needed.
    """
    arguments = {name: found for name in names[:MOST_PARSED] if (found := _arguments(name, programs))}
    told: dict[str, tuple[str, ...]] = {}
    for name, own in arguments.items():
        base = name.partition("(")[0]
        others = [of for other, of in arguments.items() if other != name and other.partition("(")[0] == base]
        inputs = [
            (
                kind not in _WHOLE_NUMBERS,
                float(np.prod(shape, dtype=np.float64)),
                f"{label} {kind}[{','.join(map(str, shape))}]",
            )
            for at, (label, kind, shape) in enumerate(own)
            if shape and (kind in _WHOLE_NUMBERS or any(of[at : at + 1] != own[at : at + 1] for of in others))
        ]
        told[name] = tuple(dict.fromkeys(text.strip() for _, _, text in sorted(inputs)))[:MOST_INPUTS]
    return told


def _arguments(name: str, programs: Sequence[HloModules]) -> Sequence[tuple[str, str, tuple[int, ...]]]:
    """What a module calls each of its arguments, its type and dimensions; none where the profile lacks its HLO."""
    number = name.rpartition("(")[2].removesuffix(")")
    found = (of.module(int(number)) for of in programs) if number.isdigit() else ()
    module = next(filter(None, found), None)
    return () if module is None else [(printable(label), kind, shape) for label, kind, shape in module.arguments()]
