"""Reports on a run's cores: golden texts, the contract's keys, reasons for all that is null, hostile names."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from tests.support.build import PlaneBuilder
from tests.support.documents import EVIL
from tests.support.made.many_hosts import host_bytes, steady, straggling_page, summaries
from tests.support.reports import check_harmless, check_report, printed
from tests.tui.pages.hosts.test_report import GOLDEN, LOOKS, RUN, of_nothing
from tpuprof.parsers.base.text import printable
from tpuprof.parsers.formats.proto.xplane_pb2 import XSpace
from tpuprof.parsers.pages.hosts.hosts import hosts_page
from tpuprof.parsers.pages.hosts.model import HostsPage
from tpuprof.tui.pages.hosts.report import CORES_REPORT as REPORT
from tpuprof.tui.report.page import FORMATS, Format


def of_one_host() -> HostsPage:
    data = host_bytes([steady(busy) for busy in (1000, 1000, 1200, 1001)], steady(1200), input_us=100)
    return hosts_page(summaries({"vm-0": data}))


def of_gpus() -> HostsPage:
    space = XSpace()
    for gpu in range(2):
        plane = PlaneBuilder(space, f"/device:GPU:{gpu}", gpu + 1)
        stream = plane.line("Stream #7(Compute)")
        for at in range(gpu):
            plane.event(stream, plane.event_id("kernel"), at * 90, 10)
    return hosts_page(summaries({"gpu-vm": space.SerializeToString()}))


PAGES = {"one": of_one_host, "pod": straggling_page, "gpus": of_gpus, "nothing": of_nothing}


@pytest.mark.parametrize("name", PAGES)
def test_every_page_is_as_it_was_and_keeps_the_contract(name: str) -> None:
    check_report(REPORT, "cores", PAGES[name](), RUN, GOLDEN / f"cores-{name}", LOOKS)


def test_a_core_is_named_as_the_option_takes_it() -> None:
    document = json.loads(printed(REPORT, of_one_host(), RUN, "json", LOOKS["-80-block"]))
    assert document["slowest"] == "vm-0:2"
    assert [row["core"] for row in document["cores"]] == [f"vm-0:{core}" for core in range(4)]
    for row in document["cores"]:
        assert sum(row["breakdown_ms"].values()) == pytest.approx(row["step_time_ms"]["average"])


@pytest.mark.parametrize("form", FORMATS)
def test_a_limit_leaves_cores_out(form: Format) -> None:
    text = printed(REPORT, straggling_page(), RUN, form, LOOKS["-80-block"], limit=2)
    assert "host0:1" in text and "host3:1" not in text


def test_names_in_a_profile_are_taken_for_no_more_than_text() -> None:
    page = straggling_page()
    cores = tuple(replace(row, host=EVIL, device_type=EVIL) for row in page.cores)
    hostile = replace(page, cores=cores, cores_statement=EVIL, warnings=(EVIL,))
    check_harmless(REPORT, hostile, RUN, LOOKS["-160-block"])
    assert json.loads(printed(REPORT, hostile, RUN, "json"))["cores"][0]["host"] == printable(EVIL)
