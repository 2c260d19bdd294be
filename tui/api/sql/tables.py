"""The tables of a profile that SQL can name: which page each comes from, and what its columns are."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from tpuprof.parsers.base.errors import EXIT_USAGE, ProfileError
from tpuprof.parsers.base.intervals import interval_index
from tpuprof.parsers.base.record import dataclass
from tpuprof.parsers.pages.hosts.hosts import HOSTS
from tpuprof.parsers.pages.hosts.model import SharedSteps
from tpuprof.parsers.pages.memory.key import MEMORY_PROFILE
from tpuprof.parsers.pages.ops.key import OPS
from tpuprof.parsers.pages.overview.model import OVERVIEW
from tpuprof.parsers.steps.step_account import Account, AccountRow
from tpuprof.tui.api.profile import Profile
from tpuprof.tui.pages import PageName, page_named
from tpuprof.tui.report.fields import Field, Table
from tpuprof.tui.report.shared.columns import Column, column_of, is_plain
from tpuprof.tui.report.units import TIME_MS

Columns = dict[str, Sequence[Any]]
"""Columns by name: a value a row as in JSON, None where unknown."""

SqlRows = tuple[Columns, Sequence[str]]
"""Some columns of the rows of a table, and what is wrong with the profile, a sentence each."""

MOST_EVENTS = 2_000_000
"""Events that a query reads; of a profile with more it reads none, for figures of a part would be wrong."""
MOST_WITH_ARGUMENTS = 200_000
"""The same of a query that reads their arguments, some 30 µs an event."""

_STEP_NAME = "step"
_FOR_STEPS = (_STEP_NAME, "core", "start_ps")
"""What tells the steps of events."""

_FEWER_EVENTS = "--from MS --to MS, or --track 'XLA Ops'; report timeline --format parquet -o FILE is for other engines"


@dataclass(frozen=True, slots=True)
class EventsAsked:
    """Which events a query is about: an interval on the trace's clock, and tracks; see `Profile.events`."""

    from_ps: int | None = None
    to_ps: int | None = None
    track: str = ""


@dataclass(frozen=True)
class SqlTable:
    """A table that SQL can name.

    Attributes:
        name: that of the page's table, or its own.
        meaning: what a row is.
        page: whose table its columns are of.
        read: some of its columns of a profile, at least those of these names.
        first: columns that stand before those of the page's table.
        without: keys of columns that it leaves out.
        objects: keys of columns that take long to read, which are there for a query that names them; JSON as text.
        key: that of the page's table where it is not the name.
    """

    name: str
    meaning: str
    page: PageName
    read: Callable[[SqlTable, Profile, Sequence[str], EventsAsked], SqlRows]
    first: tuple[Column, ...] = ()
    without: tuple[str, ...] = ()
    objects: tuple[str, ...] = ()
    key: str = ""

    @property
    def of_page(self) -> Table[Any]:
        """The page's table."""
        record = page_named(self.page)
        assert record is not None, self.page
        report = record.load_report()
        tables = report.tables if report.section_tables is None else report.section_tables()
        return next(table for table in tables if table.key == (self.key or self.name))

    @property
    def fields(self) -> dict[str, Field[Any]]:
        """The fields of the page's table, by their names in SQL."""
        table = self.of_page
        chosen = (field for field in table.chosen(table.json) if is_plain(field) and field.key not in self.without)
        return {column_of(field).name: field for field in (*chosen, *table.chosen(self.objects))}

    @property
    def columns(self) -> list[Column]:
        return [*self.first, *map(column_of, self.fields.values())]

    def columns_in(self, sql: str) -> list[Column]:
        """The columns that the table has for a query."""
        words = sql.casefold()
        return [of for of in self.columns if of.key not in self.objects or of.key in words or "sqlite_" in words]

    def keys(self, names: Sequence[str]) -> dict[str, str]:
        """The keys of the columns of these names that are of the page's table."""
        fields = self.fields
        return {name: fields[name].key for name in names if name in fields}


def _of_page(table: SqlTable, profile: Profile, names: Sequence[str], _: EventsAsked) -> SqlRows:
    keys = table.keys(names)
    made = profile.table(table.page, table.name, columns=tuple(keys.values()))
    return {name: made.values(key) for name, key in keys.items()}, made.warnings


