"""Checks as GitHub and readers of JUnit take them, whatever names a profile has."""

from __future__ import annotations

import re
from typing import get_args
from xml.etree import ElementTree

from hypothesis import given, settings
from hypothesis import strategies as st

from tests import EXAMPLES
from tpuprof.parsers.base.text import printable
from tpuprof.tui.report.declared import check_writers
from tpuprof.tui.report.page import CHECKS, Check, State

WORDS = st.text(max_size=12) | st.sampled_from(("::error::", "a%0Ab,c:d", "]]>&<\x00\x1b[2J", "\ud800\ufffe\u202e\r\n"))
A_CHECK = st.builds(Check, WORDS, st.sampled_from(get_args(State)), WORDS, st.just("") | WORDS.map("{}:7".format))
COMMAND = re.compile(r"::(error|warning|notice) (?:\w+=(?:[^,:%]|%25|%3A|%2C)*,?)+::((?:[^%]|%25)*)")
LEVELS = {"failed": ("error", "failure"), "unknown": ("warning", "skipped"), "ok": ("notice", "system-out")}


@settings(max_examples=EXAMPLES)
@given(st.lists(A_CHECK, max_size=40))
def test_both_formats_hold_every_check(checks: list[Check]) -> None:
    github, junit = (check_writers("diff", lambda: checks)[form]() for form in CHECKS)
    lines = [COMMAND.fullmatch(line) for line in github.splitlines()]
    ordered = sorted(checks, key=lambda check: [*LEVELS].index(check.state))
    expected = [(LEVELS[check.state][0], printable(check.sentence)) for check in ordered]
    assert [(line[1], line[2].replace("%25", "%")) for line in lines if line] == expected and len(lines) == len(checks)
    suite = ElementTree.fromstring(junit)[0]
    assert [case[0].tag for case in suite] == [LEVELS[check.state][1] for check in checks]
    assert suite.attrib["tests"] == str(len(checks)) and suite.attrib["failures"] == str(
        len(suite.findall("*/failure"))
    )
