"""Kernels of GPUs: how they were launched, and how long they took (XProf's `kernel_stats`).

As in XProf (`xplane_to_kernel_stats_db.cc`, `kernel_stats_utils.cc`), launches of one name, size and framework op are
one row. It differs in these points:

- What the launch does not record is unknown; XProf shows 0. So is an occupancy of 0 %, which the profiler writes where
  it can't compute one. Shared memory is also read where AMD's profiler (`group_mem`) and older ones (`shm`) write it.
- Whether a framework op may use tensor cores is unknown for a kernel of no framework op; XProf says no.
- There is no limit of 1,000 rows.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np

from tpuprof.parsers.base.intervals import Int64s, numbered
from tpuprof.parsers.base.record import dataclass, replace
from tpuprof.parsers.base.regex import pattern
from tpuprof.parsers.formats.xspace.core.api import min_by_key, sum_by_key
from tpuprof.parsers.formats.xspace.trace import Plane
from tpuprof.parsers.ops.framework_op import parse_framework_op
from tpuprof.parsers.ops.host_events.events import HostThread
from tpuprof.parsers.ops.streams.attribution import Attribution, StreamOp, distinct_texts

_DETAILS, _EQUATION = KERNEL_STATS = ("kernel_details", "equation")
"""Stats of kernels that say how they were launched."""

_NVIDIA = pattern(
    "16816|c1688|conv1x1|conv2d_c1_k1|dgrad_1x1_stride_2x2|direct_group|first_layer_wgrad_kernel|h1688|h884|hmma|i16832"
    "|i8816|s884|s1688|xmma_gemm|xmma_implicit_gemm|xmma_sparse_conv|xmma_sparse_gemm"
    "|xmma_warp_specialized_implicit_gemm"
)
_AMD = pattern(r"mfma|wmma|gemm_fusion|Custom_Cijk_|MI\d+x\d+x\d+")
"""What kernels that use tensor cores (AMD: matrix cores) have in their names, as XProf takes it."""

_ELIGIBLE = pattern(
    r"(Conv2D(BackpropFilter|BackpropInput)?|Conv3D|DepthwiseConv2dNative(BackpropFilter|BackpropInput)?|/MatMul"
    r"|FusedMatMul|/CudnnRNN|XlaDot(V2)?|dot_general|conv_general_dilated)\Z|BatchMatMul|CudnnRNNV|CudnnRNNForward"
    r"|CudnnRNNBackprop"
)
"""Framework ops that tensor cores can do, by their names, as XProf takes it."""

_SHARED = ("static_shared", "dynamic_shared", "shm", "group_mem")


@dataclass(frozen=True, slots=True)
class Kernel:
    """Launches of one kernel in one size for one framework op.

    Attributes:
        name: as the driver gives it; a mangled name stays one.
        framework_op: name of the framework op that launched it, empty where it is unknown.
        op: the HLO op that it belongs to (the first met, where it is part of several), empty for none.
        registers: of a thread; shared_bytes: shared memory of a block; None where the launch does not record it.
        block, grid: threads of a block and blocks of the grid in three dimensions, ``256,1,1``; empty where unknown.
        occupancy: theoretical occupancy (0-1); None where unknown.
        uses_tensor_cores: whether its name says so.
        is_eligible: whether tensor cores could do its framework op; None where no framework op is known.
        occurrences, total_ps, minimum_ps, maximum_ps: over all GPUs.
    """

    name: str
    framework_op: str
    op: str
    registers: int | None
    shared_bytes: int | None
    block: str
    grid: str
    occupancy: float | None
    uses_tensor_cores: bool
    is_eligible: bool | None
    occurrences: int
    total_ps: int
    minimum_ps: int
    maximum_ps: int


def merged_kernels(kernels: Iterable[Kernel]) -> tuple[Kernel, ...]:
    """Adds up the launches of kernels that are one, of several GPUs or hosts; most time first, ties by name."""
    rows: dict[tuple[object, ...], Kernel] = {}
    for kernel in kernels:
        size = kernel.grid, kernel.block, kernel.registers, kernel.shared_bytes
        key = (kernel.name, kernel.framework_op, *size, kernel.uses_tensor_cores, kernel.is_eligible)
        known = rows.get(key)
        rows[key] = kernel if known is None else _added(known, kernel)
    return tuple(
        sorted(rows.values(), key=lambda row: (-row.total_ps, row.name, row.grid, row.block, row.framework_op))
    )


_OF_LAUNCHES: Mapping[str, object] = {
    **dict.fromkeys(("framework_op", "op", "block", "grid"), ""),
    **dict.fromkeys(("registers", "shared_bytes", "occupancy", "is_eligible")),
}
"""What distinguishes launches of a kernel, and what stands for several of them."""


def one_a_name(kernels: Iterable[Kernel]) -> tuple[Kernel, ...]:
    """Adds up all launches of each kernel, whatever launched them; in what they differ is unknown then."""
    rows: dict[str, Kernel] = {}
    for kernel in kernels:
        known = rows.setdefault(kernel.name, kernel)
        if known is not kernel:
            other = {name for name in _OF_LAUNCHES if getattr(known, name) != getattr(kernel, name)}
            rows[kernel.name] = replace(_added(known, kernel), **{name: _OF_LAUNCHES[name] for name in other})  # type: ignore[arg-type]
    return merged_kernels(rows.values())


def _added(known: Kernel, more: Kernel) -> Kernel:
    return replace(
        known,
        op=known.op or more.op,
        occupancy=more.occupancy if known.occupancy is None else known.occupancy,
        occurrences=known.occurrences + more.occurrences,
        total_ps=known.total_ps + more.total_ps,
        minimum_ps=min(known.minimum_ps, more.minimum_ps),
        maximum_ps=max(known.maximum_ps, more.maximum_ps),
    )


def gpu_kernels(plane: Plane, streams: Sequence[HostThread], attribution: Attribution) -> tuple[Kernel, ...]:
    """The kernels of one GPU.

    Args:
        streams: decoded with `KERNEL_STATS` too.
        attribution: the ops of their events.
    """
    vendor = plane.stats.get("device_vendor")
    parts = zip(streams, attribution.numbers, strict=True)
    return merged_kernels(
        kernel for stream, number in parts for kernel in _of_stream(plane, stream, number, attribution.ops, vendor)
    )


def _of_stream(
    plane: Plane, stream: HostThread, op: Int64s, ops: Sequence[StreamOp], vendor: object
) -> Iterator[Kernel]:
    """The kernels of a stream; events of no length are left out, as in XProf."""
    stat = stream.stat(_DETAILS)
    if not len(stat.rows):
        return
    detail, details = distinct_texts(plane, stat)
    kept = (stream.end_ps > stream.start_ps)[stat.rows] & np.array([*map(bool, details)], np.bool_)[detail]
    rows, detail = stat.rows[kept], detail[kept]
    if not len(rows):
        return
    equations = _equations(plane, stream)
    equation = np.isin(rows, equations).astype(np.int64)
    key = numbered(stream.metadata_id[rows], detail, op[rows], equation)
    first = np.unique(key, return_index=True)[1]
    length, count = (stream.end_ps - stream.start_ps)[rows], len(first)
    sums = zip(
        np.bincount(key, minlength=count).tolist(),
        sum_by_key(key, length, count).tolist(),
        min_by_key(key, length, count).tolist(),
        (-min_by_key(key, -length, count)).tolist(),
        strict=True,
    )
    for at, (occurrences, total, least, most) in zip(first.tolist(), sums, strict=True):
        of = ops[int(op[rows[at]])]
        name = plane.event_metadata.label(int(stream.metadata_id[rows[at]]))
        framework_op = parse_framework_op(of.framework_op).name if of.framework_op else ""
        uses = uses_tensor_cores(name, vendor)
        can = bool(equation[at]) or uses or (bool(_ELIGIBLE.search(framework_op)) if framework_op else None)
        block, grid, registers, shared, occupancy = launch(details[int(detail[at])])
        yield Kernel(
            *(name, framework_op, of.name, registers, shared, block, grid, occupancy, uses, can),
            *(occurrences, total, least, most),
        )


def _equations(plane: Plane, stream: HostThread) -> Int64s:
    """The events whose einsum is a product of two operands, which tensor cores can do."""
    stat = stream.stat(_EQUATION)
    if not len(stat.rows):
        return stat.rows
    number, texts = distinct_texts(plane, stat)
    is_product = [len(parts := value.split("->")) == 2 and parts[0].count(",") == 1 for value in texts]
    return stat.rows[np.array(is_product, np.bool_)[number]]


def uses_tensor_cores(name: str, vendor: object) -> bool:
    """Whether a kernel uses tensor cores, by its name; where the vendor is unknown, by the names of both."""
    patterns = {"Nvidia": (_NVIDIA,), "AMD": (_AMD,)}.get(str(vendor), (_NVIDIA, _AMD))
    return any(pattern.search(name) for pattern in patterns)


def launch(details: str) -> tuple[str, str, int | None, int | None, float | None]:
    """Block, grid, registers, bytes of shared memory and occupancy (0-1) of a launch: ``regs:38 grid:4,1,1 …``."""
    found = dict(word.split(":") for word in details.split() if word.count(":") == 1)
    sizes = [found[name] if re.fullmatch(r"\d+,\d+,\d+", found.get(name, "")) else "" for name in ("block", "grid")]
    shared = [int(found[name]) for name in _SHARED if _is_count(found.get(name, ""))]
    registers = int(found["regs"]) if _is_count(found.get("regs", "")) else None
    occupied = found.get("occ_pct", "")
    percent = float(occupied) if re.fullmatch(r"\d{1,3}(\.\d{1,20})?", occupied) else 0.0
    return sizes[0], sizes[1], registers, sum(shared) if shared else None, percent / 100 if percent else None


def _is_count(word: str) -> bool:
    return word.isdecimal() and word.isascii() and len(word) <= 18
