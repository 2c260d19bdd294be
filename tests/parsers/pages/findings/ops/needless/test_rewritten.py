"""Arrays that a program writes as a whole to change a few elements: when a place is written, and when many are."""

from __future__ import annotations

import pytest

from tests.parsers.pages.findings.build import Op, evidence, findings, grid, with_program
from tpuprof.parsers.pages.findings.finding import Finding

CACHE, NEW, MASK = "bf16[64,2048,1024]{2,1,0}", "bf16[64,1024]{1,0}", "pred[64,2048]{1,0}"
WIDE = CACHE.replace("bf16", "pred")
HEAD = f"%write (c: {CACHE}, n: {NEW}, m: {MASK}) -> {CACHE} {{"
PARAMETERS = f"""  %c = {CACHE} parameter(0)
  %n = {NEW} parameter(1)
  %m = {MASK} parameter(2)
  %where = {WIDE} broadcast(%m), dimensions={{0,1}}
"""
VALUES = f"  %what = {CACHE} broadcast(%n), dimensions={{0,2}}\n"
SELECT = f"  ROOT %s = {CACHE} select(%where, %what, %c)\n}}\n"
BY_MASK = f"{HEAD}\n{PARAMETERS}{VALUES}{SELECT}"
POSITIONS = "s32[64,2048]{1,0}"


def by_position(direction: str) -> str:
    """The same by an index for each row, which is compared with all positions."""
    compared = f"""  %at = s32[64]{{0}} parameter(2)
  %places = {POSITIONS} iota()
  %row = {POSITIONS} broadcast(%at), dimensions={{0}}
  %m = {MASK} compare(%places, %row), direction={direction}
"""
    return BY_MASK.replace(f"  %m = {MASK} parameter(2)\n", compared).replace(f"m: {MASK}", "m: s32[64]")


GIVEN = (f"%cache = {CACHE} parameter(0)", f"%new = {NEW} parameter(1)", f"%at0 = {MASK} parameter(2)")
REST = (
    f"%made = {CACHE} fusion(%cache, %new, %at0), kind=kLoop, calls=%write",
    f'%product = {NEW} custom-call(%made), custom_call_target="tpu_custom_call"',
    f"ROOT %t = ({NEW}, {CACHE}) tuple(%product, %made)",
)


def said(fused: str, *lines: str) -> Finding | None:
    """What is said of a step of a millisecond in which the fusion ``%made`` takes a fifth."""
    ops = [Op("made", "loop fusion", 4000, hbm=180_000_000, scope="cache/select_n")]
    ops.append(Op("product", "custom-call", 16000, hbm=640_000_000))
    of = with_program(evidence(grid({"vector": 200, "compute": 800}), ops), fused, CACHE, *lines)
    return next((each for each in findings(of) if "rewrite" in each.title), None)


@pytest.mark.parametrize("fused", [BY_MASK, by_position("EQ")], ids=["a mask that is given", "an index"])
def test_a_cache_that_changes_in_a_place_of_each_row_need_not_be_written_as_a_whole(fused: str) -> None:
    given = GIVEN if fused == BY_MASK else (*GIVEN[:2], "%at0 = s32[64]{0} parameter(2)")
    finding = said(fused, *given, *REST)
    assert finding is not None
    assert finding.kind == "memory-bound"
    assert finding.title == "cache/select_n rewrites 2,048 elements to change 1"
    assert finding.worth_ps == pytest.approx(200e6 * 2047 / 2048, rel=1e-3)
    assert "reads 268.4 MB passed to the program" in finding.evidence[1]
    assert "dynamic_update_slice" in finding.advice
    assert "donate_argnums" in finding.advice


def test_one_row_for_which_a_mask_is_given_may_have_many_places() -> None:
    """Tokens of a text that get one value where they are masked look the same; an index tells them apart."""

    def flat(line: str) -> str:
        changes = {"s32[64]{0}": "s32[]", "s32[64]": "s32[]", "dimensions={0}": "dimensions={}", "[64,": "["}
        changes |= {"{1,0}": "{0}", "{2,1,0}": "{1,0}", "{0,1}": "{0}", "{0,2}": "{1}"}
        for before, after in changes.items():
            line = line.replace(before, after)
        return line

    given = (*GIVEN[:2], "%at0 = s32[64]{0} parameter(2)")
    assert said(flat(BY_MASK), *map(flat, GIVEN), *map(flat, REST)) is None
    assert said(flat(by_position("EQ")), *map(flat, given), *map(flat, REST)) is not None


def test_readers_of_the_old_values_may_put_the_new_ones_in_themselves() -> None:
    other = f"%read = {NEW} custom-call(%cache, %new)"
    assert said(by_position("EQ"), *GIVEN[:2], "%at0 = s32[64]{0} parameter(2)", other, *REST) is not None


