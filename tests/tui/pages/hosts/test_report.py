"""Reports on a run's hosts and cores: golden texts, the contract's keys, reasons for all that is null."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.build import PlaneBuilder, session_at, tpu_plane, write_run
from tests.support.made.many_hosts import profiles, steady, straggling_page, summaries
from tests.support.reports import check_report, printed
from tpuprof.parsers.files.logdir import Run
from tpuprof.parsers.formats.proto.xplane_pb2 import XSpace
from tpuprof.parsers.pages.hosts.hosts import HOSTS, hosts_page
from tpuprof.parsers.pages.hosts.model import HostsPage
from tpuprof.tui.pages.hosts.report import CORES_REPORT, REPORT
from tpuprof.tui.report.page import TextLook

GOLDEN = Path(__file__).parent / "golden"
LOOKS = {"-80-block": TextLook(80, False, False)}
RUN = Run("2026_11_21_03_00_00", "/logs/run", (), ())


def of_one_without_a_device() -> HostsPage:
    space = XSpace()
    PlaneBuilder(space, "/host:CPU", 1).line("main")
    made = profiles({"a": steady(1000, 4), "b": steady(1000, 4)}, input_us={"a": 100, "b": 100})
    return hosts_page(summaries({**made, "coordinator": space.SerializeToString()}))


def of_nothing() -> HostsPage:
    space = XSpace()
    PlaneBuilder(space, "/host:CPU", 1).line("main")
    return hosts_page(summaries({"idle": space.SerializeToString()}))


PAGES = {"straggler": straggling_page, "coordinator": of_one_without_a_device, "nothing": of_nothing}


def test_cores_are_listed_by_their_numbers_however_the_file_has_them(tmp_path: Path) -> None:
    """As a file that was merged of records has them."""
    space = XSpace()
    for core in (0, 3, 1, 2):
        ops = [("fusion.1", "loop fusion", step * 100, 50 + core) for step in range(4)]
        tpu_plane(space, core, ops, steps=[(str(step), step * 100, (step + 1) * 100) for step in range(4)])
    page = session_at(write_run(tmp_path, host0=space)).page(HOSTS)
    document = json.loads(printed(REPORT, page, RUN, "json"))
    assert [core["core"] for core in document["steps"][0]["cores"]] == [f"host0:{core}" for core in range(4)]
    lines = printed(REPORT, page, RUN, "text").splitlines()
    assert [line.split()[1] for line in lines if line.startswith(" core ")] == ["0", "1", "2", "3"]


@pytest.mark.parametrize("name", PAGES)
def test_every_page_is_as_it_was_and_keeps_the_contract(name: str) -> None:
    document = check_report(REPORT, "hosts", PAGES[name](), RUN, GOLDEN / f"hosts-{name}", LOOKS)
    assert "the profile does not say" not in document["unknown"].values()


def test_cores_where_there_are_none() -> None:
    check_report(CORES_REPORT, "cores", of_nothing(), RUN, GOLDEN / "cores-nothing", LOOKS)
