"""The page of source lines: what each line of the program's code costs. XProf names the line of an op, and sums none.

An op counts for the one line that the profile names for it. Of a fusion that is the line of the op that it is named
after, whatever else was fused into it; XProf's op profile and HLO stats name the same line.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import partial

import numpy as np

from tpuprof.parsers.base.errors import behind_wall
from tpuprof.parsers.base.intervals import Floats, Int64s, coded
from tpuprof.parsers.base.record import Sized, dataclass, replace
from tpuprof.parsers.base.regex import pattern
from tpuprof.parsers.base.text import counted
from tpuprof.parsers.base.words import path_end, share
from tpuprof.parsers.formats.xspace.core.api import min_by_key, sum_by_key
from tpuprof.parsers.ops.frames import INSTALLED, call_stack
from tpuprof.parsers.ops.roofline import Rates, clock_scale, rates, summed_rows, work_of
from tpuprof.parsers.pages.ops.op_profile import OpTree, op_tree, provenance_parts, source_location
from tpuprof.parsers.pages.ops.ops import OpsPage

HALF = 0.5
NO_SOURCES = "no op of this profile names its line of code"

_TRANSFORMED = pattern(r"^(?:(?:jvp|transpose|vmap|checkpoint|remat|custom_jvp|custom_vjp|shard_map)\()+([^()]*)\)*$")
_FUNCTION = pattern(r"^p?jit\(([^()]+)\)$")
_CONTROL = pattern(
    r"^(?:while|body|cond|scan|main|closed_call|core_call|checkpoint|remat\d*|rematted_computation|pjit|shard_map|"
    r"branch_\d+_fun|custom_[jv]jp_call|.*->.*|)$"
)


@dataclass(frozen=True, slots=True)
class Stack:
    """Calls that led to some ops, outermost first, the line itself last; and the self time of these ops."""

    calls: tuple[str, ...]
    self_ps: int


@dataclass(frozen=True, slots=True)
class SourcesPage(Sized):
    """Lines of code by the self time of their ops, most first; the ops that name no line are one row, the last.

    Attributes:
        ops: the ops.
        source: ``file:line`` of each row as the profile writes it; empty for the ops that name none.
        function: the function that a line is in, where the profile's call stacks name it.
        scope: the innermost framework scope, or else the function under ``jit``, that most of its time is in.
        stacks: the distinct call stacks, the one with most time first; empty where the profile has none.
        caller: of a line in an installed package, the nearest caller outside of these on its first stack.
        main: int64[n]; row in the ops page of the line's longest op.
        op_count, occurrences, self_ps: int64[n].
        work: float64[n, WORK_COUNT]; of all its ops that hold no others, NaN where none has a count.
        rates: over the self time.
        self_fraction: float64[n]; self time as a fraction (0-1) of the cores' whole time, NaN without any.
        op_fraction, cumulative_fraction: float64[n]; of the self time of all ops, NaN without any.
        headline: the answer in a sentence.
        unknown: dotted JSON key to the reason why figures are missing.
    """

    sized_by = "source"
    ops: OpsPage
    source: tuple[str, ...]
    function: tuple[str | None, ...]
    scope: tuple[str | None, ...]
    stacks: tuple[tuple[Stack, ...], ...]
    caller: tuple[str | None, ...]
    main: Int64s
    op_count: Int64s
    occurrences: Int64s
    self_ps: Int64s
    work: Floats
    rates: Rates
    self_fraction: Floats
    op_fraction: Floats
    cumulative_fraction: Floats
    headline: str
    unknown: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class SourceTrees:
    """The page, and the same as trees by file and line, with idle time and without."""

    page: SourcesPage
    with_idle: OpTree
    without_idle: OpTree
    row: Mapping[str, int]

    def tree(self, with_idle: bool) -> OpTree:
        return self.with_idle if with_idle else self.without_idle


def sources_page(ops: OpsPage) -> SourcesPage:
    """Sums ops by the line of code that they come from."""
    table = ops.table
    sources = table.texts("source")
    code = _by_time(sources, table.self_ps)
    count = int(code.max(initial=-1)) + 1
    main = min_by_key(code, np.arange(len(table)), count)  # the ops come by self time: the first is the longest
    self_ps, work = sum_by_key(code, table.self_ps, count), summed_rows(work_of(table), code, count)
    normalized = np.bincount(code, table.self_ps * clock_scale(table), minlength=count).astype(np.float64)
    everything = int(self_ps.sum())
    op_fraction = self_ps / everything if everything else np.full(count, np.nan)
    failed: list[str] = []
    look = partial(_stacks, sources, table.texts("source_stack"), table.self_ps, code, count)
    stacks = behind_wall("read the call stacks", look, failed) or ((),) * count
    ops = replace(ops, warnings=(*ops.warnings, *failed)) if failed else ops
    source = tuple(sources[row] for row in main.tolist())
    return SourcesPage(
        ops=ops,
        source=source,
        function=tuple(map(_function, source, stacks)),
        scope=tuple(
            scope if text else None
            for text, scope in zip(source, _scopes(table.framework_op, table.self_ps, code, count), strict=True)
        ),
        stacks=stacks,
        caller=tuple(map(_caller, source, stacks)),
        main=main,
        op_count=np.bincount(code, minlength=count).astype(np.int64),
        occurrences=sum_by_key(code, table.occurrences, count),
        self_ps=self_ps,
        work=work,
        rates=rates(work, self_ps.astype(np.float64), normalized, ops.peaks),
        self_fraction=self_ps / ops.total_ps if ops.total_ps else np.full(count, np.nan),
        op_fraction=op_fraction,
        cumulative_fraction=np.cumsum(op_fraction),
        headline=_headline(ops, source, op_fraction),
        unknown={**ops.unknown, **({} if any(source) or not source else {"lines": NO_SOURCES})},
    )


def source_trees(ops: OpsPage) -> SourceTrees:
    """The page and its trees."""
    duplicates = ops.table.texts("deduplicated_name")
    page = sources_page(ops)
    row = {source: at for at, source in enumerate(page.source)}
    return SourceTrees(page, op_tree(ops, "source", duplicates), op_tree(ops, "source", duplicates, False), row)


def short_names(files: Sequence[str]) -> dict[str, str]:
    """Each file by its last name, and by as many folders before it as distinguish it from the others."""
    names = {file: file.split("/") for file in set(files)}
    out: dict[str, str] = {}
    waiting, depth = sorted(names), 1
    while waiting:
        tails = {file: "/".join(names[file][-depth:]) for file in waiting}
        alike = Counter(tails.values())
        done = {file: name for file, name in tails.items() if alike[name] == 1 or depth >= len(names[file])}
        out |= done
        waiting, depth = [file for file in waiting if file not in done], depth + 1
    return out


def _by_time(sources: Sequence[str], self_ps: Int64s) -> Int64s:
    """int64[ops]: the place of each op's line by self time, that of ops without one last."""
    code, names = coded(sources)
    sums = sum_by_key(code, self_ps, len(names)).tolist()
    place = np.zeros(len(names), np.int64)
    place[sorted(range(len(names)), key=lambda row: (not names[row], -sums[row], names[row]))] = np.arange(len(names))
    return place[code] if len(code) else code


