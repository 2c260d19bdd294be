"""Finds the kernel in a module: its function, its grid, its windows, and what it allocates itself.

A Pallas kernel is one function. Its arguments are the indices of the grid, the prefetched numbers, a view of a block of
each input and output, and its scratch; `window_params` says for each input and output which block it is. A kernel that
uses `pltpu.emit_pipeline` gets whole arrays and allocates the buffers of its pipeline in its body.
"""

from __future__ import annotations

from collections.abc import Iterator

from tpuprof.parsers.base.errors import Damaged
from tpuprof.parsers.base.record import dataclass
from tpuprof.parsers.formats.mosaic.bytecode import Block, Module, Op
from tpuprof.parsers.formats.mosaic.entries import PREFIX, Entries, Shaped


@dataclass(frozen=True, slots=True)
class Window:
    """Which block of an array a step of the grid sees.

    Attributes:
        bounds: the block's dimensions; None where the kernel gets the whole array.
        index_map: name of the function that says which block; None where there is none.
        is_single: whether the kernel asks for one buffer, which is then filled while nothing is computed.
    """

    bounds: tuple[int, ...] | None
    index_map: str | None
    is_single: bool


@dataclass(frozen=True, slots=True, eq=False)
class Kernel:
    """The function of a kernel.

    Attributes:
        entries: the attributes and types of its module.
        grid: the bounds of its grid; None for one that is known when the program runs.
        prefetched: how many arguments are numbers that are there before it starts.
        scratch: how many arguments are scratch.
        arguments: types of its arguments behind the indices of the grid, None for what is no memory.
        windows: for each input and output; () for a kernel that gets whole arrays.
        body: its ops.
        functions: the other functions by name: which block of an array a step sees.
    """

    entries: Entries
    grid: tuple[int | None, ...]
    prefetched: int
    scratch: int
    arguments: tuple[Shaped | None, ...]
    windows: tuple[Window, ...]
    body: Block
    functions: dict[str, Block]


def read_kernel(data: bytes) -> Kernel:
    """The kernel of a module.

    Args:
        data: the module in MLIR's bytecode.

    Raises:
        Damaged: the module cannot be read, or has no function.
    """
    module = Module(data)
    entries = Entries(module)
    functions = {
        entries.text(entries.dictionary(op.attributes).get("sym_name")) or "": op for op in reversed(_functions(module))
    }
    for op in functions.values():
        attributes = entries.dictionary(op.attributes)
        if "scalar_prefetch" in attributes or "dimension_semantics" in attributes:
            blocks = {name: body for name, each in functions.items() if each is not op and (body := _body(each))}
            return _kernel(entries, op, attributes, blocks)
    raise Damaged("it has no function that is a kernel")


def _functions(module: Module) -> list[Op]:
    """The functions of the module, which may be inside an op that stands for it."""
    tops = module.block.ops
    inner = [op for top in tops for region in top.regions for block in region for op in block.ops]
    return [op for op in (*tops, *inner) if op.name.removeprefix(PREFIX) == "func.func"]


def _body(op: Op) -> Block | None:
    return op.regions[0][0] if op.regions and op.regions[0] else None


def _kernel(entries: Entries, op: Op, attributes: dict[str, int], functions: dict[str, Block]) -> Kernel:
    body = _body(op)
    if body is None:
        raise Damaged("its kernel has no body")
    bounds = entries.numbers(attributes.get("iteration_bounds")) or ()
    arguments = body.arguments[len(bounds) :]
    return Kernel(
        entries=entries,
        grid=tuple(bound if bound >= 0 else None for bound in bounds),
        prefetched=_count(entries.integer(attributes.get("scalar_prefetch")), len(arguments)),
        scratch=_count(entries.integer(attributes.get("scratch_operands")), len(arguments)),
        arguments=tuple(entries.shaped(argument.type) for argument in arguments),
        windows=tuple(_window(entries, each) for each in entries.items(attributes.get("window_params"))),
        body=body,
        functions=functions,
    )


def _count(value: int | None, most: int) -> int:
    value = value or 0
    if not 0 <= value <= most:
        raise Damaged("its kernel has fewer arguments than it claims")
    return value


def _window(entries: Entries, number: int) -> Window:
    attributes = entries.dictionary(number)
    return Window(
        entries.numbers(attributes.get("window_bounds")),
        entries.text(attributes.get("transform_indices")),
        entries.word(attributes.get("pipeline_mode")) == "synchronous",
    )


@dataclass(frozen=True, slots=True, eq=False)
class Allocation:
    """Memory that a kernel allocates in its body.

    Attributes:
        shape: what it is.
        slots: how many buffers it has where a pipeline copies into it: it then has as many semaphores; else None.
        op: that allocates it.
    """

    shape: Shaped
    slots: int | None
    op: Op


def allocations(kernel: Kernel) -> Iterator[Allocation]:
    """What the body allocates, in its order. `pltpu.emit_pipeline` has as many semaphores as buffers behind each."""
    pending: tuple[Shaped, Op] | None = None
    for op in kernel.body.walk():
        name = op.name.removeprefix(PREFIX)
        shape = kernel.entries.shaped(op.results[0].type) if op.results else None
        if name not in ("memref.alloca", "tpu.sem_alloc") or shape is None:
            continue
        is_semaphore = name == "tpu.sem_alloc"
        if pending is not None:
            before, where = pending
            slots = before.dimensions[0] if is_semaphore and shape.dimensions == before.dimensions[:1] else None
            yield Allocation(before, slots, where)
        pending = None if is_semaphore else (shape, op)
    if pending is not None:
        yield Allocation(pending[0], None, pending[1])
