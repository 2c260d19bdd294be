"""The page of a TPU's kernels: custom calls such as Pallas ones, by time, and what is known of each.

What is measured comes from the runs and from the spans inside them, what is static from the kernel's module in the
profile; the two are never added.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Literal

import numpy as np

from tpuprof.parsers.base.errors import behind_wall
from tpuprof.parsers.base.intervals import grouped
from tpuprof.parsers.base.record import dataclass, replace
from tpuprof.parsers.base.regex import pattern
from tpuprof.parsers.base.text import counted
from tpuprof.parsers.base.words import share, shortened, time
from tpuprof.parsers.formats.llo.schedule import Schedule
from tpuprof.parsers.formats.mosaic.spec import NO_MODULE, KernelSpec
from tpuprof.parsers.ops.core.calls import CallPart, CallRuns, StepSpan, joined_calls
from tpuprof.parsers.ops.core.kernel_blocks import BlockRow, block_rows, block_sizes, wait_words, waited_for
from tpuprof.parsers.ops.core.kernel_work import KernelWork, work_of_spec
from tpuprof.parsers.ops.core.operands import CHOSEN, NO_TEXT, call_arrays
from tpuprof.parsers.ops.counters.chips import chip_of
from tpuprof.parsers.ops.device import CUSTOM_CALL, Peaks
from tpuprof.parsers.ops.table import kernel_name
from tpuprof.parsers.pages.ops.kernels.call_units import TRACE_KERNELS, KernelRow
from tpuprof.parsers.pages.ops.kernels.parameters import parameters
from tpuprof.parsers.pages.ops.kernels.static import StaticSchedule, static_schedule
from tpuprof.parsers.pages.ops.kernels.witnesses import Figure, Witness, use, work
from tpuprof.parsers.pages.ops.one_op import Spread, duration_spread
from tpuprof.parsers.pages.ops.ops import OpsPage

Bound = Literal["waiting for copies", "compute", "HBM"]

WAITS = 0.5
"""A kernel that waits for copies from this share of its time on is bound by them, whatever it uses."""

SAYS = 0.5
"""Where FLOPs or bytes are unknown, the other one bounds a kernel that uses at least this share of its peak."""

NOT_TRACED = f"the profile has no spans inside kernels: {TRACE_KERNELS} records them"
NO_COUNT = "nobody counted it: the profile has no count, and no module of the kernel that says what it does"
NO_KERNEL = "no TPU kernel (custom call) ran in this profile"


@dataclass(frozen=True, slots=True)
class TpuKernel:
    """A kernel: the custom calls of one program that run it on arrays of the same sizes, over all cores.

    Attributes:
        row: of the page of ops, of the call with most time; op: its name there; program: of its module.
        ops: names of all of its calls: a layer each, of a program that is not a loop over its layers.
        kernel: what it is called: the function that calls it.
        arrays: types and sizes of its operands and results.
        source: ``file:line`` of the call; empty where unknown.
        runs: the spread of its runs; fraction: its time, of the cores' whole time (0-1).
        flops, bytes: of a run, by witness. bytes are those to and from HBM.
        matrix: use of the matrix units at their peak (0-1), over a run, by witness.
        peaks: of one core.
        blocks: what it keeps on the chip, static; () where the profile has no module of it.
        spec: what its module says, static; None where the profile has no module of it.
        static: what the compiler's schedule says; None where the profile has none of it.
        traced: the runs with the spans inside them; None where no event is of it.
        units: use of units by the compiler's count, of the whole call and of its scopes.
    """

    row: int
    op: str
    ops: tuple[str, ...]
    program: str
    program_id: int
    kernel: str
    arrays: str
    source: str
    framework_op: str
    runs: Spread
    fraction: float
    flops: Figure
    bytes: Figure
    matrix: Figure
    peaks: Peaks
    blocks: tuple[BlockRow, ...]
    spec: KernelSpec | None
    static: StaticSchedule | None
    traced: CallRuns | None
    units: tuple[KernelRow, ...]

    @property
    def mean_ps(self) -> float | None:
        return self.runs.total_ps / self.runs.runs if self.runs.runs else None

    def _rate(self, amount: float | None) -> float | None:
        mean = self.mean_ps
        return amount / (mean / 1e12) if amount is not None and mean else None

    @property
    def flops_per_second(self) -> float | None:
        return self._rate(self.flops.value)

    @property
    def bytes_per_second(self) -> float | None:
        """Bytes a second to and from HBM over the mean run."""
        return self._rate(self.bytes.value)

    @property
    def flops_use(self) -> float | None:
        """FLOP/s, of the peak (0-1)."""
        rate, peak = self.flops_per_second, self.peaks.flops_per_second
        return rate / peak if rate is not None and peak else None

    @property
    def bytes_use(self) -> float | None:
        """Bytes a second, of HBM's peak (0-1)."""
        rate, peak = self.bytes_per_second, self.peaks.hbm
        return rate / peak if rate is not None and peak else None

    @property
    def nearest(self) -> tuple[Bound, float] | None:
        """The peak that it comes nearest to, and how near (0-1); None where what is unknown may be nearer to its peak.

        Where nobody counted FLOPs, another witness may say how much of the matrix units was used. A kernel without
        matrix products has none of the FLOPs that the peak is of.
        """
        spec = self.spec
        has_no_product = spec is not None and not spec.reason and spec.matrix_flops.value == 0
        counted = self.matrix.value if self.flops_use is None else self.flops_use
        compute = 0.0 if has_no_product and counted is None else counted
        used: dict[Bound, float | None] = {"compute": compute, "HBM": self.bytes_use}
        most: Bound = max(used, key=lambda each: used[each] or 0.0)
        near = used[most] or 0.0
        return None if near < (SAYS if None in used.values() else 0.0) or not near else (most, near)

    @property
    def roof_ps(self) -> float | None:
        """What a run would take at the roof: the longer of its FLOPs and its bytes at their peaks."""
        nearest, mean = self.nearest, self.mean_ps
        is_known = nearest is not None and (nearest[0] == "HBM" or self.flops_use is not None)
        return nearest[1] * mean if nearest is not None and is_known and mean else None

    @property
    def roof(self) -> float | None:
        """How near a run comes to the roof (0-1)."""
        roof, mean = self.roof_ps, self.mean_ps
        return roof / mean if roof is not None and mean else None

    @property
    def wait_in(self) -> float | None:
        """The part of a run in which it waits for blocks to come (0-1), measured."""
        return None if self.traced is None else self.traced.part(self.traced.wait_in_ps)

    @property
    def wait_out(self) -> float | None:
        """The part in which it waits for results to be written."""
        return None if self.traced is None else self.traced.part(self.traced.wait_out_ps)

    @property
    def body(self) -> float | None:
        """The part in which the body of a grid step runs."""
        traced = self.traced
        return None if traced is None or not traced.body_ps else traced.part(traced.body_ps)

    @property
    def waits(self) -> float | None:
        """The part in which it waits for copies, in or out."""
        into, out = self.wait_in, self.wait_out
        return None if into is None or out is None else into + out

    @property
    def wait_places(self) -> tuple[float, ...]:
        """Of the waits for blocks the part at each place of a grid step, that of an operand each; () where unknown."""
        return () if self.traced is None else self.traced.wait_places

    @property
    def waited_for(self) -> tuple[tuple[BlockRow, float], ...]:
        """The arrays whose blocks it waits for, each with its part of these waits (0-1); () where unknown."""
        return waited_for(self.blocks, self.wait_places)

    @property
    def wait_words(self) -> str:
        """Which array it waits for most, and why, as a clause; empty where unknown."""
        return wait_words(self.waited_for)

    @property
    def block_sizes(self) -> str:
        """Sizes of the blocks that it copies, or those in its name; empty where neither has any."""
        return block_sizes(self.blocks) or sizes_in_name(self.op)

    @property
    def parameters(self) -> str:
        """What its author says of it, ``block_q 128, block_kv 128``; empty where that is nothing."""
        return "" if self.spec is None else parameters(self.spec.metadata)

    @property
    def vmem_bytes(self) -> int | None:
        """What the compiler set aside in VMEM, else the buffers of its blocks; static."""
        spec = self.spec
        return None if spec is None else spec.used_vmem_bytes or spec.bytes_in("vmem")

    @property
    def smem_bytes(self) -> int | None:
        """The buffers of its blocks in SMEM; static."""
        return None if self.spec is None else self.spec.bytes_in("smem")

    @property
    def grid(self) -> str:
        """Bounds of its grid, ``4,2,2``; ``?`` for one that is known when the program runs; empty for none."""
        bounds = self.spec.grid if self.spec is not None and self.spec.grid is not None else ()
        return ",".join("?" if bound is None else str(bound) for bound in bounds)

    @property
    def grid_steps(self) -> int | None:
        """Bodies in a run, measured; None where no span says."""
        return self.traced.grid_steps or None if self.traced is not None else None

    @property
    def steps(self) -> int | None:
        """Steps of its grid: those measured, else those of its module; None where unknown."""
        static = self.spec.steps if self.spec is not None and self.spec.grid else None
        return self.grid_steps or static

    @property
    def parts(self) -> tuple[CallPart, ...]:
        return () if self.traced is None else self.traced.parts

    @property
    def step(self) -> tuple[StepSpan, ...]:
        return () if self.traced is None else self.traced.step

    @property
    def bound(self) -> Bound | None:
        """What bounds it: waits for copies where they take half of it, else what it uses most; None where unknown."""
        if (self.waits or 0.0) >= WAITS:
            return "waiting for copies"
        return None if self.nearest is None else self.nearest[0]

    @property
    def refusals(self) -> tuple[str, ...]:
        """Witnesses that contradict arithmetic, a sentence each."""
        told = (("FLOPs", self.flops), ("HBM bytes", self.bytes), ("Use of the MXU", self.matrix))
        return tuple(
            f"{what} by {each.witness}: impossible, {each.refused}."
            for what, figure in told
            for each in figure.statements
            if each.refused and not (figure is self.matrix and each.witness == "count")
        )


