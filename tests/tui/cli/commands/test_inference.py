"""`report inference --requests NAME`: the annotation whose spans are taken for requests, chosen by name."""

from __future__ import annotations

import json
from pathlib import Path

from tests.support.build import PlaneBuilder
from tests.tui.cli.calls import Call
from tpuprof.parsers.base.errors import EXIT_NOT_FOUND, EXIT_USAGE

MS = 10**9


def profile_with_requests(folder: Path) -> Path:
    """A host's profile with 45 spans of ``request``, each around the launch of a program."""
    host = PlaneBuilder.alone("/host:CPU")
    thread = host.line("python")
    for at in range(45):
        host.event(thread, host.event_id("request"), 10 * at * MS, 4 * MS)
        host.event(thread, host.event_id("PjitFunction(forward)"), (10 * at + 1) * MS, MS)
    path = folder / "h.xplane.pb"
    path.write_bytes(host.space.SerializeToString())
    return path


def test_recurring_annotations_are_offered_and_chosen_by_name(call: Call, tmp_path: Path) -> None:
    path = profile_with_requests(tmp_path)
    page = json.loads(call("report", "inference", path, "--format", "json")[0])
    assert page["offers"] == [{"name": "request", "spans": 45}] and page["sessions"] == 0
    page = json.loads(call("report", "inference", path, "--requests", "request", "--format", "json")[0])
    assert (page["source"], page["subject"], page["sessions"]) == ("annotated spans", "request", 45)
    assert (page["average"]["total_ms"], page["average"]["device_ms"]) == (4.0, None)
    assert "does not say what it launched" in page["unknown"]["average.device_ms"]


def test_other_names_and_other_pages_are_refused(call: Call, tmp_path: Path) -> None:
    path = profile_with_requests(tmp_path)
    sentence, hint = call.error(EXIT_NOT_FOUND, "report", "inference", path, "--requests", "requst")
    assert sentence == "No annotation requst can be used as requests: the profile offers request."
    assert hint == "try: one of: request"
    hint = call.error(EXIT_NOT_FOUND, "report", "inference", path, "--requests", "xyz")[1]
    assert hint == "try: report inference without --requests lists them"
    call.error(EXIT_USAGE, "report", "overview", path, "--requests", "request")
