"""How the timeline of a host is read."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import closing
from typing import TYPE_CHECKING

from tpuprof.parsers.base.errors import ProfileError, behind_wall, one_part
from tpuprof.parsers.base.record import replace
from tpuprof.parsers.base.text import printable
from tpuprof.parsers.files.places import HostFile
from tpuprof.parsers.ops.device import shortcoming
from tpuprof.parsers.pages.overview.model import OVERVIEW
from tpuprof.parsers.pages.shared.host_files import nothing_to_read, opened, reading
from tpuprof.parsers.timeline.hosts.clocks import HostClocks
from tpuprof.parsers.timeline.hosts.joined import HostRead, named, shifted, with_core_names
from tpuprof.parsers.timeline.model import StepSpan, Timeline
from tpuprof.parsers.timeline.read.timeline import OnPart, needed_bytes, read_timeline

if TYPE_CHECKING:
    from tpuprof.parsers.session.session import Session


def timeline(session: Session, host: str | None, with_steps: bool, on_part: OnPart | None) -> Timeline:
    """See `Session.timeline`."""
    failures: list[ProfileError] = []
    for file in best_first(session.run.files(host)):
        known = session.timelines.get((file, with_steps))
        if known is not None:
            return known
        meter, failed = session.meter((file,)), list[str]()
        try:
            with one_part(f"read {printable(file.path)}"):
                steps, inferred = _step_spans(session, file.host, failed) if with_steps else ((), False)
                meter.begin(0)
                with closing(opened(file, meter)) as trace:
                    meter.opened(needed_bytes(trace))
                    session.timelines.clear()  # never two at once
                    read = (trace, file.label, file.path, steps, inferred, meter.chunk, session.threads, on_part)
                    made = read_timeline(*read)
        except ProfileError as error:
            failures.append(error)
            continue
        made = with_core_names(replace(made, warnings=(*made.warnings, *failed, *session.only_shown)), file.host)
        session.timelines[file, with_steps] = made
        return made
    raise failures[0] if failures else nothing_to_read(session.run)


def host_timeline(
    session: Session, host: str, with_steps: bool, on_part: Callable[[HostRead], None] | None, only_first: bool
) -> HostRead:
    """See `Session.host_timeline`."""
    file = session.run.files(host)[0]
    clocks = session.clocks = session.clocks or HostClocks()
    meter, failed = session.meter((file,)), list[str]()
    steps, inferred = _step_spans(session, file.host, failed) if with_steps else ((), False)
    meter.begin(0)

    def on_axis(made: Timeline) -> HostRead:
        # its first section says how far its clock is off, and stays the first one
        clock = clocks.clock(made)
        made = replace(made, warnings=(*made.warnings, *failed))
        whole = not only_first and not made.unread
        shown = with_core_names(named(shifted(made, clock.shift_ps), file.label), file.host)
        return HostRead(file.label, file.path, shown, clock, whole)

    show = None if on_part is None else lambda made: on_part(on_axis(made))
    with reading(file) as trace:
        meter.opened(needed_bytes(trace))
        read = (trace, file.label, file.path, steps, inferred, meter.chunk, session.threads, show, only_first)
        return on_axis(read_timeline(*read))


def _step_spans(session: Session, host: str, failed: list[str]) -> tuple[tuple[StepSpan, ...], bool]:
    """The steps of a host's overview, and whether they are inferred; none, and a sentence, where it can't be made."""
    page = behind_wall("find steps", lambda: session.page(OVERVIEW, host), failed)
    if page is None:
        return (), False
    spans = tuple(StepSpan(step.name, step.start_ps, step.start_ps + step.duration_ps) for step in page.steps)
    return spans, page.performance.step_time is not None and page.performance.step_time.source != "steps"


def best_first(files: Sequence[HostFile]) -> Sequence[HostFile]:
    """The hosts in order, but whole files with a device before damaged ones, and those without a device last."""
    return sorted(files, key=_shortcoming) if len(files) > 1 else files


def _shortcoming(file: HostFile) -> int:
    """See `device.shortcoming`; 2 for a file that can't be read."""
    try:
        with reading(file) as trace:
            return shortcoming(trace)
    except ProfileError:
        return 2
