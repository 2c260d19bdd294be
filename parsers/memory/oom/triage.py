"""What a front end shows of memory that ran out, or nearly: the need and its parts, advice, and what could be tried.

One shape for both sources, an out-of-memory error and a compiled module, so that both are drawn by the same functions.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Mapping, Sequence
from typing import Literal

from tpuprof.parsers.base.record import dataclass, field
from tpuprof.parsers.memory.account.need import MOST_BUFFERS, Known, Need, OomKind, need_of_memory
from tpuprof.parsers.memory.account.owners import MemoryAccount, account
from tpuprof.parsers.memory.batch.fit import BatchFit
from tpuprof.parsers.memory.model import SPACE_NAMES, Category, SpaceMemory
from tpuprof.parsers.memory.oom.advice.advice import advise, saved_alone, toggles, what_if
from tpuprof.parsers.memory.oom.advice.plan import plan
from tpuprof.parsers.memory.oom.advice.scoped import kernel_name_of
from tpuprof.parsers.memory.oom.advice.words import amount as binary
from tpuprof.parsers.memory.oom.model import Advice, OomReport, Plan, Toggle, WhatIfEstimate

NeedPartName = (
    Literal["reserved", "arguments", "outputs", "program", "temporaries", "scoped", "global", "overlays", "constants"]
    | Literal["TensorCore", "SparseCore", "request", "other", "all"]
)
_Sizes = dict[NeedPartName, int | None]

_PART_OF: Mapping[Category, tuple[NeedPartName, ...]] = {
    "parameter": ("arguments",),
    "output": ("outputs", "arguments", "temporaries", "program"),
    "thread-local": ("temporaries", "program"),
    "constant": ("constants", "global", "program"),
    "temporary": ("temporaries", "program", "other", "all"),
    "scoped": ("scoped", "temporaries", "program", "other", "all"),
}
"""The parts that a buffer may be counted in; it is in the first one that there is."""

_SPACES = {name.lower(): name for name in SPACE_NAMES.values()}
_LONGEST_INITIALS = 5  # letters of a memory's name up to which an unknown one is taken for initials
NO_BUFFERS = (
    "The text lists no buffers: look for the list further down in the log, or compile again with "
    "XLA_FLAGS='--xla_dump_to=FOLDER --xla_dump_hlo_as_proto'. The compile fails as before, and its dump has every "
    "buffer: tpuprof-tui oom LOG FOLDER."
)


@dataclass(frozen=True, slots=True)
class NeedPart:
    """A part of what is needed, in bytes."""

    name: NeedPartName
    size_bytes: int


@dataclass(frozen=True, slots=True)
class Triage:
    """Memory that is full, taken apart.

    Attributes:
        kind: when it ran out; ``module`` for a compiled module, which may fit.
        title: the program's name; None where unknown.
        where: where this was read: ``train.log:41822``, or a host's name.
        sentence: the error's first sentence; empty for a module.
        need: what advice stands on; its buffers are those that `advice` and `toggles` count.
        parts: what is needed, in order; they add up to the need where that is known.
        padding_bytes: of all that, padding; None where unknown.
        reserved_bytes: kept by the system beside the need and the capacity; None where unknown or a part.
        requested_bytes, free_bytes, exceeded_bytes: as in `Need`.
        advice, toggles: what to do, the most worthwhile first, and what can be tried in the order of its advice.
        plan: the cheapest combination that fits; None where nothing is too large, or nothing known of the buffers.
        account: whose the bytes are; None where the need is unknown.
        fit: the largest batch with which a module fits; None of an error, and where that is not worked out.
        count, code, device, is_cut: as in `OomReport`.
        notes: what else to know, a sentence each.
        unknown: figure to why it is None.
    """

    kind: OomKind | Literal["module"]
    title: str | None
    where: str
    sentence: str
    need: Need
    parts: tuple[NeedPart, ...]
    padding_bytes: int | None
    reserved_bytes: int | None = None
    requested_bytes: int | None = None
    free_bytes: int | None = None
    exceeded_bytes: int | None = None
    advice: tuple[Advice, ...] = ()
    toggles: tuple[Toggle, ...] = ()
    count: int = 1
    code: str | None = None
    device: str | None = None
    is_cut: bool = False
    notes: tuple[str, ...] = ()
    unknown: Mapping[str, str] = field(default_factory=dict)
    plan: Plan | None = None
    account: MemoryAccount | None = None
    fit: BatchFit | None = None

    @property
    def space(self) -> str:
        """The memory's name for people: ``HBM``."""
        return space_words(self.need.memory_space)

    @property
    def toggle_numbers(self) -> tuple[int, ...]:
        """The key of each toggle: the number of the advice that it tries out, where there is one."""
        return toggle_numbers(self.advice, self.toggles)

    @property
    def is_request(self) -> bool:
        """Whether one request could not be met, so that what is in use is not known in parts."""
        return self.need.used_bytes is None and self.requested_bytes is not None

    @property
    def wanted_bytes(self) -> int | None:
        """What is needed in all, or what was requested at once."""
        return self.requested_bytes if self.is_request else self.need.used_bytes

    @property
    def limit_bytes(self) -> int | None:
        """What there is for it: the capacity, or for a request what was free."""
        return self.free_bytes if self.is_request else self.need.capacity_bytes

    @property
    def over_bytes(self) -> int | None:
        """By how much it is too large, negative where it fits; None where unknown."""
        if self.exceeded_bytes is not None and not self.is_request:
            return self.exceeded_bytes
        wanted, limit = self.wanted_bytes, self.limit_bytes
        return None if wanted is None or limit is None else wanted - limit


