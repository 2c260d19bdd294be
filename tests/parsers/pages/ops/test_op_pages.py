"""What holds for the op pages of any profile, however odd: sums, fractions, rates, one place for each op."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.support.build import PlaneBuilder, StatInput, nested_spans, trace_of
from tpuprof.parsers.base.intervals import union_length
from tpuprof.parsers.base.words import NO_PEAK_FLOPS, NO_PEAK_HBM
from tpuprof.parsers.formats.proto.xplane_pb2 import XSpace
from tpuprof.parsers.hosts.summary import HostSummary, summarise
from tpuprof.parsers.ops.op_metadata import TRAFFIC
from tpuprof.parsers.ops.roofline import Rates, work_of
from tpuprof.parsers.pages.ops.framework_ops import FrameworkOpsPage, framework_ops_page
from tpuprof.parsers.pages.ops.op_profile import GROUPINGS, OpTree, op_profile_page, op_tree, provenance_parts
from tpuprof.parsers.pages.ops.ops import OpsPage, ops_page
from tpuprof.parsers.pages.ops.roofline import RooflinePage, roofline_page
from tpuprof.parsers.pages.overview.overview import overview

HBM_READ_500 = b"\n\x07\x08\x01\x10\x01\x18\xf4\x03"

CATEGORIES = ["convolution fusion", "loop fusion", "copy", "infeed", "outfeed", "while", "custom-call", "unknown", ""]
SCOPES = [
    "",
    "jit(f)/mlp/dot_general:",
    "jit(f)/mlp/add:",
    "jit(f)/mlp",
    "jit(f)",
    "x:",
    "/:/",
    "jit(f)//(a/b)/c[d/e]:T",
]


def walk(tree: OpTree) -> list[int]:
    """All nodes under the root, and the root."""
    found, stack = [], [0]
    while stack:
        found.append(stack.pop())
        stack += tree.children(found[-1]).tolist()
    return found


@dataclass
class Op:
    """An op of the made profile: its stats as they stand in the event metadata."""

    name: str
    stats: dict[str, StatInput]


@dataclass
class Event:
    """An op event: index of the op, begin and end, the event's own stats."""

    op: int
    begin: int
    end: int
    stats: dict[str, StatInput] = field(default_factory=dict)


@dataclass
class Profile:
    """A made profile of one host."""

    ops: list[Op]
    cores: list[list[Event]]
    peaks: dict[str, StatInput]
    steps: list[tuple[int, int]]

    def summary(self) -> HostSummary:
        """Encodes and reads it."""
        space = XSpace()
        for ordinal, events in enumerate(self.cores):
            plane = PlaneBuilder(space, f"/device:TPU:{ordinal}", ordinal + 1)
            for name, value in self.peaks.items():
                plane.stat(name, value)
            if self.steps:
                line = plane.line("Steps")
                for at, (begin, end) in enumerate(self.steps):
                    plane.event(line, plane.event_id(f"step {at}"), begin, end - begin)
            line = plane.line("XLA Ops")
            ids = [plane.event_id(f"%{op.name}.{at} = f32[]", op.name, **op.stats) for at, op in enumerate(self.ops)]
            for event in events:
                plane.event(line, ids[event.op], event.begin, event.end - event.begin, **event.stats)
        return summarise(trace_of(space), "host")


COUNTS = st.one_of(st.integers(0, 10**12), st.floats(0, 1e12), st.sampled_from(["many", -5, 1e308, float("inf")]))

OPTIONAL: dict[str, st.SearchStrategy[Any]] = {
    "hlo_category": st.one_of(st.sampled_from(CATEGORIES), st.just(7)),
    "flops": COUNTS,
    "model_flops": COUNTS,
    "bytes_accessed": COUNTS,
    "memory_access_breakdown": st.sampled_from([b"", HBM_READ_500, b"\n\x07\x08", "text"]),
    "source": st.sampled_from(["a/model.py:62", "b/model.py:62", "b/model.py:7:3", "model.py", ":", ""]),
    "tf_op": st.sampled_from(SCOPES),
    "deduplicated_name": st.sampled_from(["a", "b", ""]),
    "program_id": st.sampled_from([7, 9, 0, "x"]),
}
OP_NAMES = st.sampled_from(["fusion.1", "fusion.2", "region_0", "copy", ""])
MULTIPLIERS = st.sampled_from([0.5, 1.0, 2.0, 0.0, -1.0, 1e300])
FLOPS = st.sampled_from([0, 1000, 10**15])
VALUES: st.SearchStrategy[StatInput] = st.sampled_from([0.0, 100.0, -3.0, "fast", 1e-300])


