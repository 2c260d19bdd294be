"""How a page is printed: what a call asks for, how the page is read, and a writer a format."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Generic, Literal, Protocol, TypeVar

from tpuprof.parsers.base.errors import EXIT_USAGE, ProfileError
from tpuprof.parsers.base.record import dataclass, field, replace
from tpuprof.tui.draw.spans import ASCII, BLOCK, PLAIN, Glyphs
from tpuprof.tui.report import markdown
from tpuprof.tui.report.output import Made

if TYPE_CHECKING:
    from tpuprof.parsers.files.logdir import Logdir, Run
    from tpuprof.parsers.pages.shared.key import PageKey
    from tpuprof.parsers.session.diff.regression import Regression
    from tpuprof.parsers.session.session import Session
    from tpuprof.tui.draw.pen import Pen
    from tpuprof.tui.draw.spans import Line
    from tpuprof.tui.html.picture import Picture
    from tpuprof.tui.report.fields import Metric, Rows, Table

Format = Literal["text", "json", "csv", "md", "perfetto", "hlo", "proto", "parquet", "github", "junit"]
HTML = "html"
"""A format that every page has too: its pictures, and its Markdown as a page of its own."""

FORMATS: tuple[Format, ...] = ("text", "json", "csv", "md")  # formats that every page has
PARQUET: Format = "parquet"
CHECKS: tuple[Format, ...] = ("github", "junit")
"""Formats for continuous integration: what a report has checked (`tui.report.shared.checks`)."""

OF_SOME_PAGES: tuple[Format, ...] = ("perfetto", "hlo", "proto", PARQUET, *CHECKS)
"""Formats that a page may have besides (`Page.formats` in the registry); Parquet is written of any page's table."""

WITH_KEYS: tuple[Format, ...] = ("json",)
"""Formats that are objects, of which a call may choose keys."""

OF_PEOPLE: tuple[Format, ...] = ("text", "md")
"""Formats that are to be read: a pipe is given as many rows of them as fit unasked. Of all others it is given all."""

PIPE_BYTES = 20_000
"""The most bytes of text and Markdown that a pipe is given where the call sets neither a limit nor a size."""

WITHOUT_WARNINGS: tuple[Format, ...] = ("csv", *OF_SOME_PAGES)
"""Formats that hold rows, events or a graph alone; what there is to warn of goes to standard error."""

Page = TypeVar("Page")
Content = TypeVar("Content")  # what is read of a run to print a page: the page itself, or several


@dataclass(frozen=True)
class TextLook:
    """How a text report looks: its width in cells, its characters, and whether it has ANSI colours.

    Attributes:
        is_bounded: whether columns that were asked for are left out where they are wider than that: a terminal is.
    """

    width: int
    ascii_only: bool
    color: bool
    is_bounded: bool = True

    @property
    def glyphs(self) -> Glyphs:
        """The characters to draw with; without colours letters distinguish areas."""
        return ASCII if self.ascii_only else BLOCK if self.color else PLAIN


State = Literal["ok", "failed", "unknown"]


@dataclass(frozen=True)
class Check:
    """Something that a report has checked.

    Attributes:
        name: of a step, an op, a finding or a figure.
        state: failed only where the command ends with exit code 6.
        sentence: what was found, or why it is unknown.
        source: the source line that it is about, ``model.py:62``; empty where it is about none.
    """

    name: str
    state: State
    sentence: str
    source: str = ""


def step_check(judged: Regression | None, words: str) -> Check:
    """The check of step times by ``--fail-on-regression``, which passes where that is not given (None)."""
    if judged is None or judged.outcome == "passed":
        return Check("step", "ok", words)
    return Check("step", "failed" if judged.outcome == "slower" else "unknown", f"{judged.sentence} {words}")


@dataclass(frozen=True)
class Head:
    """What a report begins with.

    Attributes:
        title: in Markdown and text.
        run: of JSON.
        hosts: that the page covers.
        warnings: what is wrong with the profile, a sentence each.
        facts: what the program ran on, and more of that kind, in Markdown.
        simulated: whether the times are composed, not measured.
        covers: what the text's title line says at its end, where that is not the hosts.
        log_line: stands above the title line of text, for logs.
        lists_hosts: whether Markdown has a line with the hosts.
        values: what JSON begins with, where that is not the run, and why figures of it are null.
    """

    title: str
    run: Run
    hosts: Sequence[str]
    warnings: Sequence[str] = ()
    facts: Sequence[str] = ()
    simulated: bool = False
    covers: str = ""
    log_line: str = ""
    lists_hosts: bool = True
    values: tuple[Mapping[str, object], Mapping[str, str]] | None = None

    def markdown(self) -> list[str]:
        hosts = self.hosts if self.lists_hosts else ()
        return markdown.page_head(self.title, hosts, self.simulated, self.warnings, self.facts)


