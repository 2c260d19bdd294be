"""``tpuprof-tui verify A B``: whether the promise of a finding was kept."""

from __future__ import annotations

import argparse

from tpuprof.parsers.base.errors import EXIT_OK, EXIT_REGRESSION, EXIT_UNREADABLE
from tpuprof.parsers.pages.overview.model import OVERVIEW
from tpuprof.parsers.session.diff.model import Diff
from tpuprof.parsers.session.diff.promises import Verified, verify
from tpuprof.parsers.session.session import Session
from tpuprof.tui.cli import common, printing
from tpuprof.tui.cli.commands.diff.runs import over_both, written
from tpuprof.tui.report.page import check_keys

_EXIT_CODES = {"kept": EXIT_OK, "partly": EXIT_OK, "unknown": EXIT_UNREADABLE}


def run_verify(args: argparse.Namespace) -> int:
    """Runs the command.

    Returns:
        The exit code: 0 for a promise that was kept, at least in part, 6 for one that was not, 4 where that is unknown.

    Raises:
        ProfileError: as of `diff`; and `unknown_finding`, exit code 3.
    """
    check_keys(args.keys, args.format)
    made = _verified(args)
    printing.write_report(args, written("verify", args, (made,)), most=printing.most_bytes(args))
    return _EXIT_CODES.get(made.outcome, EXIT_REGRESSION)


def made_verify(args: argparse.Namespace) -> str:
    """What is printed of the promises; see `run_verify`."""
    return written("verify", args, (_verified(args),))


def _verified(args: argparse.Namespace) -> Verified:
    def verified(diff: Diff, middle: tuple[Session, Session]) -> Verified:
        before, after = (session.page(OVERVIEW, args.host) for session in middle)
        return verify(diff, before, after, args.claim)

    return over_both(args, common.configured(args), verified)
