"""Parts that these programs need besides: edges of tiles, rotations in nested loops,
quantization for training, tokens shifted by one, frames between space and time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tests.insight.simulator.blocks import collective, finish, hbm_ps, moved, permute, product, start_collective
from tests.insight.simulator.code import OVERHEAD_PS, US, Code, Value, array, dims_of, size_of
from tests.insight.simulator.parts import Part, Placed
from tests.insight.simulator.stack import emit_all


@dataclass(frozen=True, slots=True)
class Edges:
    """Edges of tiles of a grid that cores of a mesh hand to their neighbours on all four sides, beside the work inside;
    both axes of the grid close upon themselves."""

    rows: int
    columns: int
    interior: tuple[Part, ...] = ()
    scope: str = "tile_edges/ppermute"
    source: str = "tiles.py:112"

    def emit(self, code: Code, x: Value) -> None:
        across, lines = self.columns, code.cores // self.columns
        routes = []
        for down, right in ((0, 1), (0, -1), (1, 0), (-1, 0)):
            routes.append(
                tuple(
                    (core, (core // across + down) % lines * across + (core + right) % across)
                    for core in range(code.cores)
                )
            )
        with code.at(self.scope, self.source):
            sent = [permute(code, code.param("bf16", self.rows, dims_of(x)[-1]), route) for route in routes]
        emit_all(code, x, self.interior)
        with code.at(self.scope, self.source):
            for started in sent:
                finish(code, started)


@dataclass(frozen=True, slots=True)
class OneByOne:
    """Small arrays that all cores add up, each by a collective of its own, ahead of other parts; by one collective of
    all of them, beside these parts, where it is not bad."""

    count: int
    rows: int = 8
    parts: tuple[Part, ...] = ()
    bad: bool = True
    scope: str = "tree_map/psum"
    source: str = "legacy.py:71"

    def emit(self, code: Code, x: Value) -> None:
        width = dims_of(x)[-1]
        started = None
        with code.at(self.scope, self.source):
            if self.bad:
                for _ in range(self.count):
                    collective(code, "all-reduce", code.param("f32", self.rows, width))
            else:
                started = start_collective(code, "all-reduce", code.param("f32", self.count * self.rows, width))
        emit_all(code, x, self.parts)
        if started is not None:
            with code.at(self.scope, self.source):
                finish(code, started)


@dataclass(frozen=True, slots=True)
class Rotations(Placed):
    """Eigenvectors by sweeps of rotations, a loop of tiny ops within a loop; by a few products, as an iteration that
    converges to the root takes them, where it is not bad."""

    bad: bool = True
    sweeps: int = 10
    pairs: int = 255
    us: float = 1.5
    side: int = 1024
    products: int = 12
    scope: str = "inverse_root/eigh"
    source: str = "preconditioner.py:233"

    def emit_here(self, code: Code, x: Value) -> None:
        if not self.bad:
            for _ in range(self.products):
                left, right = (code.param("bf16", self.side, self.side) for _ in range(2))
                product(code, left, right, "multiply_subtract_fusion")
            return
        matrix = code.param("f32", 8, self.side)
        with (
            code.at("while", self.source),
            code.loop(self.sweeps, matrix, "while") as sweep,
            code.at("body/while", self.source),
            code.loop(self.pairs, sweep, "while") as inside,
            code.at("body", self.source),
        ):
            for name in ("select_divide_fusion", "multiply_rsqrt_fusion", "multiply_subtract_fusion"):
                with code.fused([inside, inside]) as within:
                    root = code.emit("multiply", inside.shape, within)
                code.run(code.fusion(root, [inside, inside], "kLoop", name), self.us * US)


_UNARY = ("abs", "floor", "round-nearest-even", "exponential")


def through_hbm(code: Code, values: Sequence[Value], opcodes: Sequence[str], base: str) -> Value:
    """A loop fusion of these ops over the first of some arrays, the others being their second operands."""
    with code.fused(values) as inside:
        root = inside[0]
        for opcode in opcodes:
            root = code.emit(opcode, values[0].shape, [root] if opcode in _UNARY else [root, inside[-1]])
    made = code.fusion(root, values, "kLoop", base)
    return code.run(made, hbm_ps(code, size_of(*values, made)) + OVERHEAD_PS)


@dataclass(frozen=True, slots=True)
class Rounded:
    """Arrays that are scaled, rounded to 8 bits, cut off and scaled back, each step through HBM; all in one pass where
    it is not bad."""

    bad: bool = True
    rows: int = 8192
    width: int = 4096
    count: int = 4
    scope: str = "fake_quant/round"
    source: str = "quantizer.py:84"

    def emit(self, code: Code, x: Value) -> None:
        steps = (("divide",), ("round-nearest-even",), ("maximum", "minimum"), ("multiply",))
        bases = ("divide_fusion", "round_nearest_even_fusion", "clamp_fusion", "multiply_fusion")
        with code.at(self.scope, self.source):
            for _ in range(self.count):
                value = code.param("bf16", self.rows, self.width)
                if not self.bad:
                    through_hbm(code, [value], [each for step in steps for each in step], "clamp_multiply_fusion")
                    continue
                for step, base in zip(steps, bases, strict=True):
                    value = through_hbm(code, [value], step, base)


@dataclass(frozen=True, slots=True)
class ShiftedByOne(Placed):
    """Activations next to those of the token before, made by cutting the last one off and padding; products read both
    from one array where it is not bad."""

    bad: bool = True
    rows: int = 4096
    width: int = 2048
    count: int = 6
    scope: str = "time_shift/pad"
    source: str = "rwkv.py:61"

    def emit_here(self, code: Code, x: Value) -> None:
        for _ in range(self.count if self.bad else 0):
            value = code.param("bf16", self.rows, self.width)
            cut = moved(code, code.emit("slice", array("bf16", self.rows - 1, self.width), [value]), 0.78)
            zero = code.emit("constant", array("bf16"))
            moved(code, code.emit("pad", value.shape, [cut, zero]), 0.78)


@dataclass(frozen=True, slots=True)
class BetweenSpaceAndTime(Placed):
    """Frames of patches that become patches of frames, ahead of attention over time; the kernel reads them as they are
    where it is not bad."""

    bad: bool = True
    frames: int = 16
    patches: int = 1024
    width: int = 1536
    count: int = 4
    scope: str = "temporal_attn/rearrange"
    source: str = "stdit.py:190"

    def emit_here(self, code: Code, x: Value) -> None:
        for _ in range(self.count if self.bad else 0):
            value = code.param("bf16", self.frames, self.patches, self.width)
            turned = code.emit("transpose", array("bf16", self.patches, self.frames, self.width), [value])
            turned.dimensions.extend((1, 0, 2))
            code.run(turned, hbm_ps(code, 2 * size_of(value), 0.55) + OVERHEAD_PS)
