"""Products whose tiles stream their operands from HBM so often that this takes longer than multiplying."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from tpuprof.parsers.base.errors import Damaged
from tpuprof.parsers.base.words import share, time
from tpuprof.parsers.pages.findings.budget import Budget, Claimed, detects
from tpuprof.parsers.pages.findings.ops.bandwidth import MEMORY_BOUND
from tpuprof.parsers.pages.findings.ops.groups import REACHED, module_of, subject, worthwhile
from tpuprof.parsers.pages.findings.ops.products import products_of
from tpuprof.parsers.pages.shared.key import Later

if TYPE_CHECKING:
    from tpuprof.parsers.pages.findings.finding import Evidence

ProgramOp: TypeAlias = Any  # of `parsers.pages.program.ops`, a page above this one, which few profiles need here
_op_of = Later("tpuprof.parsers.pages.program.ops:op_of")
_streaming_ps: Callable[[ProgramOp, str | None], float] = Later("tpuprof.parsers.pages.program.ops:streaming_ps")
_MOST_READ = 64  # products of which it reads the tiles, the largest first
_EXPLAINED, _MORE = 0.6, 1.5
"""Streaming explains a product's time if it takes this part of it, and moves so many times the bytes of its arrays."""

_ADVICE = (
    "Compile with a higher xla_tpu_scoped_vmem_limit_kib, such as 65536 on chips with 128 MiB of VMEM, so that "
    "windows can be larger, and compare: tpuprof-tui diff A B. What that wins differs: one product on a v6e took "
    "5.19 ms with 32 MiB, 4.50 with 64, and 4.68 with 96."
)


@detects(MEMORY_BOUND)
def streamed_operands(budget: Budget) -> Claimed:
    """Products of which HBM is the limit because their windows are small, and not their arrays large."""
    evidence, products = budget.evidence, budget.once(products_of)
    slow = [row for row in products.rows.tolist() if not products.used[products.at(row)] >= REACHED][:_MOST_READ]
    found = {row: op for row in slow if (op := _streaming(evidence, row)) is not None}
    part = [_avoidable(evidence, found, row) for row in products.rows.tolist()]
    losing = worthwhile(budget, products.rows, products.times * np.array(part))
    first = losing.first
    op, name = found[first], subject(evidence.table, losing.groups[0])
    most, streaming = max(read.streams for read in op.streamed), _streaming_ps(op, evidence.device_type)
    return losing.finding(
        MEMORY_BOUND,
        f"{name} streams arrays from HBM up to {most} times",
        f"Time above what the FLOPs of these products need at {share(REACHED)} of the peak, or their arrays once at "
        f"{share(REACHED)} of HBM's: the most that larger windows can win.",
        [
            losing.words(),
            f"In {budget.described(first)}, {op.tile_words}.",
            f"It takes {time(_mean_ps(evidence, first))} a run; this traffic alone takes {time(streaming)} at "
            f"{share(op.traffic_ps / streaming)} of HBM's peak, and its FLOPs {time(op.compute_ps or 0)} at theirs.",
        ],
        advice=_ADVICE,
    )


def _avoidable(evidence: Evidence, found: Mapping[int, ProgramOp], row: int) -> float:
    """The part (0-1) of an op's time above the larger of its FLOPs and of its arrays once."""
    return max(0.0, 1 - (found[row].bound_ps or 0) / REACHED / _mean_ps(evidence, row)) if row in found else 0.0


def _streaming(evidence: Evidence, row: int) -> ProgramOp | None:
    """What a product is compiled to, where streaming takes longer than multiplying, and explains its time."""
    module, name = module_of(evidence, row), evidence.table.name[row]
    proto = None if module is None else module.instruction_proto(name)
    if module is None or proto is None or b'"window_config"' not in module.backend_config(proto):
        return None
    op: ProgramOp | None = None
    with contextlib.suppress(Damaged):
        op = _op_of(module, name, evidence.device_type)
    if op is None or op.reason or op.streamed_bytes < _MORE * op.hbm_bytes:
        return None
    streaming = _streaming_ps(op, evidence.device_type)
    return op if streaming >= max(op.compute_ps or 0, _EXPLAINED * _mean_ps(evidence, row)) else None


def _mean_ps(evidence: Evidence, row: int) -> float:
    return float(evidence.table.self_ps[row]) / max(int(evidence.table.occurrences[row]), 1)
