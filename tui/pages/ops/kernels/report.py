"""The report on kernels: of GPUs by their launches, of TPUs as custom calls, one of them with `--op`."""

from __future__ import annotations

from difflib import get_close_matches

from tpuprof.parsers.base.errors import EXIT_NOT_FOUND, EXIT_USAGE, ProfileError
from tpuprof.parsers.base.text import counted, examples, printable
from tpuprof.parsers.pages.ops.kernels.gpu import KernelsPage, kernels_page
from tpuprof.parsers.pages.ops.kernels.page import TPU_KERNELS, kernels_of_run
from tpuprof.parsers.pages.ops.kernels.tpu import TpuKernel, TpuKernelsPage
from tpuprof.parsers.pages.ops.kernels.variants import variants
from tpuprof.parsers.pages.ops.key import OPS
from tpuprof.tui.draw.format import duration, percent
from tpuprof.tui.draw.pen import Pen
from tpuprof.tui.draw.spans import Line
from tpuprof.tui.pages.ops.fields.common import DEVICE, SIMULATED
from tpuprof.tui.pages.ops.fields.kernels import KERNEL_COUNT, KERNEL_TIME, KERNELS, TENSOR_TIME
from tpuprof.tui.pages.ops.kernels import fields
from tpuprof.tui.pages.ops.report import common
from tpuprof.tui.report.declared import Declared, Metrics, Section, declared, drawn_by
from tpuprof.tui.report.fields import metric_rows
from tpuprof.tui.report.page import ReportRequest, page_of

BY_BLOCKS = "blocks"
"""`--by blocks` makes the main table, that of CSV, the one of kernels by the size of their blocks."""

BY_SHAPE = "shape"
"""`--by shape` makes a row for each op and size of a launch of a GPU's kernel, as `b` does in the app."""

Page = KernelsPage | TpuKernelsPage
_lines = drawn_by("tpuprof.tui.pages.ops.kernels.drawing:report_lines")


def read(request: ReportRequest) -> Page:
    """The kernels of the run's TPUs, or of its GPUs.

    Raises:
        ProfileError: `unknown_op`, exit code 3, with the nearest names, where `--op` names no kernel; `usage`, 2, where
            the run is of GPUs; where `--dump` names no dump of these kernels.
    """
    wanted, dump = request.options.get("op"), request.options.get("dump")
    ops = page_of(OPS)(request)
    if ops.runs_on != "core":
        if wanted is not None:
            sentence = "--op chooses among the kernels of TPUs, and no TPU is in this profile."
            raise ProfileError("usage", sentence, "--filter chooses among those of GPUs", EXIT_USAGE)
        if dump is not None:
            sentence = "--dump names schedules of the kernels of TPUs, and no TPU is in this profile."
            raise ProfileError("usage", sentence, "leave out --dump", EXIT_USAGE)
        return kernels_page(ops, by_shape=request.options.get("by") == BY_SHAPE)
    read_page = page_of(TPU_KERNELS)
    page = read_page(request) if dump is None else kernels_of_run(request.session(request.run), request.host, dump)
    if wanted is not None and page.kernels:
        place_of(page, wanted)
    return page


def place_of(page: TpuKernelsPage, name: str) -> int:
    """Which kernel has a name: that of its op, or its own; the one with most time where several have.

    Raises:
        ProfileError: `unknown_op`, exit code 3, with the nearest names.
    """
    wanted = name.removeprefix("%")
    found = page.place(wanted)
    if found is not None:
        return found
    known = list(dict.fromkeys(each for kernel in page.kernels for each in (kernel.op, kernel.kernel)))
    near = get_close_matches(wanted, known, 5, 0.4) or known[:5]
    raise ProfileError(
        "unknown_op", f"No kernel {printable(name)} ran.", f"one of: {examples(near, 5)}", EXIT_NOT_FOUND
    )


