"""What a Pallas kernel of a compiled program is: grid, blocks, buffers, scratch and memory, as the program says.

All of it is static: it is read from the custom call and the Mosaic module that the compiler was given, and nothing
was measured. JAX stores the module in the JSON of the call's backend config, as ``custom_call_config.body``; the
compiler adds how much memory it set aside (``used_scoped_memory_configs``).
"""

from __future__ import annotations

import binascii
import json
import re
from collections.abc import Iterator, Sequence
from math import prod
from typing import TYPE_CHECKING

import numpy as np

from tpuprof.parsers.base.errors import Damaged, behind_wall
from tpuprof.parsers.base.intervals import Int64s
from tpuprof.parsers.base.record import dataclass
from tpuprof.parsers.formats.hlo.modules import KERNEL_TARGET, HloModule
from tpuprof.parsers.formats.hlo.shapes import element_type
from tpuprof.parsers.formats.mosaic.bytecode import MAGIC
from tpuprof.parsers.formats.mosaic.entries import Shaped
from tpuprof.parsers.formats.mosaic.follow import OpBudget, State, TooLong, Walk
from tpuprof.parsers.formats.mosaic.kernel import Kernel, Window, allocations, read_kernel
from tpuprof.parsers.formats.mosaic.scalars import Number
from tpuprof.parsers.formats.mosaic.sizes import bytes_of, elements, unpadded_bytes
from tpuprof.parsers.formats.mosaic.work import Amount, Work, work_of
from tpuprof.parsers.formats.xspace.walk import text

if TYPE_CHECKING:
    from tpuprof.parsers.formats.proto import hlo_pb2


@dataclass(frozen=True, slots=True)
class Visits:
    """How the steps of a grid go over the blocks of an array.

    Attributes:
        is_constant: whether each step sees the same block; None where it is not known.
        fetches: how often a step sees another block than the step before, the first one counted; None where unknown.
        copied: elements of these blocks, what reaches over the array's end left out; None where unknown.
    """

    is_constant: bool | None = None
    fetches: int | None = None
    copied: int | None = None


class VisitsOf:
    """The visits of the windows of one kernel; windows with the same function ask it once."""

    def __init__(self, kernel: Kernel, budget: OpBudget) -> None:
        self._kernel, self._budget = kernel, budget
        self._blocks: dict[str, list[Number] | None] = {}
        self._walk: Walk | None = None

    def of(self, window: Window, array: Sequence[int] | None) -> Visits:
        """How a window goes over its array, whose dimensions are None where they are not known."""
        name, bounds = window.index_map, window.bounds
        if name is None or bounds is None:
            return Visits()
        if name not in self._blocks:
            self._blocks[name] = self._block_of_step(name)
        block = self._blocks[name]
        if block is None or len(block) != len(bounds):
            return Visits()
        if self._walk is not None and self._walk.steps == 0:
            return Visits(True, 0, 0)
        fixed, walk = self._is_constant(block), self._walk
        known = [each for each in block if each is not None]
        steps = 1 if fixed else None if walk is None else walk.steps
        if len(known) < len(block) or steps is None:
            return Visits(fixed)
        try:
            if not fixed:
                self._budget.spend(len(block) * steps)
        except TooLong:
            return Visits(False)
        of_step = [np.broadcast_to(np.ravel(each)[:steps], steps) for each in known]
        return Visits(fixed, *_fetched(np.array(of_step, np.int64).reshape(-1, steps), bounds, array))

    def _is_constant(self, block: list[Number]) -> bool | None:
        if any(isinstance(each, np.ndarray) and len(each) and np.any(each != each[0]) for each in block):
            return False
        return None if any(each is None for each in block) else True

    def _block_of_step(self, name: str) -> list[Number] | None:
        """The block of each step of the grid; None where the function is not there, or takes too long to follow."""
        body = self._kernel.functions.get(name)
        if body is None:
            return None
        try:
            self._walk = self._walk or Walk(self._kernel.entries, self._kernel.grid, self._budget)
            return self._walk.run(body, self._walk.indices, State(None, self._walk.steps))
        except TooLong:
            return None


def _fetched(block: Int64s, bounds: Sequence[int], array: Sequence[int] | None) -> tuple[int, int | None]:
    """Fetches and copied elements, see `Visits`, of the block of each step: an array of dimensions times steps."""
    changed = np.any(np.diff(block, axis=1) != 0, axis=0)
    fetched = np.flatnonzero(np.concatenate([[True], changed]))
    elements = _elements(block, bounds, array)
    return len(fetched), None if elements is None else int(elements[fetched].sum())


