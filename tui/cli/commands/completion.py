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
from tpuprof.tui.cli.arguments.report import column_keys
from tpuprof.tui.cli.man import topics
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
    **dict.fromkeys(("--run", "--before", "--after"), ("runs", "name")),
    "--host": ("hosts", "host"),
    "--core": ("cores", "core"),
    "--op": ("ops", "name"),
}
"""Options whose values a profile has, with the page and the column of them."""


def run_completion(args: argparse.Namespace) -> int:
    """Prints the script, or what the last of some words may become, a line each."""
    if not args.typed:
        write_stdout(_SCRIPTS[args.shell])
        return EXIT_OK
    *before, begun = args.typed
    kept, comma, part = begun.rpartition(",")
    found = [f"{kept}{comma}{each}" for each in _candidates(before, begun) if each.startswith(part)]
    write_stdout("".join(f"{each}\n" for each in found))
    return EXIT_OK


def _candidates(before: Sequence[str], begun: str) -> Iterable[str]:
    """What may stand behind some words."""
    if not before:
        return [*filter(None, COMMANDS), DEMO]
    if before == ["report"]:
        return PAGE_NAMES
    if before == ["man"]:
        return topics()
    is_command = before[0] in COMMANDS
    words = before[1:] if is_command else before
    try:
        options = COMMANDS[before[0] if is_command else ""].parser(words)._option_string_actions
    except ProfileError:
        return ()
    option = options.get(before[-1])
    if option is not None and option.nargs != 0:
        return option.choices or _values(before[-1], words)
    return options if begun.startswith("-") else [DEMO]


def _values(flag: str, words: Sequence[str]) -> Iterable[str]:
    """What an option takes: names of the program, keys of a page, or values that a profile has."""
    if flag in _LISTED:
        return _of_profile(*_LISTED[flag], words)
    page = page_named(words[0])
    if page is None:
        return REQUIRED if flag == "--require" else ()
    if flag == "--by":
        return (*page.groups, *page.other_groups)
    return column_keys(page) if flag in ("--columns", "--sort", "--filter") else ()


def _of_profile(page: str, column: str, words: Sequence[str]) -> Iterable[str]:
    """The values in a column of a page; of ops those with most time."""
    path = next((word for word in words if word == DEMO or os.path.lexists(os.path.expanduser(word))), HERE)
    call = [page, path, "--json", "--columns", column, "--limit", "200"]
    made, _ = import_module("tpuprof.tui.cli.commands.report").made_report(COMMANDS["report"].parsed(call))
    return [printable(row[column]) for row in json.loads("".join(made))["rows"]]
