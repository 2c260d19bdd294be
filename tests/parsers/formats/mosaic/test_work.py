"""What a kernel does: products, copies, conditions and loops, each against its arithmetic."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import pytest

from tests.parsers.formats.mosaic.made import Kernel
from tests.support.files.mlir import DYNAMIC, Made, Ref
from tpuprof.parsers.base.errors import Damaged
from tpuprof.parsers.formats.mosaic.follow import OpBudget
from tpuprof.parsers.formats.mosaic.kernel import read_kernel
from tpuprof.parsers.formats.mosaic.work import Amount, Work, work_of

EQUAL, LESS, AT_LEAST = 0, 2, 5
ONE = 2 * 8 * 16 * 32


def work(kernel: Kernel) -> Work:
    return work_of(read_kernel(kernel.module()), OpBudget())


def looped(kernel: Kernel, first: Ref, last: Ref, step: Ref) -> Work:
    """What a kernel does with a product in a loop at its end."""
    inside = kernel.inside()
    inside.product(8, 16, 32)
    kernel.loop(first, last, step, inside)
    return work(kernel)


@pytest.mark.parametrize(("predicate", "steps"), [(EQUAL, 5), (LESS, 5), (AT_LEAST, 10)])
def test_a_condition_on_the_grid_is_known(predicate: int, steps: int) -> None:
    kernel = Kernel((3, 5))
    condition = kernel.compared(predicate, kernel.indices[0], kernel.number(1))
    then = kernel.inside()
    then.product(8, 16, 32)
    kernel.under(condition, then)
    assert work(kernel).matrix_flops == Amount(steps * ONE)


def test_the_other_branch_runs_in_the_other_steps() -> None:
    kernel = Kernel((4,))
    condition = kernel.compared(EQUAL, kernel.indices[0], kernel.number(0))
    then, otherwise = kernel.inside(), kernel.inside()
    then.product(8, 16, 32)
    otherwise.product(16, 16, 32)
    kernel.under(condition, then, otherwise)
    assert work(kernel).matrix_flops.value == ONE + 3 * 2 * ONE


def test_conditions_in_conditions_hold_together() -> None:
    kernel = Kernel((4, 4))
    two = kernel.number(2)
    rows, columns = (kernel.compared(LESS, index, two) for index in kernel.indices)
    inner, outer = kernel.inside(), kernel.inside()
    inner.product(8, 16, 32)
    outer.under(columns, inner)
    kernel.under(rows, outer)
    assert work(kernel).matrix_flops.value == 4 * ONE


def test_a_condition_on_loaded_numbers_leaves_the_flops_unknown() -> None:
    kernel = Kernel((4,))
    loaded = kernel.add("memref.load", [], kernel.writer.integer_type(32))
    then = kernel.inside()
    then.product(8, 16, 32)
    kernel.under(kernel.compared(EQUAL, loaded, kernel.number(0)), then)
    found = work(kernel).matrix_flops
    assert found.value is None and "runs only on a condition" in found.reason


def test_a_loop_counts_its_turns() -> None:
    kernel = Kernel((2,))
    found = looped(kernel, kernel.number(1), kernel.number(8), kernel.number(3))
    assert found.matrix_flops.value == 2 * 3 * ONE


def test_a_loop_up_to_an_index_of_the_grid_turns_as_often() -> None:
    kernel = Kernel((5,))
    found = looped(kernel, kernel.number(0), kernel.indices[0], kernel.number(1))
    assert found.matrix_flops.value == (0 + 1 + 2 + 3 + 4) * ONE


def test_a_loop_with_loaded_bounds_has_no_end_that_is_known() -> None:
    kernel = Kernel((5,))
    loaded = kernel.add("memref.load", [], kernel.writer.integer_type(32))
    found = looped(kernel, kernel.number(0), loaded, kernel.number(1)).matrix_flops
    assert found.value is None and "a loop's trip count" in found.reason


def test_a_grid_that_is_not_known_makes_the_amount_unknown_and_not_zero() -> None:
    kernel = Kernel((DYNAMIC, 4))
    kernel.product(8, 16, 32)
    assert work(kernel).matrix_flops == Amount(None, "its grid is known only at run time")


@pytest.mark.parametrize("is_named", [True, False])
def test_a_transposed_side_is_contracted_where_the_op_says(is_named: bool) -> None:
    kernel = Kernel()
    writer = kernel.writer
    operands = [kernel.vector((16, 8)), kernel.vector((16, 32)), kernel.vector((8, 32), "f32")]
    numbers = writer.written("#tpu.dot_dimension_numbers<[0], [0], [1], [1], [0, 1, 1, 1], [], []>")
    said = {"dimension_numbers": numbers} if is_named else {"transpose_lhs": writer.integer(1, 1)}
    kernel.add("tpu.matmul", operands, writer.vector((8, 32), "f32"), **said)
    assert work(kernel).matrix_flops.value == ONE


def test_a_contraction_multiplies_all_its_dimensions() -> None:
    kernel = Kernel((2,))
    writer = kernel.writer
    maps = writer.items(
        [writer.written(f"affine_map<(d0, d1, d2) -> ({each})>") for each in ("d0, d2", "d2, d1", "d0, d1")]
    )
    operands = [kernel.vector((8, 16)), kernel.vector((16, 32)), kernel.vector((8, 32), "f32")]
    kernel.add("vector.contract", operands, writer.vector((8, 32), "f32"), indexing_maps=maps)
    assert work(kernel).matrix_flops.value == 2 * ONE


@pytest.mark.parametrize("into", [True, False])
def test_copies_count_in_both_directions(into: bool) -> None:
    kernel = Kernel((3,))
    there = kernel.argument((4096, 128), "f32", "any")
    here = kernel.argument((64, 128), "f32")
    part = kernel.add("tpu.memref_slice", [there], kernel.writer.memref((64, 128), "f32", "any"))
    semaphore = Ref(kernel.writer.memref((), "dma_semaphore", "semaphore_mem"))
    kernel.arguments.append(semaphore)
    kernel.add("tpu.enqueue_dma", [*((part, here) if into else (here, part)), semaphore])
    assert work(kernel).copied[0].value == 3 * 64 * 128 * 4


def test_a_kernel_that_takes_too_long_says_so() -> None:
    kernel = Kernel((4,))
    found = looped(kernel, kernel.number(0), kernel.number(10**9), kernel.number(1))
    assert found.matrix_flops.value is None and "more steps than are followed" in found.matrix_flops.reason
    assert not found.copied


def test_turns_with_nothing_in_them_take_time_too() -> None:
    kernel = Kernel((4,))
    kernel.loop(kernel.number(0), kernel.number(1 << 30), kernel.number(1), kernel.inside())
    assert "more steps than are followed" in work(kernel).matrix_flops.reason


def test_an_array_of_too_many_dimensions_is_refused() -> None:
    kernel = Kernel((4,))
    kernel.argument([2] * 64, "f32")
    read_kernel(kernel.module())
    kernel.argument([2] * 65, "f32")
    with pytest.raises(Damaged, match="too many dimensions"):
        read_kernel(kernel.module())


OPS: dict[str, Callable[[int, int], int | None]] = {
    "addi": lambda a, b: a + b,
    "subi": lambda a, b: a - b,
    "muli": lambda a, b: a * b,
    "divsi": lambda a, b: None if not b else int(a / b),
    "remsi": lambda a, b: None if not b else a - b * int(a / b),
    "minsi": min,
    "maxsi": max,
    "andi": lambda a, b: a & b,
    "ori": lambda a, b: a | b,
    "xori": lambda a, b: a ^ b,
    "floordivsi": lambda a, b: None if not b else a // b,
    "ceildivsi": lambda a, b: None if not b else -(-a // b),
}


@pytest.mark.parametrize("name", OPS)
def test_integers_are_folded_as_the_machine_does(name: str) -> None:
    from tpuprof.parsers.formats.mosaic.scalars import folded

    for a, b in itertools.product((-7, -1, 0, 2, 9), repeat=2):
        assert folded(name, a, b) == OPS[name](a, b), (name, a, b)
    assert folded(name, None, 3) is None or name in ("andi", "muli")


def test_a_value_from_a_region_is_the_one_of_the_branch_that_runs() -> None:
    kernel = Kernel((4,))
    seven, three = kernel.constant(7), kernel.constant(3)
    chosen = Ref(kernel.writer.integer_type(32))
    condition = kernel.compared(EQUAL, kernel.number(0), kernel.number(1))
    regions: list[tuple[list[Ref], list[Made]]] = [
        ([], [op, Made("scf.yield", [value])]) for op, value in (seven, three)
    ]
    kernel.ops.append(Made("scf.if", [condition], [chosen], regions=regions))
    assert looped(kernel, kernel.number(0), chosen, kernel.number(1)).matrix_flops.value == 4 * 3 * ONE