class Listed(Protocol):
    """A table, and all its rows on a page; see `declared.Section`."""

    @property
    def table(self) -> Table[Any]: ...

    @property
    def source(self) -> Any:  # noqa: ANN401 - what the table's fields read
        ...

    @property
    def rows(self) -> Rows | None:
        """Those of the page, in order; None for all that the table has."""
        ...

    @property
    def keys(self) -> Sequence[str]:
        """Keys of the fields that CSV and Markdown show, where they are not the table's."""
        ...


@dataclass(frozen=True)
class TableOptions:
    """What a call asks for of a page's table.

    Attributes:
        filter: in the language of `parsers.ops.filtering.filter`; empty to keep every row.
        sort: the key of the column that rows are sorted by, with ``:asc`` or ``:desc`` behind it; empty to leave them.
        columns: keys; empty for those of the format.
    """

    filter: str = ""
    sort: str = ""
    columns: tuple[str, ...] = ()

    @property
    def words(self) -> str:
        parts = [f"where {self.filter}" if self.filter else "", f"by {self.sort}" if self.sort else ""]
        return ", ".join(filter(None, parts))


def chosen_of(options: Mapping[str, str | None]) -> TableOptions | None:
    """The choice that options ``filter``, ``sort`` and ``columns`` make; None where none of them is given."""
    given = {name: options.get(name) for name in ("filter", "sort", "columns")}
    if all(value is None for value in given.values()):
        return None
    keys = tuple(filter(None, (key.strip() for key in (given["columns"] or "").split(","))))
    return TableOptions(given["filter"] or "", given["sort"] or "", keys)


def check_keys(keys: str | None, form: str | None) -> None:
    """Checks, before any work, that `--keys` comes with JSON.

    Raises:
        ProfileError: it comes with another format.
    """
    if keys is not None and form not in WITH_KEYS:
        raise ProfileError("usage", "--keys chooses keys of JSON.", "--format json", EXIT_USAGE)


def check_choice(choice: TableOptions | None, form: str) -> None:
    """Checks, before any work, that rows and columns are chosen of a format that has some.

    Raises:
        ProfileError: it has none.
    """
    if choice is not None and form not in (*FORMATS, PARQUET):
        raise ProfileError("usage", f"--format {form} has no rows to choose.", "--format csv", EXIT_USAGE)


@dataclass(frozen=True)
class ReportRequest:
    """What a call of `report` asks for.

    Attributes:
        logdir: where the path led.
        run_name: which run, or the beginning of its name; None for the newest.
        host: the one host to print; None for all of them.
        core: the one core or chip of a host to print; None for all of them.
        session: opens a run, with progress on standard error.
        form: in which format.
        look: how text looks.
        limit: rows of the main table, 0 for all; None where the call says nothing, which is all too.
        options: the page's own options by name (``module``, ``from_ps``), None for those that are not given.
        only_hlo: the path leads to compiled modules without a profile.
        keys: the keys of JSON to print, separated by commas; None for all.
        rest: how to get the rows that a limit leaves out, as a command or a call.
    """

    logdir: Logdir
    run_name: str | None
    host: str | None
    session: Callable[[Run], Session]
    form: Format
    look: TextLook
    limit: int | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    only_hlo: bool = False
    core: str | None = None
    keys: str | None = None
    rest: str = ""

    @property
    def run(self) -> Run:
        """The run that is asked for, of one core where that is asked for.

        Raises:
            ProfileError: there is none of that name, or no such host.
        """
        run = self.logdir.find_run(self.run_name)
        return run if self.core is None else run.of_core(self.core, self.host)

    @property
    def most_rows(self) -> int:
        """Rows of the main table, 0 for all."""
        return self.limit or 0

    def of_part(self, is_of_events: bool) -> ReportRequest:
        """The same for the part of the capture that its options ask for.

        Args:
            is_of_events: whether the page is made of the events of that part alone; else the interval of a step takes
                the place of its name in the options of a page that has intervals.
        """
        step, begin, end = (self.options.get(name) for name in ("step", "from_ps", "to_ps"))
        if is_of_events and (step, begin, end) != (None, None, None):

            def part(run: Run) -> Session:
                whole = self.session(run)
                return whole.between(begin, end, self.host) if step is None else whole.in_steps(step, self.host)

            return replace(self, session=part)
        if step is None or "from_ps" not in self.options:
            return self
        begin, end = self.session(self.run).interval_of_steps(step, self.host)
        return replace(self, options={**self.options, "from_ps": begin, "to_ps": end})


