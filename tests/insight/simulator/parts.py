"""Parts of programs that are written well or badly: the same work for the same result, at different cost.

A part that is `bad` holds the problem; the same part without it is what the program would be without the problem.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from tests.demo.profile.hlo_cost import Traffic
from tests.insight.simulator.blocks import (
    HOST,
    VMEM,
    across_slices,
    arrive,
    collective,
    dense,
    everyone,
    fetch,
    hbm_ps,
    kernel,
    lookup,
    matrix_ps,
    moved,
    pointwise,
    product,
    relayout,
)
from tests.insight.simulator.code import (
    DCN_BYTES,
    DCN_LATENCY_PS,
    HBM_REACHED,
    OVERHEAD_PS,
    US,
    VECTOR_LANES,
    Code,
    Value,
    array,
    dims_of,
    scalar,
    size_of,
    tuple_of,
)


class Part(Protocol):
    """Something that a program does besides the usual."""

    def emit(self, code: Code, x: Value) -> None:
        """Writes it down; `x` are the activations, [tokens, width]."""


class Placed:
    """A part whose ops all come from one place: its framework scope and its source line."""

    __slots__ = ()

    def emit(self: Any, code: Code, x: Value) -> None:
        """Writes it down there."""
        with code.at(self.scope, self.source):
            self.emit_here(code, x)


@dataclass(frozen=True, slots=True)
class Lookup(Placed):
    """Rows of a table in HBM by index: each row waits for its own access where it is bad."""

    bad: bool = True
    opcode: str = "gather"
    table: int = 262_144
    width: int = 128
    rows: int = 65_536
    ns_a_row: float = 55.0
    times: int = 1
    scope: str = "token_embed/gather"
    source: str = "embedding.py:31"
    base: str = "gather_custom_fusion"

    def emit_here(self, code: Code, x: Value) -> None:
        table = code.param("bf16", self.table, self.width)
        writes = self.opcode in ("scatter", "dynamic-update-slice")
        rows = code.param("bf16", self.rows, self.width) if writes else None
        good = (2 + writes) * self.rows * self.width * 2 / (code.device.hbm_bytes * 0.7) * 1e9 / self.rows
        for _ in range(self.times):
            ns = self.ns_a_row if self.bad else good
            lookup(code, self.opcode, table, self.rows, ns, self.base, rows)


@dataclass(frozen=True, slots=True)
class Slices(Placed):
    """Slices of a cache, one after the other, each by its own op."""

    bad: bool = True
    count: int = 24
    width: int = 1024
    us: float = 9.0
    opcode: str = "dynamic-slice"
    scope: str = "cache/dynamic_slice"
    source: str = "kv_cache.py:58"

    def emit_here(self, code: Code, x: Value) -> None:
        cache = code.param("bf16", 4096, self.width)
        at = code.param("s32", 1)
        for _ in range(self.count):
            if self.opcode == "dynamic-slice":
                value = code.emit(self.opcode, array("bf16", 16, self.width), [cache, at])
                moved = Traffic(16 * self.width * 2, 16 * self.width * 2)
            else:
                rows = code.param("bf16", 16, self.width)
                value = code.emit(self.opcode, cache.shape, [cache, rows, at])
                moved = Traffic(16 * self.width * 2, 16 * self.width * 2)
            code.run(value, self.us * US if self.bad else hbm_ps(code, moved.hbm, 0.7), traffic=moved)


@dataclass(frozen=True, slots=True)
class TinyLoop(Placed):
    """A loop of many turns with ops of microseconds; the same as one fusion where it is not bad."""

    bad: bool = True
    trips: int = 400
    width: int = 256
    us: float = 1.6
    scope: str = "ssm/while"
    source: str = "scan.py:19"

    def emit_here(self, code: Code, x: Value) -> None:
        state = code.param("f32", 8, self.width)
        if not self.bad:
            whole = code.param("f32", 8 * self.trips, self.width)
            pointwise(code, [whole, whole], ("multiply", "add", "multiply"), "multiply_add_fusion")
            return
        with code.loop(self.trips, state, "while") as inside, code.at("body", self.source):
            for name in ("multiply_add_fusion", "tanh_multiply_fusion", "dynamic-slice_fusion"):
                with code.fused([inside, inside]) as within:
                    root = code.emit("multiply", inside.shape, within)
                code.run(code.fusion(root, [inside, inside], "kLoop", name), self.us * US)


@dataclass(frozen=True, slots=True)
class Chain(Placed):
    """Elementwise steps over a large array: one fusion each where it is bad, else one for all."""

    bad: bool = True
    count: int = 5
    rows: int = 16_384
    width: int = 2048
    kind: str = "bf16"
    ops: Sequence[str] = ("add", "multiply", "maximum", "subtract", "multiply", "add", "multiply")
    scope: str = "augment/mul"
    source: str = "augment.py:23"

    def emit_here(self, code: Code, x: Value) -> None:
        first = code.param(self.kind, self.rows, self.width)
        if not self.bad:
            pointwise(code, [first], self.ops[: self.count], "multiply_add_fusion")
            return
        value = first
        for opcode in self.ops[: self.count]:
            made = code.emit(opcode, value.shape, [value, value])
            size = size_of(value)
            value = code.run(made, hbm_ps(code, 2 * size) + OVERHEAD_PS, traffic=Traffic(size, size))


@dataclass(frozen=True, slots=True)
class Kernel(Placed):
    """A Pallas kernel that reaches this share of its roof; `counted` with a cost estimate."""

    reached: float = 0.05
    good: float = 0.7
    bad: bool = True
    counted: bool = True
    flops: float = 0.2e12
    size: int = 64 << 20
    times: int = 1
    base: str = "custom_attention"
    scope: str = "attention/pallas_call"
    source: str = "kernels.py:140"

    def emit_here(self, code: Code, x: Value) -> None:
        share = self.reached if self.bad else self.good
        roof = max(self.flops / code.device.flops, self.size / code.device.hbm_bytes) * 1e12
        counts = (round(self.flops), self.size) if self.counted else (0, 0)
        for _ in range(self.times):
            kernel(code, [x], self.base, roof / share, *counts)


@dataclass(frozen=True, slots=True)
class Relayouts(Placed):
    """Copies that only change an array's layout."""

    bad: bool = True
    count: int = 2
    rows: int = 8192
    width: int = 2048
    scope: str = "attention/transpose"
    source: str = "attention.py:77"

    def emit_here(self, code: Code, x: Value) -> None:
        for _ in range(self.count if self.bad else 0):
            relayout(code, code.param("bf16", self.rows, self.width))


