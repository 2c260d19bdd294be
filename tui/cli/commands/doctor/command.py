"""``tpuprof-tui doctor [PATH]``: one text to paste into a bug report, on all that the program depends on here."""

from __future__ import annotations

import argparse
import os
from collections.abc import Mapping, Sequence

from tpuprof.parsers.base.errors import EXIT_OK, EXIT_USAGE, ProfileError
from tpuprof.parsers.files.logdir import Logdir
from tpuprof.parsers.pages.shared.key import Later
from tpuprof.tui.cli import printing
from tpuprof.tui.cli.arguments.options import PROGRAM
from tpuprof.tui.cli.commands.doctor import machine
from tpuprof.tui.cli.commands.doctor.content import logdir
from tpuprof.tui.cli.commands.doctor.parts import FORMS, DoctorSection, Mask, as_json
from tpuprof.tui.cli.common import existing, version_of
from tpuprof.tui.terminal.detect import Config, read_config

_WITH_PATH = f"{PROGRAM} doctor PATH --require device,steps"
_required = Later("tpuprof.tui.cli.commands.doctor.required:required")  # numpy, which may be missing


def run_doctor(args: argparse.Namespace) -> int:
    """Runs the command.

    Returns:
        0, or after the report the exit code of what is wrong: see `doctor_report`.
    """
    path = None if args.path is None else existing(args.path)
    printing.check_output(args, Logdir(path or "", (), (), ()))
    text, exit_code = doctor_report(os.environ, path, args.format, args.require)
    printing.write_report(args, text)
    return exit_code


def doctor_report(
    env: Mapping[str, str], path: str | None = None, form: str = "text", require: Sequence[str] | None = None
) -> tuple[str, int]:
    """What is installed, what the terminal can do, what is kept, and what a path leads to.

    Fit to be pasted where others read it: no value of a variable that may be a secret, no user or machine,
    and the home folder as ``~``.

    Args:
        path: a logdir, or anything that `open_logdir` takes; None leaves that part out.
        form: ``text``, ``md`` for a fenced block, or ``json``.
        require: names of what the newest run has to hold; None to require nothing.

    Returns:
        The text, and the exit code of the first thing that is wrong with the path or a variable, else 0.

    Raises:
        ProfileError: `usage`: something is required, and no path is given.
    """
    if require is not None and path is None:
        raise ProfileError("usage", "--require needs the PATH of a profile.", _WITH_PATH, EXIT_USAGE)
    config, problem = Config(), None
    try:
        config = read_config(env)
    except ProfileError as error:
        problem = error
    parts = [machine.program(env, problem), machine.extras(), machine.terminal(env), machine.folders(config)]
    parts += [] if path is None else _parts_of(path, require, config)
    exit_code = next((part.exit_code for part in reversed(parts) if part.exit_code), EXIT_OK)
    return FORMS[form](version_of(PROGRAM), parts, Mask(env)), exit_code


def made_doctor(args: argparse.Namespace) -> str:
    """What is printed of a path alone, as JSON: what it leads to, and what it has of what is required."""
    return as_json(version_of(PROGRAM), _parts_of(args.path, args.require, read_config(os.environ)), Mask({}))


def _parts_of(path: str, names: Sequence[str] | None, config: Config) -> list[DoctorSection]:
    """What a path leads to; and, with names, what it has of these, unless it can't be read."""
    found = logdir(path, config)
    return [found] if names is None or found.exit_code else [found, _required(path, names, config)]
