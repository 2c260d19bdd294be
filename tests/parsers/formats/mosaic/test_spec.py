"""What is read of a kernel: of compiled ones against the compiler and arithmetic, of others by hand."""

from __future__ import annotations

import base64
import json
from math import prod

import pytest

from tests.parsers.formats.mosaic.compiled import archive
from tests.parsers.formats.mosaic.made import Kernel
from tests.support.files.mlir import DYNAMIC, Made, Ref, Writer, kernels, program
from tpuprof.parsers.formats.hlo.modules import KERNEL_TARGET, HloModule
from tpuprof.parsers.formats.mosaic.entries import code_of
from tpuprof.parsers.formats.mosaic.sizes import vmem_bytes
from tpuprof.parsers.formats.mosaic.spec import KernelBuffer, KernelSpec, kernel_spec, module_bytes
from tpuprof.parsers.formats.mosaic.work import Amount

MIB = 1 << 20


def only(hlo: HloModule) -> KernelSpec:
    (spec,) = kernels(hlo)
    return spec


def compiled(name: str) -> KernelSpec:
    return only(archive.program(name))


def blocks(spec: KernelSpec) -> list[tuple[str, str, tuple[int, ...], int | None]]:
    return [(each.role, each.name, each.block, each.buffers) for each in spec.buffers]


def copied(spec: KernelSpec) -> list[int | None]:
    return [each.copied_bytes for each in spec.buffers if each.role in ("prefetch", "input", "output")]


# --- compiled kernels


def test_a_matmul_says_all_of_itself() -> None:
    spec = compiled("matmul")
    assert spec.reason == ""
    assert (spec.grid, spec.steps) == ((16, 16, 8), 2048)
    assert spec.metadata == (("kernel_metadata", '{\n"variant":"128"\n}'),)
    assert spec.vmem_limit_bytes == 32 * MIB
    block = (128, 128)
    assert blocks(spec) == [
        ("input", "x", block, 2),
        ("input", "y", block, 2),
        ("output", "", block, 2),
        ("scratch", "", block, 1),
    ]
    assert [each.element for each in spec.buffers] == ["bf16", "bf16", "bf16", "f32"]
    assert {each.space for each in spec.buffers} == {"vmem"}
    assert [each.array for each in spec.buffers] == [(2048, 1024), (1024, 2048), (2048, 2048), None]


@pytest.mark.parametrize("name", ["matmul", "attention", "causal", "gather", "wait", "pipeline"])
def test_buffers_take_what_the_compiler_set_aside(name: str) -> None:
    spec = compiled(name)
    assert spec.bytes_in("vmem") == spec.used_vmem_bytes


def test_what_the_compiler_takes_besides_are_the_spills() -> None:
    spec, said = compiled("spill"), archive.said("v5e-spill")
    spilled = sum(size for name, space, size in said.allocations if space == "vmem" and name.endswith("_spill"))
    assert spilled and spec.used_vmem_bytes is not None
    assert spec.bytes_in("vmem") == 4 * 640 * 128 * 4 == spec.used_vmem_bytes - spilled