def _of_events(table: SqlTable, profile: Profile, names: Sequence[str], asked: EventsAsked) -> SqlRows:
    keys = table.keys(names)
    interval: dict[str, Any] = {"from_ps": asked.from_ps or 0, "to_ps": asked.to_ps, "track": asked.track or None}
    most = MOST_EVENTS if keys.keys().isdisjoint(table.objects) else MOST_WITH_ARGUMENTS
    wanted = {*keys.values(), *(_FOR_STEPS if _STEP_NAME in keys else ())}
    events = profile.table("timeline", "events", columns=tuple(wanted), limit=most, **interval)
    if events.left_out:
        whole = len(events) + events.left_out
        sentence = f"These are {whole:,} events, more than the {most:,} that such a query reads."
        raise ProfileError("too_many", sentence, _FEWER_EVENTS, EXIT_USAGE)
    of_ops = profile.page(OPS).warnings  # what the profiler lost is known once ops are read
    made: Columns = {name: events.values(key) for name, key in keys.items()}
    if _STEP_NAME in keys:
        made[_STEP_NAME] = _step_names(profile, *map(events.values, _FOR_STEPS))
    return made, (*events.warnings, *of_ops)


def _step_names(
    profile: Profile, marked: Sequence[str | None], cores: Sequence[str | None], start_ps: Sequence[int]
) -> Sequence[str | None]:
    """The steps of events: those that their cores mark, and the overview's on cores that mark none."""
    marking = {core for core, name in zip(cores, marked, strict=True) if name is not None}
    others = [place for place, core in enumerate(cores) if core is not None and core not in marking]
    if not others:
        return marked
    steps = profile.page(OVERVIEW).steps
    begin, end = (np.array([step.start_ps + step.duration_ps * ends for step in steps], np.int64) for ends in (0, 1))
    names = [*marked]
    of_step = interval_index(np.array(start_ps, np.int64)[others], begin, end)
    for place, step in zip(others, of_step.tolist(), strict=True):
        names[place] = steps[step].name if step >= 0 else None
    return names


def _of_steps(table: SqlTable, profile: Profile, names: Sequence[str], _: EventsAsked) -> SqlRows:
    """Each step on each core, with the owners of the core's time: of the first group, which the ledger shows."""
    page, owners = profile.page(HOSTS), {name: table.fields[name] for name in names if name in table.fields}
    times = list(map(_times, page.every_step))
    columns: Columns = {first.name: [each for of in times for each in of[first.name]] for first in table.first}
    divided = _divided(profile.ledger() if owners else None)
    rows = [divided.get(place) for place in zip(columns["core"], columns["name"], strict=True)]
    known = [row for row in rows if row is not None]
    for name, field in owners.items():
        values = iter(field.unit.machine(field.read(known, range(len(known)))))
        columns[name] = [None if row is None else next(values) for row in rows]
    return columns, page.warnings


def _times(steps: SharedSteps) -> Columns:
    """Each step on each core, step by step."""
    count = len(steps.core_names)
    return {
        "group": [steps.group] * (count * len(steps)),
        "number": np.repeat(np.arange(len(steps)), count).tolist(),
        "name": [name for name in steps.names for _ in range(count)],
        "core": list(steps.core_names) * len(steps),
        "duration_ms": TIME_MS.machine(steps.core_duration_ps.T.ravel()),
        "own_time_ms": TIME_MS.machine(steps.core_own_ps.T.ravel()),
    }


def _divided(account: Account | None) -> dict[tuple[str, str], AccountRow]:
    """The account of each core and step; nothing where there is none."""
    if account is None:
        return {}
    return {
        (core, name): AccountRow(name, float(step_ps), tuple(owners.tolist()))
        for core, of_core in zip(account.core_names, account.owner_ps, strict=True)
        for name, step_ps, owners in zip(account.names, account.step_ps, of_core, strict=True)
    }


