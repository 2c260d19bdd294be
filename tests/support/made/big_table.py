"""A page of as many made-up HLO ops as one likes, without a profile behind it."""

from __future__ import annotations

import numpy as np

from tpuprof.parsers.ops.device import Peaks
from tpuprof.parsers.ops.op_metadata import TRAFFIC
from tpuprof.parsers.ops.roofline import table_rates
from tpuprof.parsers.ops.table import EMPTY_TABLE, OpTable
from tpuprof.parsers.pages.ops.ops import OpsPage

CATEGORIES = ("loop fusion", "convolution fusion", "all-reduce", "copy-done", None)


def big_table(rows: int) -> OpTable:
    """So many ops, self time descending."""
    random = np.random.default_rng(7)
    self_ps = np.sort(random.integers(1, 10**9, rows))[::-1].copy()
    occurrences = random.integers(1, 500, rows)
    flops = random.uniform(0, 1e9, rows) * occurrences
    return OpTable(
        program_id=np.full(rows, 7, np.uint64),
        symbol_id=np.arange(1, rows + 1, dtype=np.uint64),
        has_ids=np.ones(rows, np.bool_),
        name=tuple(f"fusion.{number}" for number in range(rows)),
        category=tuple(CATEGORIES[number % len(CATEGORIES)] for number in range(rows)),
        framework_op=tuple(f"jit(step)/layer_{number % 64}/dot_general:" for number in range(rows)),
        occurrences=occurrences,
        total_ps=self_ps,
        self_ps=self_ps,
        minimum_ps=self_ps // occurrences,
        in_steps_ps=np.zeros(rows, np.int64),
        normalized_ps=self_ps.astype(np.float64),
        dma_stall_ps=np.full(rows, np.nan),
        flops=flops,
        model_flops=flops,
        bytes_accessed=random.uniform(0, 1e6, rows) * occurrences,
        traffic=random.uniform(0, 1e6, (rows, len(TRAFFIC))) * occurrences[:, None],
        energy_j=np.full(rows, np.nan),
        parent=("",) * rows,
        source=np.full(rows, -1, np.int64),
        metadata_row=np.full(rows, -1, np.int64),
        sources=(),
    )


def big_page(rows: int) -> OpsPage:
    table = big_table(rows)
    peaks = Peaks(flops_per_second=100e12, hbm=1e12, on_chip_read=5e12, on_chip_write=4e12)
    total = int(table.self_ps.sum())
    fraction = table.self_ps / total
    return OpsPage(
        hosts=("host0",),
        device_type="TPU test",
        core_count=1,
        peaks=peaks,
        table=table,
        offloaded=EMPTY_TABLE,
        program=("jit_step(7)",) * rows,
        op_class=table.classes(),
        rates=table_rates(table, peaks),
        total_ps=total,
        idle_ps=0,
        self_fraction=fraction,
        cumulative_fraction=np.cumsum(fraction),
        time_scale=None,
        simulated=False,
        unknown={},
        warnings=(),
    )
