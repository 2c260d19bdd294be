"""Checks as continuous integration reads them: annotations of GitHub's, and JUnit's XML."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from xml.etree import ElementTree

from tpuprof.parsers.base.text import printable
from tpuprof.tui.report.page import Check

_LEVELS = {"failed": "error", "unknown": "warning", "ok": "notice"}
_PLACE = re.compile(r"(.+?):([0-9]{1,9})(?::[0-9]+)?")
_NOT_IN_XML = re.compile("[\ufffe\uffff]")  # `printable` leaves no other character that XML forbids


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
