"""The classes of ops: what a core does while an op runs."""

from __future__ import annotations

from typing import Literal

OpClass = Literal["compute", "vector", "copy", "collective", "host", "idle", "unknown"]
"""What a core does while an op runs. Each class has one colour and one letter on every page.

compute: matrix unit (convolutions, dots and fusions of them). vector: everything else that computes. copy: data moved
on the device. collective: communication between cores. host: infeed, outfeed, transfers to and from the host. idle: no
op. unknown: the op's category is missing from the profile.
"""

OP_CLASSES: tuple[OpClass, ...] = ("compute", "vector", "copy", "collective", "host", "unknown", "idle")

COLLECTIVE_KINDS = (
    *("all-reduce", "all-gather", "reduce-scatter", "all-to-all", "ragged-all-to-all", "collective-permute"),
    *("collective-broadcast", "send", "recv"),
)
"""Opcodes of what moves data between cores, without their halves ``-start`` and ``-done``."""
