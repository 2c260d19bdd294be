"""Inference reports: golden texts of made profiles, keys, reasons for all that is null, hostile names."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.build import PlaneBuilder
from tests.support.golden import check_lines
from tests.support.made.serving import batching_profile, five_requests, modules_profile, read_requests, serving_profile
from tests.support.reports import check_report
from tpuprof.parsers.files.logdir import Run
from tpuprof.parsers.formats.proto.xplane_pb2 import XSpace
from tpuprof.parsers.pages.shared.latencies import PERCENTILES, InferencePage, Latency, latencies
from tpuprof.tui.draw.columns import Cursor
from tpuprof.tui.draw.pen import Pen
from tpuprof.tui.draw.spans import ASCII, BLOCK, PLAIN, Glyphs, plain
from tpuprof.tui.pages.overview.inference.drawing import compose
from tpuprof.tui.pages.overview.inference.report import REPORT
from tpuprof.tui.report.page import TextLook

GOLDEN = Path(__file__).parent / "golden"
LOOKS = {"-80-block": TextLook(80, ascii_only=False, color=False)}


def of_requests() -> InferencePage:
    return latencies([read_requests(serving_profile(five_requests()))], ["server-0"], is_training=False)


def of_batches() -> InferencePage:
    return latencies([read_requests(batching_profile())], ["server-0"], is_training=None)


def of_runs() -> InferencePage:
    """Two cores with 40 runs launched four at a time, the last one slow, and one run of another module."""
    runs = [("jit_f(123)", 1000 * at, 1000 * at + 700 + 5 * (at % 7) + 400 * (at == 40)) for at in range(1, 41)]
    other = [(name, start + 20, end + 20) for name, start, end in runs]
    space = modules_profile([[*runs, ("jit_init(4)", 100, 130)], other])
    return latencies([read_requests(space)], ["host0"], is_training=False)


def of_training() -> InferencePage:
    space = modules_profile([[("jit_step(1)", 100 * at, 100 * at + 90) for at in range(1, 5)]])
    return latencies([read_requests(space)], ["host0"], is_training=True, warnings=["host1 could not be read"])


def of_nothing() -> InferencePage:
    space = XSpace()
    PlaneBuilder(space, "/host:CPU", 1).line("main")
    return latencies([read_requests(space)], ["host0"], None, "no device plane in this profile")


PAGES: dict[str, Callable[[], InferencePage]] = {
    "requests": of_requests,
    "batches": of_batches,
    "runs": of_runs,
    "training": of_training,
    "nothing": of_nothing,
}


def run_of(page: InferencePage) -> Run:
    return Run("2026_11_21_03_00_00", f"/logs/{page.hosts[0]}", (), ())


def hostile(name: str) -> InferencePage:
    page = of_runs()
    rows = tuple(replace(row, name=name) for row in page.rows)
    page = replace(page, hosts=(name,), subject=name, rows=rows, note=name, warnings=(name,))
    return replace(page, source="requests", unknown={"average.host_ms": name})


@pytest.mark.parametrize("name", PAGES)
def test_every_page_is_as_it_was_and_keeps_the_contract(name: str) -> None:
    page = PAGES[name]()
    document = check_report(REPORT, "inference", page, run_of(page), GOLDEN / f"inference_{name}", LOOKS)
    assert document["unknown"] == dict(page.unknown)
    assert document["sessions"] == page.sessions
    keys = {"percentile", "total_ms", "host_ms", "device_ms", "communication_ms"}
    assert all(set(row) == keys for row in document["percentiles"])
    assert [row["percentile"] for row in document["percentiles"]] == ([*PERCENTILES] if page.sessions > 1 else [])


ANY_PAGE = st.sampled_from(sorted(PAGES)).map(lambda name: PAGES[name]()) | st.text(max_size=40).map(hostile)


@given(ANY_PAGE, st.integers(40, 200), st.sampled_from([BLOCK, PLAIN, ASCII]))
def test_every_line_is_as_wide_as_asked_whatever_the_names(page: InferencePage, width: int, glyphs: Glyphs) -> None:
    check_lines(compose(page, Pen(width, glyphs), None, Cursor()).lines, width, glyphs)


@given(st.floats(1, 1e12), st.floats(0, 1), st.floats(0, 1))
def test_bars_show_every_part(total: float, host: float, device: float) -> None:
    page = of_requests()
    parts = (total * host, total * (1 - host) * device, total * (1 - host) * (1 - device))
    latency = Latency(sum(parts), *parts)
    page = replace(page, average=latency, percentiles=tuple(replace(one, latency=latency) for one in page.percentiles))
    bars = [
        plain(line)
        for line in compose(page, Pen(100, PLAIN), None, Cursor()).lines
        if plain(line).startswith(" average ")
    ]
    for letter, part in zip("HDT", parts, strict=True):
        assert (letter in bars[0]) == (part > 0)
    assert sum(bars[0].count(letter) for letter in "HDT") == 100 - 1 - 8 - 4 * 10 - 3
