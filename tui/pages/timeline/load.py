"""How the timeline is read."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from importlib import import_module
from threading import Thread
from typing import TYPE_CHECKING, TypeVar

from tpuprof.parsers.base.errors import ProfileError
from tpuprof.parsers.base.record import dataclass
from tpuprof.parsers.session.pages import HostPages, Pages
from tpuprof.parsers.timeline.hosts.joined import HostRead
from tpuprof.parsers.timeline.windows import prepare
from tpuprof.tui.pages.timeline.hosts import Hosts

if TYPE_CHECKING:
    from tpuprof.parsers.files.logdir import Run
    from tpuprof.parsers.timeline.model import Timeline
    from tpuprof.tui.pages import Publish


Part = TypeVar("Part", "Timeline", HostRead)
PART_SECONDS = 0.2
"""It shows what is read so far after this time, and then as often; a timeline that is read by then comes at once."""


@dataclass(frozen=True, slots=True)
class HostTimeline:
    """The timeline of a host, how many hosts the run has, and whether the user asked for this one."""

    timeline: Timeline
    run_hosts: int
    is_chosen: bool


_MOST_TRIES = 4
"""Hosts that are read until one has a device; a coordinator has none."""


def load(
    session: Pages, run: Run, host: str | None, publish: Publish, clock: Callable[[], float] = time.monotonic
) -> None:
    """Tells all events of a host, and before that those that are read so far; then what leads from event to event.

    Of several hosts it tells those of the first one with a device.
    """
    if host is None and len(run.hosts) > 1 and isinstance(session, HostPages):
        _load_hosts(session, run, publish, clock)
        return
    drawing = Thread(target=import_module, args=(f"{__package__}.draw.frame",), daemon=True)
    drawing.start()  # while the first events are decoded

    def show(timeline: Timeline) -> None:
        # what takes a while is made and read here, and not on the screen's thread
        drawing.join()
        prepare(timeline)
        publish("timeline", HostTimeline(timeline, len(run.hosts), is_chosen=host is not None))

    timeline = session.timeline(host, on_part=_now_and_then(show, clock))
    show(timeline)
    import_module(f"{__package__}.draw.event_details")  # what Enter needs later
    _prepare_order(timeline)
    publish("flows", session.flows(timeline))


def _load_hosts(session: HostPages, run: Run, publish: Publish, clock: Callable[[], float]) -> None:
    """Tells which hosts there are, and the events of the first one with a device."""
    import_module(f"{__package__}.draw.frame")
    hosts = tuple(HostRead(file.label, file.path) for file in run.hosts)
    publish("hosts", Hosts(hosts))
    errors: list[ProfileError] = []
    for number, each in enumerate(hosts):
        if number >= _MOST_TRIES + len(errors):
            break
        found = load_host(session, run, each.host, publish, clock)
        if isinstance(found, ProfileError):
            errors.append(found)
        elif found.worked_ps is not None:
            break
    if len(errors) == len(hosts):
        raise errors[0]


def load_host(
    session: HostPages,
    run: Run,
    host: str,
    publish: Publish,
    clock: Callable[[], float] = time.monotonic,
    only_first: bool = False,
) -> Timeline | ProfileError:
    """Tells, each with the host's number, its events, or its first section; then what leads from one to another.

    Where it can't be read it tells why.
    """
    number, path = next((at, file.path) for at, file in enumerate(run.hosts) if file.host == host)

    def show(read: HostRead) -> None:
        if read.timeline is not None:
            prepare(read.timeline)
        publish("host", (number, read))

    try:
        on_part = None if only_first else _now_and_then(show, clock)
        read = session.host_timeline(host, not only_first, on_part, only_first)
        show(read)
        assert read.timeline is not None, "what can't be read is an error"
        if not only_first:
            _prepare_order(read.timeline)
            publish("host_flows", (number, session.flows(read.timeline)))
    except ProfileError as error:
        publish("host", (number, HostRead(host, path, problem=error.sentence)))
        return error
    return read.timeline


load_brief = partial(load_host, only_first=True)
"""The same of a host's first section alone."""


def _now_and_then(show: Callable[[Part], None], clock: Callable[[], float]) -> Callable[[Part], None]:
    """Shows what is read so far, each time that `PART_SECONDS` have passed."""
    due = clock() + PART_SECONDS

    def show_part(part: Part) -> None:
        nonlocal due
        if clock() >= due:
            show(part)
            due = clock() + PART_SECONDS

    return show_part


def _prepare_order(timeline: Timeline) -> None:
    """Sums what the tracks may be sorted by."""
    for *_, track in timeline.tracks():
        _ = track.busy_ps