@dataclass(frozen=True, slots=True)
class Products(Placed):
    """Matrix products of these sizes, of arrays in HBM or VMEM; no more than their own work where they are not bad.

    With a `window` they have tiles of that side, of four times that where they are not bad.
    """

    m: int
    k: int
    n: int
    batch: int = 1
    count: int = 1
    bad: bool = True
    precision: str = "default"
    kind: str = "bf16"
    on_chip: bool = False
    window: int = 0
    base: str = "fusion"
    scope: str = "heads/dot_general"
    source: str = "heads.py:52"

    def emit_here(self, code: Code, x: Value) -> None:
        first = (self.batch,) if self.batch > 1 else ()
        for _ in range(self.count):
            kind = self.kind if self.bad else "bf16"
            left, right = code.param(kind, *first, self.m, self.k), code.param(kind, *first, self.k, self.n)
            if self.on_chip:
                left, right = (code.bitcast(value, *dims_of(value), space=VMEM) for value in (left, right))
            level, side = (self.precision, self.window) if self.bad else ("default", 4 * self.window)
            product(code, left, right, self.base, level, pad=self.bad, window=side)


@dataclass(frozen=True, slots=True)
class Prefetch(Placed):
    """Weights that are fetched into VMEM ahead of their use, or only when they are needed where it is bad."""

    bad: bool = True
    rows: int = 4096
    width: int = 2048
    count: int = 2
    sliced: bool = False
    slowness: float = 1.0
    scope: str = "mlp/prefetch"
    source: str = "mlp.py:18"

    def emit_here(self, code: Code, x: Value) -> None:
        for _ in range(self.count):
            weights = code.param("bf16", self.rows, self.width)
            started = fetch(code, weights, VMEM, self.sliced, self.slowness)
            if self.bad:
                arrive(code, started)
                dense(code, x, self.width, "fusion")
            else:
                dense(code, x, self.width, "fusion")
                arrive(code, started)


