"""What these programs need besides: links that are slower than they should be, and exchanges of twice the bytes."""

from __future__ import annotations

from dataclasses import dataclass, replace

from tests.insight.simulator.blocks import finish, start_collective
from tests.insight.simulator.code import Code, Value, dims_of
from tests.insight.simulator.parts import Part
from tests.insight.simulator.stack import emit_all


@dataclass(frozen=True, slots=True)
class Weakened:
    """A part whose exchanges pass a link that reaches this share of what it should; a good one where it is not bad."""

    part: Part
    reached: float = 0.3
    bad: bool = True

    def emit(self, code: Code, x: Value) -> None:
        device = code.device
        if self.bad:
            code.device = replace(device, link_bytes=device.link_bytes * self.reached)
        self.part.emit(code, x)
        code.device = device


@dataclass(frozen=True, slots=True)
class InF32:
    """An array that is exchanged beside other parts, in f32 where it is bad, in bf16 else."""

    opcode: str
    rows: int
    parts: tuple[Part, ...] = ()
    bad: bool = True
    scope: str = "grads/psum"
    source: str = "train.py:71"

    def emit(self, code: Code, x: Value) -> None:
        with code.at(self.scope, self.source):
            value = code.param("f32" if self.bad else "bf16", self.rows, dims_of(x)[-1])
            started = start_collective(code, self.opcode, value)
        emit_all(code, x, self.parts)
        with code.at(self.scope, self.source):
            finish(code, started)
