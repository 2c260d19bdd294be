"""What the README and the manual say about options, keys, files and figures."""

from __future__ import annotations

import argparse
import re

from tests.support.imports import ROOT
from tests.tui.readme.commands import read
from tpuprof.tui.cli.man import manual
from tpuprof.tui.cli.table import COMMANDS
from tpuprof.tui.pages import PAGE_NAMES
from tpuprof.tui.terminal.detect import Config, read_config
from tpuprof.tui.terminal.grammar import VERBS

README = read()
OF_OTHERS = {
    "--xla_jf_dump_to",
    "--xla_jf_dump_llo_proto",
    "--xla_jf_dump_llo_pass_label_regex",
    "--xla_xprof_register_llo_debug_info",
    "--xla_xprof_enable_custom_call_tracing",
    "--asan",
    "--branch",
    "--dist",
    "--minutes",
    "--xla_dump_to",
    "--xla_dump_hlo_as_proto",
}


def test_every_option_that_is_named_is_there() -> None:
    parsers = [*(command.parser() for command in COMMANDS.values()), *map(COMMANDS["report"].parser, zip(PAGE_NAMES))]
    actions = (action for parser in parsers for action in parser._actions)
    known = {flag for action in actions if action.help != argparse.SUPPRESS for flag in action.option_strings}
    assert README.options() - OF_OTHERS <= known


def test_the_manual_has_every_key() -> None:
    assert all(f"`{key}` " in manual("keys") for verb in VERBS if verb.name != "pick" for key in verb.keys)


def test_the_examples_of_variables_hold() -> None:
    said = dict(re.findall(r"`(TPUPROF_\w+)=([^`]+)`", README.text))
    assert read_config(said) == Config("colour-blind", True, 500_000_000)


def test_the_speed_in_the_readme_is_that_of_the_benchmark() -> None:
    readme = (ROOT / "README.md").read_text("utf-8").partition("## Speed")[2]
    rows = re.findall(r"^\| ([a-z]+) \| (\d+ MB) \| (.*) \|$", readme, re.MULTILINE)
    measured = (ROOT / "tests" / "bench" / "README.md").read_text("utf-8").splitlines()
    assert len(rows) == 4
    for page, size, cells in rows:
        (row,) = (line for line in measured if line.startswith(f"| {page} | {size} |"))
        assert all(figure in row for figure in re.split(r" \| |, (?=\d)", cells)), page


def test_every_file_that_is_named_is_there() -> None:
    named = re.findall(r"\]\(([\w./-]+)\)|`((?:tests|parsers|tui)/[\w./]+)`", README.text)
    assert len(named) > 10 and all((ROOT / (link or path)).exists() for link, path in named)