@pytest.mark.parametrize("kept", ["%c", "%rest"], ids=["added to zeros", "what was there is taken away first"])
def test_new_values_times_a_mask_are_a_select_too(kept: str) -> None:
    ones, wide = POSITIONS.replace("s32", "bf16"), WIDE.replace("pred", "bf16")
    added = f"""{HEAD.replace(MASK, ones)}
  %c = {CACHE} parameter(0)
  %n = {NEW} parameter(1)
  %m = {ones} parameter(2)
  %where = {wide} broadcast(%m), dimensions={{0,1}}
  %rest = {CACHE} multiply(%c, %where)
{VALUES}  %new_there = {CACHE} multiply(%where, %what)
  ROOT %s = {CACHE} add({kept}, %new_there)
}}
%one_hot (i: s32[64]) -> {ones} {{
  %i = s32[64]{{0}} parameter(0)
  %row = {POSITIONS} broadcast(%i), dimensions={{0}}
  %places = {POSITIONS} iota()
  %is = {MASK} compare(%places, %row), direction=EQ
  ROOT %one = {ones} convert(%is)
}}
"""
    index = ("%index = s32[64]{0} parameter(2)", f"%at0 = {ones} fusion(%index), kind=kLoop, calls=%one_hot")
    assert said(added, *GIVEN[:2], *index, *REST) is not None
    many = added.replace("direction=EQ", "direction=LE")
    assert said(many, *GIVEN[:2], *index, *REST) is None


def test_a_slice_of_a_cache_of_all_layers_is_rewritten_in_a_loop() -> None:
    layers = CACHE.replace("[64", "[8,64").replace("2,1,0}", "3,2,1,0}")
    sliced = BY_MASK.replace(f"(c: {CACHE}", f"(c: {layers}").replace(
        f"  %c = {CACHE} parameter(0)\n",
        f"  %all = {layers} parameter(0)\n  %i = s32[] parameter(3)\n"
        f"  %one = {layers.replace('[8', '[1')} dynamic-slice(%all, %i)\n  %c = {CACHE} bitcast(%one)\n",
    )
    sliced = sliced.replace("  ROOT %s", "  %s").replace(
        "%c)\n}", f"%c)\n  %back = {layers.replace('[8', '[1')} bitcast(%s)\n"
        f"  ROOT %u = {layers} dynamic-update-slice(%all, %back, %i)\n}}"
    )  # fmt: skip
    given = (GIVEN[0].replace(CACHE, layers), *GIVEN[1:], "%layer = s32[] parameter(3)")
    rest = [line.replace(CACHE, layers).replace("%at0)", "%at0, %layer)") for line in REST]
    assert said(sliced, *given, *rest) is not None


@pytest.mark.parametrize(
    ("fused", "given", "rest"),
    [
        (by_position("LT"), (*GIVEN[:2], "%at0 = s32[64]{0} parameter(2)"), REST),
        (BY_MASK, (f"%before = {CACHE} parameter(0)", f"%cache = {CACHE} negate(%before)", *GIVEN[1:]), REST),
        (BY_MASK, GIVEN, (*REST[:2], f"ROOT %t = ({CACHE}, {CACHE}) tuple(%cache, %made)")),
        (
            BY_MASK.replace(NEW, "bf16[1024]{0}").replace("{0,2}", "{2}"),
            (GIVEN[0], "%new = bf16[1024]{0} parameter(1)", GIVEN[2]),
            REST,
        ),
        (BY_MASK.replace("%what, %c", "%c, %c"), GIVEN, REST),
        (
            BY_MASK.replace("%what, %c", "%sum, %c").replace(
                "  ROOT", f"  %more = {CACHE} parameter(3)\n  %sum = {CACHE} add(%what, %more)\n  ROOT"
            ),
            (*GIVEN, f"%other = {CACHE} parameter(3)"),
            (REST[0].replace("%at0)", "%at0, %other)"), *REST[1:]),
        ),
        (
            BY_MASK.replace(VALUES, f"  %what = {CACHE} broadcast(%z), dimensions={{}}\n").replace(
                f"  %m = {MASK}", f"  %z = bf16[] constant(0)\n  %m = {MASK}"
            ),
            GIVEN,
            REST,
        ),
    ],
    ids=[
        "all places up to an index change",
        "activations, which are computed here",
        "the old values are still needed",
        "one value for all tokens that are masked",
        "nothing new",
        "values that differ in all places",
        "masked places become zero",
    ],
)
def test_other_selects_are_no_updates_in_place(fused: str, given: tuple[str, ...], rest: tuple[str, ...]) -> None:
    assert said(fused, *given, *rest) is None