def _stacks(
    sources: Sequence[str], texts: Sequence[str], self_ps: Int64s, code: Int64s, count: int
) -> tuple[tuple[Stack, ...], ...]:
    found: list[Counter[str]] = [Counter() for _ in range(count)]
    for row, text, ps in zip(code.tolist(), texts, self_ps.tolist(), strict=True):
        if text:
            found[row][text] += ps
    of = dict(zip(code.tolist(), sources, strict=True))
    return tuple(
        tuple(Stack(call_stack(of[row], text), ps) for text, ps in sorted(own.items(), key=lambda pair: -pair[1]))
        for row, own in enumerate(found)
    )


def _function(source: str, stacks: Sequence[Stack]) -> str | None:
    """What stands behind the place in the line's own frame, ``model.py:62 mlp``."""
    frame = stacks[0].calls[-1] if source and stacks else ""
    place, _, function = frame.partition(" ")
    return function or None if place.startswith(source) else None


def _caller(source: str, stacks: Sequence[Stack]) -> str | None:
    if not stacks or not INSTALLED.search(source):
        return None
    return next((call for call in stacks[0].calls[::-1] if not INSTALLED.search(call)), None)


def scope_of(framework_op: str) -> str | None:
    """The innermost scope of a framework op that a person named; the function under ``jit`` where there is none.

    ``jit(train_step)/transpose(jvp(layers))/while/body/mlp/dot_general`` is in ``mlp``.
    """
    found: str | None = None
    for part in provenance_parts(framework_op)[:-1]:
        function, transformed = _FUNCTION.match(part), _TRANSFORMED.match(part)
        name = function[1] if function else transformed[1] if transformed else part
        if not _CONTROL.match(name) and "(" not in name:
            found = name
    return found


def _scopes(framework_ops: Sequence[str], self_ps: Int64s, code: Int64s, count: int) -> tuple[str | None, ...]:
    known = {name: scope_of(name) for name in set(framework_ops)}
    found: list[Counter[str]] = [Counter() for _ in range(count)]
    for row, name, ps in zip(code.tolist(), framework_ops, self_ps.tolist(), strict=True):
        scope = known[name]
        if scope:
            found[row][scope] += ps
    return tuple(max(own, key=own.__getitem__) if own else None for own in found)


def _headline(ops: OpsPage, source: Sequence[str], fraction: Floats) -> str:
    if not len(ops):
        return f"No ops: {ops.unknown.get('ops', 'the profile holds none')}."
    named = [at for at, text in enumerate(source) if text]
    if not named:
        return f"N{NO_SOURCES[1:]}."
    first, shares = named[0], np.nan_to_num(fraction[named])
    file, line = source_location(source[first])
    name = short_names([source_location(source[at]).file for at in named])[file]
    words = f"{path_end(name)}{'' if line is None else f':{line}'} takes {share(float(shares[0]))} of op time"
    sums = np.cumsum(shares)
    half = int(np.searchsorted(sums, HALF)) + 1
    if half == 1:
        words += ", at least half"
    elif half <= len(named):
        words += f"; {half} lines take half"
    elif len(named) > 1:
        words += f", all {counted(len(named), 'line')} {share(float(sums[-1]))}"
    rest = 1 - float(sums[-1])
    return f"{words}; {share(rest)} has no line." if len(named) < len(source) and rest >= _MUCH else f"{words}."


_MUCH = 0.005