@dataclass(frozen=True, slots=True)
class TpuKernelsPage:
    """The kernels of a TPU's program, those with most time first.

    Attributes:
        ops: the ops that they are among, and the device.
        kernels: those that ran.
        statement: what to know of them, in a sentence.
        unknown: why figures are missing, by key.
        notes: what contradicts arithmetic, and where figures come from.
    """

    ops: OpsPage
    kernels: tuple[TpuKernel, ...]
    statement: str
    unknown: Mapping[str, str]
    notes: tuple[str, ...]

    def place(self, name: str) -> int | None:
        """Which kernel has a call of that name, or is called so, of several the one with most time; None where none."""
        calls = (at for at, kernel in enumerate(self.kernels) if name in kernel.ops)
        kernels = (at for at, kernel in enumerate(self.kernels) if name == kernel.kernel)
        return next(calls, next(kernels, None))

    @property
    def hosts(self) -> tuple[str, ...]:
        return self.ops.hosts

    @property
    def warnings(self) -> tuple[str, ...]:
        return self.ops.warnings


_SIZE = pattern(r"(?:^|-)([a-z]{1,6})_([0-9]{1,6})(?=-)")
_BLOCK = pattern(r"_(block_[a-z_]{1,30}|[a-z]{1,4})=[0-9]{1,6}")


