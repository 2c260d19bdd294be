"""Both cores on real profiles, against protobuf."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.parsers.formats.xspace.core.test_stats import by_protobuf, pick
from tpuprof.parsers.formats.proto.xplane_pb2 import XEvent, XSpace
from tpuprof.parsers.formats.xspace.core.types import OK, Core

EVENTS = 4  # field number in XLine


@pytest.mark.shared
def test_every_event_of_every_profile(core: Core, shared: Path) -> None:
    profiles = sorted(path for path in (shared / "profiles").rglob("*.xplane.pb") if "broken" not in path.parts)
    assert profiles
    count = 0
    for profile in profiles:
        for plane in XSpace.FromString(profile.read_bytes()).planes:
            for line in plane.lines:
                body = line.SerializeToString()
                fields = core.split_fields(body)
                assert (fields.status, fields.next) == (OK, len(body))
                chosen = fields.number == EVENTS
                begin, end = fields.begin[chosen], fields.end[chosen]
                found = core.decode_events(body, begin, end)
                columns = (found.metadata_id, found.offset_ps, found.duration_ps)
                expected_columns = [(e.metadata_id, e.offset_ps, e.duration_ps) for e in line.events]
                assert list(zip(*(column.tolist() for column in columns), strict=True)) == expected_columns
                wanted = sorted({stat.metadata_id for event in line.events[:50] for stat in event.stats})
                bodies = [body[a:b] for a, b in zip(begin.tolist(), end.tolist(), strict=True)][:500]
                expected = [by_protobuf(XEvent.FromString(event), wanted) for event in bodies]
                assert pick(core, bodies, EVENTS, wanted) == expected
                count += len(line.events)
    assert count > 10_000
