"""What an out-of-memory error says, and what can be done about it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from tpuprof.parsers.base.record import dataclass, field
from tpuprof.parsers.memory.account.need import Moments, OomKind
from tpuprof.parsers.memory.model import Buffer


@dataclass(frozen=True, slots=True)
class OomReport:
    """One out-of-memory error of a TPU program; sizes in bytes, None where the text does not say.

    Attributes:
        memory_space: ``hbm``, ``vmem``, ``smem``, … in lower case.
        sentence: its first sentence, control characters neutralised, at most 500 characters.
        at_line: line of the log where it stands first, from 1.
        count: how often the log has it, once per host and once more in each traceback.
        code: ``E1000`` …, as printed in front.
        program: the module's name.
        device: such as ``0x0x0_HBM0``.
        used_bytes, capacity_bytes, exceeded_bytes: what would be in use, what there is, by how much that is too much;
            of a request, what is in use already.
        requested_bytes, free_bytes: what could not be allocated (load and run time), and what was free then.
        reserved_bytes, program_bytes, arguments_bytes: the parts of the use; output_bytes, shared_bytes: outputs, and
            how much of them shares memory with arguments.
        global_bytes, scoped_bytes, overlays_bytes, hlo_temp_bytes: the parts of the program.
        unpadded_bytes: temporaries without padding; padding_bytes: padding of the temporaries or, where the text
            totals none, of the listed buffers.
        utilization, fragmentation: fractions; fragmentation_bytes: the latter in bytes.
        buffers: the listed allocations, the largest first.
        is_cut: whether the text ends in the middle.
        unknown: attribute name to why it is None.
        tensor_core_bytes, sparse_core_bytes: the parts of `used_bytes` where an error counts them by core.
        log: the name of its log, where several were read; the first of those that have it.
        dump: the file of the compiler's dump that the figures and all buffers are from; None where they are the text's.
        moments: the whole program, by that dump.
        wanted_tokens, fitting_tokens: of a serving engine's KV cache: the tokens of its longest request, and how many
            fit.
    """

    kind: OomKind
    memory_space: str | None
    sentence: str
    at_line: int
    count: int = 1
    code: str | None = None
    program: str | None = None
    device: str | None = None
    used_bytes: int | None = None
    capacity_bytes: int | None = None
    exceeded_bytes: int | None = None
    requested_bytes: int | None = None
    free_bytes: int | None = None
    reserved_bytes: int | None = None
    program_bytes: int | None = None
    arguments_bytes: int | None = None
    output_bytes: int | None = None
    shared_bytes: int | None = None
    global_bytes: int | None = None
    scoped_bytes: int | None = None
    overlays_bytes: int | None = None
    hlo_temp_bytes: int | None = None
    unpadded_bytes: int | None = None
    padding_bytes: int | None = None
    utilization: float | None = None
    fragmentation: float | None = None
    fragmentation_bytes: int | None = None
    buffers: tuple[Buffer, ...] = ()
    is_cut: bool = False
    unknown: Mapping[str, str] = field(default_factory=dict)
    tensor_core_bytes: int | None = None
    sparse_core_bytes: int | None = None
    log: str | None = None
    dump: str | None = None
    moments: Moments | None = None
    wanted_tokens: int | None = None
    fitting_tokens: int | None = None


@dataclass(frozen=True, slots=True)
class OomLog:
    """What a log holds.

    Attributes:
        reports: the errors, each once, in order of their first appearance.
        notes: what is odd about the log (UTF-16, damaged), what was met that is no TPU error (a GPU's, the host's own
            memory) and what is left out, a sentence each.
        lines, bytes_read: how long the log is; the bytes as they are in the file, compressed maybe.
        dumps: the folders that its flags name for the compiler's dumps, each once.
    """

    reports: tuple[OomReport, ...]
    notes: tuple[str, ...]
    lines: int
    bytes_read: int
    dumps: tuple[str, ...] = ()


AdviceKind = Literal[
    "padding", "remat", "bf16", "optimizer", "duplicates", "batch", "donation", "scoped", "fragmentation", "other"
]


@dataclass(frozen=True, slots=True)
class Change:
    """A change to a program.

    Attributes:
        key: names it, as in `Toggle`; besides ``limit``, the kernel's own limit, and ``shard``.
        target: the new batch, the divisor of blocks, the limit in bytes, the number of chips; None where it has none.
    """

    key: str
    target: int | None = None


@dataclass(frozen=True, slots=True)
class Plan:
    """The cheapest combination of changes that fits, or the one that comes nearest.

    Attributes:
        changes: in the order of the sentence.
        used_bytes: the need after them, an estimate.
        fits: whether that is less than there is.
        sentence: all of it in one line.
        costs: what the changes cost when the program runs, a phrase each.
    """

    changes: tuple[Change, ...]
    used_bytes: int
    fits: bool
    sentence: str
    costs: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Advice:
    """One thing to do, with its arithmetic; an estimate always.

    Attributes:
        saving_bytes: what it would save; None where that can't be estimated.
        sentence, how: what takes the memory, and what to do about it, a sentence each.
        arithmetic: where the saving comes from: ``64 x 4 x 2048 x 2048 x 4 B = 4.00 GiB; at 2 B: 2.00 GiB``.
        source: ``file:line`` of the code that it is about; None where unknown.
        buffers: indices into the buffers that it is about, the largest first.
        least_bytes: what it saves at least, where the compiler decides how much; None where `saving_bytes` is meant to
            be that.
        change: what it amounts to; None where that is not one change of the program.
    """

    kind: AdviceKind
    saving_bytes: int | None
    sentence: str
    how: str
    arithmetic: str
    source: str | None
    buffers: tuple[int, ...]
    change: Change | None = None
    least_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class Toggle:
    """A change to try in *what-if*.

    Attributes:
        key: names it: ``batch``, ``bf16``, ``remat``, ``padding``, ``padding 2``, ``donation``.
        kind: of the advice that it tries out.
        title: for people: ``batch 64 -> 32``.
        buffers: indices of the buffers that it would change.
    """

    key: str
    kind: AdviceKind
    title: str
    buffers: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class WhatIfEstimate:
    """What the chosen toggles would come to: arithmetic on the listed buffers.

    Attributes:
        used_bytes: need after them; None where the need is unknown.
        saved_bytes: by all of them together.
        saved_by: toggle to what it saves in the order in which they were applied; each byte counts once.
        sizes: size of each buffer after them.
    """

    used_bytes: int | None
    saved_bytes: int
    saved_by: Mapping[str, int]
    sizes: tuple[int, ...]
