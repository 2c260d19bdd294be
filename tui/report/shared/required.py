"""What a call requires of a page's figures, ``mfu>40%``: terms of a filter, on the keys of its JSON."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from functools import reduce
from typing import Any

from tpuprof.parsers.ops.filtering.field_term import NULL, FieldTerm
from tpuprof.parsers.ops.filtering.filter import FilterError, parse_filter
from tpuprof.tui.report.choice import filter_of
from tpuprof.tui.report.describe import described
from tpuprof.tui.report.fields import NO_REASON
from tpuprof.tui.report.output import whole
from tpuprof.tui.report.page import Check, Report, ReportRequest


def required(text: str, pages: Sequence[tuple[Report[Any], Any]], asked: ReportRequest) -> list[Check]:
    """A check for each term of a filter.

    Args:
        pages: reports with what they have read.

    Raises:
        ProfileError: the text is no filter, or looks at something else than a figure.
    """
    asked, values, reasons = replace(asked, form="json", limit=1, keys=None), {}, {}
    for report, content in pages:
        document = json.loads(whole(report.writers["json"](content, asked)))
        for each in described(report):
            if "[]" not in each.key:
                values[each.key] = reduce(lambda of, name: (of or {}).get(name), each.key.split("."), document)
                reasons[each.key] = document["unknown"].get(each.key) or each.null_when or NO_REASON
    made = []
    with filter_of("--require"):
        for term in parse_filter(text, values).terms:
            figure, negated = term.condition, term.negated
            if not isinstance(figure, FieldTerm):
                raise FilterError("each term compares a figure, such as mfu>40%")
            value, name = values[figure.key], f"{'!' * negated}{figure.key}{figure.relation}{figure.text}"
            if value is None and figure.text != NULL:
                made.append(Check(name, "unknown", f"{figure.key} is unknown: {reasons[figure.key]}."))
            else:
                made.append(Check(name, "failed" if figure.holds(value) is negated else "ok", f"It is {value}."))
    return made