def _elements(block: Int64s, bounds: Sequence[int], array: Sequence[int] | None) -> Int64s | None:
    """Elements of blocks that lie in the array."""
    if array is None or len(array) != len(bounds) or prod(array) >= 1 << 62:
        return None
    size = np.array(bounds, np.int64)[:, None]
    inside = np.clip(np.array(array, np.int64)[:, None] - block * size, 0, size)
    elements: Int64s = np.prod(inside, axis=0, dtype=np.int64)
    return elements


_VMEM = "vmem"
_COPIED = ("vmem", "smem")
_SPACE_OF_VMEM = 1  # in HLO's layouts and in the scoped memory of a backend config
_LARGEST = 1 << 62
NO_MODULE = "the program does not hold its Mosaic module"
"""The reason where there is nothing to read."""

_DOUBLE = 2


@dataclass(frozen=True, slots=True)
class KernelBuffer:
    """What a kernel keeps in memory on the chip, or reads where it lies.

    Attributes:
        role: ``prefetch``, ``input``, ``output``, ``scratch``; ``pipeline`` for what `pltpu.emit_pipeline` allocates.
        number: which operand of the custom call it is, or for an output which result. Of scratch and pipelines: the
            operand or result that is copied to or from it, as `is_output` says; None where none is.
        is_output: whether `number` is one of a result.
        name: what the program calls that array: an argument's name, else that of the instruction that makes it; empty
            where it has none.
        array: its dimensions; None where there is no array.
        block: dimensions of what the kernel sees at a time; a dimension below zero is not known before it runs.
        element: its type, ``bf16``, ``f32``, ``dma_semaphore``.
        space: ``vmem``, ``smem``, ``semaphore_mem``; ``any`` for an array that stays where it is; empty if not stated.
        buffers: how many of such blocks are kept, two where the next one is copied meanwhile; 0 where the kernel reads
            the array where it is; None where the module does not say.
        bytes: of one block, in VMEM padded as Mosaic does; None where they are not known.
        fetches: how many blocks are copied in one call: a step of the grid that sees the block of the step before
            copies none; None where it is not known.
        copied_bytes: bytes of these blocks that lie in the array, without padding; of an array that stays where it is,
            what the kernel copies of it itself; None where they are not known.
    """

    role: str
    number: int | None
    is_output: bool
    name: str
    array: tuple[int, ...] | None
    block: tuple[int, ...]
    element: str
    space: str
    buffers: int | None
    bytes: int | None
    fetches: int | None = None
    copied_bytes: int | None = None

    @property
    def total_bytes(self) -> int | None:
        """Bytes of all its buffers; None where they are not known."""
        return None if self.bytes is None or self.buffers is None else self.bytes * self.buffers


@dataclass(frozen=True, slots=True)
class KernelSpec:
    """One kernel, as its custom call and its Mosaic module describe it.

    Attributes:
        metadata: what the author says of it (``kernel_metadata`` and other frontend attributes), as pairs of texts.
        grid: its bounds, None for one that is known when the program runs; () for one step.
        buffers: prefetched numbers, inputs, outputs, scratch, pipelines, in this order.
        used_vmem_bytes: what the compiler set aside for it in VMEM, its spills too; None where it does not say.
        vmem_limit_bytes: how much it may take by `vmem_limit_bytes`; None where the call sets no limit.
        matrix_flops: of its matrix products by their shapes, 2 m n k each.
        runs: how often vector ops run in one call, as pairs: the calls that they come from, ``file:line`` each with the
            innermost first, and numbers, more than one where some run more often than others. What is not known is
            left out.
        reason: why grid and buffers are not known, as a sentence without its point; empty where they are.
    """

    metadata: tuple[tuple[str, str], ...]
    grid: tuple[int | None, ...] | None
    buffers: tuple[KernelBuffer, ...]
    used_vmem_bytes: int | None
    vmem_limit_bytes: int | None
    matrix_flops: Amount
    runs: tuple[tuple[tuple[str, ...], tuple[int, ...]], ...] = ()
    reason: str = ""

    @property
    def steps(self) -> int | None:
        """Steps of the grid; None where a bound is not known before the program runs."""
        if self.grid is None or None in self.grid:
            return None
        return prod(bound for bound in self.grid if bound is not None)

    def bytes_in(self, space: str) -> int | None:
        """Bytes of the buffers in ``vmem`` or ``smem``; None where the buffers or one of them are not known."""
        if self.reason:
            return None
        sizes = [each.total_bytes for each in self.buffers if each.space == space]
        return None if None in sizes else sum(size for size in sizes if size is not None)