@dataclass(frozen=True, slots=True)
class Trial:
    """What the chosen toggles come to, and each alone; estimates all.

    Attributes:
        chosen: keys of the toggles that are on.
        estimate: of all of them together.
        alone: key of each toggle to what it would save alone.
    """

    chosen: frozenset[str]
    estimate: WhatIfEstimate
    alone: Mapping[str, int]


def space_words(name: str) -> str:
    """A memory's name as the memory page writes it: ``HBM``, ``SFlag``."""
    name = name.lower()
    return _SPACES.get(name, name.upper() if len(name) <= _LONGEST_INITIALS else name)


def toggle_numbers(advice: Sequence[Advice], toggles: Sequence[Toggle]) -> tuple[int, ...]:
    """A number from 1 for each toggle: that of the advice that it tries out; the others come after all advice."""
    free = set(range(len(advice)))
    others = itertools.count(len(advice) + 1)
    numbers: list[int] = []
    for toggle in toggles:
        rows = [row for row in free if advice[row].kind == toggle.kind]
        shares = [(_alike(advice[row].buffers, toggle.buffers), -row) for row in rows]
        share, row = max(shares, default=(0.0, 0))
        if share > 0:
            free.discard(-row)
        numbers.append(1 - row if share > 0 else next(others))
    return tuple(numbers)


def _alike(first: Collection[int], second: Collection[int]) -> float:
    """Share of the buffers of either that are of both."""
    both = len(set(first) & set(second))
    return both / len({*first, *second}) if both else 0.0


def _advised(need: Need) -> tuple[tuple[Advice, ...], tuple[Toggle, ...]]:
    """The advice about a need, and what can be tried, as it is numbered."""
    advice, changes = advise(need), toggles(need)
    pairs = sorted(zip(toggle_numbers(advice, changes), changes, strict=True), key=lambda pair: pair[0])
    return advice, tuple(toggle for _, toggle in pairs)


def triage_of_report(report: OomReport, where: str) -> Triage:
    """An error, with advice; `where` is the log's name, and the line is put behind it."""
    need = need_of_report(report)
    advice, toggles = _advised(need)
    parts, reserved = parts_of_report(report)
    return Triage(
        kind=report.kind,
        title=report.program,
        where=_where(report, where),
        sentence=report.sentence,
        need=need,
        parts=parts,
        padding_bytes=report.padding_bytes,
        reserved_bytes=reserved,
        requested_bytes=report.requested_bytes,
        free_bytes=report.free_bytes,
        exceeded_bytes=report.exceeded_bytes,
        advice=advice,
        toggles=toggles,
        count=report.count,
        code=report.code,
        device=report.device,
        is_cut=report.is_cut,
        notes=_notes(report, need),
        unknown=report.unknown,
        plan=plan(need),
        account=account(need),
    )


def _notes(report: OomReport, need: Need) -> tuple[str, ...]:
    """That the error lists no buffers; of a kernel that does not fit on the chip, what shows its blocks."""
    if report.kind == "compile" and need.memory_space == "hbm" and not need.buffers:
        return (NO_BUFFERS,)
    if is_request(report) and report.used_bytes is not None and report.capacity_bytes is not None:
        there, live = binary(report.capacity_bytes), binary(report.used_bytes)
        of_outputs = f", of which outputs take {binary(report.output_bytes)}" if report.output_bytes else ""
        return (f"{space_words(need.memory_space)} has {there}: {live} are live{of_outputs}.",)
    kernel = kernel_name_of(need)
    if not kernel:
        return ()
    command = f"tpuprof-tui report kernels LOGDIR --op {kernel}"
    return (f"{command} shows the kernel's blocks, buffers and waits, from a profile with sizes that fit.",)


def _where(report: OomReport, log: str) -> str:
    """``train.log:41822``, with the dump that its buffers are from; of a dump without a log its name."""
    places = [f"{report.log or log}:{report.at_line}"] if report.at_line else []
    return " + ".join(places + ([report.dump] if report.dump is not None else []))


