"""How the timeline is read."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from tpuprof.parsers.base.record import dataclass
from tpuprof.parsers.timeline.windows import prepare

if TYPE_CHECKING:
    from tpuprof.parsers.files.logdir import Run
    from tpuprof.parsers.session.pages import Pages
    from tpuprof.parsers.timeline.model import Timeline
    from tpuprof.tui.pages import Tell


@dataclass(frozen=True, slots=True)
class HostTimeline:
    """The timeline of a host, how many hosts the run has, and whether the user asked for this one."""

    timeline: Timeline
    run_hosts: int
    is_chosen: bool


def load(session: Pages, run: Run, host: str | None, tell: Tell) -> None:
    """Tells all events of a host; then what leads from event to event."""
    timeline = session.timeline(host)
    # what takes a while, and what keys need later, is made and read here, and not on the screen's thread
    for module in ("draw.frame", "popup", "draw.event_details"):
        import_module(f"tpuprof.tui.pages.timeline.{module}")
    prepare(timeline)
    tell("timeline", HostTimeline(timeline, len(run.hosts), is_chosen=host is not None))
    tell("flows", session.flows(timeline))
