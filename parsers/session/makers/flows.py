"""How it is found what leads from event to event."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING

from tpuprof.parsers.formats.xspace.trace import Trace
from tpuprof.parsers.timeline.model import Timeline
from tpuprof.parsers.timeline.read.flows import Flows, read_flows

if TYPE_CHECKING:
    from tpuprof.parsers.session.session import Session


def flows(session: Session, timeline: Timeline) -> Flows:
    """See `Session.flows`."""
    with closing(Trace.open(timeline.path)) as trace:
        return read_flows(trace, timeline, session.poll)
