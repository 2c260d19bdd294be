"""Reports on a run's cores: golden texts, the contract's keys, reasons for all that is null, hostile names."""

from __future__ import annotations

import pytest

from tests.support.build import PlaneBuilder
from tests.support.made.many_hosts import host_bytes, steady, straggling_page, summaries
from tests.support.reports import check_report
from tests.tui.pages.hosts.test_report import GOLDEN, LOOKS, RUN, of_nothing
from tpuprof.parsers.formats.proto.xplane_pb2 import XSpace
from tpuprof.parsers.pages.hosts.hosts import hosts_page
from tpuprof.parsers.pages.hosts.model import HostsPage
from tpuprof.tui.pages.hosts.report import CORES_REPORT as REPORT


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
