"""All findings together: their order and limits, and odd evidence."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from tests import EXAMPLES
from tests.parsers.pages.findings.build import PEAKS, US, Op, evidence, findings, grid, table, with_
from tpuprof.parsers.base.words import factor_text, ordinal, path_end, share, shortened, time
from tpuprof.parsers.ops.device import Peaks
from tpuprof.parsers.ops.host_events.activity import Activity, Compilation, IdleTime
from tpuprof.parsers.ops.roofline import table_rates
from tpuprof.parsers.pages.findings.finding import Evidence, Finding
from tpuprof.parsers.steps.aligned import AlignedSteps, InputSource
from tpuprof.parsers.steps.model import StepSource
from tpuprof.parsers.steps.times import SlowOp

WITHOUT_WORTH = ("uncounted", "no-device", "memory-full", "silence", "unexplained")


def check(evidence: Evidence) -> tuple[Finding, ...]:
    """The findings of any evidence at all, with what must hold for them."""
    found = findings(evidence)
    assert found == findings(evidence)
    kinds = [finding.kind for finding in found if finding.kind != "unexplained"]  # of these each place is one
    assert len({*kinds}) == len(kinds)
    worths = [finding.worth_ps for finding in found if finding.worth_ps is not None]
    assert worths == sorted(worths, reverse=True)
    for finding in found:
        assert len(finding.title) <= (100 if finding.kind == "uncounted" else 90)
        assert finding.advice.endswith(".")
        if finding.worth_ps is None:
            assert finding.kind in WITHOUT_WORTH
            assert finding.worth_fraction is None
            assert finding.after_ps is None
            continue
        assert math.isfinite(finding.worth_ps)
        assert finding.worth_ps > 0
        assert finding.worth_fraction is not None
        assert 0 < finding.worth_fraction <= 1
        assert finding.after_ps is not None
        assert finding.after_ps >= 0
        assert all(len(sentence) <= 400 for sentence in (finding.basis, *finding.evidence))
        assert finding.evidence
        assert finding.basis.endswith(".")
    return found


def test_a_program_that_only_computes_has_no_findings() -> None:
    product = Op("dot.1", "convolution", 1900, flops=round(95e-6 * 0.9 * 100e12))
    assert findings(evidence(grid({"compute": 95, "vector": 5}), [product])) == ()


def test_nothing_at_all_has_no_findings() -> None:
    assert findings(evidence(None, total=0, cores=0)) == ()
    assert findings(evidence(None, total=100)) != ()  # a capture in which nothing ran: idle
    assert findings(evidence(grid({}), total=0, cores=0)) == ()


def test_a_long_name_is_cut_in_sentences_and_whole_in_the_place() -> None:
    name = "copy" + "." * 100_000
    (finding,) = check(evidence(grid({"compute": 80, "copy": 20}), [Op(name, "copy", 320)]))
    assert finding.title == f"Layout copies: {name[:25]}..."
    assert finding.place.target == name


numbers = st.one_of(st.integers(0, 10**9), st.sampled_from([0, 1, -1, -(2**62), 2**62, 2**63 - 1, -(2**63)]))
categories = st.sampled_from(
    ["copy", "copy-done", "convolution fusion", "loop fusion", "all-reduce", "infeed", "host send", "", "while"]
)
ops = st.builds(
    Op,
    st.sampled_from(["copy.1", "fusion.2", "all-reduce-done.3", "x" * 500, "dot.1"]),
    categories,
    st.floats(0, 1000),
    st.integers(1, 4),
    st.integers(0, 2**62),
    st.integers(0, 2**62),
    st.sampled_from(["", "%a = f32[8,8]{1,0:T(8,128)S(5)} copy(f32[8,8]{0,1} %b)", "f32[" * 50]),
)
odd_peaks = st.sampled_from([PEAKS, Peaks(), Peaks(flops_per_second=1e-300, hbm=1e-300), Peaks(hbm=1e300)])

grid_sources: st.SearchStrategy[StepSource] = st.sampled_from(["steps", "modules"])
input_sources: st.SearchStrategy[InputSource | None] = st.sampled_from([None, "host", "infeed"])
many_ops = st.lists(ops, max_size=6, unique_by=lambda op: (op.name, op.text))
device_types = st.sampled_from([None, "", "TPU v5p", "GPU"])
activities = st.builds(Activity, st.just("thread/1"), st.sampled_from(["wait", "y" * 500, ""]), numbers, numbers)
all_compiled = st.lists(st.builds(Compilation, st.just("backend_compile"), numbers, numbers, numbers), max_size=4)
odd_gaps = st.one_of(
    st.none(),
    st.builds(
        IdleTime,
        numbers,
        numbers,
        st.tuples(numbers, numbers),
        st.lists(activities, max_size=3).map(tuple),
        st.dictionaries(st.just("all-gather.3"), numbers),
    ),
)


@st.composite
def odd_grids(draw: st.DrawFn) -> AlignedSteps | None:
    cores, steps = draw(st.integers(1, 4)), draw(st.integers(0, 6))
    if draw(st.integers(0, 5)) == 0:
        return None
    whole = grid({}, cores, steps, source=draw(grid_sources))
    hostile = draw(st.booleans())
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))

    def values(shape: tuple[int, ...]) -> np.ndarray:
        if hostile:
            return rng.choice(np.array(draw(st.lists(numbers, min_size=1, max_size=8)), np.int64), shape)
        return rng.integers(0, 100 * US, shape) * rng.integers(0, 2, shape)

    class_ps = values(whole.class_ps.shape)
    return replace(
        whole,
        class_ps=class_ps,
        part_ps=values(whole.part_ps.shape),
        duration_ps=values(whole.duration_ps.shape) if hostile else class_ps.sum(axis=2),
        start_ps=values(whole.start_ps.shape) if hostile else whole.start_ps,
        hosts=np.arange(cores) % draw(st.integers(1, 3)),
        input_source=draw(input_sources),
        slow_ops=(SlowOp("3", "fusion.2", draw(numbers)),),
        all_reduce=tuple(
            (np.arange(steps), np.zeros(steps, np.int64), values((steps,)) // cores) for _ in range(cores)
        ),
    )


@st.composite
def odd_evidence(draw: st.DrawFn) -> Evidence:
    rows = table(draw(many_ops))
    peaks = draw(odd_peaks)
    return Evidence(
        grid=draw(odd_grids()),
        table=rows,
        rates=table_rates(rows, peaks),
        peaks=peaks,
        device_type=draw(device_types),
        total_ps=draw(numbers),
        core_count=draw(st.integers(-1, 4)),
        gaps=draw(odd_gaps),
        compilations=tuple(draw(all_compiled)),
    )


@given(odd_evidence())
@settings(max_examples=3 * EXAMPLES)
def test_odd_evidence_gives_few_finite_findings_in_order(evidence: Evidence) -> None:
    check(evidence)


def test_rates_that_are_not_known_make_no_findings_of_their_own() -> None:
    proof = evidence(grid({"vector": 100}), [Op("fusion.1", "loop fusion", 2000, hbm=10**9)])
    nothing = np.full(1, np.nan)
    rates = replace(proof.rates, bandwidth_utilization=np.full((1, 7), np.nan), flops_utilization=nothing)
    assert check(with_(proof, rates=rates)) == ()


# --- words ---------------------------------------------------------------------------------------------------------


def test_figures_have_three_digits_and_a_unit() -> None:
    assert [time(ps) for ps in (0, 0.5, 1, 1_234, 9_996, 99_960, 123_456_789, 4.2e12)] == [
        "0", "0", "1.00 ps", "1.23 ns", "10.0 ns", "100 ns", "123 µs", "4.20 s",
    ]  # fmt: skip
    assert time(999_700) == "1.00 µs"
    assert [share(part) for part in (0, 0.0001, 0.123, 1)] == ["0.0%", "<0.1%", "12.3%", "100.0%"]
    assert [factor_text(1.5), factor_text(32)] == ["1.50x", "32x"]
    assert [ordinal(number) for number in (2, 3, 4, 11, 21, 22, 112)] == [
        "other", "3rd", "4th", "11th", "21st", "22nd", "112th",
    ]  # fmt: skip
    assert (shortened("a" * 40, 10), path_end("a" * 90 + "b")) == ("aaaaaaa...", "..." + "a" * 56 + "b")
