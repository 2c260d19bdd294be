"""What a kernel keeps on the chip: the block of each array that a grid step sees, and how many buffers it has."""

from __future__ import annotations

from collections.abc import Sequence

from tpuprof.parsers.base.record import dataclass
from tpuprof.parsers.base.words import share, short
from tpuprof.parsers.formats.mosaic.spec import KernelBuffer, KernelSpec

MOST_OF_IT = 0.5
"""An array is what a kernel waits for from this part of its waits on."""

ONE_BUFFER = "has one buffer, so that its next block comes only when the body is done with this one"


@dataclass(frozen=True, slots=True)
class BlockRow:
    """An array of a kernel, or its scratch. All of it is static.

    Attributes:
        name: of the operand in the program; ``result 0`` of a result; empty for scratch.
        whole: what the kernel's module says of the array; buffer: and of what it keeps of it on the chip.
        is_copied_in: whether grid steps wait for blocks of it.
    """

    name: str
    whole: KernelBuffer
    buffer: KernelBuffer
    is_copied_in: bool

    @property
    def role(self) -> str:
        """What it is: ``input``, ``output``, ``prefetch``, ``scratch``, ``pipeline``: buffers of some array."""
        return self.whole.role

    @property
    def block(self) -> str:
        """Dimensions of a block, ``512,1024``; ``?`` for one that is known when the program runs."""
        return sizes(self.buffer.block)

    @property
    def array(self) -> str:
        """Dimensions of the whole array; empty where there is none."""
        return sizes(self.whole.array or ())

    @property
    def words(self) -> str:
        """The block in a few words: ``512x1024 f32, 2 buffers``."""
        count = self.buffer.buffers
        words = f"{self.block.replace(',', 'x') or 'scalar'} {self.buffer.element}"
        if count == 0:
            return f"{words}, read where it lies"
        return words + ("" if count is None else ", 1 buffer" if count == 1 else f", {count} buffers")


def sizes(dimensions: Sequence[int]) -> str:
    """Dimensions with commas between them."""
    return ",".join("?" if size < 0 else str(size) for size in dimensions)


def block_rows(spec: KernelSpec | None, operands: Sequence[str]) -> tuple[BlockRow, ...]:
    """The arrays of a kernel: inputs, outputs, scratch; () where its module is not known.

    What `pltpu.emit_pipeline` allocates stands for the arrays that the kernel gets as a whole, in their order.

    Args:
        operands: names of the custom call's operands.
    """
    if spec is None:
        return ()
    arrays = [each for each in spec.buffers if each.role in ("input", "output")]
    pipelines = [each for each in spec.buffers if each.role == "pipeline"]
    whole = [each for each in arrays if each.buffers == 0]
    of_pipeline = dict(zip(map(id, pipelines), whole, strict=True)) if len(pipelines) == len(whole) else {}
    rows = []
    for each in spec.buffers:
        of = of_pipeline.get(id(each), each)
        if of_pipeline and each in whole:
            continue
        is_input = of.role == "input" and each.space == "vmem" and each.buffers != 0
        rows.append(BlockRow(_name(of, operands), of, each, is_input and each.fetches != 1))
    return tuple(rows)


def _name(buffer: KernelBuffer, operands: Sequence[str]) -> str:
    if buffer.number is None:
        return ""
    if buffer.role == "output":
        return f"result {buffer.number}"
    return operands[buffer.number] if buffer.number < len(operands) else f"operand {buffer.number}"


def waited_for(rows: Sequence[BlockRow], places: Sequence[float]) -> tuple[tuple[BlockRow, float], ...]:
    """The arrays whose blocks a kernel waits for, each with its part of these waits; () where it is not known.

    Args:
        places: the part (0-1) of the waits at each place of a grid step.
    """
    copied = [row for row in rows if row.is_copied_in]
    return tuple(zip(copied, places, strict=True)) if len(places) == len(copied) else ()


def wait_words(waits: Sequence[tuple[BlockRow, float]]) -> str:
    """Which array a kernel waits for most, and why, as a clause; empty where that is not known, or it is several."""
    row, part = max(waits, key=lambda pair: pair[1], default=(None, 0.0))
    if row is None or part < MOST_OF_IT:
        return ""
    why = ONE_BUFFER if row.buffer.buffers == 1 else f"has {row.buffer.buffers} buffers"
    return f"{share(part)} is for {row.block.replace(',', 'x')} blocks of {short(row.name)}, which {why}"


def block_sizes(rows: Sequence[BlockRow]) -> str:
    """The sizes of all blocks that are copied, by which variants of a kernel differ: ``512x512 512x1024 512x1024``."""
    return " ".join(row.block.replace(",", "x") for row in rows if row.role in ("input", "output", "pipeline"))
