"""No share above a tenth of the time is without a name, whatever the ops are."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tests.parsers.pages.findings.build import Op, evidence, findings
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
