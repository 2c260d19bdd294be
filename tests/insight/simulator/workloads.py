"""Programs as people write them: a transformer that trains, one that serves, and a pipeline of stages."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from tests.demo.profile.schedule import Device
from tests.insight.simulator import blocks
from tests.insight.simulator.code import HBM_REACHED, US, Code, Groups, Program, Value, size_of
from tests.insight.simulator.parts import Part
from tests.insight.simulator.stack import emit_all

ATTENTION_REACHED = 0.74
"""What a good flash attention reaches of the matrix unit's peak."""


@dataclass(frozen=True, slots=True)
class Train:
    """A step of a decoder that trains.

    Attributes:
        tokens: of each core. hidden: width of the MLP. layers, vocab: as usual; heads have 128 features.
        attention: ``flash`` (a kernel that declares its cost), ``uncounted`` (one that does not).
        exchange: collective of the gradients; `overlap` runs it beside the backward pass, else the step waits for it.
        groups: who exchanges gradients; over_dcn: between slices.
        fsdp: weights are gathered before each layer, ahead of time or, where `gather_late`, when they are needed; where
            `gather_short`, half of what is computed meanwhile comes only after them.
        mlp_kind, mlp_precision: of the MLP's products. scanned: layers are turns of a loop.
        remat: what is computed again: ``mlp``, ``full``, ``norms``, ``compiler`` (an MLP, of its own accord).
        trains: not only the forward pass.
        each: parts of every layer's forward pass; first, once: parts of every step, ahead of the layers and after.
    """

    tokens: int = 8192
    width: int = 2048
    hidden: int = 8192
    layers: int = 4
    vocab: int = 32_768
    attention: str = "flash"
    exchange: str = "all-reduce"
    overlap: bool = True
    groups: Groups = ()
    over_dcn: bool = False
    fsdp: bool = False
    gather_late: bool = False
    gather_short: bool = False
    mlp_kind: str = "bf16"
    mlp_precision: str = "default"
    remat: str = ""
    scanned: bool = False
    trains: bool = True
    first: tuple[Part, ...] = ()
    each: tuple[Part, ...] = ()
    once: tuple[Part, ...] = ()
    name: str = "jit_train_step"

    def build(self, device: Device, cores: int) -> Program:
        code = Code(self.name, device, cores)
        x = code.param("bf16", self.tokens, self.width)
        emit_all(code, x, self.first)
        with code.at("jvp(decoder)" if self.trains else "decoder", "model.py:30"):
            if self.scanned:
                with code.turns(self.layers, x, "model.py:30") as inside:
                    self._layer(code, inside)
            for _ in range(0 if self.scanned else self.layers):
                self._layer(code, x)
        emit_all(code, x, self.once)
        with code.at("jvp(logits)/dot_general" if self.trains else "logits/dot_general", "model.py:66"):
            y = blocks.dense(code, x, self.vocab, "convolution_convert_fusion")
        if self.trains:
            self._trained(code, x, y)
        return code.program()

    def _layer(self, code: Code, x: Value) -> None:
        if self.fsdp:
            self._gathered(code)
        kept = "checkpoint/" if self.remat in ("mlp", "full", "norms") else ""
        self._attention(code, x, kept)
        self._mlp(code, x, kept)
        emit_all(code, x, self.each)

    def _trained(self, code: Code, x: Value, y: Value) -> None:
        """The backward pass and the update."""
        with code.at("transpose(jvp(logits))/dot_general", "model.py:66"):
            blocks.product(code, y, code.param("bf16", self.vocab, self.width), "convolution_bitcast_fusion")
            blocks.product(code, code.param("bf16", self.width, self.tokens), y, "convolution_bitcast_fusion")
        flying: list[Value] = []
        with code.at("transpose(jvp(decoder))", "model.py:30"):
            if self.scanned:
                with code.turns(self.layers, x, "model.py:30") as inside:
                    before = self._exchange(code, [], 4 * self.width)  # of the layer before
                    for started in self._backward(code, inside, before):
                        blocks.finish(code, started)
            for _ in range(0 if self.scanned else self.layers):
                flying = self._backward(code, x, flying)
        rows = self.layers * (4 * self.width + 2 * self.hidden) + self.vocab
        blocks.update(code, max(8, rows // code.cores // 5), self.width, 4)
        for started in flying:
            blocks.finish(code, started)
        blocks.update(code, max(8, rows // code.cores // 5), self.width)

    def _gathered(self, code: Code) -> None:
        """Gathers a layer's weights."""
        rows = (4 * self.width + 2 * self.hidden) // code.cores
        with code.at("fsdp/all_gather", "sharding.py:25"):
            shard = code.param("bf16", rows, self.width)
            if self.gather_late:
                blocks.collective(code, "all-gather", shard)
            else:
                started = blocks.start_collective(code, "all-gather", shard)
        before, after = ((1,), (2,)) if self.gather_short else ((1, 2), ())
        for columns in before:
            blocks.dense(code, code.param("bf16", self.tokens, self.width), columns * self.width, "fusion")
        if not self.gather_late:
            blocks.finish(code, started)
        for columns in after:
            blocks.dense(code, code.param("bf16", self.tokens, self.width), columns * self.width, "fusion")

    def _attention(self, code: Code, x: Value, scope: str) -> None:
        flops = 2 * self.tokens * 2048 * self.width
        self._norm(code, x, scope)
        with code.at(f"{scope}attention/qkv/dot_general", "attention.py:31"):
            blocks.dense(code, x, 3 * self.width, "fusion")
        with code.at(f"{scope}attention/flash_attention/pallas_call", "flash_attention.py:310"):
            ps = flops / (code.device.flops * ATTENTION_REACHED) * 1e12
            counts = (flops, 4 * size_of(x)) if self.attention == "flash" else (0, 0)
            blocks.kernel(code, [x], "flash_attention", max(ps, blocks.hbm_ps(code, 4 * size_of(x))), *counts)
        with code.at(f"{scope}attention/out/dot_general", "attention.py:58"):
            blocks.dense(code, x, self.width, "convolution_add_fusion")

    def _norm(self, code: Code, x: Value, scope: str) -> None:
        with code.at(f"{scope}attention/norm/mul", "attention.py:20"):
            blocks.pointwise(code, [x], ("multiply", "multiply"), "multiply_rsqrt_fusion")

    def _mlp(self, code: Code, x: Value, scope: str, ending: str = "") -> None:
        x = code.param(self.mlp_kind, self.tokens, self.width) if self.mlp_kind != "bf16" else x
        with code.at(f"{scope}mlp/up/dot_general", "mlp.py:41"):
            y = blocks.dense(code, x, self.hidden, f"fusion{ending}", self.mlp_precision)
        with code.at(f"{scope}mlp/down/dot_general", "mlp.py:44"):
            blocks.dense(code, y, self.width, f"convolution_add_fusion{ending}", self.mlp_precision)

    def _backward(self, code: Code, x: Value, flying: list[Value]) -> list[Value]:
        """A layer's backward pass, after what is computed again for it; returns what is exchanged by then."""
        if self.remat == "compiler":
            self._mlp(code, x, "", ".remat")
        elif self.remat:
            again = "checkpoint/rematted_computation/"
            if self.remat == "full":
                self._attention(code, x, again)
            elif self.remat == "norms":
                self._norm(code, x, again)
            if self.remat != "norms":
                self._mlp(code, x, again)
        kind, level = self.mlp_kind, self.mlp_precision
        x = code.param(kind, self.tokens, self.width) if kind != "bf16" else x
        rows = code.param(kind, self.width, self.tokens)
        with code.at("mlp/down/dot_general", "mlp.py:44"):
            y = blocks.dense(code, x, self.hidden, "fusion", level)
            blocks.product(code, rows, y, "fusion", level)
        with code.at("mlp/up/dot_general", "mlp.py:41"):
            blocks.dense(code, y, self.width, "convolution_bitcast_fusion", level)
            blocks.product(code, rows, y, "convolution_bitcast_fusion", level)
        flying = self._exchange(code, flying, 2 * self.hidden)
        x = code.param("bf16", self.tokens, self.width)
        flops = 5 * self.tokens * 2048 * self.width
        with code.at("attention/flash_attention/pallas_call", "flash_attention.py:480"):
            ps = flops / (code.device.flops * ATTENTION_REACHED) * 1e12
            counts = (flops, 8 * size_of(x)) if self.attention == "flash" else (0, 0)
            blocks.kernel(code, [x], "flash_attention_bwd", ps, *counts)
        with code.at("attention/qkv/dot_general", "attention.py:31"):
            y = blocks.dense(code, x, 3 * self.width, "fusion")
            blocks.product(code, code.param("bf16", self.width, self.tokens), y, "fusion")
        with code.at("attention/norm/mul", "attention.py:20"):
            blocks.pointwise(code, [x, x], ("multiply", "subtract"), "add_multiply_fusion")
        return self._exchange(code, flying, 4 * self.width)

    def _exchange(self, code: Code, flying: list[Value], rows: int) -> list[Value]:
        """Exchanges gradients of so many rows of weights; returns what is under way."""
        for started in flying:
            blocks.finish(code, started)
        if code.cores < 2 or not self.exchange:
            return []
        rows = rows // code.cores * code.cores
        with code.at("gradients/psum", "train.py:95"):
            if self.overlap:
                gradients = code.param("bf16", rows, self.width)
                return [blocks.start_collective(code, self.exchange, gradients, self.groups or blocks.everyone(code))]
            gradients = code.param("bf16", rows, self.width)
            blocks.collective(code, self.exchange, gradients, self.groups or blocks.everyone(code), self.over_dcn)
        return []


@dataclass(frozen=True, slots=True)
class Decode:
    """A step that makes one token for each sequence of a batch: it reads all weights and the cache.

    Attributes:
        batch: sequences; cache_mib: of each layer. kind: type of weights. attention: ``uncounted`` as vLLM's kernels
            are, or ``counted``. model_parallel: cores share each layer and add up their results.
        tokens: that one run makes, in a loop.
    """

    batch: int = 64
    width: int = 4096
    hidden: int = 14_336
    layers: int = 6
    cache_mib: int = 24
    kind: str = "bf16"
    attention: str = "uncounted"
    model_parallel: bool = True
    tokens: int = 1
    vocab: int = 32_768
    each: tuple[Part, ...] = ()
    once: tuple[Part, ...] = ()
    name: str = "jit_step_fun"

    def build(self, device: Device, cores: int) -> Program:
        code = Code(self.name, device, cores)
        share = cores if self.model_parallel else 1
        x = code.param(self.kind, self.batch, self.width)
        if self.tokens > 1:
            with code.turns(self.tokens, x, "generate.py:55", "generate/while"):
                self._layers(code, x)
        else:
            self._layers(code, x)
        emit_all(code, x, self.once)
        with code.at("lm_head/dot_general", "llama.py:301"):
            blocks.dense(code, x, self.vocab // share, "convolution_convert_fusion", pad=False, out="bf16")
        return code.program()

    def _layers(self, code: Code, x: Value) -> None:
        share = code.cores if self.model_parallel else 1
        with code.at("decoder", "llama.py:120"):
            for _ in range(self.layers):
                with code.at("self_attn/qkv_proj/dot_general", "llama.py:160"):
                    blocks.dense(code, x, self.width * 3 // 2 // share, "fusion", pad=False, out="bf16")
                size = self.cache_mib << 20
                with code.at("self_attn/ragged_paged_attention/pallas_call", "kernel.py:740"):
                    counts = (8 * size, size) if self.attention == "counted" else (0, 0)
                    blocks.kernel(code, [x], "RPA-bq_32-bkvp_64-p_64-", blocks.hbm_ps(code, size, 0.8), *counts)
                with code.at("self_attn/o_proj/dot_general", "llama.py:175"):
                    blocks.dense(code, x, self.width // share, "convolution_add_fusion", pad=False, out="bf16")
                self._added(code, x)
                with code.at("mlp/gate_up_proj/dot_general", "llama.py:82"):
                    blocks.dense(
                        code, x, 2 * self.hidden // share, "convolution_multiply_fusion", pad=False, out="bf16"
                    )
                with code.at("mlp/down_proj/dot_general", "llama.py:90"):
                    down = code.param(self.kind, self.batch, self.hidden // share)
                    blocks.dense(code, down, self.width, "convolution_add_fusion", pad=False, out="bf16")
                self._added(code, x)
                emit_all(code, x, self.each)

    def _added(self, code: Code, x: Value) -> None:
        if self.model_parallel and code.cores > 1:
            with code.at("psum", "llama.py:95"):
                blocks.collective(code, "all-reduce", x)


@dataclass(frozen=True, slots=True)
class Pipeline:
    """Stages on cores in a row; in each turn of a loop every stage works on one microbatch, if it has one by then.

    Attributes:
        microbatches: of a step. bubbles: stages have to wait for their first microbatch.
        each, once: parts of every turn's work, and of every step after all turns.
    """

    microbatches: int = 8
    bubbles: bool = True
    tokens: int = 4096
    width: int = 4096
    hidden: int = 8192
    each: tuple[Part, ...] = ()
    once: tuple[Part, ...] = ()
    name: str = "jit_train_step"

    SCOPE: ClassVar[str] = "pipeline"
    LOOP: ClassVar[str] = "while"
    SOURCE: ClassVar[str] = "pipeline.py:70"

    def build(self, device: Device, cores: int) -> Program:
        code = Code(self.name, device, cores)
        route = tuple((stage, (stage + 1) % cores) for stage in range(cores))
        turns = self.microbatches + (cores - 1 if self.bubbles else 0)
        busy = blocks.busy_turns(turns, tuple(range(cores)), self.microbatches, self.bubbles)
        x = code.param("bf16", self.tokens, self.width)
        for scope, work in ((f"jvp({self.SCOPE})", 1), (f"transpose(jvp({self.SCOPE}))", 2)):
            with code.at(f"{scope}/{self.LOOP}", self.SOURCE), code.loop(turns, x) as inside:
                self._turn(code, inside, work, route, busy)
        emit_all(code, x, self.once)
        blocks.update(code, self.hidden, self.width)
        return code.program()

    def _turn(self, code: Code, x: Value, work: int, route: Groups, busy: tuple[tuple[float, ...], ...]) -> None:
        """A turn with so many products of each kind, in which each stage sends its `x` along the route."""
        with code.at("body/ppermute", "pipeline.py:51"):
            started = blocks.permute(code, x, route)
        with code.at("body/stage/dot_general", "stage.py:33"), code.only_on(loads=busy):
            for _ in range(work):
                y = blocks.dense(code, x, self.hidden, "fusion")
        with code.at("body/ppermute", "pipeline.py:51"):
            blocks.finish(code, started)
        with code.at("body/stage/dot_general", "stage.py:33"), code.only_on(loads=busy):
            for _ in range(work):
                blocks.dense(code, y, self.width, "convolution_add_fusion")
            emit_all(code, x, self.each)


@dataclass(frozen=True, slots=True)
class Small:
    """A program so small that launching it takes longer than running it."""

    us: float = 60.0
    name: str = "jit_multiply"

    def build(self, device: Device, cores: int) -> Program:
        code = Code(self.name, device, cores)
        moved = self.us * 1e-6 * device.hbm_bytes * HBM_REACHED
        x = code.param("bf16", max(1, round(moved / (3 * 2 * 1024))), 1024)
        with code.at("update/mul", "trainer.py:140"):
            value = code.emit("multiply", x.shape, [x, x])
            code.run(value, self.us * US)
        return code.program()
