"""The registry: every page is one record here.

The command line, the reports, the tabs and the help read it, and nothing else names the modules of a page. They are
imported when they are asked for: a report loads no other page, and no screen.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any, Literal

from tpuprof.parsers.base.errors import EXIT_USAGE, ProfileError
from tpuprof.parsers.base.record import dataclass
from tpuprof.parsers.base.text import nearest, printable

if TYPE_CHECKING:
    from tpuprof.parsers.files.logdir import Run
    from tpuprof.parsers.pages.shared.key import PageKey
    from tpuprof.parsers.session.pages import Pages
    from tpuprof.tui.report.page import CommandReport, Format, Report
    from tpuprof.tui.widgets.lists.table import RowsView
    from tpuprof.tui.widgets.tab import Tab as View


_OfRuns = Literal["runs", "trend", "hosts", "cores"]
_OfSteps = Literal["overview", "findings", "ledger", "model", "input", "inference", "timeline"]
_OfOps = Literal["ops", "op", "op-profile", "sources", "framework-ops", "collectives", "sparse-core", "kernels"]
_OfMachines = Literal["roofline", "counters", "graph", "program", "memory", "memory-profile", "live-arrays"]
PageName = Literal[_OfRuns, _OfSteps, _OfOps, _OfMachines]
"""The names of all pages, for editors and type checkers."""


@dataclass(frozen=True)
class Page:
    """A page of a run.

    Attributes:
        name: of `report PAGE`, and in the schema of its JSON.
        report: the module under `tui.pages` with its `REPORT`, or with another name behind a colon.
        options: what `report` takes for this page alone: the names of its arguments, and the options as they are typed.
        formats: besides those of every page.
        is_of_memory: its path may lead to compiled modules.
        takes_hlo: it can be made of compiled modules alone, without a profile.
        takes_texts: these may be texts of programs, as ``as_text()`` prints them.
        is_of_arrays: it is made of a device memory profile.
        without_host: why ``--host`` does not go with it; empty where it does.
        groups: what ``--by`` takes of those that make other rows its table, which alone is printed then.
        other_groups: what ``--by`` takes besides, with which everything is printed.
        is_of_events: it is made of the events alone that start in a step or an interval, where a call asks for one.
    """

    name: PageName
    report: str
    options: Mapping[str, str]
    formats: tuple[str, ...] = ()
    is_of_memory: bool = False
    takes_hlo: bool = False
    takes_texts: bool = False
    is_of_arrays: bool = False
    without_host: str = ""
    groups: tuple[str, ...] = ()
    other_groups: tuple[str, ...] = ()
    is_of_events: bool = False

    def checked_report(self, options: Mapping[str, Any], form: Format, limit: int | None) -> Report[Any]:
        """The page's report, for a call whose options, format and limit go together; nothing is read to see that.

        Raises:
            ProfileError: they don't, or the page has no such groups, or the call asks for no one part of the capture.
        """
        report = self.load_report()
        report.check(options, form, limit)
        self._check_groups(options.get("by"))
        _check_part(options)
        return report

    def _check_groups(self, by: str | None) -> None:
        """Sees that the page has the groups that are asked for; else the error names the nearest that it has."""
        known = (*self.groups, *self.other_groups)
        if by is not None and by not in known:
            shown, there = printable(by), ", ".join(known)
            sentence = f"The rows of the page {self.name} can't be grouped by {shown}: there is {there}."
            others = (page.name for page in PAGES if by in (*page.groups, *page.other_groups))
            there = next((f"tpuprof-tui report {other} PATH --by {by}" for other in others), "")
            raise ProfileError("usage", sentence, there or f"--by {(nearest(by, known) or known)[0]}", EXIT_USAGE)

    def beside(self) -> list[Report[Any]]:
        """Reports on pages that are read beside its tab when what they hold is asked for."""
        return [report_named(page) for page, tab in _BESIDE.items() if tab == self.name]

    def load_report(self) -> Report[Any]:
        report: Report[Any] = _named(self.report if ":" in self.report else f"{self.report}:REPORT")
        return report


def _check_part(options: Mapping[str, Any]) -> None:
    """Sees that a call asks for one part of the capture, ``step``, or ``from_ps`` and ``to_ps``, and for time in it."""
    begin, end = options.get("from_ps"), options.get("to_ps")
    if options.get("step") is not None and (begin, end) != (None, None):
        sentence = "--step and --from, --to each choose a part of the capture."
        raise ProfileError("usage", sentence, "leave out --step, or --from and --to", EXIT_USAGE)
    if begin is not None and end is not None and begin >= end:
        sentence = "The interval is empty: --to must be later than --from."
        raise ProfileError("usage", sentence, "--from 100 --to 300", EXIT_USAGE)


_BY = {"by": "--by"}
_STEP = {"step": "--step"}
_IN_TIME = {**_STEP, "from_ps": "--from", "to_ps": "--to"}
_OF_TIMELINE = {**_IN_TIME, "track": "--track"}
_OF_MEMORY = {"module": "--module", "space": "--space", "device": "--device", "fit": "--fit", **_BY}
_OF_GRAPH = {"op": "--op", "module": "--module", "around": "--around"}
_OF_PROGRAM = {"module": "--module", "device": "--device"}
_REQUIRE = {"require": "--require"}
_OF_MODEL = {**_REQUIRE, "model_flops": "--model-flops", "tokens": "--tokens", **_BY}
_OF_KERNELS = {**_IN_TIME, "op": "--op", **_BY, "dump": "--dump"}
_LEDGERS = ("step", "core", "host", "module", "scope", "op")
_TREES = ("program", "category", "provenance", "source")
_BUFFERS = ("source", "scope", "category", "owner")
_HOLDERS = ("source", "function", "stack", "device", "kind")
_CHECKS = ("github", "junit")
_WHOLE_RUNS = "The page trend compares whole runs."
_ONE_PROCESS = "A device memory profile covers one process and all its devices."
PAGES: tuple[Page, ...] = (
    Page("runs", "runs.report", {"facts": "--facts"}, without_host="The page runs shows all hosts of a run."),
    Page("trend", "runs.trend", {"fail_on_regression": "--fail-on-regression"}, _CHECKS, without_host=_WHOLE_RUNS),
    Page("hosts", "hosts.report", _STEP, without_host="The page hosts compares all hosts of a run."),
    Page("cores", "hosts.report:CORES_REPORT", _STEP, without_host="The page cores compares all cores of a run."),
    Page("overview", "overview.report", _REQUIRE),
    Page("findings", "overview.findings_report", {"fail_on": "--fail-on"}, _CHECKS),
    Page("ledger", "overview.ledger.report", {**_STEP, **_BY}, other_groups=_LEDGERS),
    Page("model", "overview.ledger.model_use.report", _OF_MODEL, other_groups=("block", "layer")),
    Page("input", "input.report", _IN_TIME, is_of_events=True),
    Page("inference", "overview.inference.report", {"requests": "--requests"}),
    Page("timeline", "timeline.report.report", _OF_TIMELINE, ("perfetto",)),
    Page("ops", "ops.report.hlo_ops", {**_IN_TIME, **_BY}, groups=("clones",), is_of_events=True),
    Page("op", "ops.report.one_op", {**_IN_TIME, "op": "--op", "module": "--module"}, is_of_events=True),
    Page("op-profile", "ops.report.op_profile", {**_IN_TIME, **_BY}, groups=_TREES, is_of_events=True),
    Page("sources", "ops.report.sources", _IN_TIME, is_of_events=True),
    Page("framework-ops", "ops.report.framework_ops", {**_IN_TIME, **_BY}, groups=("type",), is_of_events=True),
    Page(
        "collectives",
        "collectives.report",
        {**_STEP, **_BY},
        groups=("all", "kind", "axis", "pass", "copies"),
        other_groups=("op",),
    ),
    Page("sparse-core", "sparse_core.report", _IN_TIME, is_of_events=True),
    Page("kernels", "ops.kernels.report", _OF_KERNELS, groups=("shape",), other_groups=("blocks",), is_of_events=True),
    Page("roofline", "ops.report.roofline", _IN_TIME, is_of_events=True),
    Page("counters", "counters.report", {**_IN_TIME, **_BY}, groups=("unit", "counter"), is_of_events=True),
    Page("graph", "graph.report", _OF_GRAPH, ("hlo", "proto"), is_of_memory=True, takes_hlo=True),
    Page("program", "graph.program", _OF_PROGRAM, is_of_memory=True, takes_hlo=True, takes_texts=True),
    Page("memory", "memory.report.module", _OF_MEMORY, is_of_memory=True, takes_hlo=True, groups=_BUFFERS),
    Page("memory-profile", "memory.report.profile", {}, is_of_memory=True),
    Page(
        "live-arrays",
        "commands.live_arrays.report",
        _BY,
        is_of_arrays=True,
        without_host=_ONE_PROCESS,
        other_groups=_HOLDERS,
    ),
)
"""All pages, in the order in which the command line names them."""

PAGE_NAMES: tuple[PageName, ...] = tuple(page.name for page in PAGES)


def page_named(name: str) -> Page | None:
    """The page of a name; None where there is none."""
    return next((page for page in PAGES if page.name == name), None)


def report_named(name: str) -> Report[Any]:
    """How the page of a name is printed.

    Raises:
        KeyError: there is none.
    """
    by_name: dict[str, Page] = {page.name: page for page in PAGES}
    return by_name[name].load_report()


@dataclass(frozen=True)
class CommandPage:
    """A page that a command shows on a screen of its own.

    Attributes:
        name: of the command, or of the page.
        report: the module under `tui.pages` with its `REPORT`; empty where `report` prints the page.
        app: the module under `tui.pages` with its `APP`, the class of the Textual app.
    """

    name: str
    report: str
    app: str

    def load_report(self) -> CommandReport[Any]:
        report: CommandReport[Any] = import_module(f"{__name__}.{self.report}").REPORT
        return report

    def load_app(self) -> Callable[..., Any]:
        app: Callable[..., Any] = import_module(f"{__name__}.{self.app}").APP
        return app


COMMAND_PAGES: tuple[CommandPage, ...] = (
    CommandPage("diff", "commands.diff.report", "commands.diff.screen"),
    CommandPage("verify", "commands.diff.promises", "commands.diff.screen"),
    CommandPage("diff-program", "commands.programs.report", "commands.diff.screen"),
    CommandPage("try", "commands.programs.trials", "commands.diff.screen"),
    CommandPage("oom", "commands.oom.report", "commands.oom.screen"),
    CommandPage("live-arrays", "", "commands.live_arrays.screen"),
)


def command_named(name: str) -> CommandPage:
    """The page of a command.

    Raises:
        KeyError: the command has none.
    """
    return {page.name: page for page in COMMAND_PAGES}[name]


@dataclass(frozen=True)
class TabView:
    """A page that is shown as a further view of another page's tab, where a run has something for it.

    Attributes:
        name: of the page.
        view: the module under `tui.pages` and the class in it (`tui.widgets.lists.table.PageView`), made of the page.
        page: the module under `parsers.pages` and its key there; it is read when it is shown first.
        is_there: likewise of what says whether a run has any of it, without reading more than the tab itself does.
    """

    name: str
    title: str
    view: str
    page: str
    is_there: str

    def load_view(self) -> Callable[[Any], RowsView]:
        view: Callable[[Any], RowsView] = _named(self.view)
        return view


@dataclass(frozen=True)
class TabEntry:
    """A page's tab on the screen.

    Attributes:
        name: what findings and other tabs call it.
        short_title: the same in a word, where there is little room.
        view: the module under `tui.pages` and the class of the widget in it.
        load: the module under `tui.pages` whose `load` reads what the tab shows, or the key of the one page that it is
            (`TabView.page`).
        views: other pages that are views of this tab.
    """

    name: str
    title: str
    short_title: str
    view: str
    load: str
    views: tuple[TabView, ...] = ()

    def load_view(self) -> type[View]:
        view: type[View] = _named(self.view)
        return view


_OF_OPS = (
    TabView(
        "collectives",
        "Collectives",
        "collectives.view:CollectivesView",
        "collectives.page:COLLECTIVES",
        "collectives.page:HAS_COLLECTIVES",
    ),
    TabView(
        "kernels",
        "Kernels",
        "ops.kernels_view:KernelsView",
        "ops.kernels.page:TPU_KERNELS",
        "ops.kernels.page:HAS_TPU_KERNELS",
    ),
    TabView(
        "sparse-core",
        "SparseCore",
        "sparse_core.view:SparseCoreView",
        "sparse_core.page:SPARSE_CORE",
        "sparse_core.page:HAS_SPARSE_CORES",
    ),
    TabView(
        "counters", "Units", "counters.view:UnitsView", "counters.page:COUNTERS", "ops.kernels.call_units:HAS_COUNTERS"
    ),
)
TABS: tuple[TabEntry, ...] = (
    TabEntry("overview", "Overview", "Overview", "overview.view:OverviewTab", "overview.load"),
    TabEntry("input", "Input pipeline", "Input", "input.view:InputPipelineTab", "input.input:INPUT"),
    TabEntry("op-profile", "Op profile", "Ops", "ops.view:OpsTab", "ops.load", _OF_OPS),
    TabEntry("timeline", "Timeline", "Timeline", "timeline.view:TimelineTab", "timeline.load"),
    TabEntry("memory", "Memory", "Memory", "memory.view:MemoryTab", "memory.load"),
)
"""All tabs, in the order of their number keys; the first one is loaded with a run, the others when they are shown."""

TAB_NAMES: tuple[str, ...] = tuple(tab.name for tab in TABS)

SYNONYMS: Mapping[str, str] = {
    "overview": "step steps percentiles latency throughput verdict bottleneck idle compile slow why reasons",
    "input": "data dataset loading infeed tf.data",
    "op-profile": "ops kernels pallas fusions layers hlo time",
    "timeline": "trace zoom perfetto events gantt steps measure spans",
    "memory": "hbm vmem peak oom buffers allocators padding batch",
    "model": "tokens hfu utilization",
    "collectives": "all-reduce all-gather network ici dcn communication",
    "kernels": "pallas mosaic custom",
    "roofline": "mxu flops bandwidth bound intensity",
}
"""Words that people look for tabs and their views by and that are not in their titles."""

_ABOVE = {
    "runs": "runs.popup:RunsList",
    "hosts": "hosts.popup:HostsList",
    "graph": "graph.screen:GraphScreen",
    "program": "graph.program_view:ProgramScreen",
    "oom": "commands.oom.screen:TriageScreen",
    "diff": "commands.diff.screen:DiffScreen",
    "live-arrays": "commands.live_arrays.screen:LiveArraysScreen",
}
"""Popups and screens that open above the tabs."""

_BESIDE = {"model": "overview"}
"""Pages that a tab reads only when a key asks for what they hold, and the tab."""

_OF_HOSTS = {"timeline-host": "timeline.load:load_host", "timeline-brief": "timeline.load:load_brief"}
"""What the timeline reads of one of several hosts, when that is in sight: all of it, or its first section."""

_VIEWS = {
    **_BESIDE,
    **dict.fromkeys(_OF_HOSTS, "timeline"),
    **{view.name: tab.name for tab in TABS for view in tab.views},
}
_LOADS = {
    **{"hosts": "hosts.hosts:HOSTS", "graph": "graph.programs:GRAPHS", "program": "graph.program_view"},
    "model": "overview.ledger.model_use.screen",
    **{tab.name: tab.load for tab in TABS},
    **{view.name: view.page for tab in TABS for view in tab.views},
    **_OF_HOSTS,
}
_SHOWS = {
    **_ABOVE,
    **{tab.name: tab.view for tab in TABS},
    **{name: tab.view for name, of in _BESIDE.items() for tab in TABS if tab.name == of},
    **{view.name: view.view for tab in TABS for view in tab.views},
}

Publish = Callable[[str, object], object]
"""Takes a part of a page, by the name that its view knows it by."""

Load = Callable[["Pages", "Run", str | None, Publish], None]
"""Reads what a view shows of a run, of one host or (None) of all, and publishes each part as soon as it is there."""


def tab_of(page: str) -> str:
    """Name of the tab that shows a page: of one that another page's tab shows or reads, that one's."""
    return _VIEWS.get(page, page)


def views_of(tab: str) -> tuple[TabView, ...]:
    """The pages that are views of a tab."""
    return next(each.views for each in TABS if each.name == tab)


def views_there(tab: str, pages: Pages, host: str | None) -> tuple[TabView, ...]:
    """Those for which a run has data: to be called on a thread, as it imports the parsers."""
    return tuple(view for view in views_of(tab) if pages.page(_key(view.is_there), host))


def load_above(name: str) -> type[Any]:
    """The class of a popup or a screen that opens above the tabs."""
    above: type[Any] = _named(_ABOVE[name])
    return above


def load_of(name: str) -> Load:
    """How a tab, or what opens above the tabs, is read: to be called on a thread, as it imports the parsers."""
    place = _LOADS[name]
    if place.rpartition(":")[2].isupper():
        return partial(_load_page, name, _key(place))
    load: Load = _named(place if ":" in place else f"{place}:load")
    return load


def _load_page(name: str, key: PageKey[Any], session: Pages, run: Run, host: str | None, publish: Publish) -> None:
    """Reads one page; what shows it is imported here, and not on the screen's thread."""
    _named(_SHOWS[name])
    publish(name, session.page(key, host))


def _key(place: str) -> PageKey[Any]:
    """The key of a page, by the module under `parsers.pages` and its name there."""
    key: PageKey[Any] = _named(place, "tpuprof.parsers.pages")
    return key


def _named(place: str, folder: str = __name__) -> Any:  # noqa: ANN401 - a class, a report
    """What a module under `tui.pages`, or in another folder, and a name in it lead to."""
    module, _, name = place.partition(":")
    return getattr(import_module(f"{folder}.{module}"), name)
