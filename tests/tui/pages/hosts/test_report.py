"""Reports on a run's hosts: golden texts, the contract's keys, reasons for all that is null, hostile names."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import replace
from pathlib import Path

import pytest

from tests.support.build import PlaneBuilder
from tests.support.documents import EVIL, nulls
from tests.support.golden import check_golden
from tests.support.made.many_hosts import profiles, steady, straggling_page, summaries
from tests.support.reports import printed
from tpuprof.parsers.base.text import printable
from tpuprof.parsers.files.logdir import Run
from tpuprof.parsers.formats.proto.xplane_pb2 import XSpace
from tpuprof.parsers.pages.hosts.hosts import hosts_page
from tpuprof.parsers.pages.hosts.model import PARTS, HostsPage, LeftOut
from tpuprof.tui.pages.hosts.report import REPORT
from tpuprof.tui.report.page import FORMATS, Format, TextLook

GOLDEN = Path(__file__).parent / "golden"
LOOKS = {
    "60-ascii": TextLook(60, True, False),
    "80-block": TextLook(80, False, False),
    "160-block": TextLook(160, False, False),
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


@pytest.mark.parametrize("name", PAGES)
@pytest.mark.parametrize("form", ["json", "csv", "md"])
def test_reports_are_as_they_were(name: str, form: Format) -> None:
    text = printed(REPORT, PAGES[name](), RUN, form, LOOKS["80-block"])
    check_golden(GOLDEN / f"hosts-{name}.{form}", text)


@pytest.mark.parametrize("name", PAGES)
@pytest.mark.parametrize("look", LOOKS)
def test_texts_are_as_they_were(name: str, look: str) -> None:
    check_golden(GOLDEN / f"hosts-{name}-{look}.txt", printed(REPORT, PAGES[name](), RUN, "text", LOOKS[look]))


@pytest.mark.parametrize("name", PAGES)
def test_json_keeps_the_contract(name: str) -> None:
    document = json.loads(printed(REPORT, PAGES[name](), RUN, "json", LOOKS["80-block"]))
    assert list(document)[:3] == ["schema", "run", "warnings"] and document["schema"] == "tpuprof.hosts/1"
    assert set(nulls(document)) == set(document["unknown"])
    assert all(document["unknown"].values())
    assert "the profile does not tell" not in document["unknown"].values()


def test_json_has_every_step_of_every_core() -> None:
    document = json.loads(printed(REPORT, straggling_page(), RUN, "json", LOOKS["80-block"]))
    assert document["straggler"] == "host2"
    assert len(document["steps"]) == 12
    step = document["steps"][0]
    assert step["slowest_host"] == "host2"
    even = json.loads(printed(REPORT, of_one_without_a_device(), RUN, "json", LOOKS["80-block"]))
    assert even["steps"][0]["slowest_host"] is None
    assert [host["host"] for host in step["hosts"]] == ["host0", "host1", "host2", "host3"]
    core = step["cores"][4]
    assert core["core"] == "host2:0"
    assert core["input"] is None and document["unknown"]["steps[].cores[].input"]  # it is unknown
    assert sum(core[part] or 0 for part in PARTS) == pytest.approx(step["duration_ms"])


@pytest.mark.parametrize("form", FORMATS)
def test_a_limit_leaves_hosts_out(form: Format) -> None:
    text = printed(REPORT, straggling_page(), RUN, form, LOOKS["80-block"], limit=2)
    rows = text.partition("## Hosts")[2] if form == "md" else text  # the head names all hosts
    assert "host1" in rows and ("host3" not in rows or form == "json")
    assert form != "md" or "Not shown: 2 more." in rows
    if form == "json":
        assert [row["host"] for row in json.loads(text)["hosts"]] == ["host0", "host1"]


@pytest.mark.parametrize("form", FORMATS)
def test_names_in_a_profile_are_taken_for_no_more_than_text(form: Format) -> None:
    page = straggling_page()
    rows = tuple(replace(row, host=EVIL, device_type=EVIL, problems=(EVIL,)) for row in page.rows)
    steps = replace(page.steps, names=(EVIL,) * 12, core_names=(f"{EVIL}:0",) * 8) if page.steps else None
    hostile = replace(page, rows=rows, steps=steps, statement=EVIL, left_out=(LeftOut(EVIL, EVIL),), warnings=(EVIL,))
    text = printed(REPORT, hostile, RUN, form, LOOKS["160-block"])
    assert all(line.isprintable() for line in text.split("\n"))
    if form == "json":
        assert json.loads(text)["hosts"][0]["host"] == printable(EVIL)
    if form == "csv":
        assert len({len(row) for row in csv.reader(io.StringIO(text))}) == 1
    if form == "md":
        assert "<b>" not in text and "[x](y)" not in text