@st.composite
def made_ops(draw: st.DrawFn) -> list[Op]:
    """Ops with all, some or odd stats; some have no ids, some share a name."""
    found = []
    for at in range(draw(st.integers(1, 5))):
        stats = {name: draw(values) for name, values in OPTIONAL.items() if draw(st.integers(0, 3))}
        if draw(st.integers(0, 4)):
            stats["symbol_id"] = at + 1
        found.append(Op(draw(OP_NAMES), stats))
    return found


@st.composite
def made_events(draw: st.DrawFn, count: int) -> list[Event]:
    """Events that nest properly."""
    found: list[Event] = []
    for at, length in nested_spans(draw, 200, most=8, gap=5, lengths=(0, 40), deepest=3):
        stats: dict[str, StatInput] = {}
        if not draw(st.integers(0, 3)):
            stats["Time Scale Multiplier"] = draw(MULTIPLIERS)
        if not draw(st.integers(0, 5)):
            stats["flops"] = draw(FLOPS)
        found.append(Event(draw(st.integers(0, count - 1)), at, at + length, stats))
    return found


@st.composite
def profiles(draw: st.DrawFn) -> Profile:
    """A host with up to three cores."""
    ops = draw(made_ops())
    cores = [draw(made_events(len(ops))) for _ in range(draw(st.integers(1, 3)))]
    peaks: dict[str, StatInput] = {}
    for name in ("teraflops_per_second", "hbm_bw_gigabytes_per_second", "vmem_rd_bw_gigabytes_per_second"):
        if draw(st.booleans()):
            peaks[f"peak_{name}"] = draw(VALUES)
    borders = sorted(draw(st.lists(st.integers(0, 320), max_size=5)))
    return Profile(ops, cores, peaks, list(pairwise(borders)))


def page_of(profile: Profile) -> OpsPage:
    return ops_page([profile.summary()])


def trees(page: OpsPage, with_idle: bool = True) -> list[OpTree]:
    profile, duplicates = op_profile_page(page, with_idle), page.table.texts("deduplicated_name")
    return [*map(profile.tree, GROUPINGS), op_tree(page, "source", duplicates, with_idle)]


def summed(work: np.ndarray) -> np.ndarray:
    """Sums by column, NaN where nothing is known."""
    return np.where(np.isfinite(work).any(axis=0), np.nansum(work, axis=0), np.nan)


@given(profiles())
def test_self_times_sum_to_the_busy_time_and_every_op_has_a_row(profile: Profile) -> None:
    page = page_of(profile)
    busy = 0
    for events in profile.cores:
        begin = np.array([event.begin for event in events], np.int64)
        busy += union_length(begin, np.array([event.end for event in events], np.int64))
    assert int(page.table.self_ps.sum()) == busy == page.total_ps - page.idle_ps
    seen = set()
    for event in (event for events in profile.cores for event in events):
        op = profile.ops[event.op]
        program, symbol = op.stats.get("program_id"), op.stats.get("symbol_id")
        program = program if isinstance(program, int) else 0
        seen.add((program, symbol if program and symbol else op.name or f".{event.op}"))
    assert len(page) == len(seen)
    assert int(page.table.occurrences.sum()) == sum(map(len, profile.cores))
    assert len(page.program) == len(page.op_class) == len(page)
    if page.total_ps:
        assert float(page.self_fraction.sum()) == pytest.approx(busy / page.total_ps)


@given(profiles(), st.booleans())
def test_children_sum_to_their_parent(profile: Profile, with_idle: bool) -> None:
    page = page_of(profile)
    for tree in trees(page, with_idle):
        for node in range(len(tree)):
            children = tree.children(node)
            if not len(children):
                continue
            assert (tree.parent[children] == node).all()
            assert int(tree.time_ps[children].sum()) == int(tree.time_ps[node])
            assert int(tree.occurrences[children].sum()) == int(tree.occurrences[node])
            kept = children[[tree.kind[child] != "idle" for child in children.tolist()]]
            np.testing.assert_allclose(summed(tree.work[kept]), tree.work[node], rtol=1e-9)
        if tree.time_ps[0]:
            assert float(tree.time_fraction[tree.children(0)].sum()) == pytest.approx(1.0)


