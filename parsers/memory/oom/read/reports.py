"""Partial reports to reports: copies become one, printed figures become bytes, what is missing gets a reason."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

from tpuprof.parsers.base.record import fields, replace
from tpuprof.parsers.base.text import examples, printable
from tpuprof.parsers.memory.account.need import OomKind
from tpuprof.parsers.memory.model import Buffer
from tpuprof.parsers.memory.oom.model import OomReport
from tpuprof.parsers.memory.oom.read.entries import AllocationEntry, buffer_of, conflict, merged
from tpuprof.parsers.memory.oom.read.forms import HEADLESS, PrintedSize
from tpuprof.parsers.memory.oom.read.partial_report import MOST_DEVICES, PartialReport

MOST_REPORTS, MOST_CHARACTERS = 200, 1 << 26  # how many reports are kept, and how much of all their texts, roughly
_LONGEST_SENTENCE = 500
_JITTED = re.compile(r"(p?jit|pmap|xmap)\(([^()]{1,200})\)")
_NOT_IN_NAMES = re.compile(r"[^\w.-]")
_REASON = "the error's text does not give it"
_CUT = "the error's text is cut off before it gives it"
_SAID = "the error's text says that it is unknown"
_TOGETHER = "the error's text gives one figure for arguments and temporaries together"
_PARTS = frozenset(("arguments_bytes", "program_bytes", "hlo_temp_bytes"))
_NUMBERS = frozenset(each.name for each in fields(OomReport) if each.name.endswith(("_bytes", "_tokens")))


class Collector:
    """Takes partial reports in order of the log, keeps each error once.

    Attributes:
        left_out: how many further different errors there were.
    """

    def __init__(self) -> None:
        self._partials: list[PartialReport] = []
        self._by_key: dict[tuple[object, ...], PartialReport] = {}
        # bits, one for each partial report: which of them give a size, and which give it as this
        self._giving: dict[str, int] = {}
        self._saying: dict[tuple[str, PrintedSize], int] = {}
        self._characters = 0
        self.left_out = 0
        self.entries_left_out = 0

    def add(self, partial: PartialReport) -> None:
        """Adds an error, to one that was there before if it is a copy of that."""
        key = _key(partial)
        known = self._by_key.get(key)
        if known is None:
            known = next((each for each in self._alike(partial) if _is_copy(each, partial)), None)
        if known is not None:
            before = _key(known)
            self._characters -= known.characters
            _merge(known, partial)
            self._characters += known.characters
            self._note(known)
            if _key(known) != before:
                self._by_key[_key(known)] = known
            return
        if len(self._partials) >= MOST_REPORTS:
            self.left_out += 1
            return
        if self._characters + partial.characters > MOST_CHARACTERS and len(partial.entries) > 20:
            self.entries_left_out += len(partial.entries) - 20
            partial.characters = partial.characters * 20 // len(partial.entries)
            partial.entries = partial.entries[:20]
        self._characters += partial.characters
        self._partials.append(partial)
        self._by_key[key] = partial
        self._note(partial)

    def _note(self, partial: PartialReport) -> None:
        bit = 1 << next(place for place, each in enumerate(self._partials) if each is partial)
        for name, size in partial.sizes.items():
            self._giving[name] = self._giving.get(name, 0) | bit
            self._saying[name, size] = self._saying.get((name, size), 0) | bit

    def _alike(self, partial: PartialReport) -> Iterator[PartialReport]:
        """The partial reports without a size that differs, the latest first: a log may hold thousands of other
        errors.
        """
        alike = (1 << len(self._partials)) - 1
        for name, size in partial.sizes.items():
            alike &= ~self._giving.get(name, 0) | self._saying.get((name, size), 0)
        while alike:
            place = alike.bit_length() - 1
            yield self._partials[place]
            alike ^= 1 << place

    def reports(self) -> tuple[OomReport, ...]:
        """The errors in order of their first lines."""
        return tuple(report_of(partial) for partial in sorted(self._partials, key=lambda partial: partial.at_line))

    @property
    def entries_dropped(self) -> int:
        """Listed allocations that there was no room for."""
        return self.entries_left_out + sum(partial.entries_dropped for partial in self._partials)


def report_of(partial: PartialReport) -> OomReport:
    """What a partial report says, in bytes."""
    sizes = {name: size.value for name, size in partial.sizes.items()}
    figures: dict[str, int | None] = {name: sizes.get(name) for name in _NUMBERS}
    requirement = sizes.get("requirement")
    figures["used_bytes"] = sizes.get("used_bytes", sizes.get("total", requirement))
    figures["program_bytes"] = sizes.get("program_bytes", requirement)
    need, limit = figures["used_bytes"], figures["capacity_bytes"]
    if partial.form == "attempt":
        need, limit = figures["requested_bytes"], figures["free_bytes"]
    if figures["exceeded_bytes"] is None and need is not None and limit is not None and need > limit:
        figures["exceeded_bytes"] = need - limit
    fractions: dict[str, float | None] = {
        name: partial.fractions.get(name) for name in ("utilization", "fragmentation")
    }
    largest, free = sizes.get("largest"), sizes.get("free_bytes")
    if largest is not None and free:
        figures["fragmentation_bytes"] = max(0, free - largest)
        fractions["fragmentation"] = max(0, free - largest) / free
    entries, scoped = partial.entries, partial.sizes.get("scoped_bytes")
    if partial.stack is not None and scoped is not None and not entries:
        entries = [replace(partial.stack, size=scoped)]  # the instruction that the scoped allocation was too large for
    read = [buffer_of(entry) for entry in entries]
    buffers = tuple(sorted((each for each in read if each is not None), key=lambda each: -each.size_bytes))
    figures["padding_bytes"] = _padding(partial.sizes, buffers)
    report = OomReport(
        kind=_kind(partial),
        memory_space=partial.space,
        sentence=printable(" ".join(part for part in partial.sentence if part))[:_LONGEST_SENTENCE],
        at_line=partial.at_line,
        count=partial.count,
        code=partial.code,
        program=partial.program or _program(entries),
        device=examples(list(partial.devices)) if partial.devices else None,
        buffers=buffers,
        is_cut=partial.is_cut,
    )
    # the names and types are OomReport's own
    report = replace(report, **figures, **fractions)  # type: ignore[arg-type]
    return replace(report, unknown=_unknown(report, partial, read.count(None)))


def _key(partial: PartialReport) -> tuple[object, ...]:
    """Equal for partial reports that say the same."""
    sizes = tuple(sorted((name, size.value) for name, size in partial.sizes.items()))
    ends = (partial.entries[0], partial.entries[-1]) if partial.entries else ()
    return (
        _kind(partial),
        partial.space,
        partial.program,
        sizes,
        partial.is_cut,
        len(partial.entries),
        ends,
        partial.stack,
    )


def _is_copy(known: PartialReport, partial: PartialReport) -> bool:
    """Whether two partial reports can be copies of one error, one of them cut maybe: nothing that both say differs."""
    if (
        _family(known) != _family(partial)
        or _differ(known.program, partial.program)
        or _differ(known.space, partial.space)
    ):
        return False
    if known.stack is not None and partial.stack is not None and known.stack.name != partial.stack.name:
        return False
    both = known.sizes.keys() & partial.sizes.keys()
    if any(known.sizes[name] != partial.sizes[name] for name in both):
        return False
    if not both and not any(not each.sizes and not each.entries and each.is_cut for each in (known, partial)):
        return False
    whole = min(_whole_entries(known), _whole_entries(partial))
    pairs = enumerate(zip(known.entries, partial.entries, strict=False))
    return not any(conflict(mine, other, row < whole) for row, (mine, other) in pairs)


def _whole_entries(partial: PartialReport) -> int:
    """How many entries, from the first on, can't be cut."""
    return len(partial.entries) - (partial.is_cut and bool(partial.entries) and not partial.entries[-1].is_closed)


