"""Reports on a run's hosts: golden texts, the contract's keys, reasons for all that is null, hostile names."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from tests.support.build import PlaneBuilder, session_at, tpu_plane, write_run
from tests.support.documents import EVIL
from tests.support.made.many_hosts import profiles, steady, straggling_page, summaries
from tests.support.reports import check_harmless, check_report, printed
from tpuprof.parsers.base.text import printable
from tpuprof.parsers.files.logdir import Run
from tpuprof.parsers.formats.proto.xplane_pb2 import XSpace
from tpuprof.parsers.pages.hosts.hosts import hosts_page
from tpuprof.parsers.pages.hosts.model import PARTS, HostsPage, LeftOut
from tpuprof.parsers.session.pages import HOSTS
from tpuprof.tui.pages.hosts.report import REPORT
from tpuprof.tui.report.page import FORMATS, Format, TextLook

GOLDEN = Path(__file__).parent / "golden"
LOOKS = {
    "-60-ascii": TextLook(60, True, False),
    "-80-block": TextLook(80, False, False),
    "-160-block": TextLook(160, False, False),
}
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


def test_json_has_every_step_of_every_core() -> None:
    document = json.loads(printed(REPORT, straggling_page(), RUN, "json", LOOKS["-80-block"]))
    assert document["straggler"] == "host2"
    assert len(document["steps"]) == 12
    step = document["steps"][0]
    assert step["slowest_host"] == "host2"
    even = json.loads(printed(REPORT, of_one_without_a_device(), RUN, "json", LOOKS["-80-block"]))
    assert even["steps"][0]["slowest_host"] is None
    assert [host["host"] for host in step["hosts"]] == ["host0", "host1", "host2", "host3"]
    core = step["cores"][4]
    assert core["core"] == "host2:0"
    assert core["input"] is None and document["unknown"]["steps[].cores[].input"]  # it is unknown
    assert sum(core[part] or 0 for part in PARTS) == pytest.approx(step["duration_ms"])


@pytest.mark.parametrize("form", FORMATS)
def test_a_limit_leaves_hosts_out(form: Format) -> None:
    text = printed(REPORT, straggling_page(), RUN, form, LOOKS["-80-block"], limit=2)
    rows = text.partition("## Hosts")[2] if form == "md" else text  # the head names all hosts
    assert "host1" in rows and ("host3" not in rows or form == "json")
    assert form != "md" or "Not shown: 2 more." in rows
    if form == "json":
        assert [row["host"] for row in json.loads(text)["hosts"]] == ["host0", "host1"]


def test_names_in_a_profile_are_taken_for_no_more_than_text() -> None:
    page = straggling_page()
    rows = tuple(replace(row, host=EVIL, device_type=EVIL, problems=(EVIL,)) for row in page.rows)
    steps = replace(page.steps, names=(EVIL,) * 12, core_names=(f"{EVIL}:0",) * 8) if page.steps else None
    hostile = replace(page, rows=rows, steps=steps, statement=EVIL, left_out=(LeftOut(EVIL, EVIL),), warnings=(EVIL,))
    check_harmless(REPORT, hostile, RUN, LOOKS["-160-block"])
    assert json.loads(printed(REPORT, hostile, RUN, "json"))["hosts"][0]["host"] == printable(EVIL)
