"""Arrays that are written to HBM larger than what they are made from: which their readers could unpack or repeat."""

from __future__ import annotations

import pytest

from tests.parsers.pages.findings.build import Op, evidence, findings, grid, with_program
from tpuprof.parsers.pages.findings.finding import Evidence, Finding

X, W, PACKED = "bf16[1024,4096]{1,0}", "bf16[4096,4096]{1,0}", "s8[4096,4096]{1,0}"
KEYS, REPEATED = "bf16[8192,1024]{1,0}", "bf16[8192,4,1024]{2,1,0}"
KERNEL = 'custom_call_target="tpu_custom_call"'


def step(fused: str, *lines: str, us: float = 100) -> Evidence:
    """A step of a millisecond in which ``%made`` takes some time; `fused` is what it holds, and `lines` the program."""
    ops = [Op("made", "loop fusion", us * 20, hbm=round(us * 0.9e6), scope="dequantize/mul")]
    ops.append(Op("product", "convolution fusion", 20 * (1000 - us), flops=round(0.8 * (1000 - us) * 100e6)))
    return with_program(evidence(grid({"vector": us, "compute": 1000 - us}), ops), fused, X, *lines)


def said(of: Evidence) -> Finding | None:
    """The finding about arrays that are unpacked or repeated."""
    return next((each for each in findings(of) if "unpack" in each.title or "repeat" in each.title), None)


UNPACKING = f"""%unpack (p: {PACKED}, s: bf16[4096]) -> {W} {{
  %p = {PACKED} parameter(0)
  %s = bf16[4096]{{0}} parameter(1)
  %c = {W} convert(%p)
  %b = {W} broadcast(%s), dimensions={{1}}
  ROOT %m = {W} multiply(%c, %b)
}}
"""
GIVEN = (f"%x = {X} parameter(0)", f"%q = {PACKED} parameter(1)", "%scales = bf16[4096]{0} parameter(2)")
UNPACKED = (*GIVEN, f"%made = {W} fusion(%q, %scales), kind=kLoop, calls=%unpack")
PRODUCT = f"%product = {X} dot(%x, %made), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}"


def test_packed_weights_need_not_be_written_unpacked_ahead_of_a_product() -> None:
    finding = said(step(UNPACKING, *UNPACKED, f"ROOT {PRODUCT}"))
    assert finding is not None
    assert finding.kind == "unfused"
    assert finding.title == "dequantize/mul unpacks s8 to bf16 in HBM"
    assert finding.worth_ps == pytest.approx(100e6, rel=1e-3)
    assert "reads 16.8 MB and writes 33.6 MB of bf16 that only matrix products read" in finding.evidence[1]
    assert "multiply by the s8 array as it is" in finding.advice


def test_what_it_holds_may_be_fused_in_turn() -> None:
    copying = (
        f"%copying (i: {PACKED}) -> {PACKED} {{\n  %i = {PACKED} parameter(0)\n  ROOT %o = {PACKED} copy(%i)\n}}\n"
    )
    inner = f"  %near = {PACKED} fusion(%p), kind=kLoop, calls=%copying\n  %c = {W} convert(%near)"
    nested = copying + UNPACKING.replace(f"  %c = {W} convert(%p)", inner)
    assert said(step(nested, *UNPACKED, f"ROOT {PRODUCT}")) is not None
    other = nested.replace("copy(%i)", "negate(%i)")
    assert said(step(other, *UNPACKED, f"ROOT {PRODUCT}")) is None


def test_it_may_be_prefetched_and_read_by_several_products() -> None:
    prefetched = (
        f"%started = ({W}, {W.replace('}', ':S(1)}')}, u32[]) copy-start(%made)",
        f"%near = {W.replace('}', ':S(1)}')} copy-done(%started)",
        PRODUCT.replace("%made", "%near"),
        f"ROOT %other = {X} dot(%product, %made), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}",
    )
    assert said(step(UNPACKING, *UNPACKED, *prefetched)) is not None


def test_it_may_be_prefetched_in_slices() -> None:
    part, near = "bf16[2048,4096]{1,0:S(1)}", W.replace("}", ":S(1)}")
    prefetched = (
        f"%begun = (({W}), {part}, s32[]) slice-start(%made), slice={{[0:2048], [0:4096]}}",
        f"%part = {part} slice-done(%begun)",
        f'%near = {near} custom-call(%part, %part), custom_call_target="ConcatBitcast"',
        PRODUCT.replace("%made", "%near"),
    )
    assert said(step(UNPACKING, *UNPACKED, *prefetched)) is not None