@pytest.mark.parametrize(
    ("name", "flops"),
    [
        ("matmul", 2 * 2048 * 1024 * 2048),
        ("attention", 8 * 2 * 2 * 2048 * 2048 * 128),
        ("causal", 8 * 2 * 2 * 128 * 128 * 128 * (16 * 17 // 2)),
        ("gather", 0),
        ("spill", 0),
        ("wait", 0),
        ("pipeline", 2 * 512 * 256 * 512),
    ],
)
def test_work_is_the_arithmetic_of_the_shapes(name: str, flops: int) -> None:
    assert compiled(name).matrix_flops == Amount(flops)


def test_blocks_that_stay_are_copied_once() -> None:
    x, y, o, _ = compiled("matmul").buffers
    assert (x.fetches, y.fetches, o.fetches) == (2048, 2048, 256)
    assert (x.copied_bytes, o.copied_bytes) == (2048 * 128 * 128 * 2, 2048 * 2048 * 2)


def test_rows_that_prefetched_numbers_choose_are_unknown() -> None:
    spec = compiled("gather")
    rows, count, x, o = spec.buffers
    assert [each.role for each in spec.buffers] == ["prefetch", "prefetch", "input", "output"]
    assert (rows.space, rows.array, count.array) == ("smem", (64,), (1,))
    assert (x.fetches, x.copied_bytes, x.buffers) == (None, None, 2)
    assert o.copied_bytes == 64 * 8 * 512 * 4
    assert spec.bytes_in("smem") == 65 * 4


def test_an_array_that_stays_is_copied_by_the_kernel() -> None:
    spec = compiled("wait")
    x, o, buffer, semaphore = spec.buffers
    assert (x.space, x.buffers, x.copied_bytes) == ("any", 0, 8192 * 512 * 4)
    assert (o.copied_bytes, buffer.role, buffer.block) == (8192 * 512 * 4, "scratch", (64, 512))
    assert (semaphore.element, semaphore.space, semaphore.bytes) == ("dma_semaphore", "semaphore_mem", None)


def test_lines_run_as_often_as_the_steps_that_meet_their_condition() -> None:
    runs = {tuple(int(place.rpartition(":")[2]) for place in places): n for places, n in compiled("matmul").runs}
    assert runs[15, 24] == (2048,)  # the product, in a function of its own
    # the sum is set to zero in the first of 8 steps, and written to in each, for which JAX names the first store too
    assert (runs[21,], runs[21, 24]) == ((256,), (2048,))
    assert runs[28,] == (256,)
    assert not compiled("gather").runs  # prefetched numbers say which branch runs


def test_an_emitted_pipeline_names_the_arrays_of_its_buffers() -> None:
    spec = compiled("pipeline")
    pipeline = [each for each in spec.buffers if each.role == "pipeline"]
    assert [(each.name, each.is_output, each.number, each.buffers) for each in pipeline] == [
        *(("x", False, 0, 3), ("y", False, 1, 1), ("", True, 0, 2))
    ]
    assert [each.block for each in pipeline] == [(128, 128), (128, 256), (128, 256)]
    # of a grid of 4, 2, 2 the last changes fastest: x and y have another block in each step, o in every second one
    assert copied(spec) == [16 * 128 * 128 * 4, 16 * 128 * 256 * 4, 8 * 128 * 256 * 4]


def test_a_loop_over_prefetched_lengths_leaves_the_flops_unknown() -> None:
    spec = compiled("ragged")
    assert spec.matrix_flops.value is None and "a loop's trip count" in spec.matrix_flops.reason
    assert blocks(spec)[2] == ("input", "y", (128, 128), 1)  # it's the same in each step


# --- made ones


def copy(grid: tuple[int, ...] = (4,), bounds: tuple[int, ...] = (8, 128), moves: bool = True) -> Kernel:
    """A kernel that sees block i of its input and of its output in step i."""
    kernel = Kernel(grid)
    for _ in range(2):
        kernel.argument(bounds, "f32")
        zero, made = kernel.constant(0)
        kernel.window(bounds, [zero], [kernel.indices[0] if moves else made, made])
    return kernel


def spec_of(kernel: Kernel, array: str = "f32[32,128]", result: str = "f32[32,128]") -> KernelSpec:
    return only(program(kernel.module(), [array], result))


def test_another_call_is_no_kernel() -> None:
    hlo = program(copy().module(), ["f32[32,128]"], "f32[32,128]")
    proto = hlo.instruction_proto("kernel.7")
    assert proto is not None and kernel_spec(hlo, proto) is not None
    proto.custom_call_target = b"Sharding"
    assert kernel_spec(hlo, proto) is None and not kernels(hlo)


def test_one_block_in_all_steps_has_one_buffer_and_is_copied_once() -> None:
    moving, fixed = spec_of(copy()).buffers[0], spec_of(copy(moves=False)).buffers[0]
    assert (moving.buffers, moving.fetches, moving.copied_bytes) == (2, 4, 4 * 8 * 128 * 4)
    assert (fixed.buffers, fixed.fetches, fixed.copied_bytes) == (1, 1, 8 * 128 * 4)


def test_an_array_that_is_in_vmem_has_no_buffers() -> None:
    first, second = spec_of(copy(), "f32[32,128]{1,0:T(8,128)S(1)}").buffers
    assert (first.buffers, first.copied_bytes) == (0, 0)
    assert second.buffers == 2


def test_what_reaches_over_the_end_of_an_array_is_not_copied() -> None:
    first = spec_of(copy(), "f32[30,128]").buffers[0]
    assert (first.copied_bytes, first.bytes) == (30 * 128 * 4, 8 * 128 * 4)


def test_a_block_that_comes_back_is_copied_again() -> None:
    kernel = copy((3, 2))
    two, divisor = kernel.constant(2)
    rest = Ref(kernel.writer.integer_type(32))
    kernel.argument((8, 128), "f32")
    body = [two, Made("arith.remsi", [kernel.indices[0], divisor], [rest])]
    kernel.window((8, 128), body, [rest, divisor])
    spec = only(program(kernel.module(), ["f32[32,128]", "f32[32,128]"], "f32[16,384]"))
    assert [each.fetches for each in spec.buffers] == [3, 3, 3]
    assert spec.buffers[2].copied_bytes == 3 * 4096


def test_a_grid_known_when_the_program_runs_comes_before_the_operands() -> None:
    spec = only(program(copy((DYNAMIC,)).module(), ["s32[]", "f32[32,128]"], "f32[32,128]"))
    assert (spec.grid, spec.steps) == ((None,), None)
    assert (spec.buffers[0].number, spec.buffers[0].name, spec.buffers[0].array) == (1, "y", (32, 128))
    assert (spec.buffers[0].fetches, spec.buffers[0].buffers) == (None, 2)


def test_a_kernel_without_a_grid_gets_whole_arrays_once() -> None:
    kernel = Kernel()
    for _ in range(2):
        kernel.argument((32, 128), "f32")
    spec = spec_of(kernel)
    assert (spec.grid, spec.steps) == ((), 1)
    assert [(each.buffers, each.copied_bytes) for each in spec.buffers] == [(1, 32 * 128 * 4)] * 2


def test_memory_that_the_call_does_not_limit_has_no_limit() -> None:
    assert spec_of(copy()).vmem_limit_bytes is None and spec_of(copy()).used_vmem_bytes is None


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("", "the program does not hold its Mosaic module"),
        ("é", "it is not written in base 64"),
        (base64.b64encode(b"module { }").decode(), "it is not written in MLIR's bytecode"),
        (base64.b64encode(b"ML\xefR\x0dMLIR\0").decode(), "it has version 6 of MLIR's bytecode"),
        (base64.b64encode(b"ML\xefR\x01MLIR\0").decode(), "it lacks a part"),
        (base64.b64encode(copy().module()[:-9]).decode(), "it ends too early"),
    ],
)
def test_a_module_that_is_not_read_leaves_the_rest_and_says_why(body: str, reason: str) -> None:
    spec = only(program(body, ["f32[32,128]"], "f32[32,128]"))
    assert reason in spec.reason
    assert (spec.grid, spec.buffers, spec.bytes_in("vmem")) == (None, (), None)
    assert spec.matrix_flops == Amount(None, spec.reason)


