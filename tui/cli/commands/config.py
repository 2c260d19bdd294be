"""``tpuprof-tui config``: a config file to begin with, in which everything is set as it is without one."""

from __future__ import annotations

import argparse
import os

from tpuprof.parsers.base.errors import EXIT_OK
from tpuprof.tui.cli.arguments.options import PROGRAM
from tpuprof.tui.pages import op_columns
from tpuprof.tui.report.output import write_stdout
from tpuprof.tui.terminal.custom import THEMES, VARIABLE, config_path


def run_config(_: argparse.Namespace) -> int:
    """Runs the command; the exit code is 0."""
    write_stdout(example(config_path(os.environ)))
    return EXIT_OK


def example(path: str) -> str:
    """A file that sets nothing: each line stands behind a sign of comment, with what holds without it."""
    columns = "".join(f'#   "{name}",\n' for name in op_columns())
    return f"""# {PROGRAM}: {path or "there is no home folder; name a file in " + VARIABLE}
# Uncomment what you change; {PROGRAM} doctor shows the settings in effect.

# One of {", ".join(THEMES)}; --theme overrides it.
# theme = "auto"

# The columns of the table of HLO ops, beside class, time and name.
# columns = [
{columns}# ]

[cache]
# Size limit of the cache of profiles; "off" keeps nothing.
# size = "1 GB"
# Copies of remote profiles; TPUPROF_CACHE_BYTES overrides it.
# remote = "20 GB"
"""
