"""Parts as other libraries and compilers spell them: copies, gathers and collectives that are inside fusions."""

from __future__ import annotations

from dataclasses import dataclass

from tests.demo.profile.hlo_cost import Traffic
from tests.insight.simulator.blocks import (
    collective,
    dense,
    everyone,
    finish,
    hbm_ps,
    kernel,
    matrix_ps,
    part_of,
    permute,
    pointwise,
    product,
    start_collective,
    wire_ps,
)
from tests.insight.simulator.code import OVERHEAD_PS, Code, Groups, Value, array, dims_of, scalar, size_of, tuple_of
from tests.insight.simulator.parts import Part, Placed
from tests.insight.simulator.stack import emit_all
from tests.insight.simulator.workloads import Pipeline


@dataclass(frozen=True, slots=True)
class Turned(Placed):
    """Copies into another layout, each fused with the bitcast after it."""

    bad: bool = True
    count: int = 1
    rows: int = 8192
    width: int = 2048
    base: str = "copy_bitcast_fusion"
    scope: str = "transpose"
    source: str = "layers.py:31"

    def emit_here(self, code: Code, x: Value) -> None:
        for _ in range(self.count if self.bad else 0):
            value = code.param("bf16", self.rows, self.width)
            with code.fused([value]) as inside:
                moved = code.emit("copy", array("bf16", self.rows, self.width, order=(0, 1)), inside)
                root = code.emit("bitcast", array("bf16", self.width, self.rows), [moved])
            turned = code.fusion(root, [value], "kLoop", self.base)
            code.run(turned, hbm_ps(code, 2 * size_of(value), 0.6) + OVERHEAD_PS)


