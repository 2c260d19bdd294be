"""Time and work by HLO op as columns, one row for each op, and the ops' texts in the profile on demand."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tpuprof.parsers.base.intervals import Bools, Floats, Int64s, no_ints
from tpuprof.parsers.base.op_class import OpClass
from tpuprof.parsers.base.record import Sized, dataclass, fields, replace
from tpuprof.parsers.base.regex import pattern
from tpuprof.parsers.ops.device import HOST_TRANSFER, depends_on_name, is_across_slices, op_class
from tpuprof.parsers.ops.framework_op import UNKNOWN_TYPE, parse_framework_op
from tpuprof.parsers.ops.op_metadata import TRAFFIC, MetadataStats, OpSource

if TYPE_CHECKING:
    from tpuprof.parsers.formats.hlo.programs import HloModules

_NUMBER = pattern(r"\d+")
_TRANSFER = pattern(r"send|recv")
_JIT = pattern(r"jit\(([^()]+)\)")
_NO_WORD = pattern(r"\W")
_SIZES = pattern(r"-[a-z]+_\d+-")
"""As vLLM's kernels have them in their names: ``RPA-bq_32-bkvp_64-``."""
_CLONE = pattern(r"(\.\d+|\.clone|\.remat\d*)+\Z")


@dataclass(frozen=True, slots=True)
class OpTable(Sized):
    """One row for each distinct HLO op.

    Attributes:
        program_id, symbol_id: uint64[n]; both 0 for an op that the profile does not identify.
        has_ids: bool[n]; whether the profile identifies the op.
        name: short name of the op (``fusion.7``).
        category: HLO category, None where missing.
        framework_op: the `tf_op` stat (``jit(f)/…/dot_general:``), empty where missing.
        occurrences: int64[n].
        total_ps, self_ps, minimum_ps: int64[n]; sums over occurrences, and the shortest one.
        in_steps_ps: int64[n]; self time of the occurrences that start in a step whose ops were recorded; 0 where nobody
            asked for steps.
        normalized_ps: float64[n]; total time at the device's nominal clock: each event's time multiplied by its
            `Time Scale Multiplier`, as far as the profile has multipliers.
        has_time_scale: whether any op event had a multiplier.
        dma_stall_ps: float64[n]; time stalled by DMA; NaN where no event records it.
        flops, model_flops, bytes_accessed: float64[n]; work over all occurrences; NaN where the profile has none.
        traffic: float64[n, len(TRAFFIC)]; bytes over all occurrences by memory; NaN where unknown. Where the profile
            never gives an op's bytes by memory, all of them count as HBM's, as in XProf's tables.
        energy_j: float64[n]; energy that the core drew meanwhile, in joules; NaN where no event records it.
        parent: the TensorCore op that a SparseCore ran the op for; empty for the ops of a TensorCore itself.
        source: int64[n]; which of `sources` has the op's texts, -1 for none.
        metadata_row: int64[n]; the op's row in that source.
        sources: event metadata of the planes that the rows come from.
    """

    sized_by = "name"
    program_id: NDArray[np.uint64]
    symbol_id: NDArray[np.uint64]
    has_ids: Bools
    name: tuple[str, ...]
    category: tuple[str | None, ...]
    framework_op: tuple[str, ...]
    occurrences: Int64s
    total_ps: Int64s
    self_ps: Int64s
    minimum_ps: Int64s
    in_steps_ps: Int64s
    normalized_ps: Floats
    dma_stall_ps: Floats
    flops: Floats
    model_flops: Floats
    bytes_accessed: Floats
    traffic: Floats
    energy_j: Floats
    parent: tuple[str, ...]
    source: Int64s
    metadata_row: Int64s
    sources: tuple[OpSource, ...]
    has_time_scale: bool = False

    @property
    def hbm_bytes(self) -> Floats:
        """float64[n]: bytes to and from HBM over all occurrences, NaN where unknown."""
        return self.traffic[:, TRAFFIC.index("hbm")]

    def classes(self) -> tuple[OpClass, ...]:
        with_flops = np.nan_to_num(self.flops) > 0
        types: dict[str, str] = {}
        if not with_flops.any():  # as on GPUs
            types = {full: parse_framework_op(full).type for full in set(self.framework_op) if full}
        of_framework = (types.get(full, "") for full in self.framework_op)
        by_name = {category for category in set(self.category) if category and depends_on_name(category)}
        pairs = zip(self.category, self.name, strict=True)
        decisive = (name if category in by_name else "" for category, name in pairs)
        kinds = list(zip(self.category, decisive, with_flops.tolist(), of_framework, strict=True))
        known = {kind: op_class(*kind) for kind in set(kinds)}  # there are few
        return tuple([known[kind] for kind in kinds])

    def take(self, rows: NDArray[np.intp]) -> OpTable:
        picked = rows.tolist()
        columns: dict[str, Any] = {name: getattr(self, name)[rows] for name in _COLUMNS}
        columns |= {name: tuple(map(getattr(self, name).__getitem__, picked)) for name in TEXTS}
        return replace(self, **columns)

    def without(self, occurrences: Int64s, self_ps: Int64s) -> OpTable:
        """The table without some occurrences of each op; but for self time, what they did is the mean of all."""
        left = self.occurrences - occurrences
        share = left / np.maximum(self.occurrences, 1)
        columns: dict[str, Any] = {name: (getattr(self, name).T * share).T for name in _WORK}
        own, total = self.self_ps - self_ps, np.rint(self.total_ps * share).astype(np.int64)
        total = np.where(self.total_ps == self.self_ps, own, np.maximum(total, own))
        return replace(self, occurrences=left, self_ps=own, total_ps=total, **columns).take(np.flatnonzero(left))

    def texts(self, stat: str, rows: NDArray[np.intp] | None = None) -> list[str]:
        """A text stat of each row's event metadata (``source``, ``deduplicated_name``); empty where there is none."""
        chosen = np.arange(len(self)) if rows is None else rows
        out = [""] * len(chosen)
        source = self.source[chosen]
        for number, known in enumerate(self.sources):
            mine = np.flatnonzero(source == number)
            if len(mine):
                values = MetadataStats(known, self.metadata_row[chosen[mine]], (stat,)).texts(stat)
                for index, value in zip(mine.tolist(), values, strict=True):
                    out[index] = value or ""
        return out

    def is_rematerialized(self, row: int) -> bool:
        """Whether an op is computed a second time to save memory, by its names, as XProf decides it."""
        return ".remat" in self.name[row] or "rematted_computation" in self.framework_op[row]

    def is_outside_compilation(self, row: int) -> bool:
        """Whether an op sends to code that the host runs in its middle, or waits for it, by XProf's two signs."""
        if self.framework_op[row].endswith((":XlaSendToHost", ":XlaRecvFromHost")):
            return True
        if not _TRANSFER.search(f"{self.category[row]} {self.name[row]}"):
            return False  # nothing else has that mark, and its text need not be looked up
        expression = self.expression(row)
        return "send-done" in expression and "is_host_transfer=true" in expression

    def is_across_slices(self, row: int, modules: Callable[[], Iterable[HloModules]]) -> bool:
        """Whether an op sends to other slices or receives from them; asks for compiled HLO only of such as may."""
        category = self.category[row] or ""
        if not HOST_TRANSFER.search(category):
            return False
        found = (each.module(int(self.program_id[row])) for each in modules())
        module = next((each for each in found if each is not None), None)
        proto = None if module is None else module.instruction_proto(self.name[row])
        attributes = None if proto is None else proto.frontend_attributes.map
        return is_across_slices(category, self.expression(row), self.framework_op[row], attributes)

    def expression(self, row: int) -> str:
        """The op's full HLO text (``%fusion.7 = f32[8] fusion(…)``); empty where the profile has lost it."""
        source = int(self.source[row])
        return "" if source < 0 else self.sources[source].events.name(int(self.metadata_row[row]))


