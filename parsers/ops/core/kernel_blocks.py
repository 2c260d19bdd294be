"""What a kernel keeps on the chip: the block of each array that a grid step sees, and how many buffers it has."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tpuprof.parsers.base.record import dataclass
from tpuprof.parsers.base.words import share, shortened

if TYPE_CHECKING:
    from tpuprof.parsers.formats.mosaic.spec import KernelBuffer, KernelSpec

MOST_OF_IT = 0.5
"""An array is what a kernel waits for from this part of its waits on."""

ONE_BUFFER = "has one buffer, so that its next block comes only when the body is done with this one"


@dataclass(frozen=True, slots=True)
class BlockRow:
    """An array of a kernel, or its scratch. All of it is static.

    Attributes:
        name: of the operand in the program; ``result 0`` of a result; empty for scratch.
        buffer: what the kernel's module says of it.
    """

    name: str
    buffer: KernelBuffer

    @property
    def role(self) -> str:
        """What it is: ``input``, ``output``, ``prefetch``, ``scratch``, ``pipeline``: buffers of some array."""
        if self.buffer.role != "pipeline" or self.buffer.number is None:
            return self.buffer.role
        return "output" if self.buffer.is_output else "input"

    @property
    def is_copied_in(self) -> bool:
        """Whether grid steps wait for blocks of it."""
        each = self.buffer
        return self.role == "input" and each.space == "vmem" and each.buffers != 0 and each.fetches != 1

    @property
    def block(self) -> str:
        """Dimensions of a block, ``512,1024``; ``?`` for one that is known when the program runs."""
        return sizes(self.buffer.block)

    @property
    def array(self) -> str:
        return sizes(self.buffer.array or ())

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


def block_rows(spec: KernelSpec | None) -> tuple[BlockRow, ...]:
    """The arrays of a kernel: inputs, outputs, scratch; () where its module is not known.

    What `pltpu.emit_pipeline` allocates stands for the array that it copies, which the kernel gets as a whole.
    """
    if spec is None:
        return ()
    in_pipelines = {(each.number, each.is_output) for each in spec.buffers if each.role == "pipeline"}
    return tuple(
        BlockRow(_name(each), each)
        for each in spec.buffers
        if each.buffers != 0 or (each.number, each.is_output) not in in_pipelines
    )


def _name(buffer: KernelBuffer) -> str:
    if buffer.number is None:
        return ""
    if buffer.is_output:
        return f"result {buffer.number}"
    return buffer.name or f"operand {buffer.number}"


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
    return f"{share(part)} is for {row.block.replace(',', 'x')} blocks of {shortened(row.name)}, which {why}"


def block_sizes(rows: Sequence[BlockRow]) -> str:
    """The sizes of all blocks that are copied, by which variants of a kernel differ: ``512x512 512x1024 512x1024``."""
    return " ".join(row.block.replace(",", "x") for row in rows if row.role in ("input", "output", "pipeline"))
