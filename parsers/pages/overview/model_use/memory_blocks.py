"""The memory of the step's program at its peak, by the blocks of the model."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from tpuprof.parsers.base.record import dataclass
from tpuprof.parsers.base.regex import pattern
from tpuprof.parsers.memory.account.need import need_of_memory
from tpuprof.parsers.memory.account.owners import MemoryOwner, owner_of
from tpuprof.parsers.memory.account.roles import BufferFacts, read
from tpuprof.parsers.memory.model import SpaceMemory
from tpuprof.parsers.pages.overview.model_use.hlo_flow import HloFlow, placed_by_names
from tpuprof.parsers.pages.overview.model_use.names import BLOCKS, Block, Scope, block_of

_OF_OWNER: Mapping[MemoryOwner, Block] = {
    "optimizer state": "optimizer",
    "attention scores": "attention",
    "logits and loss": "loss",
    "KV cache": "attention",
    "inputs and outputs": "other",
    "collectives": "other",
    "infeed and host transfers": "other",
}
"""Owners in the account of memory that are a block, or are known to be in no block."""

_PARTS = pattern(r"[\]\[.'\"/() ]+")


@dataclass(frozen=True, slots=True)
class MemoryRow:
    """A block's bytes at the peak, padding included; fraction: of the peak, 0-1."""

    block: Block
    size_bytes: int
    fraction: float


def memory_blocks(memory: SpaceMemory, flow: HloFlow) -> tuple[MemoryRow, ...]:
    """The memory of each block at the peak, in the order of `BLOCKS`; all add up to the peak.

    Weights, gradients and activations belong to their block, the optimizer's state to the optimizer. Buffers that are
    not listed, or that several blocks use, are unknown.
    """
    need = need_of_memory(memory)
    total = need.used_bytes or 0
    places, arguments = flow.places(), flow.arguments()
    sizes: Counter[Block] = Counter()
    left = total
    for item in read(need).items:
        size = min(item.size, left)
        left -= size
        block = _OF_OWNER.get(owner_of(item, need)) or _of_argument(item)
        if block is None:
            name = item.buffer.name.partition("{")[0]
            place = places.get(name)
            known = None if place is None or place.block in ("other", "unknown") else place.block
            block = arguments.get(name) or known or _of_names(item) or (None if place is None else place.block)
        sizes[block or "unknown"] += size
    sizes["unknown"] += left
    return tuple(MemoryRow(block, sizes[block], sizes[block] / total) for block in BLOCKS if sizes[block])


def _of_names(item: BufferFacts) -> Block | None:
    """The block by the names of the op that fills a buffer, all at once or slice by slice in a loop."""
    if item.buffer.category == "parameter" or not item.op:
        return None
    place = placed_by_names(item.op, "")
    return place.block or place.hint or ("other" if place.is_named else None)


def _of_argument(item: BufferFacts) -> Block | None:
    """The block by an argument's path, ``params['layers_0']['mlp']['wi']``."""
    if item.buffer.category != "parameter" or not item.op:
        return None
    parts: Sequence[str] = [part for part in _PARTS.split(item.op) if part]
    return block_of([Scope(part, part.lower(), False) for part in parts], True)[0]
