"""How the overview is made, of all hosts or of those that are read so far."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from tpuprof.parsers.hosts.summary import SUMMARY_OF_HOST
from tpuprof.parsers.pages.overview import overview as pages
from tpuprof.parsers.pages.overview.model import Overview
from tpuprof.parsers.session.makers.ops.modules import modules_in
from tpuprof.parsers.session.makers.summaries import note_programs, read
from tpuprof.parsers.session.partials import OnPartial, Partials

if TYPE_CHECKING:
    from tpuprof.parsers.files.logdir import HostFile
    from tpuprof.parsers.pages.overview.accounts_of_ops import OpAccounts
    from tpuprof.parsers.session.session import Session
    from tpuprof.parsers.steps.ledger import Ledger


def overview(session: Session, host: str | None, on_host: Callable[[int], None] = lambda _: None) -> Overview:
    """The overview."""
    found = read(session, host, on_host)
    page = pages.overview(found.summaries, modules_in(session, found.files))
    return replace(page, warnings=(*page.warnings, *found.left_out, *session.problems))


def as_read(session: Session, host: str | None, on_partial: OnPartial) -> Overview:
    """The overview; before that, now and then, one of the hosts that are read so far."""

    def so_far(files: Sequence[HostFile], done: int) -> Overview | None:
        found = session.reduced_so_far(SUMMARY_OF_HOST, host)
        if not found.read:
            return None
        note_programs(session, found)
        page = pages.overview(found.summaries, modules_in(session, found.files))
        note = f"{done:,} of {len(files):,} hosts so far: the others are still being read"
        return replace(page, warnings=(note, *page.warnings, *found.left_out))

    return overview(session, host, Partials(so_far, session.run.files(host), on_partial))


def ledger(session: Session, host: str | None) -> Ledger | None:
    """The account of the steps by core and step, of which the overview has the means; None without steps."""
    return pages.ledger_of(read(session, host).summaries)


def op_accounts(session: Session, host: str | None) -> OpAccounts | None:
    """The account of the mean step by op; None where no ops of TPUs ran in steps."""
    found = read(session, host)
    return pages.op_accounts_of(found.summaries, modules_in(session, found.files))