def declare(page: Page, request: ReportRequest) -> Declared:
    """What the page of either kind of device holds."""
    if isinstance(page, KernelsPage):
        return _of_gpus(page, request)
    wanted = request.options.get("op")
    chosen = place_of(page, wanted) if wanted is not None and page.kernels else None
    calls = Section(fields.CALLS, page, "Kernels", request.most_rows, rows=None if chosen is None else [chosen])
    kernels = page.kernels if chosen is None else (page.kernels[chosen],)
    parts = [fields.PartRow(kernel, part) for kernel in kernels for part in kernel.parts]
    spans = Section(fields.PARTS, parts, "Spans inside", request.most_rows)
    blocks = [fields.Block(kernel, row) for kernel in kernels for row in kernel.blocks]
    scheduled = ((kernel, kernel.static) for kernel in kernels if kernel.static is not None)
    regions = [fields.Region(kernel, row) for kernel, schedule in scheduled for row in schedule.regions]
    several = variants(page.kernels if chosen is None else _alike(page, chosen))
    of_sizes = Section(fields.VARIANTS, several, "Which block size", request.most_rows)
    ops = page.ops
    return Declared(
        common.head("Kernels", ops, request),
        statement=page.statement,
        metrics=lambda: metric_rows(fields.METRICS, page),
        parts=(
            Metrics((*DEVICE, SIMULATED), ops),
            Metrics(fields.METRICS, page),
            calls,
            of_sizes,
            Section(fields.BLOCKS, blocks, "What is kept on the chip", request.most_rows),
            Section(fields.REGIONS, regions, "Schedule, region by region", request.most_rows),
            spans,
        ),
        csv=of_sizes if request.options.get("by") == BY_BLOCKS else calls,
        text=lambda pen: common.text_lines(
            ops, _lines(page, several, pen, request.most_rows, chosen), page.unknown, pen
        ),
        notes=page.notes,
        unknown=page.unknown,
        reasons=_reasons(page),
    )


def _alike(page: TpuKernelsPage, chosen: int) -> list[TpuKernel]:
    """The kernels that do the same as one of them."""
    one = page.kernels[chosen]
    return [each for each in page.kernels if (each.kernel, each.arrays) == (one.kernel, one.arrays)]


def _reasons(page: TpuKernelsPage) -> dict[str, str]:
    why = page.unknown.get("kernels", "")
    return {**page.unknown, **({"statement": why, "kernel_time_percent": why} if why else {})}


_OF_GPUS = (KERNEL_COUNT, KERNEL_TIME, TENSOR_TIME)


def _of_gpus(page: KernelsPage, request: ReportRequest) -> Declared:
    """Figures, and kernels by time."""
    ops, kernels = page.ops, Section(KERNELS, page, "Kernels", request.most_rows)
    why = dict(page.unknown)
    if not len(page):
        why |= dict.fromkeys((KERNEL_TIME.key, TENSOR_TIME.key), page.unknown["kernels"])
    return Declared(
        common.head("GPU kernels", ops, request),
        metrics=lambda: [("kernels", str(len(page))), *metric_rows(_OF_GPUS, page)],
        parts=(Metrics((*DEVICE, SIMULATED), ops), Metrics(_OF_GPUS, page), kernels),
        csv=kernels,
        text=lambda pen: _gpu_text(page, kernels, pen),
        unknown=page.unknown,
        reasons=why,
    )


def _gpu_text(page: KernelsPage, kernels: Section[KernelsPage], pen: Pen) -> list[Line]:
    lines, tensor = [], TENSOR_TIME.read(page)
    if len(page):
        words = f"{counted(len(page), 'kernel')}, {duration(int(page.total_ps.sum()), pen.glyphs.is_ascii)}"
        words += f"; {percent(100 * tensor)} of it uses tensor cores" if tensor is not None else ""
        lines.append(pen.fit([(words, "title")]))
    return common.text_lines(page.ops, [*lines, *kernels.lines(pen)], page.unknown, pen)


METRICS_OF_ALL = (*DEVICE, SIMULATED, *_OF_GPUS, *fields.METRICS)
REPORT = declared(
    "kernels",
    read,
    declare,
    (fields.CALLS, fields.VARIANTS, fields.BLOCKS, fields.REGIONS, fields.PARTS, KERNELS),
    METRICS_OF_ALL,
    fields.CALLS,
    warnings=lambda page: page.ops.warnings,
)
