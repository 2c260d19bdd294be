"""``tpuprof-tui completion SHELL``: a script for a shell, which asks this program what a begun word may become."""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Iterable, Mapping, Sequence
from importlib import import_module

from tpuprof.parsers.base.errors import EXIT_OK, ProfileError
from tpuprof.parsers.base.text import printable
from tpuprof.tui.cli.arguments.itself import REQUIRED
from tpuprof.tui.cli.arguments.options import DEMO, HERE
from tpuprof.tui.cli.table import COMMANDS
from tpuprof.tui.pages import PAGE_NAMES, page_named
from tpuprof.tui.report.output import write_stdout

_SCRIPTS: Mapping[str, str] = {
    "bash": """_tpuprof_tui() {
  local IFS=$'\\n'
  COMPREPLY=($(tpuprof-tui completion bash -- "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null))
}
complete -o default -F _tpuprof_tui tpuprof-tui
""",
    "zsh": """_tpuprof_tui() {
  local -a found
  found=(${(f)"$(tpuprof-tui completion zsh -- "${(@)words[2,CURRENT]}" 2>/dev/null)"})
  compadd -a found || _files
}
compdef _tpuprof_tui tpuprof-tui
""",
    "fish": """complete -c tpuprof-tui -a \
'(tpuprof-tui completion fish -- (commandline -opc)[2..] (commandline -ct) 2>/dev/null)'
""",
}
_LISTED: Mapping[str, tuple[str, str]] = {
    "--run": ("runs", "name"),
    "--before": ("runs", "name"),
    "--after": ("runs", "name"),
    "--host": ("hosts", "host"),
    "--core": ("cores", "core"),
    "--op": ("ops", "name"),
}
"""Options whose values a profile has, with the page and the column of them."""


def run_completion(args: argparse.Namespace) -> int:
    """Prints the script, or what the last of some words may become, a line each."""
    if not args.words:
        write_stdout(_SCRIPTS[args.shell])
        return EXIT_OK
    *before, begun = args.words
    kept, comma, part = begun.rpartition(",")
    found = [f"{kept}{comma}{each}" for each in candidates(before, begun) if each.startswith(part if comma else begun)]
    write_stdout("".join(f"{each}\n" for each in found))
    return EXIT_OK


def candidates(before: Sequence[str], begun: str) -> Iterable[str]:
    """What may stand behind some words."""
    if not before:
        return [*filter(None, COMMANDS), DEMO]
    if before == ["report"]:
        return PAGE_NAMES
    command = before[0] if before[0] in COMMANDS else ""
    words = before[1:] if command else before
    try:
        actions = COMMANDS[command].parser(words)._actions
    except ProfileError:
        return ()
    option = next((action for action in actions if before[-1] in action.option_strings and action.nargs != 0), None)
    if option is not None:
        return _values(before[-1], option, words)
    flags = [flag for action in actions for flag in action.option_strings]
    return flags if begun.startswith("-") else [DEMO]


def _values(flag: str, option: argparse.Action, words: Sequence[str]) -> Iterable[str]:
    """What an option takes."""
    if option.choices is not None or flag == "--require":
        return REQUIRED if option.choices is None else list(option.choices)
    page = page_named(words[0])
    if page is not None and flag in ("--columns", "--sort", "--filter"):
        table = page.load_report().csv_table
        return () if table is None else [field.key for field in table.fields if not field.key.endswith("_bar")]
    if page is not None and flag == "--by":
        return (*page.groups, *page.other_groups)
    return _of_profile(flag, words) if flag in _LISTED else ()


def _of_profile(flag: str, words: Sequence[str]) -> Iterable[str]:
    """The values that a profile has; of its ops those with most time."""
    page, column = _LISTED[flag]
    path = next((word for word in words if word == DEMO or os.path.lexists(os.path.expanduser(word))), HERE)
    call = [page, path, "--json", "--columns", column, "--limit", "200"]
    made, _ = import_module("tpuprof.tui.cli.commands.report").made_report(COMMANDS["report"].parsed(call))
    return [printable(row[column]) for row in json.loads("".join(made))["rows"]]
