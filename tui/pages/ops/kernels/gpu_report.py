"""The report on GPU kernels."""

from __future__ import annotations

from tpuprof.parsers.base.text import counted
from tpuprof.parsers.pages.ops.kernels.gpu import KernelsPage
from tpuprof.tui.draw.format import duration, percent
from tpuprof.tui.draw.pen import Pen
from tpuprof.tui.draw.spans import Line
from tpuprof.tui.pages.ops.fields.device import DEVICE, SIMULATED
from tpuprof.tui.pages.ops.fields.kernels import KERNEL_COUNT, KERNEL_TIME, KERNELS, TENSOR_TIME
from tpuprof.tui.pages.ops.report import common
from tpuprof.tui.report.declared import Declared, Metrics, Section
from tpuprof.tui.report.fields import metric_rows
from tpuprof.tui.report.page import ReportRequest

OWN = (KERNEL_COUNT, KERNEL_TIME, TENSOR_TIME)


def declare(page: KernelsPage, request: ReportRequest) -> Declared:
    """Figures, and kernels by time."""
    ops, kernels = page.ops, Section(KERNELS, page, "Kernels", request.most_rows)
    why = dict(page.unknown)
    if not len(page):
        why |= dict.fromkeys((KERNEL_TIME.key, TENSOR_TIME.key), page.unknown["kernels"])
    return Declared(
        common.head("GPU kernels", ops, request),
        metrics=lambda: [("kernels", str(len(page))), *metric_rows(OWN, page)],
        parts=(Metrics((*DEVICE, SIMULATED), ops), Metrics(OWN, page), kernels),
        csv=kernels,
        text=lambda pen: _text(page, kernels, pen),
        unknown=page.unknown,
        reasons=why,
    )


def _text(page: KernelsPage, kernels: Section[KernelsPage], pen: Pen) -> list[Line]:
    lines, tensor = [], TENSOR_TIME.read(page)
    if len(page):
        words = f"{counted(len(page), 'kernel')}, {duration(int(page.total_ps.sum()), pen.glyphs.is_ascii)}"
        words += f"; {percent(100 * tensor)} of it uses tensor cores" if tensor is not None else ""
        lines.append(pen.fit([(words, "title")]))
    return common.text_lines(page.ops, [*lines, *kernels.lines(pen)], page.unknown, pen)