def sizes_in_name(name: str) -> str:
    """Block sizes in a kernel's name, as vLLM's kernels have them: ``bq 32, bkvp 64``; empty without."""
    return ", ".join(f"{what} {size}" for what, size in _SIZE.findall(name))


def without_sizes(name: str) -> str:
    """A kernel's name without the sizes in it: that of all its variants; the name itself where nothing else is left."""
    return _BLOCK.sub("", _SIZE.sub("", name)).strip("-") or name


def kernel_rows(ops: OpsPage, calls: Mapping[tuple[int, str], CallRuns]) -> list[int]:
    """The rows of the page of ops that are kernels: those that have runs among `calls`."""
    table = ops.table
    pairs = zip(table.program_id.tolist(), table.name, table.category, strict=True)
    return [row for row, (program, name, kind) in enumerate(pairs) if kind == CUSTOM_CALL and (program, name) in calls]


SpecOf = Callable[[int, str], "KernelSpec | None"]
"""What a program's kernel is, by program id and name of the op."""

ScheduleOf = Callable[[str, str], "Schedule | None"]
"""The compiler's schedule of a kernel, by the names of the op and of its module."""


def tpu_kernels_page(
    ops: OpsPage,
    calls: Sequence[CallRuns],
    units: Sequence[KernelRow] = (),
    spec_of: SpecOf = lambda _, __: None,
    schedule_of: ScheduleOf = lambda _, __: None,
    failed: Sequence[str] = (),
) -> TpuKernelsPage:
    """Makes the page.

    Args:
        ops: with the work of kernels by their shapes, where the profile has their modules.
        calls: runs of kernels, over all hosts.
        units: what custom calls use by the compiler's count.
        spec_of: reads a kernel's module; schedule_of: finds its schedule; failed: says what could not be read.
    """
    failed = list(failed)
    by_op = {(call.program_id, call.name): call for call in calls}
    uses = grouped(((each.use.program_id, each.use.name), each) for each in units)
    groups: dict[tuple[str, ...], list[int]] = {}
    for row in kernel_rows(ops, by_op):
        arrays = call_arrays(ops.table.expression(row))
        alike = ops.table.name[row] if arrays is None else arrays.signature
        groups.setdefault((kernel_name(ops.table, row), ops.program[row], alike), []).append(row)
    kernels = []
    for rows in groups.values():
        keys = [(int(ops.table.program_id[row]), ops.table.name[row]) for row in rows]
        call = joined_calls([by_op[key] for key in keys])
        of_units = tuple(use for key in keys for use in uses.get(key, ()))
        schedule = schedule_of(keys[0][1], ops.program[rows[0]].partition("(")[0])
        spec = spec_of(*keys[0])
        failed += [f"{keys[0][1]}: {spec.reason}"] if spec is not None and spec.reason not in ("", NO_MODULE) else []
        kernels.append(_kernel(ops, rows, call, of_units, spec, schedule, failed))
    kernels.sort(key=lambda kernel: (-kernel.runs.total_ps, kernel.op))
    unknown = {} if kernels else {"kernels": NO_KERNEL}
    if kernels and not any(kernel.traced and kernel.traced.traced_ps for kernel in kernels):
        unknown |= {"waits": NOT_TRACED}
    ops = replace(ops, warnings=tuple(dict.fromkeys((*ops.warnings, *failed)))) if failed else ops
    notes = [f"{kernel.op}: {words}" for kernel in kernels for words in kernel.refusals]
    return TpuKernelsPage(ops, tuple(kernels), _statement(kernels), unknown, tuple(notes))


