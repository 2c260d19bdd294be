"""The report on HLO ops.

Beside what the documentation fixes: `op_count` is the number of ops before any limit, and `device` is one object on all
op pages. `flops` and bytes are over all occurrences, `average_time_ps` is the total time by occurrence.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from tpuprof.parsers.base.errors import EXIT_USAGE, ProfileError
from tpuprof.parsers.pages.ops.ops import OpsPage, with_offloaded
from tpuprof.parsers.session import pages
from tpuprof.tui.pages.ops.fields.device import DEVICE, OP_COUNT, SIMULATED, TIME_SCALE, WHOLE_TIME, time_metrics
from tpuprof.tui.pages.ops.fields.hlo_ops import HLO_OPS, clone_rows
from tpuprof.tui.pages.ops.fields.in_steps import IN_STEPS, STEPS
from tpuprof.tui.pages.ops.report import common
from tpuprof.tui.report.declared import Declared, Metrics, Section, declared, drawn_by
from tpuprof.tui.report.fields import metric_reasons, metric_rows
from tpuprof.tui.report.page import Format, ReportRequest, page_of

if TYPE_CHECKING:
    from tpuprof.parsers.pages.ops.one_op import OpsInSteps

_ALL_OPS = replace(OP_COUNT, meaning="HLO ops before any limit, those of SparseCores too")
METRICS = (*WHOLE_TIME, TIME_SCALE, SIMULATED, *DEVICE, _ALL_OPS)


def read(request: ReportRequest) -> OpsPage | OpsInSteps:
    """All ops, or those of the steps that are asked for."""
    steps = request.options.get("step")
    if request.options.get("by") is not None:
        return page_of(pages.OPS)(request)  # clones are those of the cores' own ops
    if steps is not None:
        return request.session(request.run).ops_in_steps(steps, request.host)
    return _ops(request)


_ops = common.of_ops(with_offloaded)
_op_groups = drawn_by("tpuprof.parsers.pages.ops.op_groups:op_groups")


def _of_steps(found: OpsInSteps, request: ReportRequest) -> Declared:
    """The steps, and the ops that ran in them."""
    ops = Section(IN_STEPS, found, "Ops", request.most_rows)
    page, names = found.page, found.steps
    which = f"step {names[0]}" if len(names) == 1 else f"steps {names[0]} to {names[-1]}"
    return Declared(
        common.head(f"HLO ops in {which}", page, request),
        metrics=lambda: metric_rows(STEPS, found),
        parts=(Metrics(STEPS, found), ops),
        csv=ops,
        text=lambda pen: common.text_lines(page, ops.lines(pen, "time"), {}, pen),
    )


def declare(page: OpsPage | OpsInSteps, request: ReportRequest) -> Declared:
    """Figures, and HLO ops by self time."""
    if not isinstance(page, OpsPage):
        return _of_steps(page, request)
    ops = Section(HLO_OPS, page, "Ops", request.most_rows)
    if request.options.get("by") is not None:
        groups = _op_groups(page)
        ops = Section(clone_rows(groups.op_count), groups.page, "Ops with their clones", request.most_rows)
    return Declared(
        common.head("HLO ops", page, request),
        metrics=lambda: [*common.time_rows(page), *common.peak_rows(page)],
        parts=(Metrics(METRICS, page), ops),
        csv=ops,
        text=lambda pen: common.text_lines(page, ops.lines(pen), page.unknown, pen),
        unknown=common.worth_saying(page.unknown),
        reasons={**metric_reasons(time_metrics(page)), **page.unknown},
    )


def check(options: Mapping[str, Any], _: Format, __: int | None) -> None:
    """Checks that a call does not ask for clones and steps at once."""
    if options.get("by") is not None and options.get("step") is not None:
        sentence = "Clones are added up over the whole capture: --by clones does not work with --step."
        raise ProfileError("usage", sentence, "leave out --by", EXIT_USAGE)


REPORT = declared("ops", read, declare, (HLO_OPS, IN_STEPS), (*METRICS, *STEPS), check=check)
