"""Ops besides products and elementwise work: sorts, running sums, random bits, caches, sums in f32, traced kernels."""

from __future__ import annotations

from dataclasses import dataclass
from math import log2

from tests.demo.profile.hlo_cost import Traffic
from tests.insight.simulator.blocks import hbm_ps, kernel, pointwise, product
from tests.insight.simulator.code import (
    OVERHEAD_PS,
    US,
    VECTOR_LANES,
    Code,
    Spans,
    Value,
    array,
    dims_of,
    scalar,
    size_of,
    tuple_of,
)
from tests.insight.simulator.parts import Placed

_SORT_REACHED = 0.02
"""The share of its lanes that the vector unit's sort keeps busy: it moves values between them."""


@dataclass(frozen=True, slots=True)
class Sort(Placed):
    """Keys that are sorted with their positions; one pass over them, as a threshold takes, where it is not bad."""

    bad: bool = True
    rows: int = 1
    length: int = 32_768
    kind: str = "s32"
    times: int = 1
    base: str = "sort"
    scope: str = "argsort/sort"
    source: str = "routing.py:131"

    def emit_here(self, code: Code, x: Value) -> None:
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


@dataclass(frozen=True, slots=True)
class RunningSum(Placed):
    """A running sum as `jnp.cumsum` has the compiler write it, each output a sum over a window; a kernel of one pass
    where it is not bad."""

    bad: bool = True
    rows: int = 256
    length: int = 4096
    scope: str = "cumsum/reduce_window_sum"
    source: str = "positions.py:27"

    def emit_here(self, code: Code, x: Value) -> None:
        value = code.param("f32", self.rows, self.length)
        if not self.bad:
            pointwise(code, [value], ("add", "add"), "add_fusion")
            return
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


_THREEFRY = ("add", "shift-left", "shift-right-logical", "or", "xor") * 20


@dataclass(frozen=True, slots=True)
class RandomBits(Placed):
    """Random bits of threefry for a mask over activations; of the chip's own generator where it is not bad."""

    bad: bool = True
    rows: int = 8192
    width: int = 4096
    count: int = 1
    scope: str = "Dropout_0/_bernoulli/threefry2x32"
    source: str = "stochastic.py:75"

    def emit_here(self, code: Code, x: Value) -> None:
        for _ in range(self.count):
            if self.bad:
                counters = code.param("u32", self.rows, self.width)
                pointwise(code, [counters], _THREEFRY, "xor_shift_fusion")
            else:
                state = code.param("u32", 4)
                bits = code.emit("rng-bit-generator", array("u32", self.rows, self.width), [state])
                moved = Traffic(16, size_of(bits))
                code.run(bits, hbm_ps(code, moved.hbm) + OVERHEAD_PS, "rng-bit-generator", 0, moved)


@dataclass(frozen=True, slots=True)
class Kept(Placed):
    """An array that the program gives back changed in a few places: whole copies of it where it was not donated."""

    bad: bool = True
    rows: int = 65_536
    width: int = 1024
    count: int = 2
    scope: str = "kv_cache/insert"
    source: str = "cache_manager.py:140"

    def emit_here(self, code: Code, x: Value) -> None:
        for _ in range(self.count if self.bad else 0):
            value = code.param("bf16", self.rows, self.width)
            moved = code.emit("copy", value.shape, [value])
            code.run(moved, hbm_ps(code, 2 * size_of(value)) + OVERHEAD_PS)


@dataclass(frozen=True, slots=True)
class Summed(Placed):
    """Products of bf16 whose sums come out in f32, as `preferred_element_type` has them."""

    sizes: tuple[tuple[int, int], ...]
    scope: str = "dot_general"
    source: str = "precise.py:30"
    base: str = "convolution_fusion"

    def emit_here(self, code: Code, x: Value) -> None:
        tokens, width = dims_of(x)
        for depth, columns in self.sizes:
            left = code.param("bf16", tokens, depth or width)
            product(code, left, code.param("bf16", depth or width, columns or width), self.base, out="f32")


@dataclass(frozen=True, slots=True)
class Piped(Placed):
    """A Pallas kernel that works through blocks, with the spans that its pipeline leaves in the profile.

    Blocks come while the body works on others. Where it is bad there is one buffer: a copy is alone on its way, and the
    body waits for it.

    Attributes:
        mib: bytes that it moves from and to HBM; body_us: what the bodies take; steps: of the grid.
        alone: the share of HBM's peak that copies reach one by one.
        waits_out: it waits for its results to be written, not for blocks to come.
        flops, counted: what its author declares, with the bytes.
    """

    mib: int
    body_us: float
    steps: int = 8
    bad: bool = True
    alone: float = 0.3
    waits_out: bool = False
    flops: float = 0.0
    counted: bool = True
    times: int = 1
    base: str = "matmul"
    scope: str = "mlp/matmul/pallas_call"
    source: str = "matmul_kernel.py:118"

    def emit_here(self, code: Code, x: Value) -> None:
        size = self.mib << 20
        body = self.body_us * US
        copies = hbm_ps(code, size, self.alone) if self.bad else hbm_ps(code, size)
        first = copies / self.steps  # nothing to work on meanwhile
        waits = copies if self.bad else first + max(0.0, copies - first - body)
        for _ in range(self.times):
            counts = (round(self.flops), size) if self.counted else (0, 0)
            value = kernel(code, [x], self.base, waits + body + OVERHEAD_PS, *counts)
            code.trace(value, self._spans(waits, body, first))

    def _spans(self, waits: float, body: float, first: float) -> Spans:
        """Grid steps one after the other; the first waits for a whole block, or the last does until it is written."""
        whole, steps = waits + body + OVERHEAD_PS, self.steps
        later = (waits - first) / (steps - 1)
        at, spans = OVERHEAD_PS / 2, list[tuple[str, float, float]]()

        def add(name: str, ps: float) -> None:
            nonlocal at
            spans.append((name, at / whole, (at + ps) / whole))
            at += ps

        for step in range(steps):
            if self.waits_out:
                add("ep_run_kernel", body / steps)
                add("ep_wait_out" if step + 1 < steps else "ep_finalize", later if step + 1 < steps else first)
                continue
            wait = later if step else first
            add("ep_wait_in", wait * 0.1)
            add("ep_wait_in", wait * 0.9)
            add("ep_run_kernel", body / steps)
        return tuple(spans)