def _kernel(
    ops: OpsPage,
    rows: Sequence[int],
    call: CallRuns,
    units: tuple[KernelRow, ...],
    spec: KernelSpec | None,
    schedule: Schedule | None,
    failed: list[str],
) -> TpuKernel:
    """One kernel.

    Args:
        rows: of its calls, the one with most time first.
        call: their runs.
        failed: gets a sentence where its schedule makes no sense.
    """
    table, peaks, row = ops.table, ops.peaks, rows[0]
    text = table.expression(row)
    arrays = call_arrays(text)
    once = None if arrays is None else arrays.bytes_once
    seconds = float(call.duration_ps.mean()) / 1e12 if len(call.duration_ps) else 0.0
    shapes = KernelWork(None, None) if spec is None else work_of_spec(spec)
    steps = call.grid_steps or (spec.steps if spec is not None and spec.grid else None)
    flops = work(
        [("shapes", shapes.flops), ("count", _known(call.flops))],
        _times(peaks.flops_per_second, seconds),
        _why_no_flops(spec),
        shapes.flops,
        steps,
    )
    moved = work(
        [
            ("shapes", shapes.hbm_bytes),
            ("count", _known(call.hbm_bytes)),
            ("operands", None if shapes.hbm_bytes else once),
        ],
        _times(peaks.hbm, seconds),
        NO_TEXT if arrays is None else CHOSEN if arrays.is_indexed else NO_COUNT,
        shapes.hbm_bytes,
        steps,
    )
    source = table.texts("source", np.array([row]))[0]
    static = None
    if schedule is not None:
        follow = partial(static_schedule, schedule, _spans_a_run(call), spec)
        static = behind_wall(f"follow the schedule of {table.name[row]}", follow, failed, is_decoder=True)
    busy = _of_time(static, ops.device_type, seconds)
    return TpuKernel(
        row=row,
        op=table.name[row],
        ops=tuple(table.name[each] for each in rows),
        program=ops.program[row],
        program_id=int(table.program_id[row]),
        kernel=without_sizes(kernel_name(table, row)),
        arrays="" if arrays is None else arrays.signature,
        source=source,
        framework_op=table.framework_op[row].rstrip(":"),
        runs=duration_spread("", call.duration_ps),
        fraction=float(ops.self_fraction[list(rows)].sum()),
        flops=flops,
        bytes=moved,
        matrix=_matrix(flops, seconds, peaks, units, busy),
        peaks=peaks,
        blocks=block_rows(spec),
        spec=spec,
        static=static,
        traced=call,
        units=units,
    )


