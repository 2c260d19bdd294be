"""Checks of figures that a call requires; and checks as continuous integration reads them: for GitHub, and as JUnit."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any
from xml.etree import ElementTree

from tpuprof.parsers.base.record import replace
from tpuprof.parsers.base.text import printable
from tpuprof.parsers.ops.filtering.field_term import NULL, FieldTerm
from tpuprof.parsers.ops.filtering.filter import FilterError, parse_filter
from tpuprof.tui.report.choice import filter_of
from tpuprof.tui.report.describe import described
from tpuprof.tui.report.fields import NO_REASON
from tpuprof.tui.report.output import whole
from tpuprof.tui.report.page import Check, Report, ReportRequest

_LEVELS = {"failed": "error", "unknown": "warning", "ok": "notice"}
_PLACE = re.compile(r"(.+?):([0-9]{1,9})(?::[0-9]+)?")
_NOT_IN_XML = re.compile("[\ufffe\uffff]")  # `printable` leaves no other character that XML forbids


def required(text: str, pages: Sequence[tuple[Report[Any], Any]], asked: ReportRequest) -> list[Check]:
    """A check for each term of a filter on the keys of JSON, such as ``mfu>40%``.

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


def github(name: str, checks: Callable[..., Sequence[Check]], *given: object) -> str:
    """A line for each check of what a writer is given, what failed first: GitHub shows ten of a level."""
    lines = []
    for check in sorted(checks(*given), key=lambda check: [*_LEVELS].index(check.state)):
        place = _PLACE.fullmatch(check.source)
        where = "" if place is None else f"file={_property(place[1])},line={place[2]},"
        title = _property(f"{name}: {check.name}")
        lines.append(f"::{_LEVELS[check.state]} {where}title={title}::{_escaped(check.sentence)}\n")
    return "".join(lines)


def _escaped(text: str) -> str:
    return printable(text).replace("%", "%25")  # ends of lines, which GitHub wants escaped too, are not left


def _property(text: str) -> str:
    return _escaped(text).replace(":", "%3A").replace(",", "%2C")


def junit(name: str, checks: Callable[..., Sequence[Check]], *given: object) -> str:
    """A test case for each check of what a writer is given; an unknown one is skipped, with the reason."""
    made = checks(*given)
    states = Counter(check.state for check in made)
    counts = {"tests": len(made), "failures": states["failed"], "skipped": states["unknown"]}
    suites = ElementTree.Element("testsuites")
    suite = ElementTree.SubElement(suites, "testsuite", {key: str(n) for key, n in counts.items()}, name=name)
    for check in made:
        names = {"classname": f"tpuprof.{name}", "name": printable(check.name)}
        case, words = ElementTree.SubElement(suite, "testcase", names), printable(check.sentence)
        if check.state == "ok":
            ElementTree.SubElement(case, "system-out").text = words
        else:
            ElementTree.SubElement(case, "failure" if check.state == "failed" else "skipped", message=words)
    ElementTree.indent(suites)
    text = ElementTree.tostring(suites, encoding="unicode")
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{_NOT_IN_XML.sub("?", text)}\n'
