"""Parts that these programs need besides: edges of tiles, sums of many small arrays, tokens shifted by one."""

from __future__ import annotations

from dataclasses import dataclass

from tests.insight.simulator.blocks import collective, finish, moved, permute, start_collective
from tests.insight.simulator.code import Code, Value, array, dims_of
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
