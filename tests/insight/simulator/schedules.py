"""Schedules of cores that work on one thing together: 1F1B pipelines, products in windows, exchanges between slices."""

from __future__ import annotations

from dataclasses import dataclass

from tests.demo.profile.schedule import Device
from tests.insight.simulator import blocks
from tests.insight.simulator.code import DCN_BYTES, DCN_LATENCY_PS, Code, Groups, Program, Value, dims_of, size_of
from tests.insight.simulator.parts import Part
from tests.insight.simulator.stack import emit_all


@dataclass(frozen=True, slots=True)
class OneForwardOneBackward:
    """Stages on cores in a row; in each turn of a loop a stage works forward on one microbatch and backward on another.

    Attributes:
        microbatches: of a step. bubbles: stages have to wait for their first microbatch, and for its gradient; else
            all of them have work in as many turns as there are microbatches.
        forward, back: parts of a stage's work on a microbatch. once: parts of every step, after all turns.
        rows: of f32 parameters of this width that each core updates.
    """

    microbatches: int
    forward: tuple[Part, ...]
    back: tuple[Part, ...]
    bubbles: bool = False
    tokens: int = 2048
    width: int = 4096
    once: tuple[Part, ...] = ()
    rows: int = 8192
    scope: str = "pipeline_1f1b"
    source: str = "pipeline_schedule.py:214"
    name: str = "jit_train_step"

    def build(self, device: Device, cores: int) -> Program:
        code = Code(self.name, device, cores)
        last, several = cores - 1, self.microbatches
        turns = several + (2 * last if self.bubbles else 0)
        onward = tuple((stage, stage + 1) for stage in range(last))
        forward = blocks.busy_turns(turns, tuple(range(cores)), several, self.bubbles)
        back = blocks.busy_turns(turns, tuple(2 * last - stage for stage in range(cores)), several, self.bubbles)
        x = code.param("bf16", self.tokens, self.width)
        with code.turns(turns, x, self.source, f"{self.scope}/while") as inside:
            with code.at("send_gradients/ppermute", self.source):
                returned = blocks.permute(code, inside, tuple((target, source) for source, target in onward))
            with code.at("stage", self.source), code.only_on(loads=forward):
                emit_all(code, inside, self.forward)
            with code.at("send_gradients/ppermute", self.source):
                blocks.finish(code, returned)
            with code.at("send_activations/ppermute", self.source):
                sent = blocks.permute(code, inside, onward)
            with code.at("transpose(stage)", self.source), code.only_on(loads=back):
                emit_all(code, inside, self.back)
            with code.at("send_activations/ppermute", self.source):
                blocks.finish(code, sent)
        emit_all(code, x, self.once)
        blocks.update(code, self.rows, self.width)
        return code.program()


@dataclass(frozen=True, slots=True)
class Windowed:
    """Activations that are gathered from all cores for products with each core's columns, or whose sums are scattered.

    They come block by block, each beside the product of the one before; as one collective ahead of a whole product, or
    after it where they are scattered, if it is bad.
    """

    columns: tuple[int, ...]
    bad: bool = False
    scatters: bool = False
    scope: str = "mlp/wi"
    source: str = "tensor_parallel.py:88"
    base: str = "fusion"

    def emit(self, code: Code, x: Value) -> None:
        tokens, width = dims_of(x)
        rows = tokens // code.cores
        opcode = "reduce-scatter" if self.scatters else "all-gather"
        with code.at(f"{self.scope}/dot_general", self.source):
            if self.bad:
                if not self.scatters:
                    blocks.collective(code, opcode, code.param("bf16", rows, width))
                self._products(code, tokens, width)
                if self.scatters:
                    blocks.collective(code, opcode, code.param("bf16", tokens, width))
                return
            route = tuple((core, (core + 1) % code.cores) for core in range(code.cores))
            for _ in range(code.cores - 1):
                started = blocks.permute(code, code.param("bf16", rows, width), route)
                self._products(code, rows, width)
                blocks.finish(code, started)
            self._products(code, rows, width)

    def _products(self, code: Code, rows: int, width: int) -> None:
        for columns in self.columns:
            if self.scatters:
                blocks.dense(code, code.param("bf16", rows, columns), width, self.base)
            else:
                blocks.dense(code, code.param("bf16", rows, width), columns, self.base)


@dataclass(frozen=True, slots=True)
class Dispatched:
    """Experts, one group a core, whose tokens come and go beside the work of a shared expert that all tokens pass.

    The kernel declares no work. Cores have the mean of `load` where it is not bad.
    """

    load: tuple[float, ...] = (1.0,)
    bad: bool = True
    hidden: int = 16_384
    shared: int = 8192
    tokens: int = 4096
    scope: str = "moe"
    source: str = "deepseek_moe.py:212"

    def emit(self, code: Code, x: Value) -> None:
        width = dims_of(x)[-1]
        load = self.load if self.bad else (sum(self.load) / len(self.load),)
        sent = code.param("bf16", self.tokens, width)
        for scope, source in (("dispatch", sent), ("combine", sent)):
            with code.at(f"{self.scope}/{scope}/all_to_all", self.source):
                started = blocks.start_collective(code, "all-to-all", source)
            with code.at(f"{self.scope}/shared_expert/dot_general", self.source):
                blocks.dense(code, code.param("bf16", self.tokens, width), self.shared, "convolution_multiply_fusion")
            with code.at(f"{self.scope}/{scope}/all_to_all", self.source):
                blocks.finish(code, started)
            if scope == "dispatch":
                with code.at(f"{self.scope}/experts/pallas_call", self.source), code.only_on(load):
                    blocks.kernel(
                        code, [sent], "grouped_matmul", 2 * blocks.matrix_ps(code, self.tokens, width, self.hidden)
                    )


@dataclass(frozen=True, slots=True)
class AcrossSlices:
    """Gradients that are exchanged with other slices beside other parts, or ahead of them where it is bad.

    Slices are the halves of all cores; a core exchanges with the one at its place in the other slice.
    """

    mib: int
    parts: tuple[Part, ...] = ()
    bad: bool = False
    scope: str = "gradients/psum"
    source: str = "multislice.py:57"

    def emit(self, code: Code, x: Value) -> None:
        half = max(1, code.cores // 2)
        peers: Groups = tuple((core, core + half) for core in range(half)) if code.cores > 1 else blocks.everyone(code)
        with code.at(self.scope, self.source):
            value = code.param("bf16", self.mib << 9, 1024)
            started = blocks.start_across_slices(code, value, size_of(value) / DCN_BYTES * 1e12 + DCN_LATENCY_PS, peers)
            if self.bad:
                blocks.arrive_across_slices(code, started)
        emit_all(code, x, self.parts)
        if not self.bad:
            with code.at(self.scope, self.source):
                blocks.arrive_across_slices(code, started)