def _differ(first: str | None, second: str | None) -> bool:
    return None not in (first, second) and first != second


def _family(partial: PartialReport) -> str:
    return "ran" if partial.form in HEADLESS else partial.form


def _merge(known: PartialReport, partial: PartialReport) -> None:
    """Adds what a copy says, and that there is one."""
    if _is_only_code(known) != _is_only_code(partial):  # the code of an error that is printed whole elsewhere
        known.count, partial.count = (0, partial.count) if _is_only_code(known) else (known.count, 0)
    complete = known.is_cut and not partial.is_cut
    more = known.is_cut and partial.characters > known.characters
    first, second = (partial, known) if complete or more else (known, partial)
    longer = first.entries if len(first.entries) >= len(second.entries) else second.entries
    both = [merged(mine, other) for mine, other in zip(first.entries, second.entries, strict=False)]
    entries = both + longer[len(both) :]
    if complete:
        known.form, known.seen = partial.form, partial.seen
        known.open_allocation = partial.open_allocation
    if len(" ".join(partial.sentence)) > len(" ".join(known.sentence)):
        known.sentence = partial.sentence
    known.entries = entries
    known.characters = max(known.characters, partial.characters)
    known.stack = merged(first.stack, second.stack) if first.stack and second.stack else first.stack or second.stack
    known.sizes = {**second.sizes, **first.sizes}
    known.fractions = {**second.fractions, **first.fractions}
    known.said_unknown |= partial.said_unknown
    known.devices.update(dict.fromkeys(list(partial.devices)[: MOST_DEVICES - len(known.devices)]))
    known.entries_dropped = max(known.entries_dropped, partial.entries_dropped)
    known.code, known.program = known.code or partial.code, known.program or partial.program
    known.space = known.space or partial.space
    known.loading |= partial.loading
    known.is_running |= partial.is_running
    known.at_line = min(known.at_line, partial.at_line)
    known.count += 0 if partial.is_payload else partial.count