@dataclass(frozen=True, slots=True)
class Taken(Placed):
    """Rows of a table by index, reshaped and converted in one fusion; each row waits for its own if it is bad."""

    bad: bool = True
    rows: int = 65_536
    width: int = 128
    table: int = 262_144
    ns_a_row: float = 60.0
    adds: bool = False
    base: str = "gather_fusion"
    scope: str = "take"
    source: str = "layers.py:12"

    def emit_here(self, code: Code, x: Value) -> None:
        operands = [code.param("bf16", self.table, self.width), code.param("s32", self.rows)]
        if self.adds:
            operands.append(code.param("bf16", self.rows, self.width))
        with code.fused(operands) as inside:
            if self.adds:
                root = code.emit("scatter", operands[0].shape, inside)
            else:
                rows = code.emit("gather", array("bf16", self.rows, self.width), inside)
                folded = code.emit("reshape", array("bf16", self.rows // 8, 8, self.width), [rows])
                root = code.emit("convert", array("f32", self.rows // 8, 8, self.width), [folded])
        value = code.fusion(root, operands, "kCustom" if self.adds else "kLoop", self.base)
        moved = self.rows * self.width * 2
        traffic = Traffic(2 * moved if self.adds else moved, moved if self.adds else 2 * moved)
        good = hbm_ps(code, traffic.hbm, 0.7)
        code.run(value, self.rows * self.ns_a_row * 1000 if self.bad else good, flops=0, traffic=traffic)


@dataclass(frozen=True, slots=True)
class Passes(Placed):
    """An update of f32 arrays in several fusions, each through HBM; in one where it is not bad."""

    bad: bool = True
    rows: int = 16_384
    width: int = 2048
    bases: tuple[str, ...] = ("fusion", "sqrt_divide_fusion", "multiply_subtract_fusion", "add_bitcast_fusion")
    kind: str = "f32"
    scope: str = "scale_by_moments/mul"
    source: str = "transform.py:402"

    def emit_here(self, code: Code, x: Value) -> None:
        first, other = (code.param(self.kind, self.rows, self.width) for _ in range(2))
        if not self.bad:
            pointwise(code, [first, other], ("multiply", "add") * len(self.bases), "fusion")
            return
        value = first
        for base in self.bases:
            value = pointwise(code, [value, other], ("multiply", "add"), base)


@dataclass(frozen=True, slots=True)
class Casts(Placed):
    """Weights that are cast each time they are used, by bare converts; not where a cast copy is kept."""

    bad: bool = True
    rows: int = 16_384
    width: int = 2048
    scope: str = "promote_dtype/convert_element_type"
    source: str = "dtypes.py:93"

    def emit_here(self, code: Code, x: Value) -> None:
        if self.bad:
            weights = code.param("f32", self.rows, self.width)
            value = code.emit("convert", array("bf16", self.rows, self.width), [weights], "convert_element_type")
            code.run(value, hbm_ps(code, size_of(weights, value)) + OVERHEAD_PS)


@dataclass(frozen=True, slots=True)
class Einsum(Placed):
    """Attention by two products with a softmax in f32 between them, in HBM; a kernel where it is not bad."""

    bad: bool = True
    heads: int = 16
    length: int = 2048
    depth: int = 128
    kernel: str = "mha_forward"
    scope: str = "attend"
    source: str = "attention.py:204"

    def emit_here(self, code: Code, x: Value) -> None:
        flops = 4 * self.heads * self.length * self.length * self.depth
        queries = part_of(code, x, self.heads, self.length, self.depth)
        if not self.bad:
            size = 4 * size_of(queries)
            ps = max(flops / (code.device.flops * 0.72) * 1e12, hbm_ps(code, size))
            with code.at("pallas_call", self.source):
                kernel(code, [queries], self.kernel, ps, flops, size)
            return
        keys = part_of(code, x, self.heads, self.depth, self.length)
        with code.at("bqhd,bkhd->bhqk/dot_general", self.source):
            scores = product(code, queries, keys, "fusion", out="f32")
        with code.at("reduce_max", self.source):
            self._most(code, scores)
        with code.at("exp", self.source):
            shares = pointwise(code, [scores], ("subtract", "multiply", "divide"), "divide_convert_fusion", "f32")
        with code.at("convert_element_type", self.source):
            halved = self._converted(code, shares)
        with code.at("bhqk,bkhd->bqhd/dot_general", self.source):
            product(code, halved, queries, "fusion")

    def _most(self, code: Code, scores: Value) -> None:
        with code.fused([scores]) as inside:
            lowest = code.emit("constant", scalar("f32"))
            root = code.emit("reduce", array("f32", self.heads, self.length), [inside[0], lowest])
            root.dimensions.append(2)
        value = code.fusion(root, [scores], "kLoop", "bitcast_reduce_fusion")
        code.run(value, hbm_ps(code, size_of(scores, value)) + OVERHEAD_PS)

    def _converted(self, code: Code, shares: Value) -> Value:
        value = code.emit("convert", array("bf16", *dims_of(shares)), [shares])
        return code.run(value, hbm_ps(code, size_of(shares, value)) + OVERHEAD_PS)


@dataclass(frozen=True, slots=True)
class Between:
    """A collective that is awaited after some parts, and before the rest of them where it is bad.

    It is spelled as a fusion that starts it and one that awaits it, if `fused`.
    """

    opcode: str
    rows: int
    before: tuple[Part, ...] = ()
    after: tuple[Part, ...] = ()
    bad: bool = False
    fused: bool = False
    scope: str = "shard_map/all_gather"
    source: str = "partitioning.py:140"

    def emit(self, code: Code, x: Value) -> None:
        with code.at(self.scope, self.source):
            shard = code.param("bf16", self.rows, dims_of(x)[-1])
            started = self._start(code, shard) if self.fused else start_collective(code, self.opcode, shard)
        emit_all(code, x, self.before)
        if self.bad:
            self._finish(code, started)
        emit_all(code, x, self.after)
        if not self.bad:
            self._finish(code, started)

    def _start(self, code: Code, shard: Value) -> Value:
        whole = array("bf16", self.rows * code.cores, dims_of(shard)[-1])
        with code.fused([shard]) as inside:
            gathered = code.emit(self.opcode, whole, inside)
            code.attach(gathered, everyone(code))
            root = code.emit("custom-call", tuple_of(shard.shape, whole, *[scalar("u32")] * 7), [inside[0], gathered])
        value = code.fusion(root, [shard], "kCustom", "async-collective-start")
        ps = wire_ps(code, self.opcode, size_of(shard) * code.cores, everyone(code))
        return code.start(value, ps, "link", everyone(code))

    def _finish(self, code: Code, started: Value) -> None:
        with code.at(self.scope, self.source):
            if not self.fused:
                finish(code, started)
                return
            whole = started.shape.tuple_shapes[1]
            with code.fused([started]) as inside:
                root = code.emit("custom-call", whole, inside)
            code.wait(code.fusion(root, [started], "kCustom", "async-collective-done"), started)


@dataclass(frozen=True, slots=True)
class HandedOn:
    """Blocks that go around a ring of cores, one `way` or the other, each awaited after some of the work on the one
    before, or after all of it where it is not bad."""

    rows: int
    before: tuple[Part, ...]
    after: tuple[Part, ...]
    bad: bool = False
    scope: str = "context_parallel/ppermute"
    source: str = "context.py:71"
    way: int = -1

    def emit(self, code: Code, x: Value) -> None:
        route = tuple((core, (core + self.way) % code.cores) for core in range(code.cores))
        for _ in range(code.cores - 1):
            with code.at(self.scope, self.source):
                started = permute(code, code.param("bf16", self.rows, dims_of(x)[-1]), route)
            emit_all(code, x, self.before)
            if not self.bad:
                emit_all(code, x, self.after)
            with code.at(self.scope, self.source):
                finish(code, started)
            if self.bad:
                emit_all(code, x, self.after)
        emit_all(code, x, (*self.before, *self.after))


@dataclass(frozen=True, slots=True)
class GatheredExperts:
    """Experts that gather all tokens, work on theirs by a kernel that declares no work, and scatter the sums."""

    load: tuple[float, ...] = (1.0,)
    bad: bool = True
    hidden: int = 16_384
    tokens: int = 4096
    scope: str = "sparse_block"
    source: str = "sparse.py:77"

    def emit(self, code: Code, x: Value) -> None:
        width = dims_of(x)[-1]
        with code.at(f"{self.scope}/route/all_gather", self.source):
            tokens = collective(code, "all-gather", code.param("bf16", self.tokens // code.cores, width))
        load = self.load if self.bad else (sum(self.load) / len(self.load),)
        with code.at(f"{self.scope}/wi/pallas_call", self.source), code.only_on(load):
            made = kernel(code, [tokens], "mblx_gmm", matrix_ps(code, self.tokens, width, self.hidden) * 2)
        with code.at(f"{self.scope}/route/psum_scatter", self.source):
            collective(code, "reduce-scatter", made)


@dataclass(frozen=True, slots=True)
class Again(Placed):
    """Parts that are computed a second time for the backward pass; not where their results were kept."""

    parts: tuple[Part, ...]
    bad: bool = True
    scope: str = "checkpoint/rematted_computation"
    source: str = "checkpointing.py:44"

    def emit_here(self, code: Code, x: Value) -> None:
        if self.bad:
            emit_all(code, x, self.parts)


@dataclass(frozen=True, slots=True)
class Staged(Pipeline):
    """Stages on cores in a row that send what they have made half way through each turn of a loop."""

    bubbles: bool = False
    width: int = 3072
    hidden: int = 12_288
    name: str = "jit_train_loop_step"

    SCOPE, LOOP, SOURCE = "Layerwise", "vmap/while", "layerwise.py:310"

    def _turn(self, code: Code, x: Value, work: int, route: Groups, busy: tuple[tuple[float, ...], ...]) -> None:
        with code.at("body/block/ffn_in/dot_general", "block.py:18"), code.only_on(loads=busy):
            for _ in range(work):
                y = dense(code, x, self.hidden, "convert_reduce_fusion")
        with code.at("body/shift/ppermute", "layerwise.py:262"):
            started = permute(code, x, route)
        with code.at("body/block/ffn_out/dot_general", "block.py:23"), code.only_on(loads=busy):
            for _ in range(work):
                dense(code, y, self.width, "multiply_add_fusion")
            emit_all(code, x, self.each)
        with code.at("body/shift/ppermute", "layerwise.py:262"):
            finish(code, started)