def test_a_kernel_with_other_arguments_than_its_call_is_refused() -> None:
    kernel = copy()
    kernel.argument((8, 128), "f32")
    assert "other inputs and outputs" in spec_of(kernel).reason
    kernel.scratch = 9
    assert "fewer arguments" in spec_of(kernel).reason


def test_a_module_without_a_kernel_is_refused() -> None:
    writer = Writer()
    module = writer.module([writer.function("helper", [], [Made("func.return")])])
    assert "no function that is a kernel" in only(program(module, ["f32[8]"], "f32[8]")).reason


@pytest.mark.parametrize(
    ("dimensions", "element", "size"),
    [  # the sizes of windows that the compiler allocates for a v5e
        *(((8, 1, 128), "f32", 4096), ((8, 2, 100), "f32", 8192), ((8, 3, 100), "f32", 16384)),
        *(((8, 5, 200), "f32", 65536), ((8, 8, 130), "f32", 65536), ((8, 12, 100), "f32", 65536)),
        *(((8, 20, 100), "f32", 98304), ((16, 256), "f32", 16384), ((8, 3, 100), "bf16", 8192)),
        *(((8, 5, 200), "bf16", 32768), ((8, 12, 100), "bf16", 32768), ((8, 20, 100), "i8", 24576)),
        *(((DYNAMIC, 128), "f32", None), ((8, 128), "dma_semaphore", None)),
    ],
)
def test_blocks_are_padded_as_the_compiler_does(dimensions: tuple[int, ...], element: str, size: int | None) -> None:
    assert vmem_bytes(dimensions, element) == size


def test_bytes_of_a_buffer_need_both_its_size_and_their_number() -> None:
    plain = KernelBuffer("input", 0, False, "x", (8,), (8, 128), "f32", "vmem", 2, prod((8, 128, 4)))
    assert plain.total_bytes == 8192
    assert KernelBuffer("input", 0, False, "x", (8,), (8, 128), "f32", "", None, 4096).total_bytes is None


def test_a_kernel_is_the_same_where_its_file_has_another_name() -> None:
    """And no longer where its arithmetic is other."""
    hlo = archive.program("matmul")
    calls = (one for part in hlo.proto.hlo_module.computations for one in part.instructions)
    (config,) = (hlo.backend_config(one) for one in calls if one.custom_call_target == KERNEL_TARGET)
    data = module_bytes(json.loads(config)["custom_call_config"])
    moved, other = data.replace(b"kernels.py", b"renamed.py"), data.replace(b"matmul", b"addmul")
    assert moved != data and code_of(moved) == code_of(data) != code_of(other)
