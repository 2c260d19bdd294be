"""A run of a logdir: its pages as dataclasses, their tables as columns, and their reports as documents."""

from __future__ import annotations

import json
import math
import weakref
from collections.abc import Callable, Mapping, Sequence
from html import escape
from numbers import Integral, Real
from shutil import rmtree
from typing import TYPE_CHECKING, Any, Literal, TypeVar, cast

import numpy as np

from tpuprof.parsers.base.errors import EXIT_NOT_FOUND, EXIT_USAGE, ProfileError
from tpuprof.parsers.base.text import counted, printable
from tpuprof.parsers.base.tpus import generation_named
from tpuprof.parsers.files.logdir import Logdir, Run
from tpuprof.parsers.pages.ops.one_op import NO_RUN, one_op, op_runs
from tpuprof.parsers.pages.shared.key import Later, named_in
from tpuprof.parsers.session.hlo import HloSession
from tpuprof.parsers.session.live_arrays import open_arrays
from tpuprof.parsers.session.session import Session
from tpuprof.tui.api.chosen import (
    as_table,
    check_limit,
    check_options,
    check_texts,
    chosen_table,
    refused,
    table_options,
)
from tpuprof.tui.api.kinds import OF_MODULES, PROFILE, Kind
from tpuprof.tui.api.result import LOOK, Result, oom_of
from tpuprof.tui.api.table import Table
from tpuprof.tui.pages import Page, PageName, page_named
from tpuprof.tui.report.choice import nearest_or_first
from tpuprof.tui.report.page import Listed, Report, ReportRequest, check_part

if TYPE_CHECKING:
    from tpuprof.parsers.base.intervals import Int64s
    from tpuprof.parsers.memory.allocators.model import MemoryProfilePage
    from tpuprof.parsers.memory.batch.fit import BatchFit
    from tpuprof.parsers.pages.collectives.model import CollectivesPage
    from tpuprof.parsers.pages.counters.page import CountersPage
    from tpuprof.parsers.pages.findings.finding import Finding
    from tpuprof.parsers.pages.hosts.model import HostsPage
    from tpuprof.parsers.pages.input.model import InputPipelinePage
    from tpuprof.parsers.pages.memory.compiled import CompiledModules
    from tpuprof.parsers.pages.ops.framework_ops import FrameworkOpsPage
    from tpuprof.parsers.pages.ops.one_op import OpPage
    from tpuprof.parsers.pages.ops.op_profile import OpProfilePage
    from tpuprof.parsers.pages.ops.ops import OpsPage
    from tpuprof.parsers.pages.ops.roofline import RooflinePage
    from tpuprof.parsers.pages.overview.model import Overview
    from tpuprof.parsers.pages.shared.latencies import InferencePage
    from tpuprof.parsers.steps.step_account import Account
    from tpuprof.parsers.timeline.model import Timeline
_PS_PER_MS = 10**9
_QUERY = Later("tpuprof.tui.api.sql.engine:table_of")
Made = TypeVar("Made")


