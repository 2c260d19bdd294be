"""How the timeline is read."""

from __future__ import annotations

import time
from collections.abc import Callable
from importlib import import_module
from threading import Thread
from typing import TYPE_CHECKING

from tpuprof.parsers.base.record import dataclass
from tpuprof.parsers.timeline.windows import prepare

if TYPE_CHECKING:
    from tpuprof.parsers.files.logdir import Run
    from tpuprof.parsers.session.pages import Pages
    from tpuprof.parsers.timeline.model import Timeline
    from tpuprof.tui.pages import Publish


PART_SECONDS = 0.2
"""It shows what is read so far after this time, and then as often; a timeline that is read by then comes at once."""


@dataclass(frozen=True, slots=True)
class HostTimeline:
    """The timeline of a host, how many hosts the run has, and whether the user asked for this one."""

    timeline: Timeline
    run_hosts: int
    is_chosen: bool


def load(
    session: Pages, run: Run, host: str | None, publish: Publish, clock: Callable[[], float] = time.monotonic
) -> None:
    """Tells all events of a host, and before that those that are read so far; then what leads from event to event."""
    due = clock() + PART_SECONDS

    drawing = Thread(target=import_module, args=(f"{__package__}.draw.frame",), daemon=True)
    drawing.start()  # while the first events are decoded

    def show(timeline: Timeline) -> None:
        # what takes a while is made and read here, and not on the screen's thread
        drawing.join()
        prepare(timeline)
        publish("timeline", HostTimeline(timeline, len(run.hosts), is_chosen=host is not None))

    def show_part(timeline: Timeline) -> None:
        nonlocal due
        if clock() >= due:
            show(timeline)
            due = clock() + PART_SECONDS

    timeline = session.timeline(host, on_part=show_part)
    show(timeline)
    import_module(f"{__package__}.draw.event_details")  # what Enter needs later
    for *_, track in timeline.tracks():
        _ = track.busy_ps  # by which the tracks may be sorted
    publish("flows", session.flows(timeline))