def kernel_spec(hlo: HloModule, proto: hlo_pb2.HloInstructionProto) -> KernelSpec | None:
    """What a custom call says of its kernel; None for an instruction that calls no Mosaic kernel.

    A module that is damaged, or in a form that is not read here, leaves `grid` at None, and `reason` says why.
    """
    if proto.opcode != b"custom-call" or proto.custom_call_target != KERNEL_TARGET:
        return None
    config = _json(hlo.backend_config(proto))
    call = config.get("custom_call_config")
    call = call if isinstance(call, dict) else {}

    def read() -> tuple[Kernel, Work, tuple[KernelBuffer, ...]]:
        kernel, budget = read_kernel(module_bytes(call)), OpBudget()
        work = work_of(kernel, budget)
        return kernel, work, tuple(_buffers(hlo, proto, kernel, work, budget))

    failed = [] if call.get("body") else [NO_MODULE]
    found = None if failed else behind_wall("read its Mosaic module", read, failed, is_decoder=True)
    kernel, work, buffers = found or (None, None, ())
    reason = "".join(failed)
    said = proto.frontend_attributes.map
    metadata = tuple(sorted((key, text(value)) for key, value in said.items() if value != b"{}"))
    return KernelSpec(
        metadata=metadata,
        grid=kernel.grid if kernel is not None else None,
        buffers=buffers,
        used_vmem_bytes=_scoped(config.get("used_scoped_memory_configs")),
        vmem_limit_bytes=_scoped(config.get("scoped_memory_configs")),
        matrix_flops=Amount(None, reason) if work is None else work.matrix_flops,
        runs=() if work is None else tuple(sorted(work.runs.items())),
        reason=reason,
    )


def _json(config: bytes) -> dict[str, object]:
    try:
        read = json.loads(text(config))
    except (ValueError, RecursionError):
        return {}
    return read if isinstance(read, dict) else {}


def module_bytes(call: dict[str, object]) -> bytes:
    """The module of a kernel in the ``custom_call_config`` of a custom call.

    Raises:
        Damaged: it is in no form that is read here.
    """
    body = call.get("body")
    try:
        data = binascii.a2b_base64(body if isinstance(body, str) else "", strict_mode=True)
    except ValueError:
        raise Damaged("it is not written in base 64") from None
    if not data.startswith(MAGIC):
        raise Damaged("it is not written in MLIR's bytecode")
    return data


def _integer(value: object) -> int | None:
    """A number that JSON may hold as text; None for what is none, or can't be true."""
    if isinstance(value, str) and re.fullmatch(r"[0-9]{1,19}", value):
        value = int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < _LARGEST else None


def _scoped(entries: object) -> int | None:
    """Bytes in VMEM of a list of scoped memory; None where it has no entry for VMEM."""
    sizes = [
        _integer(entry.get("size"))
        for entry in (entries if isinstance(entries, list) else ())
        if isinstance(entry, dict) and _integer(entry.get("memory_space")) == _SPACE_OF_VMEM
    ]
    return max((size for size in sizes if size is not None), default=None)


def _buffers(
    hlo: HloModule, proto: hlo_pb2.HloInstructionProto, kernel: Kernel, work: Work, budget: OpBudget
) -> Iterator[KernelBuffer]:
    """The arguments of the kernel, then what it allocates."""
    visits = VisitsOf(kernel, budget)
    arrays = _arrays(hlo, proto, kernel)
    for index, (shape, array) in enumerate(zip(kernel.arguments, arrays, strict=True)):
        window = kernel.windows[index - kernel.prefetched] if kernel.windows and array.has_window else None
        amount = work.copied.get(index)
        yield _argument(array, shape, window, visits, None if amount is None else amount.value)
    for made in allocations(kernel):
        slots, shape = made.slots, made.shape
        if slots is not None:
            shape = Shaped(shape.kind, shape.dimensions[1:], shape.element, shape.space)
        number = work.buffer.get(made.op)
        array = _NO_ARRAY if number is None else arrays[number]
        yield _own("scratch" if slots is None else "pipeline", array, shape, slots or 1)