@given(profiles())
def test_each_tree_holds_each_op_once_and_all_agree_in_total(profile: Profile) -> None:
    page = page_of(profile)
    found = trees(page)
    for tree in found:
        leaves = [node for node, kind in enumerate(tree.kind) if kind == "op"]
        assert sorted(tree.row[leaves].tolist()) == list(range(len(page)))
        assert sorted(walk(tree)) == list(range(len(tree)))
        assert int(tree.time_ps[0]) == page.total_ps
        assert int(tree.occurrences[0]) == int(page.table.occurrences.sum())
        np.testing.assert_allclose(tree.work[0], summed(work_of(page.table)), rtol=1e-9)
        for node in leaves:
            assert tree.time_ps[node] == page.table.self_ps[int(tree.row[node])]
            assert tree.path(node)[0] == 0
            assert tree.path(node)[-1] == node


@given(profiles(), st.integers(0, 5), st.booleans(), st.sampled_from(["time", "wasted"]))
def test_the_children_left_out_are_counted(profile: Profile, limit: int, most: bool, sort: str) -> None:
    for tree in trees(page_of(profile)):
        for node in range(len(tree)):
            every = tree.children(node)
            shown, hidden = tree.top_children(node, "time" if sort == "time" else "wasted", limit, most)
            assert len(shown) + hidden == len(every) == tree.child_count(node)
            assert len(set(shown.tolist())) == len(shown)
            assert not limit or len(shown) <= limit
            if most and len(shown):
                assert int(tree.time_ps[shown[:-1]].sum()) < 0.9 * int(tree.time_ps[node]) or len(shown) == 1
            if most and not limit:
                assert int(tree.time_ps[shown].sum()) >= 0.9 * int(tree.time_ps[node]) or not hidden
            if not most and not limit:
                assert not hidden


@given(profiles())
def test_rates_are_never_infinite(profile: Profile) -> None:
    summary = profile.summary()
    page = ops_page([summary])
    found: list[Rates] = [page.rates, framework_ops_page(page, []).rates, *(tree.rates for tree in trees(page))]
    for with_infeed in (True, False):
        roofline = roofline_page(page, [summary], with_infeed)
        found += [roofline.program.rates, roofline.average_step.rates, roofline.steps.rates]
        for points in (roofline.program, roofline.average_step, roofline.steps):
            assert (points.total_ps >= 0).all()
    for rates in found:
        for column in fields(rates):
            assert not np.isinf(getattr(rates, column.name)).any(), column.name
        assert ((rates.bound_by >= 0) == np.isfinite(rates.efficiency)).all()


@given(profiles())
def test_what_is_unknown_is_nan_with_a_reason(profile: Profile) -> None:
    page = page_of(profile)
    for peak, column, key, reason in (
        (page.peaks.flops_per_second, page.rates.flops_utilization, "flops_utilization", NO_PEAK_FLOPS),
        (page.peaks.hbm, page.rates.bandwidth_utilization[:, 0], "hbm_bandwidth_utilization", NO_PEAK_HBM),
    ):
        assert (page.unknown.get(f"ops[].{key}") == reason) == (peak is None)
        if peak is None:
            assert np.isnan(column).all()
    assert ("time_scale" in page.unknown) == (page.time_scale is None)
    assert ("ops" in page.unknown) == (len(page) == 0)
    zero = page.table.total_ps == 0
    assert np.isnan(page.rates.flops_per_second[zero | np.isnan(page.table.flops)]).all()


@given(profiles())
def test_framework_ops_add_up(profile: Profile) -> None:
    page = page_of(profile)
    framework: FrameworkOpsPage = framework_ops_page(page, [])
    assert not framework.is_host.any()
    assert int(framework.self_ps.sum()) == int(page.table.self_ps.sum())
    assert int(framework.total_ps.sum()) == int(page.table.total_ps.sum())
    assert int(framework.occurrences.max(initial=0)) == int(page.table.occurrences.max(initial=0))
    assert len(set(framework.name)) == len(framework)
    if page.total_ps:
        busy = 1 - page.idle_ps / page.total_ps
        assert float(framework.self_fraction.sum()) == pytest.approx(busy)
    for row in range(len(framework)):
        assert page.table.self_ps[framework.main_op[row]] <= framework.self_ps[row]


