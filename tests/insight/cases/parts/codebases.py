"""Parts that public code bases leave in a program: unpacked weights, adapters, repeated keys, losses in f32."""

from __future__ import annotations

import re
from dataclasses import dataclass

from tests.demo.profile.schedule import Device
from tests.insight.simulator.blocks import HOST, arrive, fetch, hbm_ps, kernel, pointwise, product
from tests.insight.simulator.code import (
    OVERHEAD_PS,
    Built,
    Code,
    Program,
    Value,
    array,
    count_of,
    dims_of,
    scalar,
    size_of,
)
from tests.insight.simulator.parts import Placed
from tests.insight.simulator.stack import Stack

_ATEN = re.compile(rb"(aten|xla)__.*")


@dataclass(frozen=True, slots=True)
class LazyGraph(Stack):
    """A program that PyTorch/XLA traced: its ops have the names of ATen's functions, and no scopes around them."""

    def build(self, device: Device, cores: int) -> Program:
        made = Stack.build(self, device, cores)
        proto = made.module.module
        for computation in proto.computations:
            for value in computation.instructions:
                found = _ATEN.search(value.metadata.op_name)
                value.metadata.op_name = found[0] if found else value.metadata.op_name.rpartition(b"/")[2]
        return Program(Built(self.name, proto, self.variant), made.ops, made.items)


@dataclass(frozen=True, slots=True)
class Frozen:
    """Products of these sizes, as `Gemms` has them, with weights that are not trained.

    Attributes:
        packed: the weights are of 8 bits, and written to HBM as bf16 ahead of each product.
        adapted: two thin products of this rank beside each, whose result is added to its through HBM.
    """

    sizes: tuple[tuple[int, int, int], ...]
    scope: str
    source: str
    base: str = "fusion"
    packed: bool = False
    adapted: bool = False
    rank: int = 16

    def emit(self, code: Code, x: Value) -> None:
        tokens, width = dims_of(x)
        with code.at(self.scope, self.source):
            for m, k, n in self.sizes:
                rows, depth, columns = m or tokens, k or width, n or width
                given = x if (rows, depth) == (tokens, width) else code.param("bf16", rows, depth)
                weights = self._unpacked(code, depth, columns) if self.packed else code.param("bf16", depth, columns)
                made = product(code, given, weights, self.base)
                if self.adapted:
                    self._adapts(code, given, made)

    def _unpacked(self, code: Code, rows: int, columns: int) -> Value:
        with code.at("dequantize/mul", "qarray.py:310"):
            packed, scales = code.param("s8", rows, columns), code.param("bf16", columns)
            shape = array("bf16", rows, columns)
            with code.fused([packed, scales]) as inside:
                wide = code.emit("broadcast", shape, [inside[1]])
                wide.dimensions.append(1)
                root = code.emit("multiply", shape, [code.emit("convert", shape, [inside[0]]), wide])
            value = code.fusion(root, [packed, scales], "kLoop", "convert_multiply_fusion")
            return code.run(value, hbm_ps(code, size_of(packed, value)) + OVERHEAD_PS)

    def _adapts(self, code: Code, given: Value, made: Value) -> None:
        with code.at("lora_a/dot_general", "lora.py:120"):
            thin = product(code, given, code.param("bf16", dims_of(given)[-1], self.rank), "fusion")
        with code.at("lora_b/dot_general", "lora.py:120"):
            thick = code.param("bf16", self.rank, dims_of(made)[-1])
            product(code, thin, thick, "convolution_add_fusion", also=(made,))


@dataclass(frozen=True, slots=True)
class Repeated:
    """Keys and values that are written once for each head that shares them, ahead of a kernel; else it shares them."""

    bad: bool = True
    rows: int = 8192
    width: int = 1024
    times: int = 4
    count: int = 2
    base: str = "broadcast_in_dim_fusion"
    kernel: str = "attention/pallas_call"
    scope: str = "repeat_kv/broadcast_in_dim"
    source: str = "attention.py:71"

    def emit(self, code: Code, x: Value) -> None:
        with code.at(self.scope, self.source):
            shared = [code.param("bf16", self.rows, self.width) for _ in range(self.count)]
            for number, value in enumerate(shared if self.bad else ()):
                with code.fused([value]) as inside:
                    root = code.emit("broadcast", array("bf16", self.rows, self.times, self.width), inside)
                    root.dimensions.extend((0, 2))
                made = code.fusion(root, [value], "kLoop", self.base)
                shared[number] = code.run(made, hbm_ps(code, size_of(value, made)) + OVERHEAD_PS)
        with code.at(self.kernel, self.source):
            queries = code.param("bf16", self.rows, self.width * self.times)
            flops, size = 4 * self.rows * 2048 * self.width * self.times, size_of(queries, queries, *shared)
            ps = flops / (code.device.flops * 0.7) * 1e12
            kernel(code, [queries, *shared], "splash_attention", ps, flops, size)


