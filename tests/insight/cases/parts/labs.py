"""Parts that the labs' programs need besides: halos of grids, Fourier transforms, recurrences by associative scans."""

from __future__ import annotations

from dataclasses import dataclass
from math import log2

from tests.demo.profile.hlo_cost import Traffic
from tests.insight.simulator.blocks import finish, hbm_ps, kernel, permute
from tests.insight.simulator.code import OVERHEAD_PS, Code, Value, array, dims_of, size_of
from tests.insight.simulator.parts import Part, Placed
from tests.insight.simulator.stack import emit_all


@dataclass(frozen=True, slots=True)
class Halo:
    """Edges of a grid that cores hand to both neighbours beside the work on the interior, or ahead of it if it is bad;
    the work at the border comes last."""

    rows: int
    interior: tuple[Part, ...] = ()
    border: tuple[Part, ...] = ()
    bad: bool = False
    scope: str = "halo_exchange/ppermute"
    source: str = "halo.py:41"

    def emit(self, code: Code, x: Value) -> None:
        with code.at(self.scope, self.source):
            sent = [
                permute(
                    code,
                    code.param("bf16", self.rows, dims_of(x)[-1]),
                    tuple((core, (core + way) % code.cores) for core in range(code.cores)),
                )
                for way in (1, -1)
            ]
        if not self.bad:
            emit_all(code, x, self.interior)
        with code.at(self.scope, self.source):
            for started in sent:
                finish(code, started)
        if self.bad:
            emit_all(code, x, self.interior)
        emit_all(code, x, self.border)


@dataclass(frozen=True, slots=True)
class Fourier(Placed):
    """Transforms of the rows of a complex array, as fast as HBM has them."""

    rows: int
    length: int
    times: int = 1
    scope: str = "fft"
    source: str = "spectral.py:66"

    def emit_here(self, code: Code, x: Value) -> None:
        for _ in range(self.times):
            value = code.param("c64", self.rows, self.length)
            made = code.emit("fft", array("c64", self.rows, self.length), [value])
            flops = round(5 * self.rows * self.length * log2(self.length))
            moved = Traffic(size_of(value), size_of(value))
            code.run(made, hbm_ps(code, moved.hbm, 0.75) + OVERHEAD_PS, "fft", flops, moved)


@dataclass(frozen=True, slots=True)
class Associative(Placed):
    """A linear recurrence over the rows by `associative_scan`: pairs of rows are joined level by level, and results go
    back to all rows, each level through HBM; by a kernel of one pass where it is not bad."""

    bad: bool = True
    rows: int = 16_384
    width: int = 2048
    levels: int = 8
    scope: str = "rg_lru/associative_scan"
    source: str = "scan.py:77"

    def emit_here(self, code: Code, x: Value) -> None:
        if not self.bad:
            decays, inputs = (code.param("f32", self.rows, self.width) for _ in range(2))
            size = 3 * size_of(decays)
            with code.at("pallas_call", self.source):
                kernel(code, [decays, inputs], "linear_scan", hbm_ps(code, size, 0.8), 2 * size // 12, size)
            return
        decays, inputs = (code.param("f32", self.rows, self.width) for _ in range(2))
        pairs = [(decays, inputs)]
        for level in range(1, self.levels + 1):
            rows = self.rows >> level
            both = pairs[-1]
            pairs.append((self._joined(code, rows, both[:1]), self._joined(code, rows, both)))
        states = pairs[-1][1]
        for level in range(self.levels - 1, -1, -1):
            states = self._spread(code, states, pairs[level])

    def _joined(self, code: Code, rows: int, values: tuple[Value, ...]) -> Value:
        """Products of every other row with the next one, and their sums with the last of `values`."""
        half = array("f32", rows, self.width)
        with code.fused(values) as inside:
            even, odd = (code.emit("slice", half, [inside[0]]) for _ in range(2))
            root = code.emit("multiply", half, [even, odd])
            if len(values) > 1:
                root = code.emit("add", half, [root, code.emit("slice", half, [inside[1]])])
        base = "slice_multiply_add_fusion" if len(values) > 1 else "slice_multiply_fusion"
        made = code.fusion(root, values, "kLoop", base)
        return code.run(made, hbm_ps(code, size_of(*values, made)) + OVERHEAD_PS)

    def _spread(self, code: Code, states: Value, both: tuple[Value, Value]) -> Value:
        """States of all rows from those of every other one."""
        operands = (states, *both)
        whole = both[0].shape
        with code.fused(operands) as inside:
            wide = code.emit("pad", whole, [inside[0], code.emit("constant", array("f32"))])
            root = code.emit("add", whole, [code.emit("multiply", whole, [inside[1], wide]), inside[2]])
        made = code.fusion(root, operands, "kLoop", "pad_multiply_add_fusion")
        return code.run(made, hbm_ps(code, size_of(*operands, made)) + OVERHEAD_PS)
