"""Checks as continuous integration reads them: annotations of GitHub's, and JUnit's XML."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from xml.etree import ElementTree

from tpuprof.parsers.base.errors import EXIT_OK, EXIT_REGRESSION, EXIT_UNREADABLE
from tpuprof.parsers.base.text import counted, examples, printable
from tpuprof.tui.report.page import Check

MOST_ANNOTATIONS = 10
"""How many annotations of a level GitHub shows of a step."""

_LEVELS = {"failed": "error", "unknown": "warning", "ok": "notice"}
_PLACE = re.compile(r"(.+?):([0-9]{1,9})(?::[0-9]+)?")
_ESCAPES = {"%": "%25"}  # `printable` leaves no ends of lines, which GitHub wants escaped too
_IN_PROPERTIES = {**_ESCAPES, ":": "%3A", ",": "%2C"}
_NOT_IN_XML = re.compile("[\ufffe\uffff]")  # `printable` leaves no other character that XML forbids


def exit_code(checks: Sequence[Check]) -> int:
    """What a command ends with for the checks that decide: 6 where one failed, else 4 where one is unknown."""
    states = {check.state for check in checks if check.decides}
    return EXIT_REGRESSION if "failed" in states else EXIT_UNREADABLE if "unknown" in states else EXIT_OK


def github(name: str, checks: Sequence[Check]) -> str:
    """A line for each thing that there is to say, what failed first, and one with how many checks there are.

    Checks with the same sentence are one line. What GitHub would not show is counted.
    """
    said: defaultdict[tuple[str, str, str], list[str]] = defaultdict(list)
    for check in checks:
        said[check.state, check.sentence, check.source].append(check.name)
    lines: list[str] = []
    states = Counter(check.state for check in checks)
    last = f"{name}: {counted(len(checks), 'check')}, {states['failed']} failed, {states['unknown']} unknown"
    for state, level in _LEVELS.items():
        told = [key for key in said if key[0] == state and key[1]]
        for _, sentence, source in told[:MOST_ANNOTATIONS]:
            properties = {**_place(source), "title": f"{name}: {examples(said[state, sentence, source])}"}
            words = ",".join(f"{key}={_escaped(text, _IN_PROPERTIES)}" for key, text in properties.items())
            lines.append(f"::{level} {words}::{_escaped(sentence, _ESCAPES)}")
        if len(told) > MOST_ANNOTATIONS:
            last += f"; GitHub shows {MOST_ANNOTATIONS} of {len(told)} of level {level}: --format junit has all"
    return "\n".join([*lines, last, ""])


def _place(source: str) -> dict[str, str]:
    found = _PLACE.fullmatch(source)
    return {} if found is None else {"file": found[1], "line": found[2]}


def _escaped(text: str, escapes: Mapping[str, str]) -> str:
    return "".join(escapes.get(character, character) for character in printable(text))


def junit(name: str, checks: Sequence[Check]) -> str:
    """A test case for each check; an unknown one is skipped, with the reason.

    The times are 0, which some readers need to be there: a check takes none.
    """
    states = Counter(check.state for check in checks)
    counts = {"tests": len(checks), "failures": states["failed"], "errors": 0, "skipped": states["unknown"], "time": 0}
    totals = {key: str(value) for key, value in counts.items()}
    suites = ElementTree.Element("testsuites", {"name": "tpuprof-tui", **totals})
    suite = ElementTree.SubElement(suites, "testsuite", {"name": name, **totals})
    for check in checks:
        of = {"classname": f"tpuprof.{name}", "name": _in_xml(check.name), "time": "0"}
        case = ElementTree.SubElement(suite, "testcase", of | {k: _in_xml(v) for k, v in _place(check.source).items()})
        words = _in_xml(check.sentence)
        if check.state == "failed":
            ElementTree.SubElement(case, "failure", message=words, type="regression").text = words
        elif check.state == "unknown":
            ElementTree.SubElement(case, "skipped", message=words)
        elif words:
            ElementTree.SubElement(case, "system-out").text = words
    ElementTree.indent(suites)
    text = ElementTree.tostring(suites, encoding="unicode")
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{text}\n'


def _in_xml(text: str) -> str:
    return _NOT_IN_XML.sub("\ufffd", printable(text))


def written(form: str, name: str, checks: Sequence[Check]) -> str:
    """The checks of the report of that name, in a format of `tui.report.page.CHECKS`."""
    return github(name, checks) if form == "github" else junit(name, checks)
