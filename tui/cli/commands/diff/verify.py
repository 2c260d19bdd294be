"""``tpuprof-tui verify A B``: whether the promise of a finding was kept."""

from __future__ import annotations

import argparse

from tpuprof.parsers.base.errors import EXIT_OK, EXIT_REGRESSION, EXIT_UNREADABLE
from tpuprof.parsers.pages.overview.model import OVERVIEW
from tpuprof.parsers.session.diff.model import Diff
from tpuprof.parsers.session.diff.promises import Outcome, Verified, verify
from tpuprof.parsers.session.session import Session
from tpuprof.tui.cli import common, printing
from tpuprof.tui.cli.commands.diff.runs import over_both
from tpuprof.tui.pages import command_named
from tpuprof.tui.report.page import check_keys
from tpuprof.tui.terminal.custom import Config

_EXIT_CODES = {"kept": EXIT_OK, "partly": EXIT_OK, "unknown": EXIT_UNREADABLE}


def run_verify(args: argparse.Namespace) -> int:
    """Runs the command.

    Returns:
        The exit code: 0 for a promise that was kept, at least in part, 6 for one that was not, 4 where that is unknown.

    Raises:
        ProfileError: as of `diff`; and `unknown_finding`, exit code 3.
    """
    check_keys(args.keys, args.format)
    text, outcome = made_verify(args, common.configured(args))
    printing.write_report(args, text)
    return _EXIT_CODES.get(outcome, EXIT_REGRESSION)


def made_verify(args: argparse.Namespace, config: Config) -> tuple[str, Outcome]:
    """What is printed of the promises, and what came of them; see `run_verify`."""

    def verified(diff: Diff, middle: tuple[Session, Session]) -> Verified:
        before, after = (session.page(OVERVIEW, args.host) for session in middle)
        return verify(diff, before, after, args.claim)

    made = over_both(args, config, verified)
    report = command_named("verify").load_report()
    return report.writers[args.format](report.read(made), printing.report_look(args), 0), made.outcome