@pytest.mark.parametrize(
    "rest",
    [
        (PRODUCT, f"%kept = {W} negate(%made)", f"ROOT %t = ({X}, {W}) tuple(%product, %kept)"),
        (PRODUCT, f"ROOT %t = ({X}, {W}) tuple(%product, %made)"),
        (f"ROOT %product = {W} add(%made, %made)",),
    ],
    ids=["another op reads it too", "the program gives it back", "no product reads it"],
)
def test_what_something_else_reads_has_to_be_written(rest: tuple[str, ...]) -> None:
    assert said(step(UNPACKING, *UNPACKED, *rest)) is None


def test_what_is_computed_and_not_unpacked_is_no_packed_array() -> None:
    widened = UNPACKING.replace("s8[", "bf16[")
    lines = [line.replace("s8[", "bf16[") for line in (*UNPACKED, f"ROOT {PRODUCT}")]
    assert said(step(widened, *lines)) is None
    raised = UNPACKING.replace("multiply(%c, %b)", "power(%c, %b)")
    assert said(step(raised, *UNPACKED, f"ROOT {PRODUCT}")) is None


@pytest.mark.parametrize(("narrow", "wide"), [("pred", "bf16"), ("bf16", "f32")])
def test_masks_and_arrays_of_16_bits_are_not_packed(narrow: str, wide: str) -> None:
    def typed(line: str) -> str:
        return line.replace("bf16", wide).replace("s8[", f"{narrow}[")

    assert said(step(typed(UNPACKING), *map(typed, UNPACKED), typed(f"ROOT {PRODUCT}"))) is None


def test_numbers_of_four_bits_lie_several_in_one() -> None:
    unpacking = f"""%unpack (p: s32[512,4096], s: s32[8]) -> {W} {{
  %p = s32[512,4096]{{1,0}} parameter(0)
  %s = s32[8]{{0}} parameter(1)
  %b = s32[512,8,4096]{{2,1,0}} broadcast(%p), dimensions={{0,2}}
  %by = s32[512,8,4096]{{2,1,0}} broadcast(%s), dimensions={{1}}
  %h = s32[512,8,4096]{{2,1,0}} shift-right-logical(%b, %by)
  %f = {W.replace("bf16", "s32")} reshape(%h)
  ROOT %c = {W} convert(%f)
}}
"""
    lines = [line.replace(PACKED, "s32[512,4096]{1,0}").replace("bf16[4096]", "s32[8]") for line in UNPACKED]
    finding = said(step(unpacking, *lines, f"ROOT {PRODUCT}"))
    assert finding is not None
    assert finding.title == "dequantize/mul unpacks s32 to bf16 in HBM"


REPEATING = f"""%repeat (k: {KEYS}) -> {REPEATED} {{
  %k = {KEYS} parameter(0)
  ROOT %b = {REPEATED} broadcast(%k), dimensions={{0,2}}
}}
"""
KEYS_REPEATED = (f"%k0 = {KEYS} parameter(0)", f"%made = {REPEATED} fusion(%k0), kind=kLoop, calls=%repeat")
ATTENTION = f"ROOT %product = {X} custom-call(%made), {KERNEL}"


def test_keys_need_not_be_written_once_for_each_head() -> None:
    finding = said(step(REPEATING, *KEYS_REPEATED, ATTENTION))
    assert finding is not None
    assert finding.kind == "unfused"
    assert finding.worth_ps == pytest.approx(100e6, rel=1e-3)
    assert finding.title == "dequantize/mul repeats arrays in HBM for kernels"
    assert "reads 16.8 MB and writes each element 4 times, 67.1 MB that only kernels read" in finding.evidence[1]
    assert "grouped-query attention" in finding.advice


def test_what_a_kernel_wants_in_all_lanes_is_repeated_for_it() -> None:
    lanes = REPEATING.replace(REPEATED, "f32[131072,128]{1,0}").replace(KEYS, "f32[131072]{0}").replace("{0,2}", "{0}")
    lines = [
        line.replace(REPEATED, "f32[131072,128]{1,0}").replace(KEYS, "f32[131072]{0}")
        for line in (*KEYS_REPEATED, ATTENTION)
    ]
    assert said(step(lanes, *lines)) is None


@pytest.mark.parametrize(
    ("repeating", "end", "us"),
    [
        (REPEATING, f"ROOT %product = {REPEATED} negate(%made)", 100),
        (REPEATING, ATTENTION, 9),
        (REPEATING.replace(KEYS, "bf16[]").replace("dimensions={0,2}", "dimensions={}"), ATTENTION, 100),
    ],
    ids=["another op computes with it", "it takes little", "a number fills an array"],
)
def test_what_is_repeated_otherwise_is_no_reason(repeating: str, end: str, us: float) -> None:
    lines = [line if repeating == REPEATING else line.replace(KEYS, "bf16[]") for line in KEYS_REPEATED]
    assert said(step(repeating, *lines, end, us=us)) is None
