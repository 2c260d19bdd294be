"""The report on HLO ops.

Beside what the documentation fixes: `op_count` is the number of ops before any limit, and `device` is one object on all
op pages. `flops` and bytes are over all occurrences, `average_time_ps` is the total time by occurrence.
"""

from __future__ import annotations

from tpuprof.parsers.base.record import replace
from tpuprof.parsers.base.words import NO_DEVICE
from tpuprof.parsers.pages.ops.key import OPS
from tpuprof.parsers.pages.ops.ops import OpsPage, with_offloaded
from tpuprof.tui.pages.ops.fields.common import DEVICE, OP_COUNT, SIMULATED, TIME_SCALE, WHOLE_TIME, time_metrics
from tpuprof.tui.pages.ops.fields.hlo_ops import HLO_OPS, clone_rows
from tpuprof.tui.pages.ops.report import common
from tpuprof.tui.report.declared import Declared, Metrics, Section, declared, drawn_by
from tpuprof.tui.report.fields import metric_reasons
from tpuprof.tui.report.page import ReportRequest, page_of

_ALL_OPS = replace(OP_COUNT, meaning="HLO ops before any limit, those of SparseCores too")
_EVENTS_OF_HOST = "; report timeline has the host's events, as has the table events of query"
METRICS = (*WHOLE_TIME, TIME_SCALE, SIMULATED, *DEVICE, _ALL_OPS)


def read(request: ReportRequest) -> OpsPage:
    """All ops; clones are those of the cores' own."""
    return page_of(OPS)(request) if request.options.get("by") is not None else _ops(request)


_ops = common.of_ops(with_offloaded)
_op_groups = drawn_by("tpuprof.parsers.pages.ops.op_groups:op_groups")


def declare(page: OpsPage, request: ReportRequest) -> Declared:
    """Figures, and HLO ops by self time."""
    unknown = {**page.unknown}
    if unknown.get("ops") == NO_DEVICE:
        unknown["ops"] += _EVENTS_OF_HOST
    ops = Section(HLO_OPS, page, "Ops", request.most_rows)
    if request.options.get("by") is not None:
        groups = _op_groups(page)
        ops = Section(clone_rows(groups.op_count), groups.page, "Ops with their clones", request.most_rows)
    return Declared(
        common.head("HLO ops", page, request),
        metrics=lambda: [*common.time_rows(page), *common.peak_rows(page)],
        parts=(Metrics(METRICS, page), ops),
        csv=ops,
        text=lambda pen: common.text_lines(page, ops.lines(pen), unknown, pen),
        unknown=common.worth_saying(unknown),
        reasons={**metric_reasons(time_metrics(page)), **unknown},
    )


REPORT = declared("ops", read, declare, (HLO_OPS,), METRICS)
