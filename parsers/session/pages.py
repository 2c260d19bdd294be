"""What the screen asks of a session."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol, runtime_checkable

if TYPE_CHECKING:
    from tpuprof.parsers.files.logdir import Run
    from tpuprof.parsers.pages.shared.key import OnPartial, Page, PageKey
    from tpuprof.parsers.timeline.hosts.joined import HostRead
    from tpuprof.parsers.timeline.model import Timeline
    from tpuprof.parsers.timeline.read.flows import Flows
    from tpuprof.parsers.timeline.read.timeline import OnPart

ONLY_HLO = (
    "These are compiled programs that have not run: P shows what each takes at least, what its tiles tell, and what it "
    "moves; 5 shows its memory, and u there its graph.",
    "capture a profile for this page",
)
"""Why compiled modules without a profile lack a page, and what to do: sentence and hint."""


class Pages(Protocol):
    """What the screen needs of a session (`parsers.session.session.Session`)."""

    def page(self, key: PageKey[Page], host: str | None = None) -> Page:
        """The page of one host, or of all hosts merged."""

    def timeline(self, host: str | None = None, *, on_part: OnPart | None = None) -> Timeline:
        """All events of one host; before that, what is read of them so far."""

    def flows(self, timeline: Timeline) -> Flows: ...


@runtime_checkable
class NarrowPages(Pages, Protocol):
    """Pages that can be those of one core or chip alone (`parsers.session.session.Session`).

    Attributes:
        run: whose pages they are.
    """

    run: Run

    def of_core(self, core: str, host: str | None = None) -> NarrowPages:
        """The pages of a core, by any of its names; without a host in it one of that host or of the only one."""


@runtime_checkable
class HostPages(Pages, Protocol):
    """Pages of several hosts whose timelines are put on one time axis (`parsers.session.session.Session`)."""

    def host_timeline(
        self,
        host: str,
        with_steps: bool = True,
        on_part: Callable[[HostRead], None] | None = None,
        only_first: bool = False,
    ) -> HostRead:
        """All events of one host on the common axis, or those of its first section."""


@runtime_checkable
class PartialPages(Protocol):
    """Pages of which one is shown before all hosts are read (`parsers.session.session.Session`)."""

    def page_as_read(self, key: PageKey[Page], host: str | None, on_partial: OnPartial[Page]) -> Page:
        """The page; before that, now and then, one of the hosts read so far, their number, and of how many."""
