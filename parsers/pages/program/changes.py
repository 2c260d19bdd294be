"""Whether a change reached the compiler: two compiles of programs compared, and what they differ by."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence

from tpuprof.parsers.base.errors import EXIT_OK, EXIT_UNREADABLE, as_damage, behind_wall
from tpuprof.parsers.base.record import dataclass, replace
from tpuprof.parsers.base.text import printable
from tpuprof.parsers.formats.xspace.walk import text
from tpuprof.parsers.pages.program.expected import Expectation, check_expectation
from tpuprof.parsers.pages.program.facts import (
    FIRST,
    LAST,
    NO_TIME,
    Cost,
    Fact,
    costs_of,
    facts_of,
    memory_facts,
    tiles_said,
)
from tpuprof.parsers.pages.program.ops import ProgramRow, program_rows
from tpuprof.parsers.pages.program.programs import CompiledProgram

SAME, TEXT_ONLY, TILES_ONLY, CHANGED, UNKNOWN = "same program", "text only", "tiles only", "changed", "unknown"
VERDICTS = {
    CHANGED: (8, "The compiler made another program"),
    UNKNOWN: (EXIT_UNREADABLE, "No fact is known to differ"),
    TILES_ONLY: (9, "The instructions are the same; the compiler chose other tiles for them"),
    TEXT_ONLY: (10, "The text differs, such as operands in another order; no fact differs"),
    SAME: (EXIT_OK, "The change did not reach the compiler"),
}
"""What is said of two programs, the gravest first, each with the exit code of a command, and what it means."""

_NOTABLE = 0.05  # of the peak: fewer bytes of buffers that came or went are no news
_STAGE = "after_optimizations"
_OTHER_STAGE = f"one is of the stage {_STAGE}, which has no tiles: *.after_codegen.* of that dump has them"


@dataclass(frozen=True, slots=True)
class Change:
    """Something that two programs differ by.

    Attributes:
        kind: of the fact, see `Fact`; ``flag`` or ``version`` of the compile, ``program`` for one that only a side has.
        what: in words.
        before, after: how many there are, or the flag's value; None where a compile does not have it.
        size: bytes, or FLOPs / 500, that came or went: the order of changes that take no time.
        name, source: of an instruction that shows it; None without.
        program: the module that it is of.
        cost_before, cost: what the instructions concerned take in A and in B.
    """

    kind: str
    what: str
    before: str | None
    after: str | None
    size: float = 0
    name: str | None = None
    source: str | None = None
    program: str = ""
    cost_before: Cost = NO_TIME
    cost: Cost = NO_TIME

    @property
    def dearer(self) -> Cost:
        """What they take on the side where that is more."""
        return max(self.cost, self.cost_before, key=lambda cost: cost.most)

    @property
    def reason(self) -> str:
        """Why nothing is claimed of what they take there."""
        return self.dearer.reason


@dataclass(frozen=True, slots=True)
class ComparedProgram:
    """Two compiles of a program.

    Attributes:
        name: of the module in B, or in A where B has it not.
        before, after: the compiles; None where a side has no such program.
        time_before, time: what they take; None where the programs are the same, or not compared.
        verdict: one of `VERDICTS`.
        why: what limits the verdict; empty where nothing does.
        changes: the facts, the most expensive first, then versions and flags; of `SAME` these alone.
    """

    name: str
    before: CompiledProgram | None
    after: CompiledProgram | None
    verdict: str
    why: str
    changes: tuple[Change, ...]
    time_before: ProgramRow | None = None
    time: ProgramRow | None = None


@dataclass(frozen=True, slots=True)
class ComparedPrograms:
    """All programs of two places.

    Attributes:
        before, after: the paths.
        programs: pairs of programs, those with the gravest verdict first.
        expectations: what came of what was expected of B.
    """

    before: str
    after: str
    programs: tuple[ComparedProgram, ...]
    expectations: tuple[Expectation, ...] = ()

    @property
    def verdict(self) -> str:
        """The gravest one."""
        return self.programs[0].verdict if self.programs else UNKNOWN

    @property
    def exit_code(self) -> int:
        return VERDICTS[self.verdict][0]

    @property
    def sentence(self) -> str:
        """The verdict in a sentence, with what limits it."""
        if not self.programs:
            return "There is no program to compare."
        why = self.programs[0].why
        return f"{VERDICTS[self.verdict][1]}{f' ({why})' if why else ''}."

    @property
    def changes(self) -> list[Change]:
        """Those of all programs."""
        return [replace(change, program=each.name) for each in self.programs for change in each.changes]


def compare_programs(
    paths: tuple[str, str],
    before: Sequence[CompiledProgram],
    after: Sequence[CompiledProgram],
    expected: Sequence[str] = (),
    device: str | None = None,
) -> ComparedPrograms:
    """Compares programs of one name, in their order; of one on each side whatever their names.

    Args:
        before: none of them where nothing is to be compared, but expected.
        expected: of the programs after; see `check_expectation`, which raises.
        device: the chip whose times are told; None for the one that each program is for.
    """
    every = _paired(before, after, device) if before or not expected else ()
    pairs = sorted(every, key=lambda pair: [*VERDICTS].index(pair.verdict))
    return ComparedPrograms(*paths, tuple(pairs), tuple(check_expectation(after, each) for each in expected))


def _paired(
    before: Sequence[CompiledProgram], after: Sequence[CompiledProgram], device: str | None
) -> Iterator[ComparedProgram]:
    are_alone = len(before) == len(after) == 1
    left = defaultdict[str, list[CompiledProgram]](list)
    for one in before:
        left[after[0].name if are_alone else one.name].append(one)
    for one in after:
        if left[one.name]:
            yield _compared(left[one.name].pop(0), one, device)
        else:
            came = Change("program", one.name, None, one.origin)
            yield ComparedProgram(one.name, None, one, CHANGED, "", (came,))
    for one in (one for rest in left.values() for one in rest):
        gone = Change("program", one.name, one.origin, None)
        yield ComparedProgram(one.name, one, None, CHANGED, "", (gone,))


def _compared(before: CompiledProgram, after: CompiledProgram, device: str | None) -> ComparedProgram:
    a, b = before.fingerprint, after.fingerprint
    if a is not None and b is not None and a.of != b.of:
        before, after = before.of_text(), after.of_text()
        a, b = before.fingerprint, after.fingerprint
    flags, why = tuple(_flags(before, after)), ""
    if a is None or b is None:
        why = f"{(before if a is None else after).origin} is cut, and has no fingerprint"
    elif a.of != b.of:
        why = "one is a text and the other a proto, whose fingerprints do not compare"
    elif a.canonical == b.canonical:
        unseen = f"values of {a.unseen_constants:,} large constants are not in these texts"
        return ComparedProgram(after.name, before, after, SAME, unseen if a.unseen_constants else "", flags)
    elif a.structure == b.structure and (_STAGE in before.origin) != (_STAGE in after.origin):
        return ComparedProgram(after.name, before, after, UNKNOWN, _OTHER_STAGE, flags)
    row, other = (program_rows([each], device)[0] for each in (before, after))
    are_tiles = a is not None and b is not None and a.structure == b.structure and not why

    @as_damage()
    def differing() -> list[Change]:
        costs = costs_of(before.module, row.ops), costs_of(after.module, other.ops)
        found = _tiles(before, after, *costs) if are_tiles else _facts(before, after, *costs)
        return sorted(found, key=_order)

    failed = [why] if why else []
    changes = behind_wall(f"compare {printable(after.name)}", differing, failed, is_decoder=True) or []
    why = " ".join(failed)
    verdict = TILES_ONLY if are_tiles else CHANGED if changes else UNKNOWN if why else TEXT_ONLY
    return ComparedProgram(after.name, before, after, verdict, why, (*changes, *flags), row, other)


def _order(change: Change) -> tuple[object, ...]:
    """What changes are sorted by: the most expensive first, after those of `FIRST` and before those of `LAST`."""
    place = FIRST.index(change.kind) if change.kind in FIRST else len(FIRST)
    return place, change.kind in LAST, -abs(change.cost.most - change.cost_before.most), -change.size


_Costs = Mapping[str, Cost]


def _facts(before: CompiledProgram, after: CompiledProgram, costs: _Costs, its_costs: _Costs) -> list[Change]:
    """The facts whose counts differ; buffers that are large, and layouts of arrays that did not come or go."""
    one, other = facts_of(before.module, costs), facts_of(after.module, its_costs)
    assigned = [program.assigned() for program in (before, after)]
    for found, module in zip((one, other), assigned if None not in assigned else (), strict=False):
        found |= {(fact.kind, fact.what): fact for fact in (memory_facts(module) if module is not None else ())}
    none = Fact("", "", 0, 0, "", None, NO_TIME)
    changes, moved = list[Change](), set[str]()
    for key in dict.fromkeys((*one, *other)):
        a, b = one.get(key, none), other.get(key, none)
        if a.count != b.count:
            shown, size = b if b.count else a, abs(a.size - b.size)
            changes.append(Change(*key, a.said, b.said, size, shown.name, shown.source, "", a.cost, b.cost))
            moved |= {a.what.partition(", ")[0], b.what.partition(", ")[0]} if "array" in key else set()
    own, its = before.fingerprint, after.fingerprint
    if own is not None and its is not None and own.of == its.of and own.constants != its.constants:
        changes.append(Change("constant", "values of all together", own.constants, its.constants))
    peaks = (fact.count for fact in (*one.values(), *other.values()) if fact.kind == "memory")
    least = {"buffer": _NOTABLE * max(peaks, default=0)}
    changes = [each for each in changes if each.size >= least.get(each.kind, 0)]
    return [each for each in changes if each.kind != "layout" or each.what.partition("{")[0] not in moved]


def _tiles(before: CompiledProgram, after: CompiledProgram, costs: _Costs, its_costs: _Costs) -> Iterable[Change]:
    """Configurations that differ, instruction by instruction: the structures are equal."""
    parts = zip(before.module.proto.hlo_module.computations, after.module.proto.hlo_module.computations, strict=False)
    for a, b in ((a, b) for one, other in parts for a, b in zip(one.instructions, other.instructions, strict=False)):
        if before.module.backend_config(a) != after.module.backend_config(b):
            was, now = tiles_said(before.module, a), tiles_said(after.module, b)
            kind, sides = (
                ("tiles", (was or None, now or None)) if was != now else ("configuration", (was, "another one"))
            )
            name, times = text(b.name), (costs.get(text(a.name), NO_TIME), its_costs.get(text(b.name), NO_TIME))
            yield Change(kind, name, *sides, 0, name, after.module.source(b), "", *times)


def _flags(before: CompiledProgram, after: CompiledProgram) -> Iterator[Change]:
    """Versions and flags that both sides say."""
    for kind, old, new in (("version", before.versions, after.versions), ("flag", before.settings, after.settings)):
        for key in sorted(old.keys() & new.keys()):
            if old[key] != new[key]:
                yield Change(kind, key, old[key], new[key])