TEXTS = ("name", "category", "framework_op", "parent")
_SUMMED = ("occurrences", "total_ps", "self_ps", "in_steps_ps")
_WORK = ("normalized_ps", "dma_stall_ps", "flops", "model_flops", "bytes_accessed", "traffic", "energy_j")
_COLUMNS = [field.name for field in fields(OpTable) if field.name not in (*TEXTS, "sources", "has_time_scale")]


@dataclass(frozen=True, slots=True)
class FrameworkGroups:
    """HLO ops by the framework op that they come from; an op without one stands for itself.

    Attributes:
        name, type: name and type of each group; `UNKNOWN_TYPE` where the profile does not record the type.
        group: int64[n], the group of each op.
    """

    name: tuple[str, ...]
    type: tuple[str, ...]
    group: Int64s


def framework_groups(table: OpTable) -> FrameworkGroups:
    """Groups the ops of a table by framework op, in the order in which these occur."""
    number: dict[str, int] = {}
    types: list[str] = []
    parsed = {full: parse_framework_op(full) for full in dict.fromkeys(table.framework_op) if full}
    group = np.empty(len(table), np.int64)
    for row, full in enumerate(table.framework_op):
        op = parsed.get(full)
        name = op.name if op else table.name[row]
        if name not in number:
            number[name] = len(number)
            types.append((op.type if op else "") or UNKNOWN_TYPE)
        group[row] = number[name]
    return FrameworkGroups(tuple(number), tuple(types), group)


