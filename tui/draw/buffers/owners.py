"""Whose memory it is and how large the batch may be, in a line each, as the memory page and errors write them."""

from __future__ import annotations

from tpuprof.parsers.memory.account.owners import MemoryAccount, MemoryOwner
from tpuprof.parsers.memory.batch.fit import BatchFit
from tpuprof.tui.draw.buffers.fills import HELD, PADDING, USED
from tpuprof.tui.draw.format import binary_short, binary_size

_LEAST = 0.005  # of all: an owner with less is in no line
_THROUGHOUT: frozenset[MemoryOwner] = frozenset(
    ("parameters", "optimizer state", "KV cache", "inputs and outputs", "constants")
)

_SHORT: dict[MemoryOwner, str] = {
    "activations kept for backward": "kept for backward",
    "copies and layout changes": "copies",
    "infeed and host transfers": "transfers",
    "inputs and outputs": "in- and outputs",
    "temporaries of ops": "temporaries",
    "optimizer state": "optimizer",
}
"""Owners in a narrow line."""


def owner_words(owner: MemoryOwner, is_short: bool) -> str:
    """What an owner is called."""
    return _SHORT.get(owner, owner) if is_short else owner


def area_of(owner: MemoryOwner) -> int:
    """The area of the working set that an owner's bytes are in: there throughout, temporary, or padding."""
    return PADDING if owner == "padding" else HELD if owner in _THROUGHOUT else USED


def notable(account: MemoryAccount) -> list[tuple[MemoryOwner, int]]:
    """The owners with a share that is worth a word, the largest first, and what is unknown."""
    least = account.total_bytes * _LEAST
    return [(owner, size) for owner, size in account.owners.items() if size >= least or owner == "unknown"]


def fit_words(fit: BatchFit, is_short: bool = False) -> str:
    """How large the batch may be: ``batch is 8; up to 12 fits (14.3 GiB); 14 is over by 541 MiB``."""
    if fit.unknown:
        why = f"{fit.unknown[:1].lower()}{fit.unknown[1:]}"
        return f"largest batch unknown: {why.partition(': ')[0] if is_short else why}"
    sized = binary_short if is_short else binary_size
    now = f"batch is {fit.batch:,}; up to {fit.largest:,} fits ({sized(fit.largest_bytes)})"
    over = f"{fit.next:,} is over by {sized(fit.over_bytes)}"
    again = ", unless the compiler recomputes activations" if fit.may_recompute else ""
    return f"{now}; {over}{again}"
