"""Whether a change reached the compiler: two compiles of programs compared, and what they differ by."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence

from tpuprof.parsers.base.errors import EXIT_OK, EXIT_UNREADABLE
from tpuprof.parsers.base.record import dataclass, replace
from tpuprof.parsers.formats.xspace.walk import text
from tpuprof.parsers.pages.program.expected import Expectation, check_expectation
from tpuprof.parsers.pages.program.facts import HEADLINES, LAST, Fact, facts_of, tiles_said
from tpuprof.parsers.pages.program.programs import CompiledProgram

SAME, TEXT_ONLY, TILES_ONLY, CHANGED, UNKNOWN = "same program", "text only", "tiles only", "changed", "unknown"
VERDICTS = {
    CHANGED: (8, "The compiler made another program"),
    UNKNOWN: (EXIT_UNREADABLE, "No fact differs"),
    TILES_ONLY: (9, "The instructions are the same; the compiler chose other tiles for them"),
    TEXT_ONLY: (10, "The text differs, such as operands in another order; no fact differs"),
    SAME: (EXIT_OK, "The change did not reach the compiler"),
}
"""What is said of two programs, the gravest first, each with the exit code of a command, and what it means."""

_STAGE = "after_optimizations"
_OTHER_STAGE = f"one is of the stage {_STAGE}, which has no tiles: *.after_codegen.* of that dump has them"


@dataclass(frozen=True, slots=True)
class Change:
    """Something that two programs differ by.

    Attributes:
        kind: of the fact, see `Fact`; ``flag`` for a flag of the compile, ``program`` for one that only a side has.
        what: in words.
        before, after: how many there are, or the flag's value; None where a compile does not have it.
        size: bytes, or FLOPs / 500, that came or went: the order of changes.
        name, source: of an instruction that shows it; None without.
        program: the module that it is of.
    """

    kind: str
    what: str
    before: str | None
    after: str | None
    size: float = 0
    name: str | None = None
    source: str | None = None
    program: str = ""


@dataclass(frozen=True, slots=True)
class ComparedProgram:
    """Two compiles of a program.

    Attributes:
        name: of the module in B, or in A where B has it not.
        before, after: the compiles; None where a side has no such program.
        verdict: one of `VERDICTS`.
        why: what limits the verdict; empty where nothing does.
        changes: the facts, the largest first, then the flags; of `SAME` the flags alone.
    """

    name: str
    before: CompiledProgram | None
    after: CompiledProgram | None
    verdict: str
    why: str
    changes: tuple[Change, ...]


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
) -> ComparedPrograms:
    """Compares programs of one name, in their order; of one on each side whatever their names.

    Args:
        before: none of them where nothing is to be compared, but expected.
        expected: of the programs after; see `check_expectation`, which raises.
    """
    every = _paired(before, after) if before or not expected else ()
    pairs = sorted(every, key=lambda pair: [*VERDICTS].index(pair.verdict))
    return ComparedPrograms(*paths, tuple(pairs), tuple(check_expectation(after, each) for each in expected))


def _paired(before: Sequence[CompiledProgram], after: Sequence[CompiledProgram]) -> Iterator[ComparedProgram]:
    are_alone = len(before) == len(after) == 1
    left = defaultdict[str, list[CompiledProgram]](list)
    for one in before:
        left[after[0].name if are_alone else one.name].append(one)
    for one in after:
        if left[one.name]:
            yield _compared(left[one.name].pop(0), one)
        else:
            came = Change("program", one.name, None, one.origin)
            yield ComparedProgram(one.name, None, one, CHANGED, "", (came,))
    for one in (one for rest in left.values() for one in rest):
        gone = Change("program", one.name, one.origin, None)
        yield ComparedProgram(one.name, one, None, CHANGED, "", (gone,))


def _compared(before: CompiledProgram, after: CompiledProgram) -> ComparedProgram:
    a, b = before.fingerprint, after.fingerprint
    flags, why = tuple(_flags(before, after)), ""
    if a is None or b is None:
        why = f"{(before if a is None else after).origin} is cut, and has no fingerprint"
    elif a.of != b.of:
        why = "one is a text and the other a proto, whose fingerprints do not compare"
    elif a.canonical == b.canonical:
        unseen = f"values of {a.unseen_constants:,} large constants are not in these texts"
        return ComparedProgram(after.name, before, after, SAME, unseen if a.unseen_constants else "", flags)
    elif a.structure == b.structure:
        if (_STAGE in before.origin) != (_STAGE in after.origin):
            return ComparedProgram(after.name, before, after, UNKNOWN, _OTHER_STAGE, flags)
        return ComparedProgram(after.name, before, after, TILES_ONLY, "", (*_tiles(before, after), *flags))
    changes = tuple(_facts(before, after))
    verdict = CHANGED if changes else UNKNOWN if why else TEXT_ONLY
    return ComparedProgram(after.name, before, after, verdict, why, (*changes, *flags))


def _facts(before: CompiledProgram, after: CompiledProgram) -> list[Change]:
    """The facts whose counts differ: those of `HEADLINES` first, then the largest, those of `LAST` at the end."""
    one, other = facts_of(before.module), facts_of(after.module)
    none = Fact("", "", 0, 0, "", None)
    changes = []
    for key in dict.fromkeys((*one, *other)):
        a, b = one.get(key, none), other.get(key, none)
        if a.count != b.count:
            shown = b if b.count else a
            size = abs(a.size - b.size)
            changes.append(Change(*key, f"{a.count:,}", f"{b.count:,}", size, shown.name, shown.source))
    own, its = before.fingerprint, after.fingerprint
    if own is not None and its is not None and own.of == its.of and own.constants != its.constants:
        changes.append(Change("constant", "values of all together", own.constants, its.constants))
    return sorted(changes, key=lambda one: (one.kind not in HEADLINES, one.kind in LAST, -one.size))


def _tiles(before: CompiledProgram, after: CompiledProgram) -> Iterable[Change]:
    """Configurations that differ, instruction by instruction: the structures are equal."""
    parts = zip(before.module.proto.hlo_module.computations, after.module.proto.hlo_module.computations, strict=False)
    for a, b in ((a, b) for one, other in parts for a, b in zip(one.instructions, other.instructions, strict=False)):
        if before.module.backend_config(a) != after.module.backend_config(b):
            was, now = tiles_said(before.module, a), tiles_said(after.module, b)
            name, other = text(b.name), "another configuration"
            if was != now:
                yield Change("tiles", name, was or None, now or None, 0, name, after.module.source(b))
            else:
                yield Change("configuration", name, was or "as before", other, 0, name, after.module.source(b))


def _flags(before: CompiledProgram, after: CompiledProgram) -> Iterator[Change]:
    for key in sorted(before.settings.keys() & after.settings.keys()):
        if before.settings[key] != after.settings[key]:
            yield Change("flag", key, before.settings[key], after.settings[key])
