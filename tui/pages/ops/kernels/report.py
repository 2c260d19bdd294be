"""The report on kernels: of GPUs by their launches, of TPUs as custom calls, one of them with `--op`."""

from __future__ import annotations

from difflib import get_close_matches

from tpuprof.parsers.base.errors import EXIT_NOT_FOUND, EXIT_USAGE, ProfileError
from tpuprof.parsers.base.text import examples, printable
from tpuprof.parsers.pages.ops.kernels.gpu import KernelsPage, kernels_page
from tpuprof.parsers.pages.ops.kernels.page import TPU_KERNELS, kernels_of_run
from tpuprof.parsers.pages.ops.kernels.tpu import TpuKernel, TpuKernelsPage
from tpuprof.parsers.pages.ops.kernels.variants import variants
from tpuprof.parsers.pages.ops.key import OPS
from tpuprof.tui.pages.ops.fields.device import DEVICE, SIMULATED
from tpuprof.tui.pages.ops.fields.kernels import KERNELS
from tpuprof.tui.pages.ops.kernels import gpu_report
from tpuprof.tui.pages.ops.kernels.fields import (
    BLOCKS,
    CALLS,
    METRICS,
    PARTS,
    REGIONS,
    VARIANTS,
    Block,
    PartRow,
    Region,
)
from tpuprof.tui.pages.ops.report import common
from tpuprof.tui.report.declared import Declared, Metrics, Section, declared, drawn_by
from tpuprof.tui.report.fields import metric_rows
from tpuprof.tui.report.page import ReportRequest, page_of

BY_BLOCKS = "blocks"
"""`--by blocks` makes the main table, that of CSV, the one of kernels by the size of their blocks."""

BY_NAME = "name"
"""`--by name` makes all launches of a GPU's kernel one row, as `b` does in the app; on TPUs that is what rows are."""

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
        return kernels_page(ops, by_name=request.options.get("by") == BY_NAME)
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
        return gpu_report.declare(page, request)
    wanted = request.options.get("op")
    chosen = place_of(page, wanted) if wanted is not None and page.kernels else None
    calls = Section(CALLS, page, "Kernels", request.most_rows, rows=None if chosen is None else [chosen])
    kernels = page.kernels if chosen is None else (page.kernels[chosen],)
    parts = [PartRow(kernel, part) for kernel in kernels for part in kernel.parts]
    spans = Section(PARTS, parts, "Spans inside", request.most_rows)
    blocks = [Block(kernel, row) for kernel in kernels for row in kernel.blocks]
    scheduled = ((kernel, kernel.static) for kernel in kernels if kernel.static is not None)
    regions = [Region(kernel, row) for kernel, schedule in scheduled for row in schedule.regions]
    several = variants(page.kernels if chosen is None else _alike(page, chosen))
    of_sizes = Section(VARIANTS, several, "Which block size", request.most_rows)
    ops = page.ops
    return Declared(
        common.head("Kernels", ops, request),
        statement=page.statement,
        metrics=lambda: metric_rows(METRICS, page),
        parts=(
            Metrics((*DEVICE, SIMULATED), ops),
            Metrics(METRICS, page),
            calls,
            of_sizes,
            Section(BLOCKS, blocks, "What is kept on the chip", request.most_rows),
            Section(REGIONS, regions, "Schedule, region by region", request.most_rows),
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


METRICS_OF_ALL = (*DEVICE, SIMULATED, *gpu_report.OWN, *METRICS)
REPORT = declared(
    "kernels",
    read,
    declare,
    (CALLS, VARIANTS, BLOCKS, REGIONS, PARTS, KERNELS),
    METRICS_OF_ALL,
    CALLS,
    warnings=lambda page: page.ops.warnings,
)
