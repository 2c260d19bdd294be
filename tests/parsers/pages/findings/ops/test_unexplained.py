"""No share above a tenth of the time is without a name, whatever the ops are."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tests.parsers.pages.findings.build import Op, evidence, findings, the
from tpuprof.parsers.pages.findings.ops.unexplained import NEAR

CATEGORIES = (
    *("loop fusion", "convolution fusion", "custom fusion", "convolution", "reduce-window", "gather", "sort", "copy"),
    *("dynamic-slice", "dynamic-update-slice", "data formatting", "non-fusion elementwise", "custom-call", "while"),
)
HBM_BYTES_A_US = 1_000_000


@st.composite
def slow_ops(draw: st.DrawFn) -> list[Op]:
    """Ops far below their roof, some of them with clones; half a step is another op at its roof."""
    ops = [Op("dot.0", "convolution fusion", 0.0, 20, flops=1, scope="jit(step)/dot")]
    for letter in "abcdef"[: draw(st.integers(1, 6))]:
        category, clones = draw(st.sampled_from(CATEGORIES)), draw(st.sampled_from((1, 1, 40)))
        mean = draw(st.integers(4, 300))
        moved = round(draw(st.floats(0.0, NEAR / 2)) * mean * HBM_BYTES_A_US)
        scope = draw(st.sampled_from((f"jit(step)/part_{letter}/do", "")))
        stem = f"{category.replace(' ', '-')}-of-{letter}"
        ops += [Op(f"{stem}.{clone}", category, 20.0 * mean, 20, hbm=moved, scope=scope) for clone in range(clones)]
    whole = sum(op.time for op in ops)
    ops[0] = Op("dot.0", "convolution fusion", whole, 20, flops=round(whole / 20 * 0.9 * 1e8), scope="jit(step)/dot")
    return ops


@given(slow_ops())
def test_each_share_above_a_tenth_is_named(ops: list[Op]) -> None:
    whole = sum(op.time for op in ops)
    told = findings(evidence(None, ops, whole, cores=1))
    words = {op.name for finding in told for op in finding.subject.ops}
    words |= {word for finding in told for text in (finding.title, *finding.evidence) for word in text.split()}
    for stem in {op.name.partition(".")[0] for op in ops[1:]}:
        together = sum(op.time for op in ops if op.name.partition(".")[0] == stem)
        if together >= 0.1 * whole:
            part = f"part_{stem[-1]}/do"
            assert any(word.startswith((stem, part)) for word in words), (stem, [finding.title for finding in told])


def test_a_place_is_worth_its_time_above_the_roof_and_says_how_far_it_is_from_that() -> None:
    scope = "jit(step)/cache/roll"
    rolls = [Op(f"roll_fusion.{n}", "loop fusion", 80.0, 20, hbm=40_000, scope=scope) for n in range(50)]
    product = Op("dot.0", "convolution fusion", 6_000.0, 20, flops=round(300 * 0.9 * 1e8))
    found = the("unexplained", evidence(None, [product, *rolls], 10_000.0, cores=1))
    assert found.title == "cache/roll (model.py:1): 40.0% of the capture, at 1.0% of HBM's peak"
    assert found.worth_fraction is not None and abs(found.worth_fraction - 0.4 * (1 - 0.01 / 0.75)) < 1e-6
    assert found.evidence[0] == "50 ops take 4.00 ms (40.0%), mean over cores; their 1,000 runs average 4.00 µs."
