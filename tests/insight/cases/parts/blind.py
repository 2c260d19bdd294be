"""What these programs need besides: links between chips that are slower than they should be."""

from __future__ import annotations

from dataclasses import dataclass, replace

from tests.insight.simulator.code import Code, Value
from tests.insight.simulator.parts import Part


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