def page_of(key: PageKey[Page]) -> Callable[[ReportRequest], Page]:
    """Reads a page of the host that is asked for, or of all."""
    return lambda request: request.session(request.run).page(key, request.host)


Writer = Callable[[Content, ReportRequest], Made]
"""Prints a page."""


@dataclass(frozen=True)
class Report(Generic[Content]):
    """How a page is read and printed.

    Attributes:
        read: reads it from a run.
        writers: prints it, a function a format.
        choose: prints the rows and columns of its main table that a call asks for.
        tables, metrics: what it holds, for `--describe`.
        warnings: what the formats that hold rows or events alone leave to standard error.
        csv_table: the table that CSV holds.
        check: sees, before any work, that the page's own options, the format and the limit go together; raises
            `ProfileError`.
        sections: the page's tables with their rows, the main one first; None where they can't be had one by one.
        pictures: draws what HTML shows above the rest.
        checks: what the formats of `CHECKS` hold, and what the exit code follows from.
        section_tables: the tables that `sections` may have, where these are not `tables`.
        chosen_table: the table that `choose` has, where that is not `csv_table`.
    """

    read: Callable[[ReportRequest], Content]
    writers: Mapping[str, Writer[Content]]
    choose: Callable[[Content, ReportRequest, TableOptions], str]
    tables: tuple[Table[Any], ...] = ()
    metrics: tuple[Metric[Any], ...] = ()
    warnings: Callable[[Content], Sequence[str]] = lambda _: ()
    csv_table: Table[Any] | None = None
    check: Callable[[Mapping[str, Any], Format, int | None], None] = lambda _, __, ___: None
    sections: Callable[[Content, ReportRequest], Sequence[Listed]] | None = None
    pictures: Callable[[Content], Sequence[Picture]] = lambda _: ()
    checks: Callable[[Content, ReportRequest], Sequence[Check]] = lambda _, __: ()
    section_tables: Callable[[], Sequence[Table[Any]]] | None = None
    chosen_table: Table[Any] | None = None


@dataclass(frozen=True)
class ShownPage:
    """A page whose report has the same rows as the screen, in the same order.

    Attributes:
        made: makes what its report reads of a run, as the screen has it, and says how much that is; may take a while.
        parts: by their titles, where it has parts that a report of their own writes in more detail.
    """

    page: str
    made: Callable[[], tuple[Any, str]]
    parts: Mapping[str, ShownPage] = field(default_factory=dict)


@dataclass(frozen=True)
class CommandReport(Generic[Content]):
    """How the page of a command is printed, which reads something else than a run.

    Attributes:
        read: makes what is printed of what the command has read.
        writers: prints it, a function a format, given how text looks and the most rows, 0 for all.
        tables, metrics: what it holds, as of a `Report`.
        choose: prints the rows and columns of its main table that a call asks for.
        sections: its tables with their rows, the main one first.
    """

    read: Callable[..., Content]
    writers: Mapping[str, Callable[[Content, TextLook, int], str]]
    tables: tuple[Table[Any], ...] = ()
    metrics: tuple[Metric[Any], ...] = ()
    csv_table: Table[Any] | None = None
    sections: Callable[[Content], Sequence[Listed]] = lambda _: ()
    choose: Callable[[Content, ReportRequest, TableOptions], str] | None = None

    def lines(self, content: Content, pen: Pen) -> list[Line]:
        """Its text as lines of a popup."""
        text = self.writers["text"](content, TextLook(pen.width, pen.glyphs.is_ascii, False), 0)
        return [pen.fit([(line, "text")]) for line in text.splitlines()]
