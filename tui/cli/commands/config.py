"""``tpuprof-tui config``: a config file to begin with, in which everything is set as it is without one."""

from __future__ import annotations

import argparse
import os

from tpuprof.parsers.base.errors import EXIT_OK
from tpuprof.tui.cli.arguments.options import PROGRAM
from tpuprof.tui.pages import op_columns
from tpuprof.tui.report.output import write_stdout
from tpuprof.tui.terminal.custom import THEMES, VARIABLE, config_path
from tpuprof.tui.terminal.grammar import KEY_NAMES


def run_config(_: argparse.Namespace) -> int:
    """Runs the command.

    Returns:
        0.
    """
    write_stdout(example(config_path(os.environ)))
    return EXIT_OK


def example(path: str) -> str:
    """A file that sets nothing: each line stands behind a sign of comment, with what holds without it."""
    columns = "".join(f'#   "{name}",\n' for name in op_columns())
    keys = ((name, key) for key, names in KEY_NAMES.items() for name in names.split())
    return f"""# {PROGRAM}: {path or "there is no home folder; name a file in " + VARIABLE}
# Take the sign off what you change; {PROGRAM} doctor says what holds.

# One of {", ".join(THEMES)}; --theme goes before it.
# theme = "auto"

# The columns of the table of HLO ops, beside class, time and name.
# columns = [
{columns}# ]

[cache]
# What was read of profiles is kept up to this size, or not at all: "off".
# size = "1 GB"
# Copies of remote profiles; TPUPROF_CACHE_BYTES goes before it.
# remote = "20 GB"

[keys]
# A key is a sign, or such as "ctrl+e", "f5", "space". What had it must be moved away, too.
# Names that have one key move together. Enter, Esc, arrows, digits from 1 on, Q and ctrl+c stay.
{"".join(f'# {name} = "{key}"' + chr(10) for name, key in keys)}"""
