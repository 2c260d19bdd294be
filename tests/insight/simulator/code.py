"""Programs written as a TPU compiler would have left them: HLO in the order it runs, with what each op costs.

`Code` builds a real HLO module instruction by instruction, so that names, texts, FLOPs, bytes, source lines and the
module in the profile agree. What an op takes follows from its shapes and the chip's peaks.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Literal

from tests.demo.profile import hlo_cost
from tests.demo.profile.hlo_cost import Traffic
from tests.demo.profile.hlo_module import ELEMENT_TYPES, TUPLE, Module, elements, leaves, shape_bytes
from tests.demo.profile.schedule import Device, Op
from tpuprof.parsers.formats.proto import hlo_pb2

Value = hlo_pb2.HloInstructionProto
Shape = hlo_pb2.ShapeProto
Groups = tuple[tuple[int, ...], ...]
Spans = tuple[tuple[str, float, float], ...]

V4 = Device("TPU v4", 1.05e9, 275e12, 1228e9, 1.05e9 * 12288, 1.05e9 * 4096, 45e9, 32 << 30)
V5E = Device()
V5P = Device("TPU v5", 1.75e9, 459e12, 2765e9, 1.75e9 * 12288, 1.75e9 * 4096, 90e9, 95 << 30)
V6E = Device("TPU v6 Lite", 1.75e9, 918e12, 1638e9, 1.75e9 * 13312, 1.75e9 * 9216, 90e9, int(31.25 * 2**30))
V7X = Device("TPU v7x", 1.9e9, 1153.5e12, 3690e9, 1.9e9 * 13312, 1.9e9 * 9216, 93e9, int(94.75 * 2**30))
"""Of v7x, one of the two cores of a chip, which are devices of their own."""

MATRIX_REACHED, HBM_REACHED = 0.86, 0.87
"""Shares of the peaks that good ops of these programs reach."""

PASSES = {"default": 1, "high": 3, "highest": 6}
"""Passes of the matrix unit that a product of f32 takes at each precision; bf16 takes one."""

VECTOR_LANES = 8 * 128 * 4
"""Operations of the vector unit a cycle."""

US = 1_000_000
OVERHEAD_PS = US // 2
LINK_LATENCY_PS = 2 * US
DCN_BYTES, DCN_LATENCY_PS = 12.5e9, 80 * US
PCIE_BYTES = 14e9

_TYPES = {name: number for number, (name, _) in ELEMENT_TYPES.items()}
_NUMBER = re.compile(r"\.\d+$")


class Built(Module):
    """A module that was built here, indexed as the compiled ones are."""

    def __init__(self, name: str, proto: hlo_pb2.HloModuleProto, variant: str = "") -> None:
        self.name = name
        self.module = proto
        self.proto = hlo_pb2.HloProto(hlo_module=proto)
        self.proto_bytes = self.proto.SerializeToString(deterministic=True)
        self.facts = {}
        self.program_id = int.from_bytes(hashlib.sha256((name + variant).encode()).digest()[:8], "little")
        self._texts = {}
        self.index()

    def index(self) -> None:
        """Notes where everything is, anew."""
        self.computations = {c.id: c for c in self.module.computations}
        self.instructions = {i.id: i for c in self.module.computations for i in c.instructions}
        self.symbols = {key: index + 1 for index, key in enumerate(self.instructions)}

    def _text(self, instruction: Value) -> str:
        text = super()._text(instruction)
        if instruction.is_host_transfer:
            known = sorted(instruction.frontend_attributes.map.items())
            attributes = ",".join(f'{key}="{value.decode()}"' for key, value in known)
            text += f", is_host_transfer=true, frontend_attributes={{{attributes}}}"
        if instruction.source_target_pairs:
            pairs = ",".join(f"{{{pair.source},{pair.target}}}" for pair in instruction.source_target_pairs)
            text += f", source_target_pairs={{{pairs}}}"
        return text


@dataclass(frozen=True, slots=True)
class Timed:
    """An op with what the simulation must know beyond the profile's.

    Attributes:
        label: what its noise hangs on: the same with and without what is planted elsewhere.
        engine: what carries an asynchronous op out, one after the other.
        load: factor on its time by core, repeated over the cores; no entry for none.
        loads: the same for each turn of the loop that it is in; 0 leaves the op out.
        route: pairs of cores, from and to, of a permutation.
        rotates: `load` moves on by a core with each step.
        spans: what goes on inside a kernel, as names with their begin and end as shares of its time.
    """

    op: Op
    label: str
    engine: str = ""
    load: tuple[float, ...] = ()
    loads: tuple[tuple[float, ...], ...] = ()
    route: Groups = ()
    rotates: bool = False
    spans: Spans = ()


@dataclass(frozen=True, slots=True)
class Item:
    """A step of a program: op number `op`; `start` is the op that a `done` waits for; a barrier takes `ps` at least."""

    kind: Literal["run", "sync", "start", "done", "loop", "barrier"]
    op: int
    start: int = -1
    trips: int = 0
    body: tuple[Item, ...] = ()
    ps: int = 0


@dataclass(frozen=True, eq=False)
class Program:
    """A finished module with its ops in the order they run."""

    module: Built
    ops: tuple[Timed, ...]
    items: tuple[Item, ...]


@dataclass(slots=True)
class _Scope:
    """A computation under construction, and what runs in it."""

    computation: hlo_pb2.HloComputationProto
    items: list[Item] = field(default_factory=list)


class Code:
    """A program under construction.

    Args:
        name: such as ``jit_train_step``.
        device: the chip that it is compiled for; cores: how many run it together.
        variant: what tells it from other programs of its name, such as the sizes that it was compiled for.
    """

    def __init__(self, name: str, device: Device, cores: int = 1, variant: str = "") -> None:
        self.name, self.device, self.cores, self.variant = name, device, cores, variant
        self.proto = hlo_pb2.HloModuleProto(name=name.encode(), entry_computation_name=b"main")
        self._names: Counter[str] = Counter()
        self._labels: Counter[str] = Counter()
        self._frames: dict[str, int] = {}
        self._next = 0
        self._scopes: list[_Scope] = []
        self._ops: list[tuple[Value, Timed]] = []
        self._op_of: dict[int, int] = {}
        self._where = ("", "train.py:88")
        self._channels = 0
        self._params = 0
        self._by_id: dict[int, Value] = {}
        self.load: tuple[float, ...] = ()
        self.loads: tuple[tuple[float, ...], ...] = ()
        self.rotates = False
        self._open("main")
        self.proto.entry_computation_id = self._scopes[0].computation.id

    # ---- places -----------------------------------------------------------------------------------------------------

    @contextmanager
    def at(self, scope: str, source: str) -> Iterator[None]:
        """Ops inside come from this framework scope, below the current one, and this source line."""
        before = self._where
        self._where = (f"{before[0]}/{scope}" if before[0] else scope, source)
        yield
        self._where = before

    @contextmanager
    def only_on(
        self, load: tuple[float, ...] = (), loads: tuple[tuple[float, ...], ...] = (), rotates: bool = False
    ) -> Iterator[None]:
        """Ops inside take these factors on their time, by core, or by turn of a loop and core."""
        before = self.load, self.loads, self.rotates
        self.load, self.loads, self.rotates = load, loads, rotates
        yield
        self.load, self.loads, self.rotates = before

    def _frame(self, source: str) -> int:
        if source not in self._frames:
            index = self.proto.stack_frame_index
            file, line = source.rsplit(":", 1)
            index.file_names.append(file.encode())
            index.file_locations.add(file_name_id=len(index.file_names), line=int(line))
            index.stack_frames.add(file_location_id=len(index.file_locations))
            self._frames[source] = len(index.stack_frames)
        return self._frames[source]

    # ---- instructions -----------------------------------------------------------------------------------------------

    def _open(self, name: str, fused: bool = False) -> _Scope:
        self._next += 1
        computation = hlo_pb2.HloComputationProto(name=name.encode(), id=self._next, is_fusion_computation=fused)
        scope = _Scope(computation)
        self._scopes.append(scope)
        return scope

    def _close(self, root: Value) -> hlo_pb2.HloComputationProto:
        scope = self._scopes.pop()
        scope.computation.root_id = root.id
        self.proto.computations.append(scope.computation)
        return scope.computation

    def _named(self, base: str) -> str:
        count = self._names[base]
        self._names[base] += 1
        return f"{base}.{count}" if count else base

    def emit(self, opcode: str, shape: Shape, operands: Sequence[Value] = (), base: str = "") -> Value:
        """Adds an instruction to the current computation; it leaves no event unless `run` and the like say so."""
        self._next += 1
        value = self._scopes[-1].computation.instructions.add(
            name=self._named(base or opcode).encode(),
            opcode=opcode.encode(),
            shape=shape,
            id=self._next,
            operand_ids=[operand.id for operand in operands],
        )
        if opcode not in ("parameter", "constant"):
            scope, source = self._where
            module = self.name.removeprefix("jit_")
            value.metadata.op_name = f"jit({module})/{scope}".encode() if scope else b""
            value.metadata.stack_frame_id = self._frame(source)
        self._by_id[value.id] = value
        return value

    def param(self, kind: str, *dims: int) -> Value:
        """A parameter of the program."""
        scope = self._scopes[0]
        self._next += 1
        number, self._params = self._params, self._params + 1
        value = scope.computation.instructions.add(
            name=f"param.{number}".encode(), opcode=b"parameter", shape=array(kind, *dims), id=self._next,
            parameter_number=number,
        )  # fmt: skip
        self._by_id[value.id] = value
        return value

    def bitcast(self, value: Value, *dims: int, space: int = 0) -> Value:
        """The same bytes under another shape; it is free, and leaves no event."""
        return self.emit("bitcast", array(kind_of(value.shape), *dims, space=space), [value])

    def _register(self, value: Value, timed: Timed) -> int:
        self._op_of[value.id] = len(self._ops)
        self._ops.append((value, timed))
        return self._op_of[value.id]

    def run(
        self, value: Value, ps: float, category: str = "", flops: int | None = None, traffic: Traffic | None = None
    ) -> Value:
        """Makes an instruction an op that takes so long; counts that are not given follow from its HLO."""
        op = self._op(value, ps, 0, category, flops, traffic)
        self._scopes[-1].items.append(Item("run", self._register(value, op)))
        return value

    def trace(self, value: Value, spans: Spans) -> None:
        """Has the profile show what goes on inside a kernel."""
        number = self._op_of[value.id]
        self._ops[number] = value, replace(self._ops[number][1], spans=spans)

    def _op(
        self,
        value: Value,
        ps: float,
        transfer_ps: float,
        category: str = "",
        flops: int | None = None,
        traffic: Traffic | None = None,
        engine: str = "",
        groups: Groups = (),
        route: Groups = (),
    ) -> Timed:
        scope = self._where[0].replace("checkpoint/", "")  # the same op with a policy and without
        key = f"{scope}|{_NUMBER.sub('', value.name.decode())}"
        self._labels[key] += 1
        # Categories, FLOPs and bytes are filled in when the module is whole.
        op = Op(
            value, category, -1 if flops is None else flops, traffic or _UNCOUNTED, round(ps), 0, round(transfer_ps),
            False, groups,
        )  # fmt: skip
        return Timed(op, f"{key}#{self._labels[key]}", engine, self.load, self.loads, route, self.rotates)

    # ---- asynchronous ops and collectives ---------------------------------------------------------------------------

    def meet(self, value: Value, transfer_ps: float, groups: Groups, flops: int | None = None) -> Value:
        """Makes an instruction a collective that cores wait for each other in."""
        self.attach(value, groups)
        op = self._op(value, 0, transfer_ps, flops=flops, groups=groups)
        self._scopes[-1].items.append(Item("sync", self._register(value, op)))
        return value

    def attach(self, value: Value, groups: Groups) -> None:
        """Writes down which cores an instruction exchanges data between."""
        self._channels += 1
        value.channel_id = self._channels
        value.use_global_device_ids = True
        for group in groups:
            value.replica_groups.add(replica_ids=group)

    def start(
        self,
        value: Value,
        transfer_ps: float,
        engine: str,
        groups: Groups = (),
        route: Groups = (),
        category: str = "",
        traffic: Traffic | None = None,
    ) -> Value:
        """Makes an instruction the start of something asynchronous that takes so long once its turn comes."""
        has_groups = value.opcode not in (b"fusion", b"recv")  # the collective inside of one has them, or the runtime
        if (groups or route) and has_groups:
            self.attach(value, groups)
            for pair in route:
                value.source_target_pairs.add(source=pair[0], target=pair[1])
        flops = 0 if category else None
        op = self._op(value, US // 16, transfer_ps, category, flops, traffic, engine, groups, route)
        self._scopes[-1].items.append(Item("start", self._register(value, op)))
        return value

    def barrier(self, ps: float) -> None:
        """Has all cores wait for each other, and so much longer; no op says so."""
        self._scopes[-1].items.append(Item("barrier", -1, ps=round(ps)))

    def done(self, opcode: str, started: Value, shape: Shape, base: str = "") -> Value:
        """Waits for the end of what was started."""
        return self.wait(self.emit(opcode, shape, [started], base), started)

    def wait(self, value: Value, started: Value, category: str = "", traffic: Traffic | None = None) -> Value:
        """Makes an instruction the end of what was started."""
        flops = 0 if category else None
        number = self._register(value, self._op(value, US // 16, 0, category, flops, traffic))
        self._scopes[-1].items.append(Item("done", number, self._op_of[started.id]))
        return value

    # ---- loops and fusions ------------------------------------------------------------------------------------------

    @contextmanager
    def turns(self, trips: int, carried: Value, source: str, scope: str = "while") -> Iterator[Value]:
        """A loop and its body, named as `jax.lax` names them."""
        with self.at(scope, source), self.loop(trips, carried) as inside, self.at("body", source):
            yield inside

    @contextmanager
    def loop(self, trips: int, carried: Value, base: str = "while") -> Iterator[Value]:
        """A `while` that runs what is written inside so often; it hands in the carried array inside the loop."""
        state = tuple_of(scalar("s32"), carried.shape)
        self._open(f"{base}_cond")
        parameter = self.emit("parameter", state)
        bound = self.emit("constant", scalar("s32"))
        bound.literal.s32s.append(trips)
        counter = self.emit("get-tuple-element", scalar("s32"), [parameter])
        condition = self._close(self.emit("compare", scalar("pred"), [counter, bound]))
        scope = self._open(f"{base}_body")
        parameter = self.emit("parameter", state)
        counter = self.emit("get-tuple-element", scalar("s32"), [parameter])
        inside = self.emit("get-tuple-element", carried.shape, [parameter])
        inside.tuple_index = 1
        yield inside
        one = self.emit("constant", scalar("s32"))
        one.literal.s32s.append(1)
        after = [self.emit("add", scalar("s32"), [counter, one]), self.emit("add", carried.shape, [inside, inside])]
        body = self._close(self.emit("tuple", state, after))  # what is carried differs from turn to turn
        loop = self.emit("while", state, [self.emit("tuple", state, [carried])], base)
        loop.backend_config = f'{{"known_trip_count":{{"n":"{trips}"}}}}'.encode()
        loop.called_computation_ids.extend([body.id, condition.id])
        number = self._register(loop, self._op(loop, 0, 0, "while", 0, Traffic()))
        self._scopes[-1].items.append(Item("loop", number, trips=trips, body=tuple(scope.items)))

    @contextmanager
    def fused(self, operands: Sequence[Value]) -> Iterator[list[Value]]:
        """Opens the computation of a fusion; it hands in the parameters. `fusion` closes it."""
        self._open(self._named("fused_computation"), fused=True)
        inside = []
        for number, operand in enumerate(operands):
            inside.append(self.emit("parameter", operand.shape, base="param"))
            inside[-1].parameter_number = number
        yield inside

    def fusion(self, root: Value, operands: Sequence[Value], kind: str, base: str) -> Value:
        """Closes the computation that `fused` opened, and calls it."""
        computation = self._close(root)
        value = self.emit("fusion", root.shape, operands, base)
        value.fusion_kind = kind.encode()
        value.called_computation_ids.append(computation.id)
        return value

    # ---- the finished program ---------------------------------------------------------------------------------------

    def program(self) -> Program:
        """The module, and its ops with categories, FLOPs and bytes."""
        entry = self._scopes[0]
        last = entry.computation.instructions[-1]
        self._close(self.emit("tuple", tuple_of(last.shape), [last]))
        module = Built(self.name, self.proto, self.variant)
        return Program(module, tuple(_counted(module, timed) for _, timed in self._ops), tuple(entry.items))


_UNCOUNTED = Traffic(-1)


def _counted(module: Built, timed: Timed) -> Timed:
    op = timed.op
    value = module.instructions[op.instruction.id]
    category = op.category or hlo_cost.category(module, value)
    return replace(
        timed,
        op=replace(
            op,
            instruction=value,
            category=category,
            flops=hlo_cost.flops(module, value) if op.flops < 0 else op.flops,
            traffic=_traffic(module, value) if op.traffic is _UNCOUNTED else op.traffic,
        ),
    )


def _traffic(module: Built, value: Value) -> Traffic:
    """Bytes of an op; of an asynchronous one those of its largest array, once read and once written."""
    if value.opcode.endswith((b"-start", b"-done")):
        size = max((shape_bytes(leaf) for leaf in leaves(value.shape)), default=0)
        return Traffic(size, size)
    return hlo_cost.traffic(module, value)


def kind_of(shape: Shape) -> str:
    """The name of an array's element type."""
    return ELEMENT_TYPES[shape.element_type][0]


