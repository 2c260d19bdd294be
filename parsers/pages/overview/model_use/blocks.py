"""Time, FLOPs and bytes of a step by the blocks and the layers of the model."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Literal

import numpy as np

from tpuprof.parsers.base.errors import behind_wall
from tpuprof.parsers.base.intervals import Floats
from tpuprof.parsers.base.record import dataclass, replace
from tpuprof.parsers.base.text import natural_key, printable
from tpuprof.parsers.ops.roofline import holds_ops
from tpuprof.parsers.ops.table import OpTable
from tpuprof.parsers.pages.overview.accounts_of_ops import OpAccounts
from tpuprof.parsers.pages.overview.model_use.hlo_flow import HloFlow, Placed, placed_by_names
from tpuprof.parsers.pages.overview.model_use.names import BLOCK_WORDS, BLOCKS, Block
from tpuprof.parsers.steps.accounts.owners import owner_index

if TYPE_CHECKING:
    from tpuprof.parsers.formats.hlo.modules import HloModule

Row = Block | Literal["no op"]
"""A row is a block, or the time of a step in which no op ran."""

NO_OP: Row = "no op"
ROW_WORDS: Mapping[Row, str] = dict(chain(BLOCK_WORDS.items(), ((NO_OP, "no op ran"),)))
"""What each row has."""

NO_LAYER = "no layer"
MOST_OPS = 8
"""The most ops of a block that are named."""

ROWS: tuple[Row, ...] = (*BLOCKS, NO_OP)

_KNOWN_CLASSES = frozenset(("collective", "host"))


@dataclass(frozen=True, slots=True)
class BlockRow:
    """A block of the model in one of its passes, or in one of its layers.

    Attributes:
        block: which one.
        phase: ``forward``, ``backward``, ``recomputed``; None where names do not give it, and in rows of layers.
        layer: None in rows of blocks.
        time_ps: of the mean step; fraction: of it, 0-1.
        flops: of a step, over all cores; None where they are not counted. `uncounted_ps`: the time of such ops.
        peak_fraction: these FLOPs of what the cores could compute in that time, 0-1; None where unknown.
        hbm_bytes: to and from HBM in a step, over all cores; None where unknown.
        ops: how many distinct ops; largest: those with most of the time, name and time, the longest first.
        by_name_ps: the time of ops whose names give the block; other ops are placed by what they compute and by their
            neighbours.
    """

    block: Row
    phase: str | None
    layer: str | None
    time_ps: float
    fraction: float
    flops: float | None
    peak_fraction: float | None
    uncounted_ps: float
    hbm_bytes: float | None
    ops: int
    largest: tuple[tuple[str, float], ...]
    by_name_ps: float


@dataclass(frozen=True, slots=True)
class Blocks:
    """The mean step by block and pass, and by layer and block; each adds up to it."""

    blocks: tuple[BlockRow, ...]
    layers: tuple[BlockRow, ...]


_NO_BLOCKS = "neither scope names nor matrix products show which block an op belongs to"
_NO_LAYERS = "no scope of the program names a layer"


def unnamed(of: Blocks) -> dict[str, str]:
    """Why all ops of the mean step are in no known block, or in no layer, by key; a key is absent where some are."""
    found = {}
    if of.blocks and {row.block for row in of.blocks} <= {"unknown", NO_OP}:
        found["blocks"] = _NO_BLOCKS
    if of.layers and {row.layer for row in of.layers} == {NO_LAYER}:
        found["layers"] = _NO_LAYERS
    return found


def places_of(table: OpTable, flow: Callable[[int], HloFlow | None]) -> list[Placed]:
    """Where each op of a table belongs.

    Args:
        flow: the compiled program of an id; None where the profile does not hold it.
    """
    classes, found = table.classes(), []
    known = {
        program: None if (of := flow(program)) is None else of.places() for program in set(table.program_id.tolist())
    }
    by_names: dict[tuple[str, str], Placed] = {}
    for row, (program, name, full) in enumerate(
        zip(table.program_id.tolist(), table.name, table.framework_op, strict=True)
    ):
        places = known[program]
        place = None if places is None else places.get(name)
        if place is None or (place.block == "unknown" and full):
            key = (full, name)
            place = by_names.get(key) or by_names.setdefault(key, placed_by_names(full, name))
            block: Block = place.block or place.hint or ("other" if place.is_named else "unknown")
            place = Placed(block, place.phase, place.layer, place.by_name or place.is_named, place.is_named)
        if place.block == "unknown" and classes[row] in _KNOWN_CLASSES:
            place = replace(place, block="other")
        found.append(place)
    same = _same_layers({place.layer for place in found if place.layer is not None})
    return [replace(place, layer=same[place.layer]) if place.layer in same else place for place in found]


def _same_layers(names: Collection[str]) -> dict[str, str]:
    """Layers whose name is the end of exactly one other, as ``layers`` is of ``decoder/layers``, to that name.

    Ops in a loop or a checkpoint sometimes have only the names from there on.
    """
    longer: dict[str, list[str]] = {name: [] for name in names}
    for other in names:
        parts = other.split("/")
        for ahead in range(1, len(parts)):
            if (name := "/".join(parts[ahead:])) in longer:
                longer[name].append(other)
    return {name: others[0] for name, others in longer.items() if len(others) == 1}


def model_blocks(
    of_ops: OpAccounts, table: OpTable, places: Sequence[Placed], cores: int, steps: int, peak: float | None
) -> Blocks:
    """The mean step by block and by layer.

    Args:
        of_ops, table, places: by op, in the same order.
        cores, steps: how many of each the step is the mean of.
        peak: FLOP/s of a core; None where the profile does not give it.
    """
    times = of_ops.owner_ps.sum(axis=1)
    whole = float(times.sum() + of_ops.rest_ps.sum())
    flops = np.full(len(table), np.nan)
    if peak is not None:
        at_peak = of_ops.owner_ps[:, owner_index("ideal")] * of_ops.flops_part
        flops = at_peak * cores * peak / 1e12
    uncounted = of_ops.owner_ps[:, owner_index("uncounted")]
    flops[uncounted > 0] = np.nan
    most = 0.0 if peak is None else cores * peak / 1e12
    columns = _Columns(table.name, times, flops, uncounted, _bytes(table, steps), whole, most)
    of_blocks, of_layers = dict[tuple[Row, str | None], list[int]](), dict[tuple[str, Row], list[int]]()
    for row in np.flatnonzero(times > 0).tolist():
        place = places[row]
        block = place.block or "unknown"
        of_blocks.setdefault((block, place.phase or None), []).append(row)
        of_layers.setdefault((place.layer or NO_LAYER, block), []).append(row)
    blocks = [_row(block, phase, None, rows, columns, places) for (block, phase), rows in of_blocks.items()]
    layers = [_row(block, None, layer, rows, columns, places) for (layer, block), rows in of_layers.items()]
    blocks.sort(key=lambda row: (ROWS.index(row.block), -row.time_ps))
    layers.sort(key=lambda row: (row.layer == NO_LAYER, natural_key(row.layer or ""), ROWS.index(row.block)))
    rest = float(of_ops.rest_ps.sum())
    if rest > 0:
        blocks.append(_no_op(rest, whole, None))
        layers.append(_no_op(rest, whole, NO_LAYER))
    return Blocks(tuple(blocks), tuple(layers))


@dataclass(frozen=True, slots=True)
class _Columns:
    names: Sequence[str]
    times: Floats
    flops: Floats
    uncounted: Floats
    hbm_bytes: Floats
    whole: float
    flops_per_ps: float


def _bytes(table: OpTable, steps: int) -> Floats:
    """float64[ops]: bytes to and from HBM in a step, over all cores; NaN where unknown."""
    self_ps = np.maximum(table.self_ps, 1).astype(np.float64)
    inside = np.clip(table.in_steps_ps / self_ps, 0.0, 1.0)
    return np.where(holds_ops(table), np.nan, table.hbm_bytes * inside / max(steps, 1))


def _row(
    block: Row, phase: str | None, layer: str | None, rows: list[int], of: _Columns, places: Sequence[Placed]
) -> BlockRow:
    time = float(of.times[rows].sum())
    flops = _known(of.flops[rows])
    return BlockRow(
        block=block,
        phase=phase,
        layer=layer,
        time_ps=time,
        fraction=time / of.whole if of.whole else 0.0,
        flops=flops,
        peak_fraction=flops / (of.flops_per_ps * time) if flops is not None and of.flops_per_ps and time else None,
        uncounted_ps=float(of.uncounted[rows].sum()),
        hbm_bytes=_known(of.hbm_bytes[rows]),
        ops=len(rows),
        largest=tuple(
            (of.names[row], float(of.times[row])) for row in sorted(rows, key=lambda row: -of.times[row])[:MOST_OPS]
        ),
        by_name_ps=sum(float(of.times[row]) for row in rows if places[row].by_name),
    )


def _known(values: Floats) -> float | None:
    """The sum of the known values; None without any."""
    return float(np.nansum(values)) if np.isfinite(values).any() else None


def _no_op(rest: float, whole: float, layer: str | None) -> BlockRow:
    return BlockRow(NO_OP, None, layer, rest, rest / whole if whole else 0.0, None, None, 0.0, None, 0, (), 0.0)


def flow_of(modules: Callable[[int], HloModule | None], failed: list[str]) -> Callable[[int], HloFlow | None]:
    """The data flow of programs by their ids, each made once; `failed` gets a sentence for each that can't be."""
    made: dict[int, HloFlow | None] = {}

    def flow(program: int) -> HloFlow | None:
        if program not in made:
            module = modules(program)
            made[program] = None
            if module is not None:
                what = f"follow the compiled HLO of {printable(module.name)}"
                made[program] = behind_wall(what, partial(HloFlow, module), failed, is_decoder=True)
        return made[program]

    return flow
