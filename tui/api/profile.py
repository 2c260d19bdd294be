"""A run of a logdir: its pages as dataclasses, their tables as columns, and their reports as documents."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable, Mapping, Sequence
from html import escape
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any

import numpy as np

from tpuprof.parsers.base.errors import EXIT_NOT_FOUND, EXIT_USAGE, ProfileError
from tpuprof.parsers.base.text import counted, printable
from tpuprof.parsers.files.logdir import Logdir, Run, open_logdir
from tpuprof.parsers.pages.ops.one_op import NO_RUN, one_op, op_runs
from tpuprof.parsers.pages.shared.key import named_in
from tpuprof.parsers.session.one_core import narrowed
from tpuprof.parsers.session.opening import open_run
from tpuprof.parsers.session.session import Session
from tpuprof.tui.api.table import Column, Table
from tpuprof.tui.demo import demo_path
from tpuprof.tui.pages import PAGES, Page, page_named
from tpuprof.tui.report.choice import choose, nearest_or_first
from tpuprof.tui.report.fields import columns as columns_of
from tpuprof.tui.report.page import Listed, Report, ReportRequest, TableOptions, TextLook, check_part
from tpuprof.tui.terminal.custom import read_config

if TYPE_CHECKING:
    from tpuprof.parsers.base.intervals import Int64s
    from tpuprof.parsers.memory.allocators.model import MemoryProfilePage
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

DEMO = "demo"
_LOOK = TextLook(110, ascii_only=False, color=False)
_PS_PER_MS = 10**9


def open_profile(
    path: str | os.PathLike[str],
    *,
    run: str | None = None,
    host: str | None = None,
    core: str | None = None,
    cache: bool = True,
    jobs: int | None = None,
) -> Profile:
    """Opens a profile; files are read on demand.

    Args:
        path: a logdir, any folder above it, a run, a file, an archive, a glob or a URL; ``"demo"`` for the demo.
        run: name of the run, or its beginning; None for the newest.
        host: the only host to read; None for all hosts.
        core: the one core (``host0:2``) or chip (``host0:chip1``), by any of its names; None for all cores.
        cache: whether to keep what was read in the user's cache folder, unless ``TPUPROF_CACHE`` is ``off``.
        jobs: how many processor cores may read; None for all.

    Raises:
        ProfileError: the path has no profile (exit code 3), it can't be read (4), or it has no such run, host or core
            (3).

    >>> import tpuprof
    >>> tpuprof.open("demo").name
    'demo'
    """
    where = demo_path() if path == DEMO else path
    logdir, config = open_logdir(where), read_config(os.environ)
    chosen = logdir.find_run(run)
    chosen = chosen if core is None else narrowed(chosen, core, host)
    chosen.files(host)
    is_kept = cache and config.cache

    def opened(one: Run) -> Session:
        return open_run(one, lambda _: None, lambda: False, cache=is_kept, cache_bytes=config.cache_bytes, jobs=jobs)

    return Profile(logdir, opened(chosen), host, opened)


class Profile:
    """One run of a logdir, made by `tpuprof.open`. One thread at a time may use it.

    Its methods that are named after pages return frozen dataclasses, with times in picoseconds, rates in FLOP/s or
    bytes/s and shares as fractions (0-1); what is unknown is None. `table` and `report` have the figures and the units
    of ``tpuprof-tui report PAGE --format json``.
    """

    def __init__(self, logdir: Logdir, session: Session, host: str | None, opened: Callable[[Run], Session]) -> None:
        self._logdir = logdir
        self._session = session
        self._host = host
        self._opened = opened  # of other runs, for pages that compare them

    @property
    def run(self) -> Run:
        """What it is of."""
        return self._session.run

    @property
    def name(self) -> str:
        """The run's name."""
        return self._session.run.name

    @property
    def path(self) -> str:
        """The run's path."""
        return self._session.run.path

    @property
    def hosts(self) -> tuple[str, ...]:
        """The hosts that the figures cover."""
        return tuple(file.host for file in self._session.run.files(self._host))

    @property
    def runs(self) -> tuple[str, ...]:
        """The names of all runs of the logdir, the newest first."""
        return tuple(run.name for run in self._logdir.runs)

    # --- pages

    def _page(self, key: str) -> Any:  # noqa: ANN401 - of the key's type
        """A page, by the module under `parsers.pages` that is imported for it, and its key there."""
        return self._session.page(named_in(f"tpuprof.parsers.pages.{key}"), self._host)

    def overview(self) -> Overview:
        """Step time, what bounds it, where it goes, and why the program is slow."""
        page: Overview = self._page("overview.model:OVERVIEW")
        return page

    def findings(self) -> tuple[Finding, ...]:
        """Why the program is slow, the largest saving first."""
        return self.overview().findings

    def ledger(self) -> Account | None:
        """The owner of each picosecond of a step; None without steps."""
        page: Account | None = self._page("overview.model:LEDGER")
        return page

    def ops(self) -> OpsPage:
        """HLO ops, by self time."""
        page: OpsPage = self._page("ops.key:OPS")
        return page

    def op(self, name: str | None = None, module: str | None = None) -> OpPage:
        """All about one op, with the spread of its runs.

        Args:
            name: of an HLO op, a kernel or a framework op; None for the HLO op with the most time.
            module: ``name`` or ``name(program id)``; None for the module in which it takes most time.

        Raises:
            ProfileError: there is no such op or module, with the nearest names.
        """
        return one_op(self._session, self._host, name, module)

    def kernel_times(self, name: str, module: str | None = None) -> Int64s:
        """How long each run of an op or kernel took; see `tpuprof.kernel_times`."""
        found = op_runs(self._session, self._host, name, module)
        if not sum(len(of.duration_ps) for of in found.runs):
            why = found.why_none or NO_RUN
            raise ProfileError("no_runs", f"{printable(name)} has no known run: {why}.", "", EXIT_NOT_FOUND)
        return np.concatenate([of.duration_ps for of in found.runs])

    def op_profile(self) -> OpProfilePage:
        """Ops as trees by program, category and scope."""
        page: OpProfilePage = self._page("ops.op_profile:OP_PROFILE")
        return page

    def framework_ops(self) -> FrameworkOpsPage:
        """Ops of the framework, on the device and on the host."""
        page: FrameworkOpsPage = self._page("ops.framework_ops:FRAMEWORK_OPS")
        return page

    def roofline(self) -> RooflinePage:
        """How close ops come to the core's roof."""
        page: RooflinePage = self._page("ops.roofline:ROOFLINE")
        return page

    def collectives(self) -> CollectivesPage:
        """Collectives: how much of them compute hides, who is late, and how much of the links' bandwidth they reach."""
        page: CollectivesPage = self._page("collectives.page:COLLECTIVES")
        return page

    def counters(self) -> CountersPage:
        """Use of a core's units, from hardware counters."""
        page: CountersPage = self._page("counters.page:COUNTERS")
        return page

    def input(self) -> InputPipelinePage:
        """The input pipeline."""
        page: InputPipelinePage = self._page("input.input:INPUT")
        return page

    def inference(self) -> InferencePage:
        """Latencies of requests, or of runs of a module."""
        page: InferencePage = self._page("inference:INFERENCE")
        return page

    def hosts_page(self) -> HostsPage:
        """Hosts and cores compared."""
        page: HostsPage = self._page("hosts.hosts:HOSTS")
        return page

    def memory(self) -> CompiledModules:
        """The memory of compiled modules."""
        page: CompiledModules = self._page("memory.key:MEMORY")
        return page

    def memory_profile(self) -> MemoryProfilePage:
        """Memory over time, as allocators record it."""
        page: MemoryProfilePage = self._page("memory.key:MEMORY_PROFILE")
        return page

    def timeline(self) -> Timeline:
        """All events of one host: the host of this profile, or the first host with a device."""
        return self._session.timeline(self._host)

    # --- tables and documents

    @property
    def pages(self) -> tuple[str, ...]:
        """The names that `table` and `report` take."""
        return tuple(page.name for page in PAGES if not page.is_of_arrays)

    def table(
        self,
        page: str,
        key: str | None = None,
        *,
        filter: str = "",
        sort: str = "",
        columns: Sequence[str] = (),
        limit: int = 0,
        **options: Any,  # noqa: ANN401 - as of the command line
    ) -> Table:
        """A table of a page.

        Args:
            page: its name, as in ``tpuprof-tui report PAGE``.
            key: which of its tables, by its key in JSON; None for the main table, which CSV has.
            filter: the rows to keep, in the language of the app and of ``--filter``: ``"roofline_efficiency<60%"``.
            sort: the key of a column, numbers from the largest on; ``:asc`` or ``:desc`` behind it sets the direction.
            columns: keys; empty for those of JSON.
            limit: the most rows, 0 for all.
            options: options of the page, named as on the command line, with underscores: ``op="fusion.3"``.

        Raises:
            ProfileError: there is no such page, table, column or option (with the nearest names), or it can't be read.

        >>> import tpuprof
        >>> slow = tpuprof.open("demo").table("ops", filter="roofline_efficiency<20%", columns=["name", "category"])
        >>> len(slow) > 0, slow.keys()
        (True, ('name', 'category'))
        """
        _check_limit(limit)
        tables, warnings = self._tables(page, options)
        listed = _named(tables, key, page)
        chosen = choose(listed, TableOptions(filter, sort, tuple(columns)), limit, listed.table.json)
        return as_table(listed, chosen.shown, chosen.keys, len(chosen.matching) - len(chosen.shown), warnings)

    def tables(self, page: str, **options: Any) -> tuple[str, ...]:  # noqa: ANN401 - as of the command line
        """The keys of the tables that a page has for `table`, the main one first.

        >>> import tpuprof
        >>> tpuprof.open("demo").tables("hosts")
        ('hosts', 'left_out', 'steps')
        """
        return tuple(listed.table.key for listed in self._tables(page, options)[0])

    def events(
        self, from_ms: float | None = None, to_ms: float | None = None, track: str = "", *, limit: int = 10_000
    ) -> Table:
        """Events of the timeline in order of their start, without their arguments.

        Args:
            from_ms, to_ms: the interval on the trace's clock; None for its start or end.
            track: a part of ``section / track``; the section may be a core's name or its plane. Empty for all tracks
                but derived ones, which repeat the ops.
            limit: the most events, the first ones; 0 for all.

        Raises:
            ProfileError: no track has such a name, or the file can't be read.
        """
        for ms in (from_ms, to_ms):
            if ms is not None and not (isinstance(ms, Real) and math.isfinite(ms)):
                raise _refused("events", ms, "milliseconds", 'events(300, 400, track="XLA Ops")')
        if not isinstance(track, str):
            raise _refused("events", track, "the name of a track", 'events(track="XLA Ops")')
        begin, end = (None if ms is None else round(ms * _PS_PER_MS) for ms in (from_ms, to_ms))
        return self.events_between(begin, end, track, limit)

    def events_between(self, from_ps: int | None, to_ps: int | None, track: str = "", limit: int = 10_000) -> Table:
        """The same for an interval in picoseconds.

        Raises:
            ProfileError: as in `events`.
        """
        interval = {"from_ps": from_ps or 0, "to_ps": to_ps, "track": track or None}
        reader, request, content = self._content("timeline", interval, limit)
        assert reader.sections is not None, "the timeline has tables"
        listed = reader.sections(content, request)[0]
        shown = listed.table.length(listed.source)
        left_out = len(content.selection) - shown
        return as_table(listed, range(shown), listed.table.json, left_out, reader.warnings(content))

    def report(self, page: str, *, limit: int = 0, **options: Any) -> dict[str, Any]:  # noqa: ANN401 - see `table`
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
        if (sections := _page(page).load_report().sections) is None:
            raise ProfileError("usage", f"The page {page} has no tables.", f"report({page!r})", EXIT_USAGE)
        reader, request, content = self._content(page, options, 0)
        return sections(content, request), reader.warnings(content)

    def _content(self, page: str, options: Mapping[str, Any], limit: int) -> tuple[Report[Any], ReportRequest, Any]:
        """How a page is printed, what is asked for of it, and what that is."""
        record = _page(page)
        request, reader = self._request(record, options, limit), record.load_report()
        reader.check(request.options, request.form, limit)
        return reader, request, reader.read(request)

    def _request(self, page: Page, options: Mapping[str, Any], limit: int) -> ReportRequest:
        for name in options:
            if name not in page.options:
                hint = f"one of: {', '.join(page.options)}" if page.options else "leave it out"
                raise ProfileError("usage", f"The page {page.name} has no option {printable(name)}.", hint, EXIT_USAGE)
        page.check_groups(options.get("by"))
        _check_limit(limit)
        given, run = {**dict.fromkeys(page.options), **options}, self._session.run
        given |= {"step": str(given["step"])} if isinstance(given.get("step"), Integral) else {}

        def session(of: Run) -> Session:
            return self._session if of == run else self._opened(of)

        host = None if page.without_host else self._host
        asked = None if run.path == self._logdir.find_run().path else run.name  # pages of all runs take no name
        check_part(given)
        whole = ReportRequest(self._logdir, asked, host, session, "json", _LOOK, limit, given, core=run.core or None)
        return whole.of_part(page.is_of_events)

    def __repr__(self) -> str:
        return f"<Profile {self.name}: {counted(len(self.hosts), 'host')}>"

    def _repr_html_(self) -> str:
        """Its name and where it lies, for a notebook; both as text, never as markup."""
        return f"<b>{escape(printable(self.name))}</b> {escape(printable(self.path))}"


