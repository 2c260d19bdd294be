"""The quantities of a TPU's kernels: what each run takes, does and waits for, and the spans inside."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from types import SimpleNamespace
from typing import Any

from tpuprof.parsers.base.record import replace
from tpuprof.parsers.formats.llo import stored
from tpuprof.parsers.formats.llo.schedule import UNITS
from tpuprof.parsers.ops.core.calls import CallPart
from tpuprof.parsers.ops.core.kernel_blocks import BlockRow
from tpuprof.parsers.pages.ops.kernels.static import RegionUse
from tpuprof.parsers.pages.ops.kernels.tpu import NO_COUNT, NO_KERNEL, NOT_TRACED, TpuKernel, TpuKernelsPage
from tpuprof.parsers.pages.ops.kernels.variants import Variant
from tpuprof.parsers.pages.ops.kernels.witnesses import Figure
from tpuprof.tui.draw.format import UNKNOWN, share
from tpuprof.tui.draw.pen import cut_words
from tpuprof.tui.draw.spans import Glyphs, Span, StyleKey, small_bar
from tpuprof.tui.draw.table import by_row
from tpuprof.tui.report import units
from tpuprof.tui.report.fields import Field, Metric, Rows, Table, attribute, in_order, named, of_each
from tpuprof.tui.report.shared.quantities import RANK

Kernels = Sequence[TpuKernel]
BAR = 6

WAITING = "waiting for copies"
NO_USE = "nobody counted its work, or the device's peak is unknown"
NO_PEAK = "its FLOPs, its bytes or a peak is unknown, and it uses less than half of the other peak"
NO_RUNS = "no event of the profile is of it"
NO_MODULE = "the profile has no module of this kernel, or it cannot be read"
NO_PARAMETERS = f"its author says nothing, or {NO_MODULE}"
NO_SCHEDULE = f"the profile has no schedule of this kernel, or several: LIBTPU_INIT_ARGS='{stored.FLAG}' puts it there"
NO_BODY = "the profile has no spans of Pallas's pipeline inside it (ep_run_kernel)"
_ONE_WITNESS = "no witness says, or each is refused (refused says why)"


def _whole(name: str) -> Callable[[TpuKernel], int | None]:
    def read(kernel: TpuKernel) -> int | None:
        value: float | None = getattr(kernel, name).value
        return None if value is None else round(value)

    return read


def by_witness(figure: Figure) -> str:
    """A share by each witness, the refused ones marked: ``12% shapes, 0.3% trace points ! impossible, so not used``."""
    words = (
        f"{share(each.value)} {each.witness}{' ! impossible, so not used' if each.refused else ''}"
        for each in figure.statements
    )
    return ", ".join(words) or UNKNOWN


def wait_style(part: float | None) -> StyleKey:
    """How the part of a run that waits looks."""
    return "dim" if part is None else "bad" if part >= 0.5 else "warn" if part >= 0.2 else "text"


def _bar(page: TpuKernelsPage, glyphs: Glyphs, row: int) -> Span:
    """Its time, that of the first one as the whole column; in it the colour says what bounds it."""
    most = page.kernels[0].fraction or 1.0
    kernel = page.kernels[row]
    style: dict[str | None, StyleKey] = {"waiting for copies": "bad", "compute": "class.compute", "HBM": "class.copy"}
    return small_bar(kernel.fraction / most, BAR, glyphs)[0], style.get(kernel.bound, "dim")


_of = partial(of_each, within="kernels")
_SPREAD = (
    ("minimum_time_ps", "minimum_ps", "the shortest run", "least"),
    ("median_time_ps", "median_ps", "the run in the middle", "median"),
    ("p90_time_ps", "p90_ps", "the time that 90% of the runs are not longer than", "p90"),
    ("maximum_time_ps", "maximum_ps", "the longest run", "most"),
)

_FIELDS: tuple[Field[TpuKernelsPage], ...] = (
    Field("rank", RANK.unit, lambda page, rows: [row + 1 for row in rows], "the row's place by time", heading="#"),
    named("self_time_percent", units.SHARE_PERCENT, _of("fraction"), "its time, of the cores' whole time", "time", 6,
          fixed=True),
    named("time_bar", units.SHARE, _of("fraction"), "the same as a bar; red: it waits for copies", "", BAR,
          cells=by_row(_bar), is_left=True),
    named("kernel", units.TEXT, _of("kernel"),
          "its own name or the function that calls it, else the op's name without its number", "kernel", 24,
          style=lambda _: "strong", fixed=True, grows=True, filter=("kernel",)),
    named("op", units.TEXT, _of("op"), "the op's name; of several calls that of the one with most time", "op", 20,
          filter=("name",)),
    named("calls", units.COUNT, _of(lambda kernel: len(kernel.ops)),
          "custom calls of the program that run it, with arrays of the same sizes", "calls", 5),
    named("program", units.TEXT, _of("program"), "the program that it is part of", "program", filter=("program",)),
    named("framework_op", units.TEXT, _of("framework_op"), "the framework op that it comes from", "framework op", 24,
          null="the profile names none", filter=("framework_op",)),
    named("source", units.TEXT, _of("source"), "file and line of the call", "source", 20,
          null="the profile names no source line"),
    named("runs", units.COUNT, _of("runs.runs"), "runs, over all cores", "runs", 6),
    named("self_time_ps", units.TIME_PS, _of("runs.total_ps"), "time over all runs and cores", "total", 9),
    named("average_time_ps", units.TIME_PS, _of("mean_ps"), "the mean run", "mean", 8, null=NO_RUNS),
    *(named(key, units.TIME_PS, _of(f"runs.{name}"), meaning, heading, 8, null=NO_RUNS)
      for key, name, meaning, heading in _SPREAD),
    named("bound_by", units.VERBATIM, _of("bound"),
          "waiting for copies, where that takes half of its time; else what it uses most, compute or HBM", "bound by",
          8, null=NO_PEAK, style=lambda value: "bad" if value == WAITING else "text",
          words=lambda value, _: "waits" if value == WAITING else value or UNKNOWN),
    named("wait_in_percent", units.SHARE_PERCENT, _of("wait_in"),
          "measured: the part of a run in which it waits for blocks to come (ep_wait_in and its like)", "wait in", 7,
          null=NOT_TRACED, style=wait_style),
    named("wait_out_percent", units.SHARE_PERCENT, _of("wait_out"),
          "measured: the part in which it waits for results to be written (ep_wait_out, ep_finalize)", "wait out", 8,
          null=NOT_TRACED, style=wait_style),
    named("body_percent", units.SHARE_PERCENT, _of("body"), "measured: the part in which the body of a grid step runs",
          "body", 6, null=NO_BODY),
    named("grid_steps", units.COUNT, _of("grid_steps"), "measured: bodies in a run", "steps", 6, null=NO_BODY),
    named("flops", units.COUNT, _of(_whole("flops")), "FLOPs of a run", "FLOPs", null=_ONE_WITNESS),
    named("flops_witness", units.TEXT, _of("flops.witness"), "what says how many FLOPs", "FLOPs by", 8, null=NO_COUNT),
    named("gflops_per_second", units.GFLOPS, _of("flops_per_second"), "these FLOPs over the mean run", "FLOP/s", 7,
          null=_ONE_WITNESS),
    named("flops_utilization_percent", units.SHARE_PERCENT, _of("flops_use"), "the same, of the peak", "FLOPS", 6,
          null=NO_USE),
    named("hbm_bytes", units.BYTES, _of(_whole("bytes")), "bytes of a run to and from HBM", "HBM bytes",
          null=_ONE_WITNESS),
    named("hbm_witness", units.TEXT, _of("bytes.witness"), "what says how many bytes", "bytes by", 9, null=NO_COUNT),
    named("hbm_gigabytes_per_second", units.GIGABYTES, _of("bytes_per_second"), "these bytes over the mean run",
          "HBM B/s",
          7, null=_ONE_WITNESS),
    named("hbm_utilization_percent", units.SHARE_PERCENT, _of("bytes_use"), "the same, of HBM's peak", "HBM", 6,
          null=NO_USE),
    named("roof_time_ps", units.TIME_PS, _of("roof_ps"),
          "what a run takes at the roof: the longer of its FLOPs and its bytes at their peaks", "at roof", 8,
          null=NO_PEAK),
    named("roof_percent", units.SHARE_PERCENT, _of("roof"), "that, of the mean run", "of roof", 7, null=NO_PEAK),
    named("matrix_percent", units.SHARE_PERCENT, _of(lambda kernel: kernel.matrix.value),
          "use of the matrix units at their peak, by the first witness that nothing contradicts", "MXU", 6,
          null=_ONE_WITNESS),
    named("matrix_by_witness", units.TEXT,
          _of(lambda kernel: by_witness(kernel.matrix) if kernel.matrix.statements else ""),
          "the same by each witness; a refused one is impossible", "MXU by witness", null=NO_COUNT),
    named("grid", units.TEXT, _of("grid"), "static: bounds of its grid; ? for one that is known when it runs", "grid",
          10,
          null=NO_MODULE),
    named("block_sizes", units.TEXT, _of("block_sizes"),
          "static: sizes of the blocks of its inputs and outputs; of a kernel without module those in its name",
          "blocks", 20, null=NO_MODULE),
    named("parameters", units.TEXT, _of("parameters"),
          "static: what its author says of it in the metadata of pallas_call, such as block sizes", "parameters", 20,
          null=NO_PARAMETERS),
    named("vmem_bytes", units.BYTES, _of("vmem_bytes"),
          "static: what the compiler set aside for it in VMEM, else the buffers of its blocks", "VMEM", 8,
          null=NO_MODULE),
    named("smem_bytes", units.BYTES, _of("smem_bytes"), "static: the buffers of its blocks in SMEM", "SMEM", 8,
          null=NO_MODULE),
    named("bundles", units.COUNT, _of(lambda kernel: kernel.static and kernel.static.bundles),
          "static: bundles of its schedule", "bundles", 8, null=NO_SCHEDULE),
    named("spills", units.COUNT, _of(lambda kernel: kernel.static and kernel.static.spills),
          "static: registers that its bundles write to memory because there are too few", "spills", 7,
          null=NO_SCHEDULE),
    named("refused", units.TEXTS, _of("refusals"), "witnesses that contradict arithmetic, and why", "refused"),
)  # fmt: skip

_KEYS = tuple(field.key for field in _FIELDS if field.key not in ("rank", "time_bar"))

CALLS: Table[TpuKernelsPage] = Table(
    "calls",
    _FIELDS,
    lambda page: len(page.kernels),
    json=_KEYS,
    csv=("rank", *_KEYS),
    markdown=in_order(
        "rank kernel op calls self_time_percent runs median_time_ps p90_time_ps bound_by wait_in_percent",
        "wait_out_percent body_percent flops_utilization_percent hbm_gigabytes_per_second hbm_utilization_percent",
        "roof_percent matrix_by_witness block_sizes vmem_bytes",
    ),
    screen=in_order(
        "self_time_percent time_bar kernel median_time_ps bound_by wait_in_percent matrix_percent",
        "hbm_gigabytes_per_second roof_percent calls runs op p90_time_ps maximum_time_ps minimum_time_ps body_percent",
        "wait_out_percent grid_steps flops_witness hbm_witness framework_op source self_time_ps",
    ),
)


class PartRow:
    """A span inside a kernel, and the kernel that it is of."""

    def __init__(self, kernel: TpuKernel, part: CallPart) -> None:
        self.kernel, self.part = kernel, part

    @property
    def fraction(self) -> float | None:
        """Its time, of the runs that have spans (0-1)."""
        traced = self.kernel.traced
        return self.part.total_ps / traced.traced_ps if traced is not None and traced.traced_ps else None


_PARTS: tuple[Field[Any], ...] = (
    named("op", units.TEXT, of_each("kernel.op"), "the kernel's op", "op"),
    named("name", units.TEXT, of_each("part.name"), "the span's name", "span", 24, fixed=True, grows=True),
    named("kind", units.VERBATIM, of_each("part.kind"),
          "wait in, wait out, body, copies (it starts them), or a scope that the author named", "kind", 9),
    named("occurrences", units.COUNT, of_each("part.count"), "how many there are in all runs", "count", 8),
    named("total_time_ps", units.TIME_PS, of_each("part.total_ps"), "their time, what overlaps once", "time", 9),
    named("fraction_percent", units.SHARE_PERCENT, of_each("fraction"), "the same, of the runs that have spans",
          "share", 7),
)  # fmt: skip

PARTS: Table[Sequence[PartRow]] = Table(
    "spans",
    _PARTS,
    len,
    markdown=in_order("op name kind occurrences total_time_ps fraction_percent"),
    screen=in_order("name kind fraction_percent total_time_ps occurrences"),
)


class Block:
    """What a kernel keeps on the chip, and the kernel that it is of."""

    def __init__(self, kernel: TpuKernel, row: BlockRow) -> None:
        self.kernel, self.row = kernel, row

    @property
    def waits(self) -> float | None:
        """The part of the kernel's waits for copies in that is for it (0-1); None where unknown."""
        return next((part for row, part in self.kernel.waited_for if row is self.row), None)


