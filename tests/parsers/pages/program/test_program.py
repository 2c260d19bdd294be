"""What compiled programs take, by their text: small programs of our own, and those whose times others measured."""

from __future__ import annotations

import gzip
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median

import pytest

from tests.parsers.formats.mosaic.compiled import archive
from tpuprof.parsers.base.record import replace
from tpuprof.parsers.formats.hlo.modules import HloModule
from tpuprof.parsers.formats.hlo.parse import read_module_text
from tpuprof.parsers.pages.program.arrays import ProgramArray, program_arrays
from tpuprof.parsers.pages.program.ops import (
    IN_BRANCH,
    NO_ESTIMATE,
    NO_TRIPS,
    RAGGED,
    SLIDING,
    SPARSE_CORE,
    ProgramOp,
    ProgramRow,
    Total,
    program_ops,
)
from tpuprof.tui.cli.main import main

V6E = "TPU v6e"
LAYOUT = "{1,0:T(8,128)(2,1)}"


def ops_of(text: str) -> dict[str, ProgramOp]:
    return {op.name: op for op in program_ops(module_of(text), V6E)}


def module_of(text: str) -> HloModule:
    return HloModule(read_module_text("program", text.splitlines(keepends=True)))


def arrays_of(text: str) -> dict[str, ProgramArray]:
    """Arrays by name, whose bytes are those of all ops."""
    module = module_of(text)
    ops = program_ops(module, V6E)
    arrays = program_arrays(module, ops)
    of_ops = sum(op.streamed_bytes * (1 if op.trips is None else op.trips) for op in ops)
    assert sum(array.moved_bytes for array in arrays) == of_ops
    return {array.name: array for array in arrays}


def program(body: str, before: str = "") -> str:
    return f"HloModule jit_f, is_scheduled=true\n\n{before}\nENTRY %main () -> () {{\n{body}\n}}\n"


def window(iteration: Sequence[int], left: Sequence[int], right: Sequence[int], out: Sequence[int]) -> str:
    bounds = {"iteration_bounds": iteration, "input_window_bounds": left}
    bounds |= {"kernel_window_bounds": right, "output_window_bounds": out}
    config = {key: [str(bound) for bound in listed] for key, listed in bounds.items()}
    used = [{"memory_space": "1", "offset": "0", "size": "4096"}]
    return json.dumps({"window_config": config, "used_scoped_memory_configs": used})


