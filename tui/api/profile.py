"""A run of a logdir: its pages as dataclasses, their tables as columns, and their reports as documents."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Mapping, Sequence
from math import isnan
from numbers import Integral
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar, cast

import numpy as np

from tpuprof.parsers.base.errors import EXIT_NOT_FOUND, EXIT_USAGE, ProfileError
from tpuprof.parsers.base.record import dataclass, replace
from tpuprof.parsers.base.text import counted, printable
from tpuprof.parsers.base.tpus import generation_named
from tpuprof.parsers.files.logdir import Logdir, Run
from tpuprof.parsers.pages.memory.key import MEMORY
from tpuprof.parsers.pages.ops.one_op import NO_RUN, one_op, op_runs
from tpuprof.parsers.pages.overview.model import LEDGER, OVERVIEW, Overview
from tpuprof.parsers.pages.shared.key import Later, PageKey, named_in
from tpuprof.parsers.session.hlo import HloSession
from tpuprof.parsers.session.live_arrays import open_arrays
from tpuprof.parsers.session.session import Session
from tpuprof.tui.api.arguments import Guiding, check, picoseconds
from tpuprof.tui.api.result import Result, oom_of
from tpuprof.tui.api.table import LOOK, Table
from tpuprof.tui.pages import PAGE_NAMES, Page, PageName, page_named
from tpuprof.tui.report.choice import nearest_or_first
from tpuprof.tui.report.output import whole
from tpuprof.tui.report.page import Report, ReportRequest
from tpuprof.tui.report.shared.bounded import LEAST_ROW

if TYPE_CHECKING:
    from tpuprof.parsers.base.intervals import Int64s
    from tpuprof.parsers.memory.batch.fit import BatchFit
    from tpuprof.parsers.pages.findings.finding import Finding
    from tpuprof.parsers.pages.memory.compiled import CompiledModules
    from tpuprof.parsers.pages.ops.one_op import OpPage
    from tpuprof.parsers.steps.step_account import Account
    from tpuprof.parsers.timeline.model import Timeline

_QUERY, _SQL_TABLES = Later("tpuprof.tui.api.sql.query:table_of"), "tpuprof.tui.api.sql.tables:BY_NAME"
Made = TypeVar("Made")
Ms = float | str | None


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of what may be open: a profile, or another file that has some of its pages.

    Attributes:
        what: it is, with an article.
        pages: that it has.
        has: how what it has is asked for, for a hint.
    """

    what: str
    pages: tuple[PageName, ...]
    has: str = ""

    def lacks(self, path: str, page: str = "") -> ProfileError:
        """The error for what it does not have."""
        sentence = f"{printable(path)} is {self.what}: it has no {f'page {page}' if page else 'profile of a program'}."
        return ProfileError("lacks_page", sentence, self.has, EXIT_NOT_FOUND)


PROFILE = Kind("a profile", PAGE_NAMES)
MODULES = Kind(
    "a dump of compiled modules",
    ("memory", "graph", "program"),
    'memory(), fit(), table("memory", "buffers") or table("graph")',
)
ARRAYS = Kind("a device memory profile", ("live-arrays",), 'table("live-arrays")')
LOG = Kind("a log", (), "oom() looks for out-of-memory errors")

_LINES = 'table("timeline") for the planes and their lines, and events(track="XLA Ops") for the events of a line'
_WAYS = {"planes": _LINES, "lines": _LINES, "summary": 'overview(), findings() or report("overview")'}
_CHOICE = 'events(from_ms="20s", to_ms="20.3s", track="host0:2 / XLA Ops"), with a core and a line, or a part of one'
_BY_NAME = "query(\"SELECT * FROM events WHERE name LIKE 'all-reduce%'\")"