_NOT_COPIED = "it is not copied by the grid, or the module does not say"
_BLOCKS: tuple[Field[Any], ...] = (
    named("op", units.TEXT, of_each("kernel.op"), "the kernel's op", "op"),
    named("name", units.TEXT, of_each("row.name"), "the operand or result", "array", null="it is not an argument"),
    named("role", units.VERBATIM, of_each("row.role"),
          "input, output, prefetch (numbers that are there before it starts), scratch, or pipeline: buffers of an "
          "array that the kernel copies by itself", "role"),
    named("array", units.TEXT, of_each("row.array"), "dimensions of the array", "size", null="it is not an argument"),
    named("block", units.TEXT, of_each("row.block"), "dimensions of what a grid step sees", "block",
          null="it is a scalar"),
    named("element", units.VERBATIM, of_each("row.buffer.element"), "type of an element", "type"),
    named("space", units.VERBATIM, of_each("row.buffer.space"),
          "vmem, smem, or any for an array that stays where it is", "space"),
    named("buffers", units.COUNT, of_each("row.buffer.buffers"),
          "how many blocks are kept: two where the next is copied while this one is used; 0 for one read where it lies",
          "buffers", null=NO_MODULE),
    named("bytes", units.BYTES, of_each("row.buffer.total_bytes"), "of all these buffers", "bytes", null=NO_MODULE),
    named("fetches", units.COUNT, of_each("row.buffer.fetches"), "blocks that are copied in a run", "copied",
          null=_NOT_COPIED),
    named("copied_bytes", units.BYTES, of_each("row.buffer.copied_bytes"), "bytes of these", "copied bytes",
          null=_NOT_COPIED),
    named("wait_percent", units.SHARE_PERCENT, of_each("waits"),
          "measured: its part of the waits for copies in", "of the waits", null=NOT_TRACED),
)  # fmt: skip

