"""What is not there is answered with the nearest of what is."""

from __future__ import annotations

import pytest

from tests.tui.cli.calls import Call
from tpuprof.parsers.base.errors import EXIT_NOT_FOUND, EXIT_USAGE


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        ("reprot ops demo", "tpuprof-tui report"),
        ("report opps demo", "tpuprof-tui report ops demo"),
        ("report ops demo --colums name", "tpuprof-tui report ops demo --columns name"),
        ("report ops demo --format jsn", "tpuprof-tui report ops demo --format json"),
        ("report ledger demo --by stp", "--by step"),
        ("report memory demo --space hbmm", "tpuprof-tui report memory demo --space hbm"),
        ("report ops demo --columns nme", "--columns name"),
        ("report ops demo --sort self_tim_ps", "--sort self_time_ps"),
        ("report overview demo --format json --keys performanc", "--keys performance"),
        ("query demo SELECT+*+FROM+opss", "one of: ops"),
        ("query demo SELECT+nme+FROM+ops", "one of: name"),
        ("query demo SELECT+*+FROM+Slice", "one of: events"),
        ("query demo SELECT+*+FROM+xyz", "one of: events, ops, steps, cores, hosts"),
        ("doctor demo --require stps", "--require steps"),
        ("diff demo demo --fromat md", "tpuprof-tui diff demo demo --format md"),
    ],
)
def test_a_name_that_is_wrong(words: str, hint: str, call: Call) -> None:
    """Of commands, pages, options and their values, owners, columns, keys of JSON and tables."""
    assert call.error(EXIT_USAGE, *(word.replace("+", " ") for word in words.split()))[1].startswith(f"try: {hint}")


@pytest.mark.parametrize("words", ["report op demo --op fuson.397", "report graph demo --op fuson.397"])
def test_an_op_that_did_not_run(words: str, call: Call) -> None:
    """Of the ops that ran."""
    assert call.error(EXIT_NOT_FOUND, *words.split())[1].startswith("try: one of: fusion.397")


@pytest.mark.parametrize(
    ("words", "call_of_ours"), [("x y z", "--help"), ("foo demo", "demo"), ("alpha x --y 1 demo", "demo")]
)
def test_what_nothing_is_like(words: str, call_of_ours: str, call: Call) -> None:
    """A path is no command, and can be opened; what comes near to nothing is answered with the help."""
    assert call.error(EXIT_USAGE, *words.split())[1] == f"try: tpuprof-tui {call_of_ours}"


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        ("--run dmo", "one of: demo"),
        ("--run xyz", "give a run's name or its beginning"),
        ("--host dmo", "one of: demo"),
        ("--host xyz", "its hosts: demo"),
        ("--core dmo:2", "one of: demo"),
        ("--core demo:9", "--core demo:3 or demo:2"),
        ("--core chip7", "--core demo:chip3 or demo:chip2"),
        ("--core Chip+7:+TPU+core+0", "one of: Chip 3: TPU core 0"),
    ],
)
def test_a_run_host_or_core_that_is_not_there(words: str, hint: str, call: Call) -> None:
    """Of those of the profile; a core by its number."""
    asked = [word.replace("+", " ") for word in words.split()]
    assert call.error(EXIT_NOT_FOUND, "report", "overview", "demo", *asked)[1].startswith(f"try: {hint}")