@given(profiles())
def test_the_roofline_holds_all_work_once(profile: Profile) -> None:
    for at, op in enumerate(profile.ops):
        op.name = f"op.{at}"  # ops without ids add up by name, and with them a loop's work would go
    summary = profile.summary()
    page = ops_page([summary])
    roofline: RooflinePage = roofline_page(page, [summary])
    np.testing.assert_allclose(roofline.program.work[0], summed(work_of(page.table)), rtol=1e-9)
    assert roofline.program.total_ps.tolist() == [page.total_ps]
    assert (np.nansum(roofline.steps.work, axis=0) <= np.nansum(roofline.program.work, axis=0) * (1 + 1e-9)).all()
    assert ("steps" in roofline.unknown) == (not len(roofline.steps))
    if len(roofline.steps):
        assert int(roofline.average_step.total_ps[0]) == int(roofline.steps.total_ps.mean())
    shown, of = overview([summary]).performance, roofline.program.rates
    for percent, fraction in (  # one share of a peak, by one count of FLOPs and at one clock
        (shown.flops_utilization_percent, of.flops_utilization[0]),
        (shown.memory_bandwidth_utilization_percent, of.bandwidth_utilization[0, TRAFFIC.index("hbm")]),
        (shown.roofline_efficiency_percent, np.nan_to_num(of.efficiency[0])),
    ):
        assert percent is None or percent == pytest.approx(100 * fraction)
    without = roofline_page(page, [summary], with_infeed=False)
    feeds = [at for at, category in enumerate(page.table.category) if category in ("infeed", "outfeed")]
    assert np.flatnonzero(~without.counts).tolist() == feeds
    assert page.total_ps - int(without.program.total_ps[0]) == int(page.table.self_ps[feeds].sum())


def custom_call(name: str, **stats: StatInput) -> Op:
    return Op(name, {"hlo_category": "custom-call", "program_id": 7, "symbol_id": 1, **stats})


PEAKS: dict[str, StatInput] = {"peak_teraflops_per_second": 100.0, "peak_hbm_bw_gigabytes_per_second": 1000.0}


def test_a_custom_calls_own_counts_add_up_in_place_of_its_metadatas() -> None:
    events = [Event(0, 0, 10, {"flops": 30}), Event(0, 20, 30, {"flops": 50, "bytes_accessed": 7}), Event(0, 40, 50)]
    page = page_of(Profile([custom_call("kernel", flops=1000)], [events, events], PEAKS, []))
    assert page.table.flops.tolist() == [2 * (30 + 50 + 1000)]
    assert page.table.bytes_accessed.tolist() == [14]
    dynamic = page_of(Profile([custom_call("kernel")], [events], PEAKS, []))
    assert dynamic.table.flops.tolist() == [80]
    assert dynamic.op_class == ("compute",)


def test_counts_of_events_matter_for_custom_calls_alone() -> None:
    op = Op("fusion.1", {"hlo_category": "loop fusion", "program_id": 7, "symbol_id": 1, "flops": 5})
    call = Op("call", {"hlo_category": "custom-call", "program_id": 7, "symbol_id": 2})
    events = [Event(0, 0, 10, {"flops": 1000}), Event(1, 20, 30, {"flops": 1000})]
    table = page_of(Profile([op, call], [events], PEAKS, [])).table
    assert dict(zip(table.name, table.flops.tolist(), strict=True)) == {"fusion.1": 5, "call": 1000}