def as_table(listed: Listed, rows: Sequence[int], keys: Sequence[str], left_out: int, warnings: Sequence[str]) -> Table:
    """Some rows of a page's table, with a description of each column."""
    table = listed.table
    described = [Column(of.key, of.unit.name, of.meaning, of.null) for of in table.chosen(keys)]
    return Table(table.key, described, columns_of(table, listed.source, rows, keys), left_out, warnings)


def _check_limit(limit: object) -> None:
    if not isinstance(limit, Integral) or limit < 0:
        raise _refused("limit", limit, "a number of rows, 0 for all", "limit=20")


def _refused(what: str, given: object, wanted: str, example: str) -> ProfileError:
    """The error of an argument that the command line would refuse too."""
    return ProfileError("usage", f"{what}: {printable(repr(given))} is not {wanted}.", example, EXIT_USAGE)


def _page(name: str) -> Page:
    page = page_named(name)
    if page is None or page.is_of_arrays:
        known = [each.name for each in PAGES if not each.is_of_arrays]
        hint = f"one of: {', '.join(nearest_or_first(name, known))}"
        raise ProfileError("usage", f"There is no page {printable(name)}.", hint, EXIT_USAGE)
    return page


def _named(tables: Sequence[Listed], key: str | None, page: str) -> Listed:
    """The table with a key, or the main one."""
    for listed in tables:
        if key in (None, listed.table.key):
            return listed
    known = nearest_or_first(key or "", [listed.table.key for listed in tables])
    sentence = f"The page {page} has no table{f' {printable(key)}' if key else ' with columns'}."
    hint = f"one of: {', '.join(known)}" if known else f"report({page!r}) has all of it"
    raise ProfileError("usage", sentence, hint, EXIT_USAGE)
