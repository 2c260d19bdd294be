"""Hosts compared: a straggler that is known, hosts that are even, hosts with nothing to compare; and their drawing."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.build import bare_host, present, session_at, summary_of, tpu_plane, write_run
from tests.support.gpus import cpu_profile
from tests.support.made.many_hosts import US, host_bytes, profiles, steady, straggling_page, summaries
from tpuprof.parsers.formats.proto.xplane_pb2 import XSpace
from tpuprof.parsers.hosts.summary import HostSummary, duty_of_capture
from tpuprof.parsers.pages.hosts.hosts import HOSTS, hosts_page
from tpuprof.parsers.pages.hosts.model import PARTS, HostsPage, LeftOut
from tpuprof.parsers.pages.hosts.without_tpus import NO_COMMON_STEPS
from tpuprof.tui.draw.pen import Pen
from tpuprof.tui.draw.spans import BLOCK, line_width, plain
from tpuprof.tui.pages.hosts.drawing import HostsState, compose_hosts
from tpuprof.tui.pages.hosts.drawing import hosts as draw_hosts

EVIL = "\x1b[31m\u202eevil\nhost\udcff"


def page_of(busy_us: dict[str, list[int]], input_us: dict[str, int] | None = None) -> HostsPage:
    return hosts_page(summaries(profiles(busy_us, input_us=input_us)))


# --- what the page says --------------------------------------------------------------------------------------------


def test_a_host_that_waits_for_input_is_a_straggler_because_of_it() -> None:
    page = page_of({"a": steady(1000), "b": steady(1300), "c": steady(1000)}, {"a": 20, "b": 320, "c": 20})
    assert page.straggler == 1
    assert page.statement.endswith("It spends 300 µs a step more on waiting for input than the others.")
    assert page.rows[1].input_percent == pytest.approx(100 * 320 / 1361.5, rel=0.01)


def test_a_host_that_is_late_now_and_then_delays_the_others_if_no_other_does() -> None:
    pauses = [1400 if step == 5 else 1000 for step in range(8)]
    page = page_of({"a": [1000] * 8, "b": pauses, "c": [1010, 1000] * 4})
    assert (page.verdict, page.straggler) == ("straggler", 1)
    assert page.statement.startswith("b delays the others by 50.0 µs a step (4.5%), most of it in 1 of 8 steps.")


def test_a_host_with_fewer_cores_than_most_may_have_lost_some() -> None:
    made = profiles({"a": steady(1200), "b": steady(1000), "c": steady(1000)})
    made["a"] = profiles({"a": steady(1200), "b": steady(1000)}, cores=1)["a"]
    page = hosts_page(summaries(made))
    assert page.rows[0].not_compared == "only 1 core has steps, and 2 of other hosts"
    assert page.verdict == "even"
    made = profiles({"a": steady(1000), "b": steady(1000), "c": steady(1000)})
    made["c"] = profiles({"c": steady(1000)}, cores=4)["c"]
    assert [row.not_compared for row in hosts_page(summaries(made)).rows] == ["", "", ""]


@pytest.mark.parametrize("count", [1, 2])
def test_too_few_steps_make_no_straggler(count: int) -> None:
    assert page_of({"a": steady(1500, count), "b": steady(1000, count)}).verdict == "uneven"


def test_with_nothing_to_compare_it_says_why() -> None:
    made = profiles({"a": steady(1000)})
    assert hosts_page(summaries(made)).statement == "The run has one host, a: there is nothing to compare it with."
    made["idle"] = bare_host().SerializeToString()
    page = hosts_page(summaries(made))
    assert page.statement == "There is nothing to compare a with: the others have no steps."
    assert page.rows[1].problems == ("no device plane in this profile",)
    assert page.rows[1].step_time is None and page.rows[1].slowest_in is None
    assert set(page.unknown) >= {"step_time", "own_ps", "slowest_in", "parts_ps", "duty_percent"}


def test_hosts_that_share_no_step() -> None:
    space = XSpace()
    spans = [(str(n), n * 10**6 * US, n * 10**6 * US + US) for n in range(100, 106)]
    tpu_plane(space, 0, [("fusion.1", "loop fusion", begin, end - begin) for _, begin, end in spans], steps=spans)
    made = {"a": profiles({"a": [1] * 6}, cores=1)["a"], "b": space.SerializeToString()}
    page = hosts_page(summaries(made))
    assert page.rows[0].step_time is not None and page.rows[1].step_time is not None
    assert page.statement == "There is nothing to compare a with: the hosts share no step."
    assert [row.common_steps for row in page.rows] == [6, 0]


def test_hosts_of_one_name_are_two() -> None:
    made = summaries(profiles({"a": steady(1000), "b": steady(1200)}))
    page = hosts_page([replace(one, host="same") for one in made])
    assert page.straggler == 1 and [row.host for row in page.rows] == ["same", "same"]


def with_a_cut_host(whole: int = 2) -> HostsPage:
    """Hosts whose second core is the slow one, and one that lost it with the end of its file."""
    data = host_bytes([steady(1000), steady(1200)], steady(1200), input_us=50)
    made = {f"host{at}": data for at in range(whole)}
    return hosts_page(summaries({**made, "cut": data[: len(data) * 11 // 20]}))


def test_a_host_that_is_cut_off_makes_no_straggler_of_another() -> None:
    page = with_a_cut_host()
    assert (page.verdict, page.straggler) == ("even", None)
    assert page.statement == "The 2 hosts compared differ by <0.1% of a step: none delays the others."
    row = page.rows[2]
    assert row.step_time is not None and row.not_compared == "its file is cut off"
    assert (row.own_ps, row.slowest_in, row.cost_ps, row.parts_ps, row.common_steps) == (None, None, None, None, 0)
    assert "cut is not compared with the others: its file is cut off" in (*page.warnings, *row.problems)
    assert page.unknown["own_ps"] == "cut: not compared, its file is cut off"
    assert page.steps is not None and page.steps.rows == (0, 1)
    alone = with_a_cut_host(1)
    assert (alone.verdict, alone.straggler) == ("unknown", None)
    assert alone.statement == ("There is nothing to compare host0 with: cut is left out, because its file is cut off.")


def test_a_host_of_which_a_core_has_no_steps_is_not_compared() -> None:
    made = profiles({"a": steady(1000), "b": steady(1000), "c": steady(1000)})
    space = XSpace.FromString(host_bytes([steady(900)], steady(1000)))
    tpu_plane(space, 1, [("fusion.1", "loop fusion", 10**6 * US, US)])
    page = hosts_page(summaries({**made, "half": space.SerializeToString()}))
    assert page.rows[3].not_compared == "only 1 of its 2 cores has steps, and 2 of other hosts"
    assert page.verdict == "even" and page.statement.startswith("The 3 hosts compared")
    idle = {name: space.SerializeToString() for name in "ab"}
    assert [row.not_compared for row in hosts_page(summaries(idle)).rows] == ["", ""]  # no host uses that core


def test_input_is_compared_where_it_is_known_only() -> None:
    page = page_of({"a": steady(1000), "b": steady(1300), "c": steady(1000)}, {"b": 320})
    assert page.straggler == 1 and "waiting for input" not in page.statement
    assert page.rows[0].input_percent is None
    assert page.rows[0].known_parts_ps is not None and page.rows[0].known_parts_ps[PARTS.index("input")] is None
    assert page.unknown["parts_ps.input"].startswith("a, c: neither infeed ops")
    assert page.rows[1].known_parts_ps == page.rows[1].parts_ps
    other = page_of({"a": steady(1000), "b": steady(1300), "c": steady(1000)}, {"a": 300, "c": 300})
    assert other.straggler == 1 and "on compute than the others" in other.statement


def test_a_file_that_is_no_profile_is_a_host_left_out(tmp_path: Path) -> None:
    made = profiles({"a": steady(1000), "b": steady(1000)})
    page = session_at(write_run(tmp_path, **{**made, "empty": b"", "broken": b"\xff" * 300})).page(HOSTS)
    assert [out.host for out in page.left_out] == ["broken", "empty"]
    assert "holds 0 bytes" in page.left_out[1].reason
    assert not any("holds 0 bytes" in warning for warning in page.warnings)
    text = [plain(line) for line in draw_hosts(page, Pen(100, BLOCK))]
    assert any(line.startswith(" empty  left out: holds 0 bytes") for line in text)
    assert sum("holds 0 bytes" in line for line in text) == 1
    assert any("2 hosts, 2 left out" in line for line in text)


@given(st.lists(st.lists(st.integers(0, 3000), min_size=4, max_size=4), min_size=1, max_size=5))
def test_whatever_hosts_do_the_sums_hold(times: list[list[int]]) -> None:
    page = page_of({f"h{at}": one for at, one in enumerate(times)})
    steps = present(page.steps)
    assert (steps.parts_ps.sum(axis=2) == steps.duration_ps.max(axis=0)).all()
    assert (steps.done_ps <= steps.duration_ps).all()
    assert sum(row.slowest_in or 0 for row in page.rows) <= len(steps)
    own = steps.done_ps.astype(np.float64)
    gained = (own.max(axis=0) - np.sort(own, axis=0)[-2]).mean() if len(own) > 1 else 0.0
    assert sum(row.cost_ps or 0 for row in page.rows) == pytest.approx(gained)


# --- drawing -------------------------------------------------------------------------------------------------------


@cache
def all_pages() -> tuple[HostsPage, ...]:
    idle = bare_host()
    hostile = replace(
        straggling_page(),
        statement=EVIL,
        warnings=(EVIL,),
        rows=tuple(replace(row, host=EVIL, problems=(EVIL,)) for row in straggling_page().rows),
    )
    return (
        straggling_page(),
        page_of({f"host{at}": steady(1000, 300) for at in range(20)}),
        page_of({"a": steady(1000)}),
        hosts_page(summaries({"idle": idle.SerializeToString()})),
        hostile,
    )


def test_a_composed_page_fits_and_says_what_is_where() -> None:
    for page in all_pages():
        for width, height in ((60, 15), (80, 24), (120, 40), (220, 60), (60, 5)):
            for row in (0, len(page.rows) - 1):
                made = compose_hosts(page, HostsState(cursor=row), Pen(width, BLOCK), height)
                assert len(made.lines) == height
                assert {line_width(line) for line in made.lines} == {width}
                if made.first_row_line + row - made.first < height:
                    assert plain(made.lines[made.first_row_line + row - made.first]).startswith(BLOCK.mark)


def test_the_cursor_stays_in_view_of_many_hosts() -> None:
    page = page_of({f"host{at}": steady(1000, 4) for at in range(60)})
    made = compose_hosts(page, HostsState(cursor=60, with_cores=False), Pen(100, BLOCK), 24)
    assert made.first + made.room == 61 and made.room < 20
    assert "host59" in plain(made.lines[made.first_row_line + made.room - 1])
    back = compose_hosts(page, HostsState(cursor=made.first, first=made.first, with_cores=False), Pen(100, BLOCK), 24)
    assert back.first == made.first


def test_every_note_is_reached_with_the_cursor() -> None:
    busy = {f"host{at}": steady(1000, 4) for at in range(12)}
    left_out = [LeftOut("gone", "/logs/run/gone.xplane.pb is not a profile. " + "why " * 30 + "indeed.")]
    page = replace(
        hosts_page(summaries(profiles(busy)), left_out),
        warnings=tuple(f"warning {at} says {'much ' * 20}and ends{at}" for at in range(9)),
    )
    first = compose_hosts(page, HostsState(), Pen(76, BLOCK), 20)
    assert any("more notes below the last row" in plain(line) for line in first.lines)
    seen: set[str] = set()
    for row in range(first.positions):
        made = compose_hosts(page, HostsState(cursor=row), Pen(76, BLOCK), 20)
        assert made.positions == first.positions
        seen.update(word for line in made.lines for word in plain(line).split())
    assert seen >= {*(f"ends{at}" for at in range(9)), *busy, "indeed."}
    last = compose_hosts(page, HostsState(cursor=first.positions + 5), Pen(76, BLOCK), 20)
    assert "default)" in plain(last.lines[-1])  # the last note stands at the bottom


def test_the_row_of_a_host_that_is_left_out_says_why() -> None:
    page = replace(straggling_page(), left_out=(LeftOut("host4", "/logs/host4.xplane.pb is not a profile."),))
    made = compose_hosts(page, HostsState(cursor=13), Pen(100, BLOCK), 30)
    lines = [plain(line).rstrip() for line in made.lines]
    assert f"{BLOCK.mark}host4 left out: is not a profile." in [" ".join(line.split()) for line in lines]
    assert " ! /logs/host4.xplane.pb is not a profile." in lines
    assert made.order == (None, 0, 4, 5, 1, 6, 7, 2, 8, 9, 3, 10, 11)


# --- cores ---------------------------------------------------------------------------------------------------------


def cores_of(*busy: int) -> HostsPage:
    """One host with a core for each of these times."""
    data = host_bytes([steady(each, 6) for each in busy], steady(max(busy), 6))
    return hosts_page(summaries({"vm": data}))


def test_why_cores_are_not_compared() -> None:
    assert cores_of(1000).cores_statement == "There is one core, vm:0: there is nothing to compare it with."
    space = tpu_plane(XSpace(), 0, [("fusion.1", "convolution fusion", 0, 10)]).space
    tpu_plane(space, 3, [("fusion.1", "convolution fusion", 0, 5)])
    page = hosts_page(summaries({"vm": space.SerializeToString()}))
    assert page.cores_statement == "Steps can't be compared: no Steps line and no XLA Modules in this profile."
    assert [(row.label, row.busy_percent, row.own_ps) for row in page.cores] == [
        ("vm:0", 100, None),
        ("vm:3", 100, None),
    ]
    assert page.cores_unknown["own_ps"] == "no Steps line and no XLA Modules in this profile"
    tpu_plane(space, 4, [])
    with_idle = summaries({"vm": space.SerializeToString(), "coordinator": cpu_profile(3, []).SerializeToString()})
    assert [(row.label, row.busy_percent) for row in hosts_page(with_idle).cores][2:] == [("vm:4", None)]
    assert duty_of_capture(with_idle) == duty_of_capture(with_idle[:1])
    page = hosts_page(summaries({"vm": bare_host().SerializeToString()}))
    assert (page.cores, page.cores_statement) == ((), "There is no core in this profile.")


# --- without TPUs


def on_cpu(host: str, ends: int, meets: bool) -> HostSummary:
    """Three steps of 100 us on a CPU, whose op ends then; up to the end of the step comes a collective, or nothing."""
    collective = [("all-reduce.3", ends, 100)] if meets else []
    return summary_of(cpu_profile(3, [], [("fusion.1", 0, ends), *collective], hlo=True), host)


@pytest.mark.parametrize("meets", [True, False])
def test_hosts_that_run_steps_on_their_cpus_are_compared_where_they_meet(meets: bool) -> None:
    page = hosts_page([on_cpu("a", 20, meets), on_cpu("b", 90, meets)])
    assert [(row.device_type, row.cores, present(row.step_time).count) for row in page.rows] == [("CPU", 1, 3)] * 2
    assert [core.label for core in page.cores] == ["a:0", "b:0"]
    if meets:
        assert (page.verdict, page.straggler) == ("straggler", 1) and page.slowest_core == 1
        assert [round(present(row.wait_percent)) for row in page.rows] == [70, 0]
        return
    assert page.steps is None and page.statement.startswith("The hosts do not keep step, and none waits for another")
    assert page.cores_statement == f"Steps can't be compared: {NO_COMMON_STEPS}."
    assert [present(row.parts_ps)[PARTS.index("compute")] for row in page.rows] == [20 * US, 90 * US]
    assert all(row.cost_ps is None and row.wait_percent is None for row in page.rows)