class Profile:
    """One run of a logdir, made by `tpuprof.open`. One thread at a time may use it.

    Its methods that are named after pages return frozen dataclasses, with times in picoseconds, rates in FLOP/s or
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
        folder: str | None = None,
    ) -> None:
        self._logdir = logdir
        self._readable = session
        self._host = host
        self._opened = opened  # of other runs, for pages that compare them
        self._kind = kind
        self.run: Run = logdir.runs[0] if session is None else session.run
        """What it is of."""
        self._close = weakref.finalize(self, lambda: None if folder is None else rmtree(folder, ignore_errors=True))

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

    def _page(self, key: str) -> Made:  # type: ignore[type-var] # of the key's type
        """A page, by the module under `parsers.pages` that is imported for it, and its key there."""
        session = self._readable if key in OF_MODULES and self._readable is not None else self.session
        page: Made = session.page(named_in(f"tpuprof.parsers.pages.{key}"), self._host)
        return page

    def overview(self) -> Overview:
        """Step time, what bounds it, where it goes, and why the program is slow."""
        return self._page("overview.model:OVERVIEW")

    def findings(self) -> tuple[Finding, ...]:
        """Why the program is slow, the largest saving first."""
        return self.overview().findings

    def ledger(self) -> Account | None:
        """The owner of each picosecond of a step; None without steps."""
        return self._page("overview.model:LEDGER")

    def ops(self) -> OpsPage:
        """HLO ops, by self time."""
        return self._page("ops.key:OPS")

    def op(self, name: str | None = None, module: str | None = None) -> OpPage:
        """All about one op, with the spread of its runs.

        Args:
            name: of an HLO op, a kernel or a framework op; None for the HLO op with the most time.
            module: ``name`` or ``name(program id)``; None for the module in which it takes most time.

        Raises:
            ProfileError: there is no such op or module, with the nearest names.
        """
        check_texts('op("fusion.3", module="jit_step")', name=name, module=module)
        return one_op(self.session, self._host, name, module)

    def kernel_times(self, name: str, module: str | None = None) -> Int64s:
        """How long each run of an op or kernel took; see `tpuprof.kernel_times`."""
        check_texts('kernel_times("fusion.3", module="jit_step")', name=name, module=module)
        found = op_runs(self.session, self._host, name, module)
        if not sum(len(of.duration_ps) for of in found.runs):
            why = found.why_none or NO_RUN
            raise ProfileError("no_runs", f"{printable(name)} has no known run: {why}.", "", EXIT_NOT_FOUND)
        return np.concatenate([of.duration_ps for of in found.runs])

    def op_profile(self) -> OpProfilePage:
        """Ops as trees by program, category and scope."""
        return self._page("ops.op_profile:OP_PROFILE")

    def framework_ops(self) -> FrameworkOpsPage:
        """Ops of the framework, on the device and on the host."""
        return self._page("ops.framework_ops:FRAMEWORK_OPS")

    def roofline(self) -> RooflinePage:
        """How close ops come to the core's roof."""
        return self._page("ops.roofline:ROOFLINE")

    def collectives(self) -> CollectivesPage:
        """Collectives: how much of them compute hides, who is late, and how much of the links' bandwidth they reach."""
        return self._page("collectives.page:COLLECTIVES")

    def counters(self) -> CountersPage:
        """Use of a core's units, from hardware counters."""
        return self._page("counters.page:COUNTERS")

    def input(self) -> InputPipelinePage:
        """The input pipeline."""
        return self._page("input.input:INPUT")

    def inference(self) -> InferencePage:
        """Latencies of requests, or of runs of a module."""
        return self._page("inference:INFERENCE")

    def hosts_page(self) -> HostsPage:
        """Hosts and cores compared."""
        return self._page("hosts.hosts:HOSTS")

    def memory(self) -> CompiledModules:
        """The memory of compiled modules."""
        return self._page("memory.key:MEMORY")

    def memory_profile(self) -> MemoryProfilePage:
        """Memory over time, as allocators record it."""
        return self._page("memory.key:MEMORY_PROFILE")

    def fit(self, module: str | None = None, device: str | None = None) -> BatchFit:
        """The largest batch with which a compiled module fits, and how many bytes a larger batch takes, by arithmetic.

        Args:
            module: ``name`` or ``name(program id)``; None for the module with the largest peak.
            device: the TPU that a dump is for, such as ``v5e``; a profile says it itself.

        Raises:
            ProfileError: there is no such module.
        """
        made: BatchFit = self._content("memory", {"module": module, "device": device}, 0)[2].fit
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
        check_limit(limit)
        tables, warnings = self._tables(page, options)
        return chosen_table(tables, key, page, table_options(filter, sort, columns), limit, warnings)

    def tables(self, page: PageName, **options: Any) -> tuple[str, ...]:  # noqa: ANN401 - as of the command line
        """The keys of the tables that a page has for `table`, the main one first.

        >>> import tpuprof
        >>> tpuprof.open("demo").tables("hosts")
        ('hosts', 'left_out', 'steps')
        """
        return tuple(listed.table.key for listed in self._tables(page, options)[0])

    def events(
        self, from_ms: float | None = None, to_ms: float | None = None, track: str = "", *, limit: int = 0
    ) -> Table:
        """Events of the timeline in order of their start, without their arguments: all of them, or as a `limit` says.

        Args:
            from_ms, to_ms: the interval on the trace's clock; None for its start or end.
            track: a part of ``section / track``; the section may be a core's name or its plane. Empty for all tracks
                but derived ones, which repeat the ops.
            limit: the most events, the first ones, where `left_out` of the table counts the others; 0 for all.

        Raises:
            ProfileError: no track has such a name, or the file can't be read.
        """
        for ms in (from_ms, to_ms):
            if ms is not None and not (isinstance(ms, Real) and math.isfinite(ms)):
                raise refused("events", ms, "milliseconds", 'events(300, 400, track="XLA Ops")')
        begin, end = (None if ms is None else round(ms * _PS_PER_MS) for ms in (from_ms, to_ms))
        return self.events_between(begin, end, track, limit)

    def events_between(
        self, from_ps: int | None, to_ps: int | None, track: str = "", limit: int = 0, columns: Sequence[str] = ()
    ) -> Table:
        """The same for an interval in picoseconds, with some columns, or all where none is named.

        Raises:
            ProfileError: as in `events`.
        """
        interval = {"from_ps": from_ps or 0, "to_ps": to_ps, "track": track or None}
        reader, request, content = self._content("timeline", interval, limit)
        assert reader.sections is not None, "the timeline has tables"
        listed = reader.sections(content, request)[0]
        shown = listed.table.length(listed.source)
        left_out = len(content.selection) - shown
        return as_table(listed, range(shown), columns or listed.table.json, left_out, reader.warnings(content))

    def query(
        self, sql: str, *, engine: Literal["auto", "sqlite", "duckdb"] = "auto", limit: int = 0, seconds: int = 30
    ) -> Table:
        """What ``tpuprof-tui query`` answers: one SELECT over the tables of the profile.

        Args:
            engine: ``sqlite`` or ``duckdb``; ``auto`` is DuckDB where it is installed.
            limit: the most rows, 0 for all.
            seconds: how long it may take.

        Raises:
            ProfileError: it can't be run, or not within its time and 1 GiB of memory.

        >>> import tpuprof
        >>> tpuprof.open("demo").query("SELECT count(*) AS ops FROM ops").values("ops")
        [490]
        """
        check_limit(limit)
        made: Table = _QUERY(sql, self, engine, limit, seconds)
        return made

    def report(self, page: PageName, *, limit: int = 0, **options: Any) -> dict[str, Any]:  # noqa: ANN401 - see `table`
        """What ``tpuprof-tui report PAGE --format json`` prints.

        Args:
            page, options: as in `table`.
            limit: rows of the main table, 0 for all.

        Raises:
            ProfileError: as in `table`.
        """
        reader, request, content = self._content(page, options, limit)
        made = reader.writers["json"](content, request)
        assert not callable(made), "JSON is text"
        document: dict[str, Any] = json.loads(made if isinstance(made, str) else "".join(made))
        return document

    def _tables(self, page: str, options: Mapping[str, Any]) -> tuple[Sequence[Listed], Sequence[str]]:
        """The tables of a page, and what there is to warn of."""
        if (sections := self._page_named(page).load_report().sections) is None:
            raise ProfileError("usage", f"The page {page} has no tables.", f"report({page!r})", EXIT_USAGE)
        reader, request, content = self._content(page, options, 0)
        return sections(content, request), reader.warnings(content)

    def _content(self, page: str, options: Mapping[str, Any], limit: int) -> tuple[Report[Any], ReportRequest, Any]:
        """How a page is printed, what is asked for of it, and what that is."""
        record = self._page_named(page)
        request, reader = self._request(record, options, limit), record.load_report()
        reader.check(request.options, request.form, limit)
        return reader, request, reader.read(request)

    def _request(self, page: Page, options: Mapping[str, Any], limit: int) -> ReportRequest:
        for name in options:
            if name not in page.options:
                hint = f"one of: {', '.join(page.options)}" if page.options else "leave it out"
                raise ProfileError("usage", f"The page {page.name} has no option {printable(name)}.", hint, EXIT_USAGE)
        check_limit(limit)
        given, run, logdir = {**dict.fromkeys(page.options), **options}, self.run, self._logdir
        given |= {"step": str(given["step"])} if isinstance(given.get("step"), Integral) else {}
        check_options(given)
        page.check_groups(given.get("by"))
        if device := given.get("device"):
            given["device"] = generation_named(device)
            if given["device"] is None:
                raise refused("device", device, "a TPU whose memory is known", 'device="v5e"')

        def session(of: Run) -> Session:
            return self.session if of == run else self._opened(of)

        host = None if page.without_host else self._host
        asked = None if run.path == logdir.find_run().path else run.name  # pages of all runs take no name
        check_part(given)
        logdir = open_arrays(logdir.query) if page.is_of_arrays else logdir
        hlo, core = isinstance(self._readable, HloSession), None if page.without_host else run.core or None
        whole = ReportRequest(logdir, asked, host, session, "json", LOOK, limit, given, only_hlo=hlo, core=core)
        return whole.of_part(page.is_of_events)

    def _page_named(self, name: str) -> Page:
        """The page of a name.

        Raises:
            ProfileError: there is none, or what is open does not have it.
        """
        check_texts('table("ops")', page=name)
        if (page := page_named(name)) is None:
            hint = f"one of: {', '.join(nearest_or_first(name, self.pages))}"
            raise ProfileError("usage", f"There is no page {printable(name)}.", hint, EXIT_USAGE)
        if name not in self.pages:
            raise self._kind.lacks(self.path, name)
        return page

    def __repr__(self) -> str:
        return f"<Profile {self.name}: {counted(len(self.hosts), 'host') if self.hosts else self._kind.what}>"

    def _repr_html_(self) -> str:
        """Its name and where it lies, for a notebook; both as text, never as markup."""
        return f"<b>{escape(printable(self.name))}</b> {escape(printable(self.path))}"
