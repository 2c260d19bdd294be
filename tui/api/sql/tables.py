"""The tables of a profile that SQL can name: which page each comes from, and what its columns are."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tpuprof.parsers.base.errors import EXIT_USAGE, ProfileError
from tpuprof.parsers.base.record import dataclass
from tpuprof.tui.api.profile import Profile
from tpuprof.tui.pages import PageName, page_named
from tpuprof.tui.report.fields import Field
from tpuprof.tui.report.shared.database import SqlColumn, is_plain, sql_column

MOST_EVENTS = 5_000_000
"""Events that a query reads; of a profile with more it reads none, for figures of a part would be wrong."""


@dataclass(frozen=True, slots=True)
class SqlRows:
    """The rows of a table.

    Attributes:
        values: of each column, a value a row as in JSON; None where unknown.
        warnings: what is wrong with the profile, a sentence each.
    """

    values: Sequence[Sequence[Any]]
    warnings: Sequence[str] = ()


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
        meaning: what a row is.
        parts: the pages and tables that its columns are of; those of further ones are put beside rows of the same name.
        read: its columns of a profile, a value a row.
        first: a column that stands before those of the pages.
        without: keys of columns that it leaves out.
    """

    name: str
    meaning: str
    parts: tuple[tuple[PageName, str], ...]
    read: Callable[[SqlTable, Profile, EventsAsked], SqlRows]
    first: tuple[SqlColumn, ...] = ()
    without: tuple[str, ...] = ()

    @property
    def fields(self) -> list[list[Field[Any]]]:
        made: list[list[Field[Any]]] = []
        for page, key in self.parts:
            record = page_named(page)
            assert record is not None, page
            table = next(table for table in record.load_report().tables if table.key == key)
            known = {field.key for part in made for field in part}
            chosen = (field for field in table.chosen(table.json) if is_plain(field) and field.key not in known)
            made.append([field for field in chosen if field.key not in self.without])
        return made

    @property
    def columns(self) -> list[SqlColumn]:
        return [*self.first, *(sql_column(field) for part in self.fields for field in part)]


def _of_page(table: SqlTable, profile: Profile, _: EventsAsked) -> SqlRows:
    (page, key), (fields,) = table.parts[0], table.fields
    made = profile.table(page, key, columns=[field.key for field in fields])
    return SqlRows([made.values(field.key) for field in fields], made.warnings)


def _of_events(table: SqlTable, profile: Profile, asked: EventsAsked) -> SqlRows:
    events = profile.events_between(asked.from_ps, asked.to_ps, asked.track, MOST_EVENTS)
    if events.left_out:
        whole = len(events) + events.left_out
        sentence = f"These are {whole:,} events, more than the {MOST_EVENTS:,} that a query reads."
        raise ProfileError("too_many", sentence, "--from MS --to MS, or --track 'XLA Ops'", EXIT_USAGE)
    return SqlRows([events.values(column.name) for column in table.columns], events.warnings)


def _of_steps(table: SqlTable, profile: Profile, _: EventsAsked) -> SqlRows:
    """Steps with whose time it is beside them, where that is known: of the first group, which the ledger shows."""
    times, owners = table.fields
    steps, ledger = (profile.table(page, key) if key in profile.tables(page) else None for page, key in table.parts)
    names, groups = ((), ()) if steps is None else (steps.values("name"), steps.values("group"))
    by_name = {} if ledger is None else {name: row for row, name in enumerate(ledger.values("name"))}
    rows = [by_name.get(name) if of == groups[0] else None for name, of in zip(names, groups, strict=True)]
    beside = [[None if row is None or ledger is None else ledger.values(of.key)[row] for row in rows] for of in owners]
    warnings = () if steps is None else steps.warnings
    return SqlRows([*(() if steps is None else steps.values(of.key) for of in times), *beside], warnings)


def _of_buffers(table: SqlTable, profile: Profile, _: EventsAsked) -> SqlRows:
    """The HBM buffers of all modules that have figures."""
    (fields,), modules = table.fields, profile.table("memory", "modules")
    rows: list[list[Any]] = [[] for _ in range(1 + len(fields))]
    facts = zip(modules.values("name"), modules.values("program_id"), modules.values("problems"), strict=True)
    for name, program, problem in facts:
        if problem:
            continue
        module = f"{name}({program})" if program else name
        made = profile.table("memory", "buffers", columns=[field.key for field in fields], module=module)
        for into, values in zip(rows, ([module] * len(made), *map(made.values, made.keys())), strict=True):
            into.extend(values)
    return SqlRows(rows, modules.warnings)


_MODULE = SqlColumn("module", "VARCHAR", "text", "its compiled module, name(program id)")
_EVENT = "an event of the timeline; derived tracks only if --track names them"
TABLES: tuple[SqlTable, ...] = (
    SqlTable("events", _EVENT, (("timeline", "events"),), _of_events),
    SqlTable("ops", "an HLO op, over all cores and the whole capture", (("ops", "ops"),), _of_page),
    SqlTable(
        "steps", "a step: its time, and the owners of that time", (("hosts", "steps"), ("ledger", "steps")), _of_steps
    ),
    SqlTable("cores", "a core", (("cores", "cores"),), _of_page),
    SqlTable("hosts", "a host", (("hosts", "hosts"),), _of_page),
    SqlTable("modules", "an HLO module that ran", (("inference", "modules"),), _of_page),
    SqlTable("buffers", "an HBM buffer of a compiled module", (("memory", "buffers"),), _of_buffers, (_MODULE,)),
    SqlTable("allocators", "an allocator, at its peak", (("memory-profile", "allocators"),), _of_page),
    SqlTable("collectives", "a collective", (("collectives", "collectives"),), _of_page),
    SqlTable("findings", "a reason why the program is slow", (("findings", "findings"),), _of_page),
)
"""All tables, in the order in which they are listed."""

BY_NAME: Mapping[str, SqlTable] = {table.name: table for table in TABLES}