@dataclass(frozen=True, slots=True)
class Permuted(Placed):
    """Arrays that a `transpose` turns, as between channels first and channels last."""

    bad: bool = True
    rows: int = 16_384
    width: int = 2048
    count: int = 2
    scope: str = "aten__permute"
    source: str = "resnet.py:201"

    def emit_here(self, code: Code, x: Value) -> None:
        for _ in range(self.count if self.bad else 0):
            value = code.param("bf16", self.rows, self.width)
            turned = code.emit("transpose", array("bf16", self.width, self.rows), [value])
            turned.dimensions.extend((1, 0))
            code.run(turned, hbm_ps(code, 2 * size_of(value), 0.6) + OVERHEAD_PS)


@dataclass(frozen=True, slots=True)
class Losses:
    """The cross entropy of logits, and its gradient: through f32 copies of them where it is bad, else by a kernel that
    reads the logits once."""

    bad: bool = True
    tokens: int = 2048
    outputs: int = 65_536
    scope: str = "softmax_cross_entropy_with_integer_labels"
    source: str = "_classification.py:208"

    def emit(self, code: Code, x: Value) -> None:
        logits = code.param("bf16", self.tokens, self.outputs)
        with code.at(self.scope, self.source):
            if not self.bad:
                with code.at("pallas_call", self.source):
                    size = 2 * size_of(logits)
                    kernel(code, [logits], "cross_entropy", hbm_ps(code, size), 6 * count_of(logits), size)
                return
            with code.at("convert_element_type", self.source):
                wide = self._as(code, logits, "f32", "convert_element_type_fusion")
            with code.at("reduce_max", self.source):
                self._reduced(code, wide, "reduce_fusion")
            with code.at("reduce_sum", self.source):
                self._reduced(code, wide, "subtract_exponential_reduce_fusion")
            with code.at("sub", self.source):
                wide = pointwise(code, [wide], ("subtract", "exponential", "subtract"), "multiply_subtract_fusion")
            with code.at("transpose/convert_element_type", self.source):
                self._as(code, wide, "bf16", "convert_bitcast_fusion")

    def _as(self, code: Code, value: Value, kind: str, base: str) -> Value:
        with code.fused([value]) as inside:
            root = code.emit("convert", array(kind, *dims_of(value)), inside)
        made = code.fusion(root, [value], "kLoop", base)
        return code.run(made, hbm_ps(code, size_of(value, made)) + OVERHEAD_PS)

    def _reduced(self, code: Code, value: Value, base: str) -> None:
        with code.fused([value]) as inside:
            raised = code.emit("exponential", value.shape, inside) if "exponential" in base else inside[0]
            zero = code.emit("constant", scalar("f32"))
            root = code.emit("reduce", array("f32", self.tokens), [raised, zero])
            root.dimensions.append(1)
        made = code.fusion(root, [value], "kLoop", base)
        code.run(made, hbm_ps(code, size_of(value, made)) + OVERHEAD_PS)


@dataclass(frozen=True, slots=True)
class Selected:
    """A cache that is written anew as a whole, ahead of a kernel that reads it, to change a place of each row; not
    where that place alone is written."""

    bad: bool = True
    slots: int = 64
    length: int = 2048
    width: int = 1024
    count: int = 2
    scope: str = "kv_cache/where/select_n"
    source: str = "kvcache.py:230"

    def emit(self, code: Code, x: Value) -> None:
        with code.at(self.scope, self.source):
            dims = self.slots, self.length, self.width
            caches = [code.param("bf16", *dims) for _ in range(self.count)]
            for number, cache in enumerate(caches if self.bad else ()):
                fresh, at = code.param("bf16", self.slots, self.width), code.param("pred", self.slots, self.length)
                with code.fused([cache, fresh, at]) as inside:
                    chosen = code.emit("broadcast", array("pred", *dims), [inside[2]])
                    chosen.dimensions.extend((0, 1))
                    new = code.emit("broadcast", cache.shape, [inside[1]])
                    new.dimensions.extend((0, 2))
                    root = code.emit("select", cache.shape, [chosen, new, inside[0]])
                made = code.fusion(root, [cache, fresh, at], "kLoop", "broadcast_select_fusion")
                caches[number] = code.run(made, hbm_ps(code, size_of(cache, made)) + OVERHEAD_PS)
        with code.at("attention/pallas_call", self.source):
            queries, size = code.param("bf16", self.slots, 4 * self.width), size_of(*caches)
            kernel(code, [queries, *caches], "decode_attention", hbm_ps(code, size, 0.8), 8 * size, size)


@dataclass(frozen=True, slots=True)
class Streamed(Placed):
    """Arrays that are kept in the host's memory and awaited as soon as they are sent for; not where HBM has them."""

    bad: bool = True
    rows: int = 8192
    width: int = 2048
    count: int = 1
    scope: str = "device_put"
    source: str = "train_utils.py:90"

    def emit_here(self, code: Code, x: Value) -> None:
        for _ in range(self.count if self.bad else 0):
            kept = code.bitcast(code.param("bf16", self.rows, self.width), self.rows, self.width, space=HOST)
            arrive(code, fetch(code, kept, 0))
