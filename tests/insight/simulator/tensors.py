"""Ops besides products and elementwise work: sorts, running sums, random bits, copies of caches, sums in f32."""

from __future__ import annotations

from dataclasses import dataclass
from math import log2

from tests.demo.profile.hlo_cost import Traffic
from tests.insight.simulator.blocks import hbm_ps, pointwise, product
from tests.insight.simulator.code import (
    OVERHEAD_PS,
    VECTOR_LANES,
    Code,
    Value,
    array,
    dims_of,
    scalar,
    size_of,
    tuple_of,
)

_SORT_REACHED = 0.02
"""The share of its lanes that the vector unit's sort keeps busy: it moves values between them."""


@dataclass(frozen=True, slots=True)
class Sort:
    """Keys that are sorted with their positions; one pass over them, as a threshold takes, where it is not bad."""

    bad: bool = True
    rows: int = 1
    length: int = 32_768
    kind: str = "s32"
    times: int = 1
    base: str = "sort"
    scope: str = "argsort/sort"
    source: str = "routing.py:131"

    def emit(self, code: Code, x: Value) -> Value:
        with code.at(self.scope, self.source):
            keys, places = code.param(self.kind, self.rows, self.length), code.param("s32", self.rows, self.length)
            for _ in range(self.times):
                if not self.bad:
                    pointwise(code, [keys], ("compare", "add"), "compare_add_fusion")
                    continue
                value = code.emit("sort", tuple_of(keys.shape, places.shape), [keys, places], self.base)
                value.dimensions.append(1)
                compared = self.rows * self.length * log2(self.length) ** 2 / 2
                ps = compared / (VECTOR_LANES * _SORT_REACHED * code.device.clock_hz) * 1e12
                code.run(value, max(ps, hbm_ps(code, 2 * size_of(keys, places))) + OVERHEAD_PS, "sort", 0)
        return x


@dataclass(frozen=True, slots=True)
class RunningSum:
    """A running sum as `jnp.cumsum` has the compiler write it, each output a sum over a window; a kernel of one pass
    where it is not bad."""

    bad: bool = True
    rows: int = 256
    length: int = 4096
    scope: str = "cumsum/reduce_window_sum"
    source: str = "positions.py:27"

    def emit(self, code: Code, x: Value) -> Value:
        with code.at(self.scope, self.source):
            value = code.param("f32", self.rows, self.length)
            if not self.bad:
                pointwise(code, [value], ("add", "add"), "add_fusion")
                return x
            with code.fused([value]) as inside:
                zero = code.emit("constant", scalar("f32"))
                root = code.emit("reduce-window", value.shape, [inside[0], zero])
                root.window.dimensions.add(size=1, stride=1, window_dilation=1, base_dilation=1)
                root.window.dimensions.add(
                    size=self.length, stride=1, padding_low=self.length - 1, window_dilation=1, base_dilation=1
                )
            summed = code.fusion(root, [value], "kLoop", "reduce-window_fusion")
            work = self.rows * self.length * self.length
            ps = work / (VECTOR_LANES * code.device.clock_hz * 0.8) * 1e12
            code.run(summed, ps + OVERHEAD_PS, flops=work)
        return x


_THREEFRY = ("add", "shift-left", "shift-right-logical", "or", "xor") * 20


@dataclass(frozen=True, slots=True)
class RandomBits:
    """Random bits of threefry for a mask over activations; of the chip's own generator where it is not bad."""

    bad: bool = True
    rows: int = 8192
    width: int = 4096
    count: int = 1
    scope: str = "Dropout_0/_bernoulli/threefry2x32"
    source: str = "stochastic.py:75"

    def emit(self, code: Code, x: Value) -> Value:
        with code.at(self.scope, self.source):
            for _ in range(self.count):
                if self.bad:
                    counters = code.param("u32", self.rows, self.width)
                    pointwise(code, [counters], _THREEFRY, "xor_shift_fusion")
                else:
                    state = code.param("u32", 4)
                    bits = code.emit("rng-bit-generator", array("u32", self.rows, self.width), [state])
                    moved = Traffic(16, size_of(bits))
                    code.run(bits, hbm_ps(code, moved.hbm) + OVERHEAD_PS, "rng-bit-generator", 0, moved)
        return x


@dataclass(frozen=True, slots=True)
class Kept:
    """An array that the program gives back changed in a few places: whole copies of it where it was not donated."""

    bad: bool = True
    rows: int = 65_536
    width: int = 1024
    count: int = 2
    scope: str = "kv_cache/insert"
    source: str = "cache_manager.py:140"

    def emit(self, code: Code, x: Value) -> Value:
        with code.at(self.scope, self.source):
            for _ in range(self.count if self.bad else 0):
                value = code.param("bf16", self.rows, self.width)
                moved = code.emit("copy", value.shape, [value])
                code.run(moved, hbm_ps(code, 2 * size_of(value)) + OVERHEAD_PS)
        return x


@dataclass(frozen=True, slots=True)
class Summed:
    """Products of bf16 whose sums come out in f32, as `preferred_element_type` has them."""

    sizes: tuple[tuple[int, int], ...]
    scope: str = "dot_general"
    source: str = "precise.py:30"
    base: str = "convolution_fusion"

    def emit(self, code: Code, x: Value) -> Value:
        tokens, width = dims_of(x)
        with code.at(self.scope, self.source):
            for depth, columns in self.sizes:
                left = code.param("bf16", tokens, depth or width)
                product(code, left, code.param("bf16", depth or width, columns or width), self.base, out="f32")
        return x
