"""The events of a host's threads: what a thread pool begins and ends is one piece of work."""

from __future__ import annotations

from collections.abc import Sequence

from tests.support.build import PlaneBuilder, present
from tpuprof.parsers.formats.xspace.trace import Trace
from tpuprof.parsers.ops.host_events.events import read_threads
from tpuprof.parsers.timeline.read.timeline import read_timeline

START, STOP = "ThreadpoolListener::StartRegion", "ThreadpoolListener::StopRegion"


def spans(events: Sequence[tuple[str, int]]) -> list[tuple[int, int]]:
    host = PlaneBuilder.alone("/host:CPU")
    line = host.line("tf_XLAEigen/1")
    for name in (START, STOP):
        host.event_id(name)
    for name, time in events:
        host.event(line, host.event_id(name), time, 0)
    plane = present(Trace.from_bytes(host.space.SerializeToString()).plane("/host:CPU"))
    (thread,) = read_threads(plane, ())
    found = list(zip(thread.start_ps.tolist(), thread.end_ps.tolist(), strict=True))
    (section,) = read_timeline(Trace.from_bytes(host.space.SerializeToString()), "host0", "host0.xplane.pb").sections
    (track,) = section.tracks
    assert sorted((int(track.start_ps[at]), int(track.end_ps[at])) for at in range(len(track))) == sorted(found)
    return found


def test_a_region_lasts_until_its_end() -> None:
    assert spans([(START, 200), (STOP, 300)]) == [(200, 300), (300, 300)]
    assert spans([(START, 10), (STOP, 20), ("other", 25), (START, 30), (STOP, 50)])[0::3] == [(10, 20), (30, 50)]


def test_what_has_no_end_of_its_own_stays_an_instant() -> None:
    assert spans([(START, 10), (START, 20), (STOP, 30)]) == [(10, 10), (20, 30), (30, 30)]
    assert spans([(STOP, 10), (START, 20)]) == [(10, 10), (20, 20)]