def array(kind: str, *dims: int, space: int = 0, order: tuple[int, ...] = ()) -> Shape:
    """An array's shape with the layout that the compiler gives by default, or with this order of dimensions."""
    shape = Shape(element_type=_TYPES[kind], dimensions=dims)
    shape.layout.minor_to_major.extend(order or range(len(dims) - 1, -1, -1))
    shape.layout.memory_space = space
    sublanes = ELEMENT_TYPES[_TYPES[kind]][1]
    shape.layout.tiles.add(dimensions=(8, 128) if len(dims) > 1 else (1024,) if dims else (128,))
    if sublanes < 4:
        shape.layout.tiles.add(dimensions=(4 // sublanes, 1))
    return shape


def scalar(kind: str) -> Shape:
    return array(kind)


def tuple_of(*shapes: Shape) -> Shape:
    return Shape(element_type=TUPLE, tuple_shapes=shapes)


def dims_of(value: Value) -> tuple[int, ...]:
    """An array's sizes."""
    return tuple(value.shape.dimensions)


def size_of(*values: Value) -> int:
    """Bytes of some arrays."""
    return sum(shape_bytes(leaf) for value in values for leaf in leaves(value.shape))


def count_of(value: Value) -> int:
    """Elements of an array."""
    return elements(value.shape)