class TimelineEvents(Table):
    """All events of the timeline, read when they are asked for; called, it gives those of a choice."""

    def __init__(self, table: Callable[..., Table]) -> None:
        self._table = table

    def __call__(
        self, from_ms: Ms = None, to_ms: Ms = None, track: str = "", *, limit: int = 0, **no: NoReturn
    ) -> Table:
        """Events in order of their start, without their arguments: all of them, or as a `limit` says.

        Args:
            from_ms, to_ms: the interval on the trace's clock, or texts such as ``"20.3s"``; None for its start or end.
                Another text alone is the track.
            track: a part of ``section / track``; the section may be a core's name or its plane. Empty for all tracks
                but derived ones, which repeat the ops.
            limit: the most events, the first ones, where `left_out` of the table counts the others; 0 for all.
            no: other arguments, which it does not have.

        Raises:
            ProfileError: no track has such a name, or the file can't be read.
        """
        if no:
            hint = _CHOICE if {"name", "filter", "where"}.isdisjoint(no) else _BY_NAME
            raise ProfileError("usage", f"events() has no argument {printable(', '.join(no))}.", hint, EXIT_USAGE)
        if isinstance(from_ms, str) and not track and isnan(picoseconds(from_ms)):
            return self(to_ms=to_ms, track=from_ms, limit=limit)
        check(from_ms=from_ms, to_ms=to_ms, track=track)
        begin, end = (None if ms is None else round(picoseconds(ms)) for ms in (from_ms or 0, to_ms))
        return self._table("timeline", "events", limit=limit, from_ps=begin, to_ps=end, track=track or None)

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> object:
            if name in ("name", "columns", "left_out", "warnings", "_values", "_arrays"):
                vars(self).update(vars(self()))
                return vars(self)[name]
            return super().__getattr__(name)


