"""How the hosts of a run are compared."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tpuprof.parsers.pages.hosts.hosts import hosts_page
from tpuprof.parsers.pages.hosts.model import HostsPage, LeftOut
from tpuprof.parsers.session.makers.summaries import read

if TYPE_CHECKING:
    from tpuprof.parsers.hosts.reduction import Reduced
    from tpuprof.parsers.hosts.summary import HostSummary
    from tpuprof.parsers.session.session import Session


def hosts(session: Session, host: str | None) -> HostsPage:
    """All hosts of the run, whichever one is chosen."""
    found = read(session, None)
    return page_of(session, found, found.summaries)


def page_of(session: Session, found: Reduced[HostSummary], summaries: Sequence[HostSummary]) -> HostsPage:
    """The page of what hosts add to it.

    Args:
        found: which hosts could be read.
    """
    left_out = [LeftOut(file.host, error.sentence) for file, error in found.failed]
    return hosts_page(summaries, left_out, session.run.problems)