@dataclass(frozen=True, slots=True)
class Offload(Placed):
    """Activations that go to the host's memory and come back; the program waits for them."""

    bad: bool = True
    rows: int = 8192
    width: int = 2048
    count: int = 1
    scope: str = "offload/device_put"
    source: str = "checkpoint_policy.py:12"

    def emit_here(self, code: Code, x: Value) -> None:
        if not self.bad:
            return
        for _ in range(self.count):
            value = code.param("bf16", self.rows, self.width)
            arrive(code, fetch(code, value, HOST))


@dataclass(frozen=True, slots=True)
class Callback(Placed):
    """A call of a Python function from inside the program: the device waits for what it returns."""

    bad: bool = True
    us: float = 1500.0
    scope: str = "metrics/io_callback"
    source: str = "metrics.py:44"

    def emit_here(self, code: Code, x: Value) -> None:
        if not self.bad:
            return
        token = code.emit("send", array("f32", 8, 128), [x])
        token.is_host_transfer = True
        token.frontend_attributes.map["_xla_host_transfer_handler_name"] = b"tf_rendezvous"
        code.run(token, 3 * US, "host send", 0, Traffic())
        back = code.emit("recv-done", array("f32", 8, 128), [token])
        back.is_host_transfer = True
        back.frontend_attributes.map["_xla_host_transfer_handler_name"] = b"tf_rendezvous"
        code.run(back, self.us * US, "host recv-done", 0, Traffic())


@dataclass(frozen=True, slots=True)
class OnSparseCore(Placed):
    """A collective that a SparseCore carries out beside a product; where it is bad it takes longer than that."""

    bad: bool = True
    us: float = 1500.0
    opcode: str = "all-gather"
    rows: int = 1024
    scope: str = "fsdp/all_gather"
    source: str = "sharding.py:25"

    def emit_here(self, code: Code, x: Value) -> None:
        shard = code.param("bf16", self.rows, dims_of(x)[-1])
        whole = array("bf16", self.rows * code.cores, dims_of(x)[-1])
        shape = tuple_of(tuple_of(shard.shape), whole, scalar("u32"))
        value = code.emit("async-start", shape, [shard], f"{self.opcode}-start")
        ps = self.us * US if self.bad else 5 * US
        started = code.start(value, ps, "sparse core", everyone(code))
        dense(code, x, dims_of(x)[-1], "fusion")
        code.done("async-done", started, whole, self.opcode)


@dataclass(frozen=True, slots=True)
class Barrier:
    """A barrier of all cores, which takes so long beside their waiting where it is bad."""

    bad: bool = True
    us: float = 500.0

    def emit(self, code: Code, x: Value) -> None:
        code.barrier(self.us * US if self.bad else 0)