def test_the_clock_scales_utilization_but_no_rate() -> None:
    counts: dict[str, StatInput] = {"flops": 10**9, "model_flops": 2 * 10**9}
    op = Op("fusion.1", {"hlo_category": "loop fusion", "program_id": 7, "symbol_id": 1, **counts})
    slow = [
        Event(0, 0, 10**9, {"Time Scale Multiplier": 0.5}),
        Event(0, 10**9, 3 * 10**9, {"Time Scale Multiplier": 0.75}),
    ]
    profile = Profile([op], [slow], PEAKS, [])
    page = page_of(profile)
    seconds, nominal = 3e-3, 2e-3  # 1 ms at half the clock and 2 ms at three quarters
    assert page.table.normalized_ps.tolist() == [nominal * 1e12]
    assert page.time_scale == pytest.approx(nominal / seconds)
    assert page.rates.flops_per_second[0] == pytest.approx(2e9 / seconds)
    assert page.rates.flops_utilization[0] == pytest.approx(2e9 / nominal / 100e12)
    for tree in trees(page):
        assert tree.rates.flops_utilization[0] == pytest.approx(2e9 / nominal / 100e12)
    program = roofline_page(page, []).program
    assert program.rates.flops_utilization[0] == pytest.approx(2e9 / nominal / 100e12)
    assert overview([profile.summary()]).performance.flops_utilization_percent == pytest.approx(2 / nominal / 1e3)


def test_the_clock_of_a_loop_does_not_count_its_ops_twice() -> None:
    ids: dict[str, StatInput] = {"program_id": 7}
    loop = Op("while.1", {"hlo_category": "while", "symbol_id": 1, **ids})
    inner = Op("fusion.1", {"hlo_category": "loop fusion", "symbol_id": 2, **ids})
    events = [Event(0, 0, 100), Event(1, 0, 80, {"Time Scale Multiplier": 0.5})]
    assert page_of(Profile([loop, inner], [events], PEAKS, [])).time_scale == pytest.approx((20 + 40) / 100)


def test_bytes_without_a_breakdown_count_as_hbms_wherever_they_add_up() -> None:
    ids: dict[str, StatInput] = {
        "hlo_category": "copy",
        "program_id": 7,
        "tf_op": "jit(f)/copy:",
        "bytes_accessed": 800,
    }
    plain = Op("copy.1", {"symbol_id": 1, **ids})
    told = Op("copy.2", {"symbol_id": 2, "memory_access_breakdown": HBM_READ_500, **ids})
    summary = Profile([plain, told], [[Event(0, 0, 10), Event(1, 10, 20)]], PEAKS, [(0, 20)]).summary()
    page = ops_page([summary])
    assert sorted((page.rates.bandwidth[:, 0] * 10e-12).round(6).tolist()) == [500, 800]
    whole = 1300 / 20e-12
    assert framework_ops_page(page, []).rates.bandwidth[0, 0] == pytest.approx(whole)
    roofline = roofline_page(page, [summary])
    for rates in (roofline.program.rates, roofline.steps.rates, *(tree.rates for tree in trees(page))):
        assert rates.bandwidth[0, 0] == pytest.approx(whole)


def test_of_resources_used_alike_the_first_bounds_whatever_rounding_says() -> None:
    peaks: dict[str, StatInput] = {**PEAKS, "peak_vmem_rd_bw_gigabytes_per_second": 18432.3}
    peaks["peak_vmem_wr_bw_gigabytes_per_second"] = 6144.1
    both = b"\n\x07\x08\x01\x10\x03\x18\x80\x18\n\x07\x08\x02\x10\x03\x18\x80\x08"  # 3072 bytes read, 1024 written
    op = Op("copy.1", {"hlo_category": "copy", "program_id": 7, "symbol_id": 1, "memory_access_breakdown": both})
    for end in range(1, 200, 7):
        assert page_of(Profile([op], [[Event(0, 0, end)]], peaks, [])).rates.bound_name(0) == "VMEM read"


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        ("jit(f)/mlp/dot_general:", ["jit(f)", "mlp", "dot_general"]),
        ("jit(f)/x[y=(1/2)]/mul:Mul", ["jit(f)", "x[y=(1/2)]", "mul"]),
        ("/a//b/", ["a", "b"]),
        (")/a", [")", "a"]),
        (":", []),
        ("", []),
    ],
)
def test_scopes_of_a_framework_op(name: str, parts: list[str]) -> None:
    assert provenance_parts(name) == parts


EMPTY = Profile([Op("fusion.1", {})], [[]], {}, [])


@given(profiles())
@example(EMPTY)
def test_headlines_and_classes_need_nothing_of_a_profile(profile: Profile) -> None:
    headline = op_profile_page(page_of(profile)).headline
    assert headline.endswith(".")
    assert not any(word in headline for word in ("nan", "inf", "None"))
