"""Parts that these programs need besides: custom calls of the compiler's own, convolutions of single features, and
angles that every head takes anew."""

from __future__ import annotations

from dataclasses import dataclass

from tests.demo.profile.hlo_cost import Traffic
from tests.insight.simulator.blocks import hbm_ps, pointwise
from tests.insight.simulator.code import OVERHEAD_PS, US, VECTOR_LANES, Code, Value, array, count_of, size_of
from tests.insight.simulator.parts import Part, Placed
from tests.insight.simulator.stack import emit_all


@dataclass(frozen=True, slots=True)
class Called(Placed):
    """An array that goes through a custom call of the compiler's own, which has bytes and no FLOPs, and gives `keeps`
    elements of each row, or all; through other parts that serve as well where it is not bad."""

    target: str
    us: float
    well: tuple[Part, ...] = ()
    bad: bool = True
    rows: int = 64
    width: int = 32_768
    keeps: int = 0
    times: int = 1
    base: str = "custom-call"
    scope: str = "sample/top_k"
    source: str = "sampler.py:58"

    def emit_here(self, code: Code, x: Value) -> None:
        if not self.bad:
            emit_all(code, x, self.well)
            return
        for _ in range(self.times):
            value = code.param("f32", self.rows, self.width)
            made = code.emit("custom-call", array("f32", self.rows, self.keeps or self.width), [value], self.base)
            made.custom_call_target = self.target.encode()
            code.run(made, self.us * US, "custom-call", 0, Traffic(size_of(value), size_of(made)))


@dataclass(frozen=True, slots=True)
class Depthwise(Placed):
    """Causal convolutions of each feature by itself over a few rows, on a matrix unit that they leave nearly empty; as
    sums of shifted rows in one pass where it is not bad."""

    bad: bool = True
    rows: int = 8192
    width: int = 4096
    taps: int = 4
    count: int = 2
    slowness: float = 6.0
    scope: str = "short_conv/conv_general_dilated"
    source: str = "short_conv.py:37"

    def emit_here(self, code: Code, x: Value) -> None:
        for _ in range(self.count):
            value = code.param("bf16", 1, self.rows, self.width)
            if not self.bad:
                pointwise(code, [value], ("multiply", "add") * self.taps, "multiply_add_fusion")
                continue
            operands = [value, code.param("bf16", self.taps, 1, self.width)]
            with code.fused(operands) as inside:
                root = code.emit("convolution", value.shape, inside)
                self._as_convolution(root)
            made = code.fusion(root, operands, "kOutput", "convolution_fusion")
            code.run(made, hbm_ps(code, size_of(*operands, made)) * self.slowness + OVERHEAD_PS)

    def _as_convolution(self, root: Value) -> None:
        numbers = root.convolution_dimension_numbers
        numbers.input_batch_dimension, numbers.input_feature_dimension = 0, 2
        numbers.output_batch_dimension, numbers.output_feature_dimension = 0, 2
        numbers.kernel_input_feature_dimension, numbers.kernel_output_feature_dimension = 1, 2
        numbers.input_spatial_dimensions.append(1)
        numbers.kernel_spatial_dimensions.append(0)
        numbers.output_spatial_dimensions.append(1)
        root.window.dimensions.add(
            size=self.taps, stride=1, padding_low=self.taps - 1, window_dilation=1, base_dilation=1
        )
        root.feature_group_count = self.width


@dataclass(frozen=True, slots=True)
class Rotated(Placed):
    """Activations that are rotated by angles whose sines and cosines each head takes for itself, each some dozens of
    vector operations; by those of a table where it is not bad."""

    bad: bool = True
    rows: int = 8192
    heads: int = 24
    count: int = 2
    operations: int = 60
    scope: str = "apply_rope/cos"
    source: str = "rope.py:44"

    def emit_here(self, code: Code, x: Value) -> None:
        for _ in range(self.count):
            value = code.param("bf16", self.rows, self.heads, 128)
            if not self.bad:
                pointwise(code, [value], ("multiply", "add"), "multiply_add_fusion")
                continue
            operands = [value, code.param("f32", self.rows, 128)]
            with code.fused(operands) as inside:
                angles = code.emit("broadcast", array("f32", self.rows, self.heads, 128), [inside[1]])
                angles.dimensions.extend((0, 2))
                turned = [
                    code.emit("multiply", value.shape, [inside[0], code.emit(name, angles.shape, [angles])])
                    for name in ("cosine", "sine")
                ]
                root = code.emit("add", value.shape, turned)
            made = code.fusion(root, operands, "kLoop", "cosine_sine_multiply_fusion")
            work = 2 * self.operations * count_of(value)
            code.run(made, work / (VECTOR_LANES * code.device.clock_hz * 0.8) * 1e12 + OVERHEAD_PS)
