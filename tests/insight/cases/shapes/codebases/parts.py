"""Parts that public code bases leave in a program: unpacked weights, adapters, repeated keys, losses in f32."""

from __future__ import annotations

import re
from dataclasses import dataclass

from tests.demo.profile.schedule import Device
from tests.insight.simulator.blocks import HOST, arrive, fetch, hbm_ps, pointwise, product
from tests.insight.simulator.code import OVERHEAD_PS, Built, Code, Program, Value, array, dims_of, scalar, size_of
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
class Unpacked:
    """Weights of 8 bits that are written to HBM as bf16 before each use; not where they are kept so."""

    bad: bool = True
    rows: int = 16_384
    width: int = 4096
    count: int = 1
    base: str = "convert_multiply_fusion"
    scope: str = "dequantize/mul"
    source: str = "qarray.py:310"

    def emit(self, code: Code, x: Value) -> Value:
        with code.at(self.scope, self.source):
            for _ in range(self.count if self.bad else 0):
                packed, scales = code.param("s8", self.rows, self.width), code.param("bf16", self.width)
                shape = array("bf16", self.rows, self.width)
                with code.fused([packed, scales]) as inside:
                    wide = code.emit("broadcast", shape, [inside[1]])
                    wide.dimensions.append(1)
                    root = code.emit("multiply", shape, [code.emit("convert", shape, [inside[0]]), wide])
                value = code.fusion(root, [packed, scales], "kLoop", self.base)
                code.run(value, hbm_ps(code, size_of(packed, value)) + OVERHEAD_PS)
        return x


@dataclass(frozen=True, slots=True)
class Adapters:
    """Two thin products beside a layer's own, whose result is added to its: each goes through HBM where it is bad; not
    where they are merged into the weights."""

    bad: bool = True
    columns: tuple[int, ...] = (4096,) * 4
    rank: int = 16
    scope: str = "lora"
    source: str = "lora.py:120"

    def emit(self, code: Code, x: Value) -> Value:
        tokens, width = dims_of(x)
        for columns in self.columns if self.bad else ():
            with code.at(f"{self.scope}/lora_a/dot_general", self.source):
                thin = product(code, x, code.param("bf16", width, self.rank), "fusion")
            with code.at(f"{self.scope}/lora_b/dot_general", self.source):
                thick, made = code.param("bf16", self.rank, columns), code.param("bf16", tokens, columns)
                product(code, thin, thick, "convolution_add_fusion", also=(made,))
        return x


@dataclass(frozen=True, slots=True)
class Repeated:
    """Keys and values that are written once for each head that shares them; not where the kernel shares them."""

    bad: bool = True
    rows: int = 8192
    width: int = 1024
    times: int = 4
    count: int = 2
    base: str = "broadcast_in_dim_fusion"
    scope: str = "repeat_kv/broadcast_in_dim"
    source: str = "attention.py:71"

    def emit(self, code: Code, x: Value) -> Value:
        with code.at(self.scope, self.source):
            for _ in range(self.count if self.bad else 0):
                value = code.param("bf16", self.rows, self.width)
                with code.fused([value]) as inside:
                    root = code.emit("broadcast", array("bf16", self.rows, self.times, self.width), inside)
                    root.dimensions.extend((0, 2))
                made = code.fusion(root, [value], "kLoop", self.base)
                code.run(made, hbm_ps(code, size_of(value, made)) + OVERHEAD_PS)
        return x


@dataclass(frozen=True, slots=True)
class Permuted:
    """Arrays that a `transpose` turns, as between channels first and channels last."""

    bad: bool = True
    rows: int = 16_384
    width: int = 2048
    count: int = 2
    scope: str = "aten__permute"
    source: str = "resnet.py:201"

    def emit(self, code: Code, x: Value) -> Value:
        with code.at(self.scope, self.source):
            for _ in range(self.count if self.bad else 0):
                value = code.param("bf16", self.rows, self.width)
                turned = code.emit("transpose", array("bf16", self.width, self.rows), [value])
                turned.dimensions.extend((1, 0))
                code.run(turned, hbm_ps(code, 2 * size_of(value), 0.6) + OVERHEAD_PS)
        return x


@dataclass(frozen=True, slots=True)
class Losses:
    """The cross entropy of logits, and its gradient: through f32 copies of them where it is bad, else in two passes
    over the logits as they are."""

    bad: bool = True
    tokens: int = 2048
    outputs: int = 65_536
    scope: str = "softmax_cross_entropy_with_integer_labels"
    source: str = "_classification.py:208"

    def emit(self, code: Code, x: Value) -> Value:
        logits = code.param("bf16", self.tokens, self.outputs)
        with code.at(self.scope, self.source):
            if not self.bad:
                with code.at("reduce_logsumexp", self.source):
                    self._reduced(code, logits, "exponential_reduce_fusion")
                with code.at("sub", self.source):
                    pointwise(code, [logits], ("subtract", "exponential", "subtract"), "subtract_exponential_fusion")
                return x
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
        return x

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
    """A cache that is written anew as a whole to change a place of each row; not where that place alone is written."""

    bad: bool = True
    slots: int = 64
    length: int = 2048
    width: int = 1024
    count: int = 2
    scope: str = "kv_cache/where/select_n"
    source: str = "kvcache.py:230"

    def emit(self, code: Code, x: Value) -> Value:
        with code.at(self.scope, self.source):
            for _ in range(self.count if self.bad else 0):
                dims = self.slots, self.length, self.width
                cache, fresh = code.param("bf16", *dims), code.param("bf16", self.slots, self.width)
                at = code.param("pred", self.slots, self.length)
                with code.fused([cache, fresh, at]) as inside:
                    chosen = code.emit("broadcast", array("pred", *dims), [inside[2]])
                    chosen.dimensions.extend((0, 1))
                    new = code.emit("broadcast", cache.shape, [inside[1]])
                    new.dimensions.extend((0, 2))
                    root = code.emit("select", cache.shape, [chosen, new, inside[0]])
                made = code.fusion(root, [cache, fresh, at], "kLoop", "broadcast_select_fusion")
                code.run(made, hbm_ps(code, size_of(cache, made)) + OVERHEAD_PS)
        return x


@dataclass(frozen=True, slots=True)
class Streamed:
    """Arrays that are kept in the host's memory and awaited as soon as they are sent for; not where HBM has them."""

    bad: bool = True
    rows: int = 8192
    width: int = 2048
    count: int = 1
    scope: str = "device_put"
    source: str = "train_utils.py:90"

    def emit(self, code: Code, x: Value) -> Value:
        with code.at(self.scope, self.source):
            for _ in range(self.count if self.bad else 0):
                kept = code.bitcast(code.param("bf16", self.rows, self.width), self.rows, self.width, space=HOST)
                arrive(code, fetch(code, kept, 0))
        return x