def _why_no_flops(spec: KernelSpec | None) -> str:
    """Why the FLOPs are unknown where no witness says anything."""
    if spec is None:
        return NO_COUNT
    return spec.reason or spec.matrix_flops.reason or "it has no matrix product, and nobody counted the rest"


def _known(value: float) -> float | None:
    return value if np.isfinite(value) else None


def _times(rate: float | None, seconds: float) -> float | None:
    return None if rate is None else rate * seconds


def _spans_a_run(call: CallRuns) -> dict[str, float]:
    """How many spans of each name a run has."""
    runs = len(call.duration_ps)
    return {part.name: part.count / runs for part in call.parts} if runs else {}


def _of_time(static: StaticSchedule | None, device_type: str | None, seconds: float) -> float | None:
    """The part of a run in which the matrix units' slots are used by the schedule, at the nominal clock."""
    chip = chip_of(device_type)
    if static is None or chip is None or not seconds or "MXU" not in static.busy:
        return None
    return static.busy["MXU"] / chip.frequency_hz / seconds


def _matrix(flops: Figure, seconds: float, peaks: Peaks, units: Sequence[KernelRow], scheduled: float | None) -> Figure:
    """How much of the matrix units was used, by each witness."""
    peak = _times(peaks.flops_per_second, seconds)
    said: list[tuple[Witness, float | None]] = []
    said += [(each.witness, each.value / peak) for each in flops.statements if peak]
    said.append(("schedule", scheduled or None))
    whole = [row for row in units if not row.use.scope and row.use.unit.startswith("MXU")]
    shares = [row.counted for row in whole if row.counted is not None]
    said.append(("trace points", sum(shares) / len(shares) if shares else None))
    return use(said, NO_COUNT)


def _statement(kernels: Sequence[TpuKernel]) -> str:
    """What the kernel with most time does with it."""
    if not kernels:
        return ""
    first = kernels[0]
    words = f"{shortened(first.kernel)} takes {share(first.fraction)} of the cores' time"
    words += f", {time(first.mean_ps or 0.0)} a run"
    if first.waits is not None and first.waits >= WAITS:
        words += f"; waiting for copies takes {share(first.waits)} of that"
        words += f", and of the waits {first.wait_words}" if first.wait_words else ""
    elif first.roof is not None:
        words += f", {share(first.roof)} of its roof"
    more = f"; {counted(len(kernels) - 1, 'more kernel')}" if len(kernels) > 1 else ""
    return f"{words}{more}."
