"""What the hosts add to most pages."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from tpuprof.parsers.files.places import HostFile
from tpuprof.parsers.hosts.reduction import Reduced
from tpuprof.parsers.hosts.summary import SUMMARY_OF_HOST, HostSummary
from tpuprof.parsers.pages.shared.key import PageSession


def read(
    session: PageSession, host: str | None, on_host: Callable[[int], None] = lambda _: None
) -> Reduced[HostSummary]:
    """The summaries of one host or of all; errors as for `PageSession.reduced`."""
    found = session.reduced(SUMMARY_OF_HOST, host, on_host)
    note_programs(session, found)
    return found


def note_programs(session: PageSession, found: Iterable[tuple[HostFile, HostSummary]]) -> None:
    """Tells the session which compiled modules each file has, so that it need not be opened to learn that."""
    for file, summary in found:
        session.programs.setdefault(file.path, tuple(summary.hlo_programs))


def summaries(session: PageSession, host: str | None) -> tuple[HostSummary, ...]:
    """What each readable host adds to the pages, in the order of the hosts."""
    return tuple(read(session, host).summaries)