def test_a_product_streams_its_operands_as_its_tiles_say() -> None:
    """By hand: 4 windows of features, 2 of rows, 4 of the contraction; each step loads a window of either operand."""
    config = window((4, 2, 4), (64, 2), (32, 2), (64, 2))
    text = program(
        f"  %a = bf16[1024,1024]{LAYOUT} parameter(0)\n  %b = bf16[1024,1024]{LAYOUT} parameter(1)\n"
        f"  ROOT %c = bf16[1024,1024]{LAYOUT} convolution(%a, %b), dim_labels=bf_io->bf, backend_config={config}"
    )
    (op,) = ops_of(text).values()
    assert op.tiles is not None
    assert (op.flops, op.hbm_bytes, op.tiles.block) == (2 * 1024**3, 3 * 2 * 1024**2, (512, 256, 256))
    assert [read.streams for read in op.reads] == [4, 2]
    assert op.streamed_bytes == (4 + 2 + 1) * 2 * 1024**2
    assert op.bound_ps == round(max(2 * 1024**3 / 918e12, 6 * 1024**2 / 1638e9) * 1e12)
    assert not op.reason
    assert op.bound_ps <= op.guess.low < op.guess.high
    ragged = config[:-1] + ', "convolution_algorithm_config": {"num_groups_in_ragged_dot": "8"}}'
    (op,) = ops_of(text.replace(config, ragged)).values()
    assert (op.flops, op.reason) == (2 * 1024**3 // 8, RAGGED)  # its groups share the rows


@pytest.mark.parametrize(
    ("name", "flops", "streams", "written"),
    [
        ("matmul", 2 * 2048 * 1024 * 2048, {"x.1": 16, "y.1": 16}, 2048 * 2048 * 2),  # 16 by 16 blocks of the result
        ("attention", 4 * 4 * 2048 * 2048 * 256, {"q.1": 1, "k.1": 16, "v.1": 16}, 4 << 20),
        ("wait", 0, {"x.1": 1}, 16 << 20),  # it copies the array itself
        ("gather", 0, {"rows.1": 1, "copy": 0}, 1 << 20),  # numbers that it gets say what else it reads
    ],
)
def test_a_kernel_moves_the_blocks_that_its_grid_copies(
    name: str, flops: int, streams: Mapping[str, int], written: int
) -> None:
    (op,) = (op for op in program_ops(archive.program(name), V6E) if op.category == "kernel")
    assert (op.flops, {read.name: read.streams for read in op.reads}, op.writes) == (flops, streams, (written,))
    assert op.hbm_bytes == op.streamed_bytes and op.bound_ps == max(op.compute_ps or 0, op.hbm_ps or 0)


LOOP = f"""%body (t: (s32[], bf16[64,1024])) -> (s32[], bf16[64,1024]) {{
  %t = (s32[], bf16[64,1024]{LAYOUT}) parameter(0)
  %one = s32[] constant(1)
  %zero = s32[] constant(0)
  %i = s32[] get-tuple-element(%t), index=0
  %next = s32[] add(%i, %one)
  %x = bf16[64,1024]{LAYOUT} get-tuple-element(%t), index=1
  %part = bf16[8,1024]{LAYOUT} dynamic-slice(%x, %i, %zero), dynamic_slice_sizes={{8,1024}}
  %put = bf16[64,1024]{LAYOUT} dynamic-update-slice(%x, %part, %i, %zero)
  ROOT %r = (s32[], bf16[64,1024]{LAYOUT}) tuple(%next, %put)
}}

%condition (t: (s32[], bf16[64,1024])) -> pred[] {{
  %t.1 = (s32[], bf16[64,1024]{LAYOUT}) parameter(0)
  %i.1 = s32[] get-tuple-element(%t.1), index=0
  %end = s32[] LIMIT
  ROOT %less = pred[] compare(%i.1, %end), direction=LT
}}
"""


OFFLOADED = f"""
%parts (table: bf16[4096,1024], rows: s32[64], new: bf16[64,1024]) -> bf16[64,1024] {{
  %table = bf16[4096,1024]{LAYOUT} parameter(0)
  %rows = s32[64]{{0:T(128)}} parameter(1)
  %new = bf16[64,1024]{LAYOUT} parameter(2)
  ROOT %OPCODE = bf16[SIZE,1024]{LAYOUT} OPCODE(%table, %rows, %new)
}}, execution_thread="sparsecore"
"""


@pytest.mark.parametrize(("opcode", "rows"), [("gather", 64), ("scatter", 4096), ("multiply", 4096)])
@pytest.mark.parametrize("is_updated", [True, False])
def test_what_a_sparse_core_takes_parts_of_is_not_moved_whole(opcode: str, rows: int, is_updated: bool) -> None:
    """However the operation is begun; it runs beside others, and nothing is claimed of its time."""
    arrays = f"bf16[4096,1024]{LAYOUT}, s32[64]{{0:T(128)}}, bf16[64,1024]{LAYOUT}"
    begun = f"(({arrays}), bf16[{rows},1024]{LAYOUT}, u32[])"
    first = "((), (), u32[]) async-start()" if is_updated else f"{begun} async-start(%t, %i, %n)"
    text = program(
        f"  %t = bf16[4096,1024]{LAYOUT} parameter(0)\n  %i = s32[64]{{0:T(128)}} parameter(1)\n"
        f"  %n = bf16[64,1024]{LAYOUT} parameter(2)\n  %start = {first}, calls=%parts\n"
        f"  %update = {begun} async-update(%start{', %t, %i, %n' if is_updated else ''})\n"
        f"  ROOT %done = bf16[{rows},1024]{LAYOUT} async-done(%update)",
        OFFLOADED.replace("OPCODE", opcode).replace("SIZE", str(rows)),
    )
    ops = ops_of(text)
    part, whole = 64 * 1024 * 2, 4096 * 1024 * 2
    written, read = {"gather": (part, 2 * part), "scatter": (part + 512, 2 * part + 512)}.get(
        opcode, (whole, whole + part)
    )
    assert sum(sum(op.writes) for op in ops.values()) == written
    assert sum(op.hbm_bytes for op in ops.values()) == written + read + 512
    assert [op.bound_ps for op in ops.values()] == [0, 0] and ops["update"].reason == SPARSE_CORE
    assert sum(array.moved_bytes for array in arrays_of(text).values()) == written + read + 512


@pytest.mark.parametrize(("limit", "trips"), [("constant(8)", 8), ("custom-call(), custom_call_target=x", None)])
def test_a_loop_multiplies_by_its_trips_and_an_update_in_place_writes_its_slice(limit: str, trips: int | None) -> None:
    text = program(
        f"  %x.1 = bf16[64,1024]{LAYOUT} parameter(0)\n  %begin = s32[] constant(0)\n"
        f"  %given = (s32[], bf16[64,1024]{LAYOUT}) tuple(%begin, %x.1)\n"
        f"  ROOT %loop = (s32[], bf16[64,1024]{LAYOUT}) while(%given), condition=%condition, body=%body",
        LOOP.replace("LIMIT", limit),
    )
    ops = ops_of(text)
    assert {ops[name].trips for name in ("part", "put")} == {trips}
    assert (ops["part"].hbm_bytes, ops["put"].hbm_bytes) == (2 * 8 * 1024 * 2 + 8, 2 * 8 * 1024 * 2 + 8)
    assert ops["put"].reason == (NO_ESTIMATE if trips else NO_TRIPS)
    assert ops["put"].certain_trips == (trips or 0)
    arrays = arrays_of(text)
    assert arrays["part"].least_bytes == arrays["part"].moved_bytes, "made anew in each trip, and read once there"
    carried = arrays["x.1"]
    assert carried.written_by == ["put"] and carried.written_bytes == 8 * 1024 * 2 * (trips or 1)


def test_the_most_of_the_peak_is_said_where_no_other_flops_may_run() -> None:
    given = f"  %a = bf16[1024,1024]{LAYOUT} parameter(0)\n  %b = bf16[1024,1024]{LAYOUT} parameter(1)\n"
    product = ops_of(program(f"{given}  ROOT %c = bf16[1024,1024]{LAYOUT} convolution(%a, %b), dim_labels=bf_io->bf"))[
        "c"
    ]
    row = ProgramRow("jit_f", "f.txt", V6E, None, total=Total(1, 1, bound_ps=4, compute_ps=1, hbm_ps=4))
    assert replace(row, ops=[product]).most_of_peak == 0.25
    for changes in ({"category": "kernel", "flops": 0}, {"trips": None}, {"reason": IN_BRANCH}):
        assert replace(row, ops=[product, replace(product, **changes)]).most_of_peak is None


def test_an_array_is_one_in_a_branch_and_in_what_is_called() -> None:
    shape = f"bf16[64,1024]{LAYOUT}"
    branch = f"%NAME (t: ({shape})) -> {shape} {{\n  %t.NAME = ({shape}) parameter(0)\n"
    branch += f"  %e.NAME = {shape} get-tuple-element(%t.NAME), index=0\n  ROOT %r.NAME = {shape} negate(%e.NAME)\n}}\n"
    called = f"%called (c: {shape}) -> {shape} {{\n  %c = {shape} parameter(0)\n  ROOT %d = {shape} negate(%c)\n}}\n"
    body = f"  %x.1 = {shape} parameter(0)\n  %p = pred[] parameter(1)\n  %given = ({shape}) tuple(%x.1)\n"
    body += f"  %q = {shape} conditional(%p, %given, %given), branch_computations={{%yes, %no}}\n"
    body += f"  ROOT %called.1 = {shape} call(%x.1), to_apply=%called"
    text = program(body, branch.replace("NAME", "yes") + branch.replace("NAME", "no") + called)
    assert sorted(arrays_of(text)["x.1"].read_by) == ["d", "r.no", "r.yes"]


@pytest.mark.shared
def test_arrays_of_programs_as_others_found_them(shared: Path) -> None:
    """What is read twice, what tiles stream, an accumulator that a loop writes a slice of at a time."""
    paths = {path.name.removesuffix(".hlo.gz"): path for path in (shared / "program/hlo").glob("*.hlo.gz")}
    found = {name: arrays_of(gzip.decompress(path.read_bytes()).decode()) for name, path in paths.items()}
    assert found["rmsnorm"]["x.1"].read_by == ["fusion.2", "fusion"] and found["rmsnorm"]["x.1"].reads == 2
    logits = found["cross_entropy"]["fusion[1]"]
    assert (logits.shape, logits.written_by, logits.reads) == ("bf16[8192,128256]", ["fusion"], 2)
    assert {*logits.read_by} == {"exponential_reduce_fusion", "select_reduce_fusion"}
    assert [found["gemm"][name].reads for name in ("a.1", "b.1")] == [14, 6]
    stored = found["gmm"]["broadcast_in_dim.3"]
    assert stored.size_bytes == 101_449_728 and stored.written_bytes == stored.size_bytes + 128 * 786_432


@pytest.mark.shared
def test_programs_that_others_measured(shared: Path) -> None:
    """No bound lies above the time measured; what is told lies near it; every product's tiles divide out."""
    measured = json.loads((shared / "program/measured.json").read_text())
    errors, products, tiled = [], 0, 0
    for path in sorted(shared.glob("program/*/*.hlo.gz")):
        ops = list(ops_of(gzip.decompress(path.read_bytes()).decode()).values())
        products += sum(op.category == "product" for op in ops)
        tiled += sum(op.category == "product" and op.tiles is not None and bool(op.tiles.axes) for op in ops)
        time = measured.get(path.name.removesuffix(".hlo.gz"))
        if time is not None:
            truth = time.get("device") or time["wall"] - 0.15
            assert sum((op.bound_ps or 0) * op.certain_trips for op in ops) <= truth * 1e9, path.name
            if not any(op.reason == SLIDING for op in ops):
                low, high = (sum(op.guess[end] * op.certain_trips for op in ops) for end in (0, 1))
                errors.append(abs((low + high) / 2e9 / truth - 1))
    assert (products, tiled) == (80, 80)
    assert (len(errors), sum(error <= 0.1 for error in errors)) == (37, 34)
    assert median(errors) < 0.03


def test_the_report_says_what_is_least_and_what_is_told_and_why_something_is_not(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A text that is packed, the same twice, one for a CPU, and one that is cut."""
    product = f"  ROOT %c = bf16[1024,1024]{LAYOUT} convolution(%a, %b), dim_labels=bf_io->bf"
    given = f"  %a = bf16[1024,1024]{LAYOUT} parameter(0)\n  %b = bf16[1024,1024]{LAYOUT} parameter(1)\n"
    text = program(f"{given}{product}, backend_config={window((4, 2, 4), (64, 2), (32, 2), (64, 2))}")
    cut, other = text[:-4], text.replace(":T(8,128)(2,1)", "")
    paths = [tmp_path / f"module_000{number}.jit_f.cl_1.after_optimizations.txt" for number in range(4)]
    for path, held in zip(paths, (text, text, cut, other), strict=True):
        path.write_text(held)
    found = {}
    packed = tmp_path / "a.hlo.gz"
    packed.write_bytes(gzip.compress(text.encode()))
    for name, path in zip("acd", (packed, *paths[2:]), strict=True):
        assert main(["report", "program", str(path), "--device", "v6e", "--json"]) == 0
        found[name] = json.loads(capsys.readouterr().out)
    assert found["a"]["bound_ms"] < found["a"]["told_ms"]["low"] < found["a"]["told_ms"]["high"]
    assert [read["streams"] for read in found["a"]["ops"][0]["streamed_reads"]] == [4, 2]
    assert found["c"]["bound_ms"] and (found["c"]["told_ms"], found["c"]["fingerprint"]) == (None, None)
    assert "ends before" in found["c"]["unknown"]["told_ms"]
    assert main(["report", "program", str(paths[2])]) == 0
    assert "are of a part of it" in " ".join(capsys.readouterr().out.split()), "with or without the chip"
    assert found["d"]["bound_ms"] is None and "another device" in found["d"]["problem"]
    assert main(["report", "program", str(tmp_path), "--device", "v6e", "--json"]) == 0
    assert [row["count"] for row in json.loads(capsys.readouterr().out)["modules"]] == [2, 1, 1]