def without_number(name: str) -> str:
    """An op's name without what distinguishes its copies: ``fusion.7.remat2`` becomes ``fusion``."""
    return _CLONE.sub("", name)


def kernel_name(table: OpTable, row: int) -> str:
    """A custom call's kernel: its own name or the function that calls it, else the op's name without its number.

    One function may call several kernels, such as those of a forward and a backward pass. The name that a kernel was
    given is then better, unless it only adds block sizes or a word to that of the function.
    """
    before, called, _ = table.framework_op[row].partition("pallas_call")
    outer, *called_in = _JIT.findall(before) or ("",)
    inner = [name for name in called_in if name not in (outer, "main")]  # what older versions of JAX put around all
    of_op = without_number(table.name[row])
    scopes = [part for part in before.split("/") if part and "(" not in part]
    scope = scopes[-1] if scopes and called else ""
    if not inner:
        return scope or of_op
    is_own = scope and before.endswith(f"{scope}/") and _NO_WORD.sub("_", scope) == _NO_WORD.sub("_", of_op)
    is_more = is_own and not scope.startswith(inner[-1]) and not _SIZES.search(scope)
    return scope if is_more else inner[-1]


def clone_keys(table: OpTable, rows: NDArray[np.intp] | None = None) -> list[tuple[str, ...]]:
    """What ops have in common with their clones: ops that are one for the reader have one key.

    Clones are duplicates by the compiler's word (`deduplicated_name`), or have the same category and the same
    framework op and name but for numbers, as the layers of an unrolled loop have.

    Args:
        rows: which ops; None for all.
    """
    chosen = range(len(table)) if rows is None else rows.tolist()
    scopes: dict[str, str] = {}
    keys: list[tuple[str, ...]] = []
    for row, duplicate in zip(chosen, table.texts("deduplicated_name", rows), strict=True):
        full, category, name = table.framework_op[row], table.category[row] or "", duplicate or table.name[row]
        if full not in scopes:
            scopes[full] = _NUMBER.sub("#", full)
        scope = scopes[full]
        keys.append((category, scope, _NUMBER.sub("#", without_number(name))) if scope else (category, "", name))
    return keys


def most_frequent(group: Int64s, occurrences: Int64s, count: int) -> Int64s:
    """int64[count]: how often each group's most frequent op occurs, which XProf takes as the framework op's number."""
    out = np.zeros(count, np.int64)
    np.maximum.at(out, group, occurrences)
    return out