@dataclass(frozen=True, slots=True)
class Rearranged(Placed):
    """An array that is cut up and joined anew, or padded: ops that only move data, as fast as HBM lets them."""

    bad: bool = True
    rows: int = 16_384
    width: int = 4096
    count: int = 2
    pads: bool = False
    fuses: bool = False
    reached: float = 0.8
    scope: str = "attention/concatenate"
    source: str = "attention.py:83"

    def emit_here(self, code: Code, x: Value) -> None:
        half = array("bf16", self.rows // 2, self.width)
        for _ in range(self.count if self.bad else 0):
            value = code.param("bf16", self.rows, self.width)
            if self.pads:
                zero = code.emit("constant", array("bf16"))
                made = code.emit("pad", array("bf16", self.rows + 128, self.width), [value, zero])
            elif self.fuses:
                with code.fused([value]) as inside:
                    parts = [code.emit("slice", half, inside) for _ in range(2)]
                    root = code.emit("concatenate", value.shape, parts)
                made = code.fusion(root, [value], "kLoop", "slice_concatenate_fusion")
            else:
                parts = [moved(code, code.emit("slice", half, [value]), self.reached) for _ in range(2)]
                made = code.emit("concatenate", value.shape, parts)
            moved(code, made, self.reached)


@dataclass(frozen=True, slots=True)
class VectorProduct(Placed):
    """A product written as multiply and sum, which the vector unit carries out; a dot where it is not bad."""

    bad: bool = True
    m: int = 2048
    k: int = 512
    n: int = 512
    scope: str = "similarity/reduce_sum"
    source: str = "similarity.py:27"

    def emit_here(self, code: Code, x: Value) -> None:
        left, right = code.param("bf16", self.m, self.k), code.param("bf16", self.k, self.n)
        if not self.bad:
            product(code, left, right, "fusion")
            return
        cube = array("bf16", self.m, self.k, self.n)
        with code.fused([left, right]) as inside:
            wide = [code.emit("broadcast", cube, [value]) for value in inside]
            wide[0].dimensions.extend((0, 1))
            wide[1].dimensions.extend((1, 2))
            multiplied = code.emit("multiply", cube, wide)
            zero = code.emit("constant", array("bf16"))
            root = code.emit("reduce", array("bf16", self.m, self.n), [multiplied, zero])
            root.dimensions.append(1)
        value = code.fusion(root, [left, right], "kLoop", "multiply_reduce_fusion")
        work = 2.0 * self.m * self.k * self.n
        code.run(value, work / (VECTOR_LANES * code.device.clock_hz * 0.8) * 1e12, flops=round(work))


@dataclass(frozen=True, slots=True)
class Activations(Placed):
    """Elementwise work on activations, in f32 where it is bad; it may reach less of HBM than it could."""

    bad: bool = True
    rows: int = 16_384
    width: int = 4096
    count: int = 2
    kind: str = "f32"
    reached: float = HBM_REACHED
    base: str = "multiply_rsqrt_fusion"
    scope: str = "final_norm/mul"
    source: str = "norm.py:16"

    def emit_here(self, code: Code, x: Value) -> None:
        for _ in range(self.count):
            value = code.param(self.kind if self.bad else "bf16", self.rows, self.width)
            pointwise(code, [value], ("multiply", "add"), self.base, reached=self.reached if self.bad else HBM_REACHED)


@dataclass(frozen=True, slots=True)
class OnSome:
    """Work that only some cores have, by factor, 0 for none; all have its mean where it is not bad, if `shared`."""

    load: tuple[float, ...]
    bad: bool = True
    shared: bool = True
    m: int = 8192
    n: int = 4096
    base: str = "fusion"
    scope: str = "aux_loss/dot_general"
    source: str = "aux_loss.py:20"

    def emit(self, code: Code, x: Value) -> None:
        even = sum(self.load) / len(self.load) if self.shared else min(self.load)
        with code.at(self.scope, self.source), code.only_on(self.load if self.bad else (even,)):
            dense(code, code.param("bf16", self.m, dims_of(x)[-1]), self.n, self.base)


@dataclass(frozen=True, slots=True)
class Experts:
    """A layer of experts, one group a core: tokens go out, are worked on by a kernel, and come back.

    The kernel declares no work: it depends on how many tokens come.
    """

    load: tuple[float, ...] = (1.0,)
    bad: bool = True
    hidden: int = 4096
    tokens: int = 4096
    rotates: bool = False
    scope: str = "moe"
    source: str = "moe.py:90"

    def emit(self, code: Code, x: Value) -> None:
        width = dims_of(x)[-1]
        groups = everyone(code)
        sent = code.param("bf16", self.tokens, width)
        with code.at(f"{self.scope}/dispatch/all_to_all", self.source):
            sent = collective(code, "all-to-all", sent, groups)
        even = sum(self.load) / len(self.load)
        load = self.load if self.bad else (even,)
        with code.at(f"{self.scope}/experts/ragged_dot", self.source), code.only_on(load, rotates=self.rotates):
            ps = matrix_ps(code, self.tokens, width, self.hidden) * 2
            down = kernel(code, [sent], "gmm", ps)
        with code.at(f"{self.scope}/combine/all_to_all", self.source):
            collective(code, "all-to-all", down, groups)


@dataclass(frozen=True, slots=True)
class BetweenSlices(Placed):
    """Gradients that go to another slice over the data centre's network; the program waits where it is bad."""

    bad: bool = True
    mib: int = 64
    scope: str = "gradients/psum"
    source: str = "train.py:95"

    def emit_here(self, code: Code, x: Value) -> None:
        value = code.param("bf16", self.mib << 9, 1024)
        across_slices(code, value, size_of(value) / DCN_BYTES * 1e12 + DCN_LATENCY_PS if self.bad else 2 * US)


@dataclass(frozen=True, slots=True)
class Infeed:
    """A program that takes its batch from the infeed queue, and waits for it."""

    us: float
    bad: bool = True

    def emit(self, code: Code, x: Value) -> None:
        with code.at("infeed", "input_fn.py:12"):
            value = code.emit("infeed", array("bf16", 8, 1024))
            code.run(value, self.us * US if self.bad else 30 * US, "infeed", 0, Traffic())