def _of_buffers(table: SqlTable, profile: Profile, names: Sequence[str], _: EventsAsked) -> SqlRows:
    """The HBM buffers of all modules that have figures."""
    modules, keys = profile.table("memory", "modules"), table.keys(names)
    made: dict[str, list[Any]] = {name: [] for name in ("module", *keys)}
    facts = zip(modules.values("name"), modules.values("program_id"), modules.values("problems"), strict=True)
    for name, program, problem in facts:
        if problem:
            continue
        module = f"{name}({program})" if program else name
        buffers = profile.table("memory", table.name, columns=tuple(keys.values()) or ("name",), module=module)
        made["module"] += [module] * len(buffers)
        for column, key in keys.items():
            made[column] += buffers.values(key)
    return {**made}, modules.warnings


def _of_allocators(table: SqlTable, profile: Profile, names: Sequence[str], _: EventsAsked) -> SqlRows:
    """A table that each allocator has."""
    page, fields, of_page = profile.page(MEMORY_PROFILE), table.fields, table.of_page
    made: dict[str, list[Any]] = {name: [] for name in ("host", "allocator", *names)}
    for allocator in page.allocators:
        rows = range(of_page.length(allocator))
        made["host"] += [allocator.host] * len(rows)
        made["allocator"] += [allocator.id] * len(rows)
        for name in fields.keys() & made.keys():
            made[name] += fields[name].unit.machine(fields[name].read(allocator, rows))
    return {**made}, (*page.warnings, *filter(None, [page.why_empty]))


_MODULE = Column("module", "text", "its compiled module, name(program id)")
_OF_STEPS = (
    Column("group", "count", "the number of the group of cores whose step it is"),
    Column("number", "count", "its place among the steps of its group, from 0: names may be alike"),
    Column("name", "text", "the step's name, or number; a step has a row for each core"),
    Column("core", "text", "the core, as all pages have it, host:2"),
    Column("duration_ms", "ms", "how long the core's own part of the step takes"),
    Column("own_time_ms", "ms", "that without waiting for other cores"),
)
_WHOSE = (
    Column("host", "text", "the allocator's host"),
    Column("allocator", "text", "the allocator's id"),
)
_EVENT = "an event of the timeline; derived tracks only if --track names them"
_STEP = "a step on a core: its time, and the owners of that time"
_MOVED = "an array in HBM of the longest compiled program, and what its ops move of it"
_ALLOCATED = "an event of an allocator, and the memory in use after it"
_AT_PEAK = "equal allocations that an allocator had at its peak"
_GROUP = "the collectives of one kind, axis, groups and pass together"
TABLES: tuple[SqlTable, ...] = (
    SqlTable("events", _EVENT, "timeline", _of_events, objects=("args",)),
    SqlTable("ops", "an HLO op, over all cores and the whole capture", "ops", _of_page),
    SqlTable("steps", _STEP, "ledger", _of_steps, _OF_STEPS, ("name",)),
    SqlTable("cores", "a core", "cores", _of_page),
    SqlTable("hosts", "a host", "hosts", _of_page),
    SqlTable("modules", "an HLO module that ran", "inference", _of_page),
    SqlTable("blocks", "a block of the model and a pass, in the mean step", "model", _of_page),
    SqlTable("layers", "the part of a block in a layer, in the mean step", "model", _of_page),
    SqlTable("buffers", "an HBM buffer of a compiled module", "memory", _of_buffers, (_MODULE,)),
    SqlTable("arrays", _MOVED, "program", _of_page),
    SqlTable("allocators", "an allocator, at its peak", "memory-profile", _of_page),
    SqlTable("memory_events", _ALLOCATED, "memory-profile", _of_allocators, _WHOSE, key="timeline"),
    SqlTable("memory_at_peak", _AT_PEAK, "memory-profile", _of_allocators, _WHOSE, key="at_peak"),
    SqlTable("collectives", "a collective", "collectives", _of_page),
    SqlTable("collective_groups", _GROUP, "collectives", _of_page),
    SqlTable("copies", "the asynchronous copies between two memories for one framework op", "collectives", _of_page),
    SqlTable("findings", "a finding: why the program is slow", "findings", _of_page),
)
"""All tables, in the order in which they are listed."""

BY_NAME: Mapping[str, SqlTable] = {table.name: table for table in TABLES}