BLOCKS: Table[Sequence[Block]] = Table(
    "blocks",
    _BLOCKS,
    len,
    markdown=in_order("op name role array block element space buffers bytes fetches copied_bytes wait_percent"),
)


class Region:
    """A region of a kernel's schedule, and the kernel that it is of."""

    def __init__(self, kernel: TpuKernel, row: RegionUse) -> None:
        self.kernel, self.row = kernel, row


def _unit(name: str) -> Field[Any]:
    key = f"{name.lower()}_percent"
    meaning = f"static: slots of {name} that it uses, of those of its bundles"
    return named(
        key, units.SHARE_PERCENT, of_each(lambda region: region.row.shares.get(name)), meaning, name, null="it has none"
    )


_REGIONS: tuple[Field[Any], ...] = (
    named("op", units.TEXT, of_each("kernel.op"), "the kernel's op", "op"),
    named("kind", units.VERBATIM, of_each("row.kind"), "what the compiler calls such a region", "kind"),
    named("place", units.TEXT, of_each("row.place"), "file and line that most of its instructions come from", "source",
          null="the compiler does not say"),
    named("scope", units.TEXT, of_each("row.scope"), "the scope that most of them are in", "scope",
          null="they are in none"),
    named("bundles", units.COUNT, of_each("row.bundles"), "static: bundles in it, without those of regions inside it",
          "bundles"),
    named("runs", units.NUMBER, of_each("row.runs"),
          "how often it runs in a run of the kernel, where all conditions hold; where is_measured is true, by the "
          "spans of its scope", "runs"),
    named("is_measured", units.FLAG, of_each("row.is_measured"), "whether spans say how often it runs", "measured"),
    named("fraction_percent", units.SHARE_PERCENT, of_each("row.fraction"),
          "its bundles times its runs, as a share of the kernel's: not of its time, because bundles wait",
          "of bundles run"),
    *map(_unit, UNITS),
)  # fmt: skip

