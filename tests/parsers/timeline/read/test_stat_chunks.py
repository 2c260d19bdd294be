"""Stats of events come as columns, the same ones however many are read at a time."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.build import PlaneBuilder, StatInput, trace_of
from tpuprof.parsers.timeline.details import own_stats
from tpuprof.parsers.timeline.read import stat_chunks as module
from tpuprof.parsers.timeline.read.stat_chunks import stat_chunks
from tpuprof.parsers.timeline.read.timeline import read_timeline

STATS: st.SearchStrategy[dict[str, StatInput]] = st.dictionaries(
    st.sampled_from([f"stat {number}" for number in range(200)]), st.integers(-(2**40), 2**40), max_size=4
)


@given(
    st.lists(STATS, min_size=1, max_size=20),
    st.randoms(use_true_random=False),
    st.integers(1, 30),
    st.integers(1, 30),
    st.integers(1, 400),
)
def test_each_event_comes_once_with_all_its_stats(
    events: list[dict[str, StatInput]], chance: object, cells: int, count: int, size: int
) -> None:
    host = PlaneBuilder.alone("/host:CPU")
    line = host.line("python")
    for at, stats in enumerate(events):
        host.event(line, host.event_id(f"call {at}"), 10 * at, 5, **stats)
    trace = trace_of(host.space)
    (track,) = read_timeline(trace, "host0", "p").sections[0].tracks
    wanted = np.arange(len(events))
    chance.shuffle(wanted)  # type: ignore[attr-defined]
    with pytest.MonkeyPatch.context() as patch:
        for name, value in (("_MOST_CELLS", cells), ("CHUNK_EVENTS", count), ("_CHUNK_BYTES", size)):
            patch.setattr(module, name, value)
        chunks = list(stat_chunks(trace, track, wanted))
    seen = [int(event) for chunk in chunks for event in chunk.events]
    assert seen == list(range(len(events)))
    for chunk in chunks:
        assert len(chunk.events) <= count and (len(chunk.ids) * len(chunk.events) <= cells or len(chunk.events) == 1)
        for column, event in enumerate(chunk.events.tolist()):
            assert sum(map(bool, chunk.stats.kind[:, column])) == len(events[event])
            assert dict(own_stats(trace, track, event)) == events[event]
