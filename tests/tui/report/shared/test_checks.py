"""Checks as GitHub and readers of JUnit take them, whatever names a profile has; and what a call may require."""

from __future__ import annotations

import re
from collections import Counter
from typing import get_args
from xml.etree import ElementTree

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests import EXAMPLES
from tests.tui.cli.calls import Call
from tpuprof.parsers.base.errors import EXIT_OK, EXIT_REGRESSION, EXIT_UNREADABLE, EXIT_USAGE
from tpuprof.parsers.base.text import printable
from tpuprof.tui.report.page import CHECKS, Check, State
from tpuprof.tui.report.shared.checks import exit_code, written

WORDS = st.text(max_size=12) | st.sampled_from(("::error::", "a%0Ab,c:d", "]]>&<\x00\x1b[2J", "\ud800\ufffe\u202e\r\n"))
A_CHECK = st.builds(
    Check, WORDS, st.sampled_from(get_args(State)), WORDS, st.just("") | WORDS.map("{}:7".format), st.booleans()
)
LEVELS: tuple[State, ...] = ("failed", "unknown", "ok")
COMMAND = re.compile(r"::(error|warning|notice) ((?:\w+=[^,:]*,?)+)::(.*)")


@settings(max_examples=EXAMPLES)
@given(st.lists(A_CHECK, max_size=40))
def test_both_formats_hold_every_check(checks: list[Check]) -> None:
    *lines, last = written("github", "diff", checks).splitlines()
    said = {(check.state, check.sentence, check.source) for check in checks if check.sentence}
    told = Counter(state for state, _, _ in said)
    assert len(lines) == sum(min(count, 10) for count in told.values()) and last.startswith(
        f"diff: {len(checks)} check"
    )
    assert [int(count) for count in re.findall(r"10 of (\d+)", last)] == [
        count for of in LEVELS if (count := told[of]) > 10
    ]
    for line in lines:
        command = COMMAND.fullmatch(line)
        assert command is not None and line.isprintable() | (printable(line) == line)
        assert command[3].replace("%25", "%") in {printable(sentence) for _, sentence, _ in said}
        assert not re.search("%(?!25|3A|2C)", command[2]) and not re.search("%(?!25)", command[3])
    suite = ElementTree.fromstring(written("junit", "diff", checks))[0]
    of = {state: [check for check in checks if check.state == state] for state in get_args(State)}
    counts = {
        "tests": len(checks),
        "failures": len(of["failed"]),
        "skipped": len(of["unknown"]),
        "errors": 0,
        "time": 0,
    }
    assert suite.attrib == {"name": "diff", **{key: str(count) for key, count in counts.items()}}
    assert all({"classname", "name", "time"} <= case.attrib.keys() for case in suite)
    children = {"failed": ["failure"], "unknown": ["skipped"]}
    for check, case in zip(checks, suite, strict=True):
        assert [child.tag for child in case] == children.get(check.state, ["system-out"] if check.sentence else [])
        assert all(child.tag == "system-out" or "message" in child.attrib for child in case)
    deciding = {check.state for check in checks if check.decides}
    assert exit_code(checks) == (6 if "failed" in deciding else 4 if "unknown" in deciding else 0)


@pytest.mark.parametrize(
    ("required", "code", "said"),
    [
        ("mfu>30%", EXIT_OK, ""),
        ("mfu>40%, device_idle<50%", EXIT_REGRESSION, "failed: mfu>40%: mfu_percent is 37.4"),
        ("!mfu>40%,performance.step_time_ms.median<0.25s,step_time.median>245,is_training=yes", EXIT_OK, ""),
        ("eager_percent.host<1", EXIT_UNREADABLE, "eager_percent.host is unknown: no event says"),
        ("mfi>40%", EXIT_USAGE, "try: --require 'mfu_percent>40%'"),
        ("idle_percent<5,op_counts>1", EXIT_USAGE, "'op_count>1'"),
        ("mfu>40GB", EXIT_USAGE, "mfu_percent is not in GB."),
        ("mfu", EXIT_USAGE, "'mfu' is not a requirement."),
    ],
)
def test_what_is_required_of_a_page(required: str, code: int, said: str, call: Call) -> None:
    printed = call("report", "overview", "demo", "--require", required, code=code)
    assert said in " ".join(printed.err.split()) and bool(printed.err) == bool(said)
    assert bool(printed.out) == (code != EXIT_USAGE)


@pytest.mark.parametrize(
    ("forbidden", "code", "failed"),
    [
        (">10%", EXIT_REGRESSION, ["collective", "unfused"]),
        (">10% kind=unfused", EXIT_REGRESSION, ["unfused"]),
        (">50%", EXIT_UNREADABLE, []),
        (">50% !kind=unexplained", EXIT_OK, []),
        ("<1ms kind=collective", EXIT_OK, []),
        ("<1ms is_estimate=no", EXIT_UNREADABLE, []),
        ("worth>5%", EXIT_USAGE, []),
    ],
)
def test_findings_that_a_call_forbids(forbidden: str, code: int, failed: list[str], call: Call) -> None:
    printed = call("report", "findings", "demo", "--fail-on", forbidden, code=code)
    assert re.findall(r"^failed: ([\w-]+):", printed.err, re.MULTILINE) == failed
    assert ("unknown: unexplained-2:" in printed.err) == (forbidden in (">10%", ">50%", "<1ms is_estimate=no"))
    for form in CHECKS if failed else ():
        made = call("report", "findings", "demo", "--fail-on", forbidden, "--format", form, code=code).out
        assert made.count("::error " if form == "github" else "<failure ") == len(failed)
