"""How the hosts of a run are compared."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tpuprof.parsers.pages.hosts.hosts import hosts_page
from tpuprof.parsers.pages.hosts.model import HostsPage, LeftOut
from tpuprof.parsers.session.makers.summaries import read

if TYPE_CHECKING:
    from tpuprof.parsers.session.session import Session


def hosts(session: Session, host: str | None) -> HostsPage:
    """All hosts of the run, whichever one is chosen."""
    found = read(session, None)
    left_out = [LeftOut(file.host, error.sentence) for file, error in found.failed]
    return hosts_page(found.summaries, left_out, session.run.problems)
