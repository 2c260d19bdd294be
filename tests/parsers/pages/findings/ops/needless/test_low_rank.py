"""Products of a low rank beside a larger one: which pass over the activations again, and which are needed."""

from __future__ import annotations

import pytest

from tests.parsers.pages.findings.build import Op, evidence, findings, grid, with_program
from tpuprof.parsers.pages.findings.finding import Finding

ROWS, WIDTH, RANK = 16_384, 4096, 16
X, W = f"bf16[{ROWS},{WIDTH}]{{1,0}}", f"bf16[{WIDTH},{WIDTH}]{{1,0}}"
ADDING = f"""%up_and_add (t: bf16[{ROWS},{RANK}], b: bf16[{RANK},{WIDTH}], y: {X}) -> {X} {{
  %t = bf16[{ROWS},{RANK}]{{1,0}} parameter(0)
  %b = bf16[{RANK},{WIDTH}]{{1,0}} parameter(1)
  %y = {X} parameter(2)
  %d = {X} dot(%t, %b), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}
  ROOT %a = {X} add(%d, %y)
}}
"""
GIVEN = (
    f"%x = {X} parameter(0)",
    f"%w = {W} parameter(1)",
    f"%a0 = bf16[{WIDTH},{RANK}]{{1,0}} parameter(2)",
    f"%b0 = bf16[{RANK},{WIDTH}]{{1,0}} parameter(3)",
)
DOWN = f"%down = bf16[{ROWS},{RANK}]{{1,0}} dot(%x, %a0)"
LARGER = f"%larger = {X} dot(%x, %w)"
WIDE, LONG = X.replace(f",{WIDTH}", ",8192"), f"bf16[8192,{WIDTH}]{{1,0}}"
OTHER = f"%larger = {X} dot(%wide, %v)"
NEAR, THIN = X.replace("}", ":S(1)}"), f"bf16[{ROWS},{RANK}]{{1,0:S(1)}}"
UP = f"%up = {X} fusion(%down, %b0, %larger), kind=kOutput, calls=%up_and_add"


def said(fused: str, *lines: str, rank: int = RANK, reached: float = 0.85) -> Finding | None:
    """What is said of a step with three products: a larger one at 85 % of its roof, and two at a share of theirs."""
    texts = [text.replace(f"{RANK}]", f"{rank}]").replace(f"[{RANK},", f"[{rank},") for text in (fused, *GIVEN, *lines)]
    whole, ops = 0.0, []
    for name, inner, arrays in (("larger", WIDTH, 2), ("down", rank, 1), ("up", rank, 2)):
        flops, moved = 2 * ROWS * WIDTH * inner, 2 * ROWS * WIDTH * arrays
        us = max(flops / 100e12, moved / 1e12) / (0.85 if name == "larger" else reached) * 1e6
        ops.append(Op(name, "convolution fusion", us * 20, 20, flops, moved, scope=f"mlp/lora/{name}"))
        whole += us
    found = findings(with_program(evidence(grid({"compute": whole}), ops), texts[0], X, *texts[1:]))
    return next((each for each in found if "of rank" in each.title), None)


BASE = f"""%multiply_and_add (x2: {X}, w2: {W}, z: {X}) -> {X} {{
  %x2 = {X} parameter(0)
  %w2 = {W} parameter(1)
  %z = {X} parameter(2)
  %d2 = {X} dot(%x2, %w2), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}
  ROOT %a2 = {X} add(%d2, %z)
}}
"""


@pytest.mark.parametrize(
    ("fused", "lines"),
    [
        (ADDING, (DOWN, LARGER, f"ROOT {UP}")),
        (
            BASE,
            (DOWN, f"%up = {X} dot(%down, %b0)",
             f"ROOT %larger = {X} fusion(%x, %w, %up), kind=kOutput, calls=%multiply_and_add"),
        ),
        (
            ADDING,
            (f"%x0 = ({NEAR}, {X}, u32[]) copy-start(%x)", f"%near = {NEAR} copy-done(%x0)",
             DOWN.replace("%x", "%near"), f"%t0 = ({THIN}, {THIN}, u32[]) copy-start(%down)",
             f"%thin = {THIN} copy-done(%t0)", LARGER, f"ROOT {UP}".replace("%down", "%thin")),
        ),
    ],
    ids=["added to the larger product's result", "added by the larger product", "prefetched"],
)  # fmt: skip
def test_products_of_a_low_rank_pass_over_the_activations_again(fused: str, lines: tuple[str, ...]) -> None:
    finding = said(fused, *lines)
    assert finding is not None
    assert finding.kind == "unfused"
    assert finding.title == "lora/up and 1 more add products of rank 16 through HBM"
    moving, computing = 3 * 2 * ROWS * WIDTH / 1e12 / 0.85, 2 * 2 * ROWS * WIDTH * RANK / 100e12 / 0.85
    assert finding.worth_ps == pytest.approx((moving - computing) * 1e12, rel=1e-3)
    assert "W + A B" in finding.advice


def test_a_first_product_of_other_activations_has_to_read_them() -> None:
    dropped = DOWN.replace("%x,", "%dropped,")
    finding = said(ADDING, f"%dropped = {X} negate(%x)", dropped, LARGER, f"ROOT {UP}")
    assert finding is not None
    moving, computing = 2 * 2 * ROWS * WIDTH / 1e12 / 0.85, 2 * ROWS * WIDTH * RANK / 100e12 / 0.85
    assert finding.worth_ps == pytest.approx((moving - computing) * 1e12, rel=1e-3)


@pytest.mark.parametrize(
    ("fused", "lines", "rank"),
    [
        (ADDING, (DOWN, LARGER, UP, f"ROOT %t = ({X}, {X}) tuple(%up, %larger)"), RANK),
        (ADDING.replace("add(%d, %y)", "multiply(%d, %y)"), (DOWN, LARGER, f"ROOT {UP}"), RANK),
        (ADDING, (DOWN, f"%larger = {X} negate(%x)", f"ROOT {UP}"), RANK),
        (ADDING, (f"%wide = {WIDE} parameter(4)", f"%v = {LONG} parameter(5)", DOWN, OTHER, f"ROOT {UP}"), RANK),
        (ADDING, (DOWN, LARGER, f"ROOT {UP}"), 1024),
        (ADDING, (DOWN, LARGER, f"ROOT {UP}"), 512),
    ],
    ids=[
        "the larger one's result is read elsewhere",
        "a gate",
        "no larger product beside them",
        "one of other activations beside them",
        "no low rank",
        "their multiplications take as long",
    ],
)
def test_other_products_in_a_row_are_needed(fused: str, lines: tuple[str, ...], rank: int) -> None:
    assert said(fused, *lines, rank=rank) is None


def test_what_neither_bytes_nor_multiplications_hold_up_is_another_reason() -> None:
    lines = DOWN, LARGER, f"ROOT {UP}"
    assert said(ADDING, *lines, rank=512, reached=0.3) is None
