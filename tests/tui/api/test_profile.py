"""A profile in Python gives the figures that reports print."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tpuprof
from tests.support.build import host_bytes, write_run
from tests.support.gpus import cpu_profile, gpu_profile
from tests.support.made.serving import five_requests, serving_profile
from tests.support.servers.profiler_server import FakeProfiler, free_port
from tests.tui.cli.calls import Call
from tpuprof.parsers.base.errors import EXIT_CAPTURE_FAILED
from tpuprof.tui.pages import PageName

PAGES: tuple[PageName, ...] = (
    *("ops", "overview", "findings", "ledger", "hosts", "cores", "input", "inference", "framework-ops", "sources"),
    *("collectives", "roofline", "memory", "kernels", "counters", "op", "runs", "trend", "graph"),
)
INSIDE, ON_CPU = [("PjitFunction(step)", 20, 60)], [("fusion.1", 30, 41), ("wrapped_tanh", 42, 57)]
UNTABLED = {"op-profile": "children", "inference": "percentiles", "graph": "nodes"}
"""Tables that JSON has in another form than a list of rows, or under no key of their own."""


@pytest.fixture(name="logdirs", scope="module")
def made_logdirs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    root = tmp_path_factory.mktemp("logs")
    return {
        "demo": "demo",
        "gpus": str(write_run(root / "gpus", host0=gpu_profile())),
        "cpu": str(write_run(root / "cpu", host0=cpu_profile(4, INSIDE, ON_CPU, hlo=True))),
        "serving": str(write_run(root / "serving", host0=serving_profile(five_requests()))),
        "hosts": str(write_run(root / "hosts", host0=host_bytes(), host1=host_bytes(200))),
    }


def bare(value: Any) -> Any:
    """A row in which an object without any known figure is as unknown as one that is not there."""
    if isinstance(value, dict):
        return (
            {key: bare(item) for key, item in value.items()}
            if any(item is not None for item in value.values())
            else None
        )
    return [bare(item) for item in value] if isinstance(value, list) else value


@pytest.mark.parametrize("name", ["demo", "gpus", "cpu", "serving", "hosts"])
def test_tables_have_the_rows_of_json(name: str, logdirs: dict[str, str], call: Call) -> None:
    profile, compared = tpuprof.open(logdirs[name]), 0
    for page in PAGES:
        try:
            keys = profile.tables(page)
        except tpuprof.ProfileError as error:
            assert error.code in ("no_ops", "no_modules", "no_graph", "no_hlo"), (page, error)
            continue
        document = call.json(
            "report", page, logdirs[name], *(("--limit", "0") if page != "trend" else ()), "--format", "json"
        )
        for key in keys:
            rows = document.get(key)
            if UNTABLED.get(page) == key or rows is None:
                continue
            assert bare(profile.table(page, key).to_dicts()) == bare(rows), (page, key)
            compared += len(rows)
    assert compared > 10


@pytest.mark.parametrize("page", ["overview", "ops", "hosts", "timeline", "memory-profile"])
def test_a_report_is_what_the_command_prints(page: PageName, call: Call) -> None:
    assert tpuprof.open("demo").report(page) == call.json("report", page, "demo", "--limit", "0", "--format", "json")


def test_rows_and_columns_are_chosen_as_by_the_command(call: Call) -> None:
    chosen = {"filter": "roofline_efficiency<60%", "sort": "occurrences:asc", "columns": "name,occurrences"}
    made = tpuprof.open("demo").table("ops", None, **chosen, limit=7)
    words = [word for name, value in chosen.items() for word in (f"--{name}", value)]
    document = call.json("report", "ops", "demo", "--limit", "7", *words, "--format", "json")
    assert made.to_dicts() == document["rows"] and made.left_out == document["left_out_rows"] > 0
    assert made.columns[1].unit == "count" and made.columns[1].meaning


def test_events_are_those_of_the_timeline(call: Call) -> None:
    interval = ["--from", "300", "--to", "352.5", "--limit", "0"]
    document = call.json("report", "timeline", "demo", *interval, "--format", "json")
    rows = [{key: value for key, value in event.items() if key != "args"} for event in document["events"]]
    profile = tpuprof.open("demo")
    events = profile.events(300, 352.5, limit=0)
    more = ("step", "start_unix_ns", "end_ps")  # of SQL and tables alone
    made = [{key: value for key, value in row.items() if key not in more} for row in events.to_dicts()]
    assert made == rows and len(rows) > 100 and {*more} < {*events.keys()}
    assert profile.events(300, 352.5, limit=3).to_dicts() == events.to_dicts()[:3]
    ops = profile.events(300, 352.5, track="demo:2 / XLA Ops", limit=0)
    assert set(ops["track"]) == {"XLA Ops"} and set(ops["core"]) == {"demo:2"}


def test_one_core_and_one_host(logdirs: dict[str, str], call: Call) -> None:
    ops = tpuprof.open("demo", core="Chip 2: TPU core 0").table("ops", limit=5)
    document = call.json("report", "ops", "demo", "--core", "demo:2", "--limit", "5", "--format", "json")
    assert ops.to_dicts() == document["ops"]
    profile = tpuprof.open(logdirs["hosts"], host="host1")
    assert profile.hosts == ("host1",) and profile.overview().hosts == ("host1",)
    assert tpuprof.findings(logdirs["hosts"], host="host1") == profile.overview().findings


def test_times_of_a_kernel_are_those_of_its_page() -> None:
    profile = tpuprof.open("demo")
    times, spread = profile.kernel_times("fusion.349"), profile.op("fusion.349").all_runs
    assert times.dtype == np.int64 and len(times) == spread.runs and int(times.sum()) == spread.total_ps
    assert (int(times.min()), int(times.max())) == (spread.minimum_ps, spread.maximum_ps)


def test_a_capture_is_an_open_profile(tmp_path: Path) -> None:
    with FakeProfiler() as server:
        profile = tpuprof.capture(server.address, tmp_path, ms=20)
        assert profile.hosts == ("worker-0",) and profile.path.startswith(str(tmp_path))
        assert server.requests[0].duration_ms == 20
    with pytest.raises(tpuprof.ProfileError, match="No profiler server listens") as raised:
        tpuprof.capture(f"127.0.0.1:{free_port()}", tmp_path, ms=20)
    assert raised.value.exit_code == EXIT_CAPTURE_FAILED
