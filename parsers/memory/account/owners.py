"""One account of memory: whose each byte at the peak is.

Whose a buffer is follows from what defines it, what fills it and what it is used for (see `roles`), and not from
its size. What tiles leave empty is padding, whoever's buffer it is; what the text of an error does not list is unknown.
The owners add up to the need to the byte.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from typing import Literal

from tpuprof.parsers.base.record import dataclass
from tpuprof.parsers.base.regex import pattern
from tpuprof.parsers.memory.account.need import Need, elsewhere, largest_at
from tpuprof.parsers.memory.account.roles import BufferFacts, Role, read
from tpuprof.parsers.memory.model import SpaceMemory

MemoryOwner = (
    Literal["parameters", "gradients", "optimizer state", "activations kept for backward", "attention scores"]
    | Literal["logits and loss", "KV cache", "inputs and outputs", "copies and layout changes", "collectives"]
    | Literal["infeed and host transfers", "temporaries of ops", "constants", "kernel memory", "padding"]
    | Literal["fragmentation", "unknown"]
)
"""Who owns bytes. ``temporaries of ops`` are in memory between the op that makes them and those that use them next."""

_OF_ROLE: Mapping[Role, MemoryOwner] = {
    "attention": "attention scores",
    "loss": "logits and loss",
    "activation": "activations kept for backward",
    "backward": "temporaries of ops",
    "forward": "temporaries of ops",
    "gradient": "gradients",
    "optimizer": "optimizer state",
    "weight copy": "copies and layout changes",
    "copy": "copies and layout changes",
    "parameter": "parameters",
    "cache": "KV cache",
    "output": "inputs and outputs",
    "scoped": "kernel memory",
}
KV_CACHE = pattern(r"(?<![A-Za-z])(?:kv_?)?cache|(?<![A-Za-z])past_key|kv_(?:key|value|pages)", re.IGNORECASE)
COLLECTIVE = pattern(r"(?:all-(?:gather|reduce|to-all)|reduce-scatter|collective-|ragged-all-to-all)")
_TRANSFER = pattern(r"(?:infeed|outfeed|send|recv)(?:-|$)")
_COPIES = frozenset(("copy", "copy-start", "copy-done", "transpose"))


@dataclass(frozen=True, slots=True)
class MemoryAccount:
    """Whose the bytes of a need are.

    Attributes:
        owners: bytes of each owner that has any, the largest first; they add up to `total_bytes`.
    """

    total_bytes: int
    owners: Mapping[MemoryOwner, int]


def account(need: Need) -> MemoryAccount | None:
    """The account of a need; None where not even that is known. What is listed beyond the need is not counted."""
    if need.used_bytes is None:
        return None
    total = left = need.used_bytes
    sizes: Counter[MemoryOwner] = Counter()
    for item in read(need).items:
        size = min(item.size, left)
        left -= size
        padding = min(item.buffer.padding_bytes or 0, size)
        sizes["padding"] += padding
        sizes[owner_of(item, need)] += size - padding
    gaps = min(left, need.fragmentation_bytes or 0) if need.is_whole else 0
    sizes["fragmentation"] += gaps
    sizes["unknown"] += left - gaps
    return MemoryAccount(total, {owner: size for owner, size in sizes.most_common() if size})


def owners_of_rows(memory: SpaceMemory, need: Need) -> dict[int, MemoryOwner]:
    """Row of `memory.live_ranges` to the owner, of the buffers at the peak, and of the largest of the whole program.

    Args:
        need: of this memory at its peak, with its moments.
    """
    facts = read(need)
    every = facts.everywhere or facts
    rows = [*largest_at(memory, memory.peak_position), *elsewhere(memory, memory.peak_position)]
    return {row: owner_of(item, need) for row, item in zip(rows, every.items, strict=False)}


def owner_of(item: BufferFacts, need: Need) -> MemoryOwner:
    """Whose a buffer is, without its padding."""
    buffer = item.buffer
    if buffer.category == "constant":
        return "constants"
    if buffer.category == "thread-local":
        return "temporaries of ops"
    if COLLECTIVE.match(item.opcode):
        return "collectives"
    if _TRANSFER.match(item.opcode):
        return "infeed and host transfers"
    if buffer.category in ("parameter", "output") and KV_CACHE.search(f"{item.op} {buffer.name}"):
        return "KV cache"
    if item.role == "parameter" and not item.is_float and need.known.role(buffer) is None:
        return "inputs and outputs"
    if item.role == "other":
        if item.opcode in _COPIES:
            return "copies and layout changes"
        return "temporaries of ops" if item.is_temporary and (item.op or need.is_whole) else "unknown"
    return _OF_ROLE.get(item.role, "unknown")