def _is_only_code(partial: PartialReport) -> bool:
    """Whether it is an error's code that stood on a line of its own, which is no copy of the error."""
    return partial.seen == {"tail"} and not partial.sizes and not partial.entries


def _kind(partial: PartialReport) -> OomKind:
    """A program is loaded in one piece, reserved from below; what else is allocated belongs to one that runs."""
    if partial.form == "cache":
        return "cache"
    if partial.form != "attempt":
        return "compile"
    if partial.verb == "reserve" or (partial.loading and not partial.is_running):
        return "load"
    return "runtime"


def _program(entries: list[AllocationEntry]) -> str | None:
    """The module that most operators come from; JAX names it ``jit_f`` for ``jit(f)``."""
    names = Counter[str]()
    for entry in entries:
        match = _JITTED.match(entry.op_name or "") or _JITTED.search((entry.label or "").partition('op_name="')[2])
        if match is not None:
            names[f"{match[1]}_{_NOT_IN_NAMES.sub('_', match[2])}"] += 1
    return names.most_common(1)[0][0] if names else None


def _padding(sizes: dict[str, PrintedSize], buffers: tuple[Buffer, ...]) -> int | None:
    """Padded less unpadded; where rounding hides it, what the listed buffers have, which is a part of it."""
    known = [each.padding_bytes for each in buffers if each.padding_bytes is not None]
    listed = sum(known) if known else None
    padded, unpadded = sizes.get("padded"), sizes.get("unpadded_bytes")
    if padded is None or unpadded is None:
        return listed
    total, slack = max(0, padded.value - unpadded.value), padded.slack + unpadded.slack
    return listed if listed is not None and total < listed <= total + slack else total


def _unknown(report: OomReport, partial: PartialReport, without_size: int) -> dict[str, str]:
    reason = _CUT if report.is_cut else _REASON
    unknown = {
        each.name: _SAID if each.name in partial.said_unknown else reason
        for each in fields(OomReport)
        if getattr(report, each.name) is None and each.name not in ("log", "dump", "moments")
    }
    if "short" in partial.seen:
        unknown |= dict.fromkeys(_PARTS & unknown.keys(), _TOGETHER)
    if "mixed" in partial.seen:
        unknown["buffers"] = "the lines of several copies of the text are mixed"
    if without_size:
        unknown["buffers"] = f"the error's text gives no size for {without_size:,} of the allocations that it names"
    return unknown