@dataclass(frozen=True, slots=True, eq=False)
class _Array:
    """What an argument of a kernel is in the program."""

    role: str
    number: int | None = None
    name: str = ""
    shape: hlo_pb2.ShapeProto | None = None

    @property
    def is_output(self) -> bool:
        return self.role == "output"

    @property
    def has_window(self) -> bool:
        return self.role in ("input", "output")

    @property
    def dimensions(self) -> tuple[int, ...] | None:
        return None if self.shape is None else tuple(self.shape.dimensions)


_NO_ARRAY = _Array("scratch")


def _arrays(hlo: HloModule, proto: hlo_pb2.HloInstructionProto, kernel: Kernel) -> list[_Array]:
    """What each argument is; bounds of the grid that are known when the program runs are operands in front of them."""
    results = list(proto.shape.tuple_shapes) if proto.shape.tuple_shapes else [proto.shape]
    operands = hlo.operand_protos(proto)
    dynamic = sum(bound is None for bound in kernel.grid)
    ahead, behind = kernel.prefetched, len(kernel.arguments) - kernel.scratch
    split = behind - len(results)
    if split < ahead or (kernel.windows and len(kernel.windows) != behind - ahead):
        raise Damaged("its kernel has other inputs and outputs than the custom call")
    arrays: list[_Array] = []
    for index in range(split):
        operand = operands[index + dynamic] if index + dynamic < len(operands) else None
        role = "prefetch" if index < ahead else "input"
        shape = None if operand is None else operand.shape
        arrays.append(_Array(role, index + dynamic, "" if operand is None else _called(operand), shape))
    arrays += [_Array("output", number, "", shape) for number, shape in enumerate(results)]
    return arrays + [_NO_ARRAY] * kernel.scratch


def _called(operand: hlo_pb2.HloInstructionProto) -> str:
    """What the program calls an argument of its own, else the instruction's name."""
    is_argument = operand.opcode == b"parameter" and operand.metadata.op_name
    return text(operand.metadata.op_name if is_argument else operand.name)


def _argument(
    array: _Array, shape: Shaped | None, window: Window | None, visits: VisitsOf, copied: int | None
) -> KernelBuffer:
    """One argument; `copied` is what the kernel copies of it itself."""
    if not array.has_window and array.role != "prefetch":
        return _own(array.role, array, shape)
    block, element, space = _parts(shape)
    in_vmem = array.shape is not None and array.shape.layout.memory_space == _SPACE_OF_VMEM
    if window is not None and window.bounds is not None:
        seen = visits.of(window, array.dimensions)
    elif space in _COPIED:
        seen = Visits(True, 1, elements(block))
    else:
        seen = Visits()
    if in_vmem:
        seen = Visits(seen.is_constant, 0, 0)
    if not element and array.shape is not None:
        element = element_type(array.shape)
    return KernelBuffer(
        role=array.role,
        number=array.number,
        is_output=array.is_output,
        name=array.name,
        array=array.dimensions,
        block=block,
        element=element,
        space=space,
        buffers=_how_many(space, window, seen, in_vmem),
        bytes=bytes_of(shape) if shape is not None else None,
        fetches=seen.fetches,
        copied_bytes=copied if seen.copied is None else unpadded_bytes((seen.copied,), element),
    )


def _parts(shape: Shaped | None) -> tuple[tuple[int, ...], str, str]:
    return ((), "", "") if shape is None else (shape.dimensions, shape.element, shape.space)


def _how_many(space: str, window: Window | None, seen: Visits, in_vmem: bool) -> int | None:
    """Two buffers for a block, so that the next is copied meanwhile; one where it is the same block in each step."""
    if space not in _COPIED:
        return 0 if space else None
    if in_vmem and space == _VMEM:
        return 0
    if window is None or window.bounds is None or window.is_single:
        return 1
    return _DOUBLE if seen.is_constant is not True else 1


def _own(role: str, array: _Array, shape: Shaped | None, buffers: int = 1) -> KernelBuffer:
    """Memory that the kernel has for itself, and the array that is copied to or from it."""
    block, element, space = _parts(shape)
    size = None if shape is None else bytes_of(shape)
    about = (array.number, array.is_output, array.name, array.dimensions)
    return KernelBuffer(role, *about, block, element, space, buffers, size)