class Profile(Guiding):
    """One run of a logdir, made by `tpuprof.open`. One thread at a time may use it.

    `overview`, `op`, `memory` and their like return frozen dataclasses, with times in picoseconds, rates in FLOP/s or
    bytes/s and shares as fractions (0-1); what is unknown is None. `table` and `report` have the figures and the units
    of ``tpuprof-tui report PAGE --format json``. What a file does not have, such as the ops of a compiler's dump,
    raises a `ProfileError` that says what it has.
    """

    def __init__(
        self,
        logdir: Logdir,
        session: Session | HloSession | None,
        host: str | None,
        opened: Callable[[Run], Session],
        kind: Kind = PROFILE,
        close: Callable[[], object] = lambda: None,
    ) -> None:
        self._logdir = logdir
        self._readable = session
        self._host = host
        self._opened = opened  # of other runs, for pages that compare them
        self._kind = kind
        self._warnings: dict[str, None] = {}  # of all pages that were read
        self.run: Run = logdir.runs[0] if session is None else session.run
        """What it is of."""
        self._close = weakref.finalize(self, close)

    def __enter__(self) -> Profile:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Removes the copy of bytes that were opened. Files are open only while they are read."""
        self._close()

    @property
    def session(self) -> Session:
        """What reads the events.

        Raises:
            ProfileError: there are none.
        """
        if self._kind is not PROFILE:
            raise self._kind.lacks(self.path)
        return cast("Session", self._readable)

    @property
    def name(self) -> str:
        """The run's name."""
        return self.run.name

    @property
    def path(self) -> str:
        """The run's path."""
        return self.run.path

    @property
    def hosts(self) -> tuple[str, ...]:
        """The hosts that the figures cover."""
        return tuple(file.host for file in self.run.files(self._host))

    @property
    def runs(self) -> tuple[str, ...]:
        """The names of all runs of the logdir, the newest first."""
        return tuple(run.name for run in self._logdir.runs)

    # --- pages

    def page(self, key: PageKey[Made]) -> Made:
        """A page, by its key under `tpuprof.parsers.pages`, such as ``ops.key.OPS``."""
        made = self.session.page(key, self._host)
        self._warnings |= dict.fromkeys(getattr(made, "warnings", ()))
        return made

    def overview(self) -> Overview:
        """Step time, what bounds it, where it goes, and why the program is slow."""
        return self.page(OVERVIEW)

    def findings(self) -> tuple[Finding, ...]:
        """Why the program is slow, the largest saving first."""
        return self.overview().findings

    def ledger(self) -> Account | None:
        """The owner of each picosecond of a step; None without steps."""
        return self.page(LEDGER)

    def op(self, name: str | None = None, module: str | None = None) -> OpPage:
        """All about one op, with the spread of its runs.

        Args:
            name: of an HLO op, a kernel or a framework op; None for the HLO op with the most time.
            module: ``name`` or ``name(program id)``; None for the module in which it takes most time.

        Raises:
            ProfileError: there is no such op or module, with the nearest names.
        """
        check(name=name, module=module)
        return one_op(self.session, self._host, name, module)

    def kernel_times(self, name: str, module: str | None = None) -> Int64s:
        """How long each run of a kernel took, from start to end by the device's clock.

        Args:
            name, module: as in `op`.

        Returns:
            int64[runs], in picoseconds: core by core, each in the order of the profile.

        Raises:
            ProfileError: `unknown_op` with the nearest names; `no_runs` if the profile has the op but no run of it.
        """
        check(name=name, module=module)
        found = op_runs(self.session, self._host, name, module)
        if not sum(len(of.duration_ps) for of in found.runs):
            why = found.why_none or NO_RUN
            raise ProfileError("no_runs", f"{printable(name)} has no known run: {why}.", "", EXIT_NOT_FOUND)
        return np.concatenate([of.duration_ps for of in found.runs])

    def memory(self) -> CompiledModules:
        """The memory of compiled modules."""
        return (self._readable or self.session).page(MEMORY, self._host)

    def fit(self, module: str | None = None, device: str | None = None) -> BatchFit:
        """The largest batch with which a compiled module fits, and how many bytes a larger batch takes, by arithmetic.

        Args:
            module: ``name`` or ``name(program id)``; None for the module with the largest peak.
            device: the TPU that a dump is for, such as ``v5e``; a profile says it itself.

        Raises:
            ProfileError: there is no such module.
        """
        made: BatchFit = self.result("memory", {"module": module, "device": device}).page.fit
        return made

    def oom(self) -> Result:
        """What ran out of memory in a log, or in a dump of a compile that failed; see `tpuprof.oom`."""
        return oom_of([self.path])

    def timeline(self) -> Timeline:
        """All events of one host: the host of this profile, or the first host with a device."""
        return self.session.timeline(self._host)

    # --- tables and documents

    @property
    def pages(self) -> tuple[PageName, ...]:
        """The names that `table` and `report` take."""
        return self._kind.pages

    def table(
        self,
        page: PageName,
        key: str | None = None,
        *,
        filter: str = "",
        sort: str = "",
        columns: Sequence[str] | str = (),
        limit: int = 0,
        **options: Any,  # noqa: ANN401 - as of the command line
    ) -> Table:
        """A table of a page.

        Args:
            page: its name, as in ``tpuprof-tui report PAGE``.
            key: which of its tables, by its key in JSON; None for the main table, which CSV has.
            filter: the rows to keep, in the language of the app and of ``--filter``: ``"roofline_efficiency<60%"``.
            sort: the key of a column, numbers from the largest on; ``:asc`` or ``:desc`` behind it sets the direction.
            columns: keys, in a list or with commas between them; empty for those of JSON.
            limit: the most rows, 0 for all.
            options: options of the page, named as on the command line, with underscores: ``op="fusion.3"``.

        Raises:
            ProfileError: there is no such page, table, column or option (with the nearest names), or it can't be read.

        >>> import tpuprof
        >>> slow = tpuprof.open("demo").table("ops", filter="roofline_efficiency<20%", columns=["name", "category"])
        >>> len(slow) > 0, slow.keys()
        (True, ('name', 'category'))
        """
        return self.result(page, options).table(key, filter=filter, sort=sort, columns=columns, limit=limit)

    def __getitem__(self, name: str) -> Table:
        """The main table of a page, or a table of `query`: ``profile["ops"]``, or ``profile.ops``; raises as it."""
        check(page=name)
        if name in named_in(_SQL_TABLES) and page_named(name) is None:
            return self.events if name == "events" else self.query(f"SELECT * FROM {name}")  # noqa: S608 - a name of ours
        return self.table(cast("PageName", name.replace("_", "-")))

    def tables(self, page: PageName | None = None, **options: Any) -> tuple[str, ...]:  # noqa: ANN401 - as of `table`
        """The keys of the tables that a page has for `table`, the main one first; without a page what ``[]`` takes.

        >>> import tpuprof
        >>> tpuprof.open("demo").tables("hosts")
        ('hosts', 'left_out', 'steps')
        """
        if page is None:
            return tuple(dict.fromkeys((*self.pages, *(named_in(_SQL_TABLES) if self._kind is PROFILE else ()))))
        return self.result(page, options).tables()

    @property
    def events(self) -> TimelineEvents:
        """All events of the timeline; ``events(300, 400, track="XLA Ops")`` are some of them."""
        return TimelineEvents(self.table)

    def query(self, sql: str, *, limit: int = 0, seconds: int = 30) -> Table:
        """What ``tpuprof-tui query`` answers: one SELECT over the tables of the profile.

        Args:
            limit: the most rows, 0 for all.
            seconds: how long it may take.

        Raises:
            ProfileError: it can't be run, or not within its time and 1 GiB of memory.

        >>> import tpuprof
        >>> tpuprof.open("demo").query("SELECT count(*) AS ops FROM ops").values("ops")
        [490]
        """
        check(sql=sql, limit=limit)
        return cast("Table", _QUERY(sql, self, limit, seconds))

    sql = query

    def report(
        self,
        page: PageName,
        *,
        limit: int = 0,
        max_bytes: int | None = None,
        **options: Any,  # noqa: ANN401 - as of `table`
    ) -> dict[str, Any]:
        """What ``tpuprof-tui report PAGE --format json`` prints.

        Args:
            page, options: as in `table`.
            limit: rows of the main table, 0 for all.
            max_bytes: of the document as JSON, 1,000 or more: its longest lists lose their last rows, which
                ``all_rows`` and ``left_out_rows`` count; None for all of it.

        Raises:
            ProfileError: as in `table`.

        >>> import tpuprof
        >>> tpuprof.open("demo").report("ops", max_bytes=5000)["all_rows"]
        {'ops': 490}
        """
        check(max_bytes=max_bytes)
        read = self.result(page, options, limit or (max_bytes or 0) // LEAST_ROW)
        return read.report(limit=limit, max_bytes=max_bytes)

    def result(self, name: str, options: Mapping[str, Any], limit: int = 0) -> Result:
        """A page by its name, with options as of `table`: its tables, and how it is printed."""
        report, request = self._asked(self._page_named(name), options, limit)
        rest = f"report({', '.join([repr(name), *(f'{key}={value!r}' for key, value in options.items())])})"
        request = replace(request, rest=rest)
        content = report.read(request)
        warnings = report.warnings(content)
        self._warnings |= dict.fromkeys(warnings)
        return Result(
            name,
            content,
            lambda: () if report.sections is None else report.sections(content, request),
            lambda form, _: whole(report.writers[form](content, request)),
            warnings,
            rest,
        )

    def _asked(self, page: Page, options: Mapping[str, Any], limit: int) -> tuple[Report[Any], ReportRequest]:
        """A page's report, and what it reads by: options as on the command line, None for those that are not given."""
        for name in options:
            if name not in page.options:
                hint = f"one of: {', '.join(page.options)}" if page.options else "leave it out"
                raise ProfileError("usage", f"The page {page.name} has no option {printable(name)}.", hint, EXIT_USAGE)
        given = {**dict.fromkeys(page.options), **options}
        given |= {"step": str(given["step"])} if isinstance(given.get("step"), Integral) else {}
        check(limit=limit, **given)
        given |= {"device": generation_named(given["device"])} if given.get("device") else {}
        report, run, logdir = page.checked_report(given, "json", limit), self.run, self._logdir

        def session(of: Run) -> Session:
            return self.session if of == run else self._opened(of)

        host = None if page.without_host else self._host
        newest = logdir.find_run()  # of several runs together the path is that of one
        asked = None if (run.path, run.name) == (newest.path, newest.name) else run.name  # pages of all runs take none
        logdir = open_arrays(logdir.query) if page.is_of_arrays else logdir
        hlo, core = isinstance(self._readable, HloSession), None if page.without_host else run.core or None
        whole = ReportRequest(logdir, asked, host, session, "json", LOOK, limit, given, only_hlo=hlo, core=core)
        return report, whole.of_part(page.is_of_events)

    def _page_named(self, name: str) -> Page:
        """The page of a name; an error where there is none, or what is open does not have it."""
        check(page=name)
        if (page := page_named(name)) is None:
            near = f"one of: {', '.join(nearest_or_first(name, self.pages))}"
            hint = f'profile["{name}"]' if name in named_in(_SQL_TABLES) else near
            raise ProfileError("usage", f"There is no page {printable(name)}.", hint, EXIT_USAGE)
        if name not in self.pages:
            raise self._kind.lacks(self.path, name)
        return page

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> object:
            is_table = page_named(name.replace("_", "-")) is not None or name in named_in(_SQL_TABLES)
            return self[name] if is_table else super().__getattr__(name)

    def _way_to(self, name: str) -> str:
        if hasattr(Table, name):
            return f'table("ops").{name}() or events.{name}()'
        return _WAYS.get(name, 'table("ops") or query("SELECT * FROM ops"), and to_pandas() of what they give')

    def __repr__(self) -> str:
        """Its name, and what the pages that were read so far warn of."""
        what = f"<Profile {self.name}: {counted(len(self.hosts), 'host') if self.hosts else self._kind.what}>"
        return "\n".join((what, *(f"warning: {printable(warning)}" for warning in self._warnings)))