def merge_tables(tables: Sequence[OpTable]) -> OpTable:
    """Adds up rows of several cores or hosts by program id and symbol id, or by program id and name without ids.

    What SparseCores ran for different ops stays apart. An op's metadata comes from the first table that has it.
    """
    tables = [table for table in tables if len(table)]
    if not tables:
        return EMPTY_TABLE
    names = [name for table in tables for name in table.name]
    categories = [category for table in tables for category in table.category]
    framework = [op for table in tables for op in table.framework_op]
    has_ids = np.concatenate([table.has_ids for table in tables])
    program = np.concatenate([table.program_id for table in tables])
    symbol = np.where(has_ids, np.concatenate([table.symbol_id for table in tables]), np.uint64(0))
    by_name: dict[str, int] = {}
    for row in np.flatnonzero(~has_ids):
        symbol[row] = by_name.setdefault(names[row], len(by_name))
    parents = [parent for table in tables for parent in table.parent]
    number = {parent: place for place, parent in enumerate(dict.fromkeys(parents))}
    parent = np.fromiter(map(number.__getitem__, parents), np.int32, len(parents))
    keys = (symbol, program, has_ids, parent)
    order = np.lexsort(keys)
    changed = np.logical_or.reduce([column[order][1:] != column[order][:-1] for column in keys])
    first = np.flatnonzero(np.append(True, changed))
    lead = order[first]

    def integers(column: str) -> Int64s:
        return np.add.reduceat(np.concatenate([getattr(table, column) for table in tables])[order], first)

    def floats(column: str) -> Floats:
        values = np.concatenate([getattr(table, column) for table in tables])[order]
        unknown = np.logical_and.reduceat(np.isnan(values), first)  # unknown only where every part is
        return np.where(unknown, np.nan, np.add.reduceat(np.nan_to_num(values), first))

    summed: dict[str, Any] = {name: integers(name) for name in _SUMMED} | {name: floats(name) for name in _WORK}
    source, sources = _kept_sources(tables, lead)
    return OpTable(
        program_id=program[lead],
        symbol_id=np.where(has_ids[lead], symbol[lead], np.uint64(0)),
        has_ids=has_ids[lead],
        name=tuple(names[row] for row in lead),
        category=tuple(_first_known(categories, order, first)),
        framework_op=tuple(value or "" for value in _first_known(framework, order, first)),
        **summed,
        minimum_ps=np.minimum.reduceat(np.concatenate([table.minimum_ps for table in tables])[order], first),
        parent=tuple(map(parents.__getitem__, lead.tolist())),
        source=source,
        metadata_row=np.concatenate([table.metadata_row for table in tables])[lead],
        sources=sources,
        has_time_scale=any(table.has_time_scale for table in tables),
    )


def appended(first: OpTable, second: OpTable) -> OpTable:
    """The rows of one table, and behind them those of another."""
    both = (first, second)
    columns: dict[str, Any] = {name: np.concatenate([getattr(table, name) for table in both]) for name in _COLUMNS}
    columns |= {name: getattr(first, name) + getattr(second, name) for name in TEXTS}
    columns["source"] = np.append(first.source, np.where(second.source < 0, -1, second.source + len(first.sources)))
    return replace(first, **columns, sources=first.sources + second.sources)


def _first_known(
    values: Sequence[str | None], order: NDArray[np.intp], first: NDArray[np.intp]
) -> Iterator[str | None]:
    """Yields each group's first value that is not empty; group i is `order[first[i]:first[i + 1]]`."""
    borders = [*first.tolist(), len(order)]
    for begin, end in pairwise(borders):
        value = values[order[begin]]
        if value or end == begin + 1:
            yield value
        else:
            yield next((values[row] for row in order[begin:end] if values[row]), value)


def _kept_sources(tables: Sequence[OpTable], lead: NDArray[np.intp]) -> tuple[Int64s, tuple[OpSource, ...]]:
    """The sources that the rows `lead` refer to, and which one each refers to; the others need not be kept."""
    everyone = [source for table in tables for source in table.sources]
    shift = np.cumsum([0, *(len(table.sources) for table in tables)])
    moved = [np.where(table.source < 0, -1, table.source + first) for table, first in zip(tables, shift, strict=False)]
    source = np.concatenate(moved)[lead]
    used = np.flatnonzero(np.bincount(source[source >= 0], minlength=1))
    number = np.full(len(everyone) + 1, -1, np.int64)  # the last one stands for -1
    number[used] = np.arange(len(used))
    return number[source], tuple(everyone[first] for first in used.tolist())


_EMPTY: dict[str, Any] = dict.fromkeys(TEXTS, ()) | dict.fromkeys(_COLUMNS, no_ints())
_EMPTY |= {name: np.zeros((0, len(TRAFFIC)) if name == "traffic" else 0, np.float64) for name in _WORK}
_EMPTY |= {"program_id": np.zeros(0, np.uint64), "symbol_id": np.zeros(0, np.uint64), "has_ids": np.zeros(0, np.bool_)}
EMPTY_TABLE = OpTable(**_EMPTY, sources=())