def triage_of_memory(page: SpaceMemory, fit: BatchFit | None = None, known: Known | None = None) -> Triage:
    """A memory space of a compiled module at its peak, which thread-local allocations are no part of, with advice."""
    need = need_of_memory(page, known=known)
    advice, toggles = _advised(need)
    sizes: _Sizes = {
        "arguments": page.arguments_bytes,
        "outputs": page.outputs_bytes - page.aliased_bytes,
        "constants": page.constants_bytes,
        "temporaries": page.temporaries_bytes,
    }
    return Triage(
        kind="module",
        title=str(page.module),
        where=page.module.origin,
        sentence="",
        need=need,
        parts=_adding_up(sizes, page.peak_bytes),
        padding_bytes=page.padding_bytes,
        exceeded_bytes=need.exceeded_bytes,
        advice=advice,
        toggles=toggles,
        notes=page.warnings,
        unknown=page.unknown,
        plan=plan(need),
        account=account(need),
        fit=fit,
    )


def trial(triage: Triage, chosen: Collection[str]) -> Trial:
    """What some toggles come to."""
    keys = [toggle.key for toggle in triage.toggles]
    return Trial(frozenset(chosen), what_if(triage.need, tuple(chosen)), saved_alone(triage.need, keys))


def parts_of_report(report: OomReport) -> tuple[tuple[NeedPart, ...], int | None]:
    """Parts that add up to what is in use, and what is reserved beside it.

    Newer compilers count what the system reserves neither in the use nor in the capacity, older ones in both; the sum
    shows which.
    """
    used, reserved = None if is_request(report) else report.used_bytes, report.reserved_bytes
    cores: _Sizes = {"TensorCore": report.tensor_core_bytes, "SparseCore": report.sparse_core_bytes}
    if used is None:
        return () if report.requested_bytes is None else (NeedPart("request", report.requested_bytes),), reserved
    if any(size is not None for size in cores.values()):
        return _adding_up(cores, used), reserved
    arguments, program = report.arguments_bytes or 0, report.program_bytes
    rest = None if program is None else arguments + program - used
    is_part = bool(reserved) and rest is not None and abs((reserved or 0) + rest) < abs(rest)
    of_program: _Sizes = {
        "global": report.global_bytes,
        "scoped": report.scoped_bytes,
        "overlays": report.overlays_bytes,
        "temporaries": report.hlo_temp_bytes,
    }
    sizes: _Sizes = {"reserved": reserved if is_part else None, "arguments": report.arguments_bytes}
    sizes |= of_program if any(of_program.values()) else {"program": program}
    if report.dump is not None:  # the text of an error counts outputs in the program
        sizes["outputs"] = (report.output_bytes or 0) - (report.shared_bytes or 0)
    return _adding_up(sizes, used), None if is_part else reserved


def part_of(category: Category, parts: Collection[NeedPart]) -> NeedPartName | None:
    """The part that buffers of a category are counted in, None where there is none."""
    there = {part.name for part in parts}
    return next((name for name in _PART_OF[category] if name in there), None)


def _adding_up(sizes: _Sizes, total: int) -> tuple[NeedPart, ...]:
    """What is there of the parts, and what they leave of the total where that is more than rounding (1 %)."""
    parts = [NeedPart(name, size) for name, size in sizes.items() if size is not None and size > 0]
    rest = total - sum(part.size_bytes for part in parts)
    if rest > 0 and (rest > total / 100 or not parts):
        parts.append(NeedPart("other" if parts else "all", rest))
    return tuple(parts)


def is_request(report: OomReport) -> bool:
    """Whether something was asked for at once beside what is in use."""
    return report.kind in ("load", "runtime")


def need_of_report(report: OomReport) -> Need:
    """What an error's text says; the buffers are the ones that it lists."""
    used = None if is_request(report) else report.used_bytes
    if used is None and report.kind == "compile":
        used = report.requested_bytes  # one allocation that is larger than the memory
    capacity = report.capacity_bytes
    if capacity is None and used is not None and report.exceeded_bytes is not None:
        capacity = max(0, used - report.exceeded_bytes)
    return Need(
        memory_space=(report.memory_space or "hbm").lower(),
        used_bytes=used,
        capacity_bytes=capacity,
        arguments_bytes=report.arguments_bytes,
        outputs_bytes=report.output_bytes,
        aliased_bytes=report.shared_bytes,
        temporaries_bytes=report.hlo_temp_bytes,
        fragmentation_bytes=report.fragmentation_bytes,
        buffers=report.buffers,
        is_whole=report.dump is not None and len(report.buffers) < MOST_BUFFERS,
        kind=report.kind,
        program=report.program,
        requested_bytes=report.requested_bytes,
        free_bytes=report.free_bytes,
        exceeded_bytes=report.exceeded_bytes,
        moments=report.moments,
        wanted_tokens=report.wanted_tokens,
        fitting_tokens=report.fitting_tokens,
        is_scoped_limit="scoped" in report.sentence.lower() and "limit" in report.sentence.lower(),
    )
