"""Programs as data: layers are lists of parts, forward and backward, in loops or unrolled, in micro-batches."""

from __future__ import annotations

from contextlib import ExitStack, nullcontext
from dataclasses import dataclass

from tests.demo.profile.schedule import Device
from tests.insight.simulator import blocks
from tests.insight.simulator.code import OVERHEAD_PS, Code, Groups, Program, Value, array, dims_of, size_of
from tests.insight.simulator.parts import Part, Placed

FLASH_REACHED = 0.74
"""What a good attention kernel reaches of the matrix unit's peak."""


@dataclass(frozen=True, slots=True)
class Stack:
    """A model of equal layers.

    Attributes:
        tokens, width: sizes of the activations that the parts get; of one micro-batch.
        each, back: parts of a layer's forward and backward pass; a model without the latter only infers.
        first, once: parts of a step, ahead of the layers and after them. turn: of a micro-batch, after its layers.
        scanned: layers are turns of a loop. numbered: the scope of each of them else, with its number for ``{}``.
        micro: micro-batches of a step, turns of a loop `over` both passes.
        rows: of f32 parameters of this width that each core updates; 0 for none.
        variant: what tells it from other programs of its name.
    """

    tokens: int
    width: int
    layers: int
    each: tuple[Part, ...]
    back: tuple[Part, ...] = ()
    first: tuple[Part, ...] = ()
    turn: tuple[Part, ...] = ()
    once: tuple[Part, ...] = ()
    scanned: bool = False
    numbered: str = ""
    micro: int = 1
    over: str = "microbatches/while"
    rows: int = 0
    model: str = "Transformer"
    source: str = "transformer.py:51"
    name: str = "jit_step"
    variant: str = ""

    def build(self, device: Device, cores: int) -> Program:
        code = Code(self.name, device, cores, self.variant)
        x = given = code.param("bf16", self.tokens, self.width)
        emit_all(code, x, self.first)
        with ExitStack() as around:
            if self.micro > 1:
                x = around.enter_context(code.turns(self.micro, x, "accumulate.py:22", self.over))
            self._layers(code, x, f"jvp({self.model})" if self.back else self.model, self.each)
            self._layers(code, x, f"transpose(jvp({self.model}))", self.back)
            emit_all(code, x, self.turn)
        emit_all(code, given, self.once)
        if self.rows:
            blocks.update(code, self.rows, self.width)
        return code.program()

    def _layers(self, code: Code, x: Value, scope: str, parts: tuple[Part, ...]) -> None:
        if not parts:
            return
        with code.at(scope, self.source):
            if self.scanned:
                with code.turns(self.layers, x, self.source) as inside:
                    emit_all(code, inside, parts)
            for number in range(0 if self.scanned else self.layers):
                with code.at(self.numbered.format(number), self.source) if self.numbered else nullcontext():
                    emit_all(code, x, parts)


def emit_all(code: Code, x: Value, parts: tuple[Part, ...]) -> None:
    """Writes parts down, one after the other."""
    for part in parts:
        part.emit(code, x)


@dataclass(frozen=True, slots=True)
class Gemms(Placed):
    """Matrix products of these sizes, (m, k, n); 0 is the activations' tokens as m, and their width as k or n."""

    sizes: tuple[tuple[int, int, int], ...]
    scope: str
    source: str = "layers.py:64"
    base: str = "fusion"

    def emit_here(self, code: Code, x: Value) -> None:
        tokens, width = dims_of(x)
        for m, k, n in self.sizes:
            left = code.param("bf16", m or tokens, k or width)
            blocks.product(code, left, code.param("bf16", k or width, n or width), self.base)


@dataclass(frozen=True, slots=True)
class Beside:
    """A collective over an array of so many rows beside other parts, or ahead of them where it is bad.

    The cores are a mesh of so many lines: those of a line exchange among themselves if it goes `along` them, else those
    that have the same place in each.
    """

    opcode: str
    rows: int
    parts: tuple[Part, ...] = ()
    bad: bool = False
    scope: str = "gradients/psum"
    source: str = "sharding.py:77"
    lines: int = 1
    along: bool = True

    def emit(self, code: Code, x: Value) -> None:
        if code.cores < 2:
            emit_all(code, x, self.parts)
            return
        groups = mesh_groups(code.cores, self.lines, self.along)
        with code.at(self.scope, self.source):
            value = code.param("bf16", self.rows, dims_of(x)[-1])
            started = None if self.bad else blocks.start_collective(code, self.opcode, value, groups)
            if self.bad:
                blocks.collective(code, self.opcode, value, groups)
        emit_all(code, x, self.parts)
        if started is not None:
            with code.at(self.scope, self.source):
                blocks.finish(code, started)


def mesh_groups(cores: int, lines: int, along: bool) -> Groups:
    """The cores of each line of a mesh, or those of each place in its lines."""
    places = cores // lines
    if along:
        return tuple(tuple(range(line * places, (line + 1) * places)) for line in range(lines))
    return tuple(tuple(range(place, cores, places)) for place in range(places))


@dataclass(frozen=True, slots=True)
class Uneven:
    """A part that takes these factors of its time by core where it is bad, else their mean on all."""

    load: tuple[float, ...]
    part: Part
    bad: bool = True

    def emit(self, code: Code, x: Value) -> None:
        with code.only_on(self.load if self.bad else (sum(self.load) / len(self.load),)):
            self.part.emit(code, x)


@dataclass(frozen=True, slots=True)
class Scores:
    """Attention of so many heads over a sequence: a kernel of good speed, or the scores go through HBM if it is bad."""

    bad: bool = True
    heads: int = 32
    length: int = 2048
    scope: str = "attn/dot_product_attention"
    source: str = "attention.py:112"

    def emit(self, code: Code, x: Value) -> None:
        queries = blocks.part_of(code, x, self.heads, self.length, 128)
        flops = 4 * self.heads * self.length * self.length * 128
        with code.at(self.scope, self.source):
            if not self.bad:
                with code.at("pallas_call", self.source):
                    ps = flops / (code.device.flops * FLASH_REACHED) * 1e12
                    size = 4 * size_of(queries)
                    blocks.kernel(code, [queries], "splash_attention", max(ps, blocks.hbm_ps(code, size)), flops, size)
                return
            keys = blocks.part_of(code, x, self.heads, 128, self.length)
            with code.at("scores/dot_general", self.source):
                scores = blocks.product(code, queries, keys, "fusion")
            with code.at("softmax/exp", self.source):
                shares = blocks.pointwise(code, [scores], ("subtract", "multiply"), "subtract_exponential_fusion")
            with code.at("values/dot_general", self.source):
                blocks.product(code, shares, queries, "fusion")


@dataclass(frozen=True, slots=True)
class Cast(Placed):
    """Weights of f32 that are cast to bf16; not where they were cast before."""

    bad: bool = True
    rows: int = 32_768
    count: int = 1
    scope: str = "params/convert_element_type"
    source: str = "precision.py:14"

    def emit_here(self, code: Code, x: Value) -> None:
        for _ in range(self.count if self.bad else 0):
            weights = code.param("f32", self.rows, dims_of(x)[-1])
            with code.fused([weights]) as inside:
                root = code.emit("convert", array("bf16", *dims_of(weights)), inside)
            value = code.fusion(root, [weights], "kLoop", "convert_element_type_fusion")
            code.run(value, blocks.hbm_ps(code, size_of(weights, value)) + OVERHEAD_PS)