REGIONS: Table[Sequence[Region]] = Table(
    "regions",
    _REGIONS,
    len,
    markdown=in_order("op kind place scope bundles runs fraction_percent mxu_percent valu_percent vload_percent"),
)


def _of_kernel(key: str) -> Field[Any]:
    """A field of the kernels' table, of the kernel of a variant."""
    known: Field[Any] = CALLS.by_key[key]

    def read(items: Sequence[Variant], rows: Rows) -> Any:  # noqa: ANN401 - as of the table of kernels
        return known.read(SimpleNamespace(kernels=[items[row].kernel for row in rows]), range(len(rows)))

    look = known.screen
    width = 0 if look is None else min(look.width, _NAME) if key == "kernel" else look.width
    return replace(known, read=read, screen=look and replace(look, cells=None, width=width), sort=None)


_NAME = 16  # cells of a kernel's name beside its blocks


FASTEST = "it is the fastest"
_OF_KERNEL = in_order(
    "kernel block_sizes grid parameters op program runs median_time_ps minimum_time_ps p90_time_ps maximum_time_ps",
    "wait_in_percent wait_out_percent body_percent vmem_bytes hbm_bytes roof_percent bound_by",
)
_VARIANTS: tuple[Field[Any], ...] = (
    named("place", units.COUNT, of_each("place"),
          "its place among the kernels of the same name and arrays, 1 the fastest", "#", 3, fixed=True),
    named("slower_percent", units.SHARE_PERCENT, of_each("slower"),
          "how much longer its median run takes than that of the fastest", "slower", 7),
    named("why", units.TEXT, of_each("why"), "what takes longer than in the fastest", "why", 36, null=FASTEST,
          cut=cut_words, words=lambda value, _: value or FASTEST),
    *map(_of_kernel, _OF_KERNEL),
)  # fmt: skip

VARIANTS: Table[Sequence[Variant]] = Table(
    "variants",
    _VARIANTS,
    len,
    markdown=in_order(
        "place kernel block_sizes grid runs median_time_ps p90_time_ps slower_percent wait_in_percent vmem_bytes",
        "roof_percent why op",
    ),
    screen=in_order(
        "place kernel block_sizes median_time_ps slower_percent why wait_in_percent p90_time_ps vmem_bytes",
        "roof_percent runs grid parameters",
    ),
)

METRICS: tuple[Metric[TpuKernelsPage], ...] = (
    attribute("statement", units.VERBATIM, "what to know of the kernels, in a sentence", null=NO_KERNEL),
    Metric("call_count", units.COUNT, lambda page: len(page.kernels), "kernels that ran", heading="kernels"),
    Metric(
        "kernel_time_percent",
        units.SHARE_PERCENT,
        lambda page: sum(kernel.fraction for kernel in page.kernels) if page.kernels else None,
        "time of all of them, of the cores' whole time",
        NO_KERNEL,
        "in kernels",
    ),
    attribute("notes", units.TEXTS, "what contradicts arithmetic, and where figures come from"),
)
