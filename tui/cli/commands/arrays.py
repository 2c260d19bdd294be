"""Shows device memory profiles on a screen of their own."""

from __future__ import annotations

import argparse

from tpuprof.parsers.memory.live_arrays import LiveArrays, read_live_arrays
from tpuprof.parsers.session.diff.live_arrays import LiveArraysDiff
from tpuprof.tui.cli.common import configured
from tpuprof.tui.pages import command_named
from tpuprof.tui.terminal.detect import settle_terminal


def show_file(args: argparse.Namespace, path: str) -> int:
    """Shows the profile in a file; the exit code.

    Raises:
        ProfileError: it can't be read.
    """
    return show(args, read_live_arrays(path))


def show(args: argparse.Namespace, content: LiveArrays | LiveArraysDiff) -> int:
    """Shows a profile, or two that are compared; the exit code."""
    terminal = settle_terminal(args.color, args.ascii, args.mouse, configured(args).custom)
    exit_code: int = command_named("live-arrays").load_app()(content, terminal).show(terminal.mouse)
    return exit_code
