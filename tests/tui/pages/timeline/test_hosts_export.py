"""Reports of several hosts: the export holds what the exports of each hold, once; an error costs its host alone."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.support.composed.aligned_hosts import late_host
from tests.tui.cli.calls import Call

Event = dict[str, Any]


@pytest.fixture
def logs(tmp_path: Path) -> str:
    return late_host(tmp_path, hosts=3, steps=5)


def exported(call: Call, logs: str, *more: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(call("report", "timeline", logs, "--format", "perfetto", *more).out)
    return found


def signature(event: Event, host: int, shift: float) -> str:
    """An event without what tells hosts apart, and with its own time."""
    known = {key: value for key, value in event.items() if key not in ("pid", "ts", "bind_id", "id")}
    if event["ph"] == "M":
        if event["name"].startswith("process"):
            known["args"] = {}
        return json.dumps([event["pid"] - 10_000 * host, known], sort_keys=True)
    return json.dumps([event["pid"] - 10_000 * host, round(event["ts"] - shift, 6), known], sort_keys=True)


def test_it_holds_every_event_of_every_host_once(call: Call, logs: str) -> None:
    together = exported(call, logs)
    assert together["metadata"]["hosts"] == ["host0", "host1", "host2"]
    assert "clocks aligned by 5 collectives" in together["metadata"]["clocks"]
    of_all = together["traceEvents"]
    assert len({event["pid"] for event in of_all}) == 3
    for host in range(3):
        single = exported(call, logs, "--host", f"host{host}")["traceEvents"]
        mine = [event for event in of_all if event["pid"] // 10_000 == host]
        firsts = [min(event["ts"] for event in events if event["ph"] != "M") for events in (mine, single)]
        shift = firsts[0] - firsts[1]
        assert abs(shift + 3_700 * host) < 5, "microseconds: their clocks are 3.7 ms apart"
        assert Counter(signature(event, host, shift) for event in mine) == Counter(
            signature(event, 0, 0) for event in single
        )
        names = [event["args"]["name"] for event in mine if event["name"] == "process_name"]
        assert names == [f"host{host} /device:TPU:0"]


def test_a_host_that_cannot_be_read_is_left_out_and_named(call: Call, logs: str) -> None:
    path = Path(logs, "plugins", "profile", "run", "host0.xplane.pb")
    path.write_bytes(b"\x0a\xff\xff\xff\xff\xff\xff" * 9)
    document = call.json("report", "timeline", logs, "--format", "json")
    assert document["run"]["hosts"] == ["host1", "host2"]
    assert any("1 host can't be read: host0" in words for words in document["warnings"])
    trace = exported(call, logs)
    assert {event["pid"] // 10_000 for event in trace["traceEvents"]} == {0, 1}
    assert trace["metadata"]["hosts"] == ["host1", "host2"]
