"""Writing what a screen shows to a file: its table in the formats of a report, or the screen as a picture or text."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from tpuprof.parsers.base.errors import ProfileError
from tpuprof.parsers.base.folders import state_folder
from tpuprof.parsers.base.record import dataclass
from tpuprof.parsers.base.text import counted, printable
from tpuprof.parsers.files.logdir import Logdir, Run
from tpuprof.tui.report.choice import report_of_rows
from tpuprof.tui.report.output import Produce, stream_file, text_pieces, whole
from tpuprof.tui.report.page import Format, Head, Report, ReportRequest, ShownPage, TableOptions, TextLook
from tpuprof.tui.report.shared.target import check_output

if TYPE_CHECKING:
    from tpuprof.parsers.session.session import Session
    from tpuprof.tui.draw.table import Listing
    from tpuprof.tui.report.fields import Table

OF_TABLES: dict[str, Format] = {".csv": "csv", ".json": "json", ".md": "md"}
"""The endings of files with the table, and the format of each."""
OF_SCREENS = (".svg", ".html", ".txt")
"""The endings of files with the screen."""
FOLDER = "export"
_MOST_NAME = 60
_LOOK = TextLook(120, False, False)


def order_text(table: Table[Any], listing: Listing) -> str:
    """The order of a list as ``--sort`` takes it, ``size_bytes:desc``; empty for one of its own."""
    way = "desc" if table.is_down(listing) else "asc"
    return f"{table.sorted_by[listing.sort].key}:{way}" if listing.sort else ""


@dataclass(frozen=True)
class ShownTable:
    """A table as it is shown: a `Listed` of a report.

    Attributes:
        page: the name of its page or view, for the file and the report in it.
        table, source: the fields of its rows, and what they read.
        rows: those that show, in their order.
        keys: of the columns; none for those of the report.
        filter, sort: what keeps and sorts the rows, in the words of ``report --filter --sort``; empty without.
        run: the run of the rows, if it is not the one that the app shows.
    """

    page: str
    table: Table[Any]
    source: Any
    rows: Sequence[int]
    keys: tuple[str, ...] = ()
    filter: str = ""
    sort: str = ""
    run: Run | None = None


ReportOf = Callable[[str], "Report[Any]"]
"""How the page of a name is printed."""
Kind = Callable[[], tuple[Produce, str]]
"""Makes what goes into a file, and says how much that is; nothing where its bytes are counted. It may take a while."""


@dataclass(frozen=True)
class Export:
    """What can be written to a file.

    Attributes:
        path: a file that is not there yet, which is proposed; its folder is created where it is missing.
        kinds: what makes the content, by the end of the file's name.
        run, logdir: what is shown, and all runs that are known: nothing is written among their files.
        is_private: the file is for this user alone.
    """

    path: str
    kinds: Mapping[str, Kind]
    run: Run | None = None
    logdir: Logdir | None = None
    is_private: bool = False


def run_of_file(name: str, path: str) -> Run:
    """A file in place of a run, for the head of a report."""
    return Run(name, path, (), ())


def default_path(name: str, has_table: bool, run: Run | None) -> str:
    """The path of a new file: in the working folder, or in a folder of this program if profiles lie there."""
    words = "".join(letter if letter.isalnum() or letter in "-_." else "-" for letter in name.lower())[:_MOST_NAME]
    folder = "" if _takes_files(run) else os.path.join(state_folder(), FOLDER)
    end, number = ".csv" if has_table else ".svg", 1
    while os.path.lexists(path := os.path.join(folder, f"{words}{f'-{number}' if number > 1 else ''}{end}")):
        number += 1
    return path


def _takes_files(run: Run | None) -> bool:
    """Whether the working folder can be written to, and neither holds the shown profiles nor lies among them."""
    here = os.path.realpath(os.curdir)
    paths = [] if run is None else [run.path, *(host.path for host in run.hosts)]
    is_among = any(os.path.commonpath((here, os.path.realpath(path))) == here for path in paths if os.path.exists(path))
    names = ("plugins", "profile")
    return os.access(here, os.W_OK) and not is_among and not any(name in here.split(os.sep) for name in names)


def export_of(
    name: str,
    shown: ShownTable | ShownPage | None,
    screen: Callable[[str], str],
    run: Run | None,
    logdir: Logdir | None = None,
    report_of: ReportOf | None = None,
) -> Export:
    """What any screen can write: its table or page, where it shows one, and itself.

    Args:
        name: of the screen, for the file where it shows no table or page; these have names of their own.
        screen: draws the screen as ``svg``, ``html`` or ``txt``.
        report_of: how the page of a name is printed, where whole pages are written.
    """
    kinds = kinds_of_screen(screen)
    of = shown.run or run if isinstance(shown, ShownTable) else run
    if shown is not None and of is not None:
        kinds = {end: partial(_table, shown, form, of, report_of) for end, form in OF_TABLES.items()} | kinds
    path = default_path(name if shown is None else shown.page, ".csv" in kinds, run)
    return Export(path, kinds, run, logdir)


def kinds_of_screen(screen: Callable[[str], str]) -> dict[str, Kind]:
    """The kinds of files that hold a screen, which `screen` draws."""
    return {end: partial(_drawn, screen, end[1:]) for end in OF_SCREENS}


def _drawn(screen: Callable[[str], str], form: str) -> tuple[Produce, str]:
    return text_pieces((screen(form),)), "the screen"


def _table(shown: ShownTable | ShownPage, form: Format, run: Run, report_of: ReportOf | None) -> tuple[Produce, str]:
    """A table or a page as its report writes it."""
    if isinstance(shown, ShownPage):
        assert report_of is not None, f"no report of the page {shown.page} is known here"
        content, how_much = shown.made()
        return text_pieces((page_text(report_of(shown.page), content, form, run),)), how_much
    head = Head(f"{shown.page} of {printable(run.name)}", run, [host.host for host in run.hosts])
    choice = TableOptions(shown.filter, shown.sort, tuple(shown.keys))
    text = report_of_rows(shown.page, head, shown, choice, form, _LOOK)
    return text_pieces((text,)), counted(len(shown.rows), "row")


def page_text(report: Report[Any], content: object, form: Format, run: Run) -> str:
    """A page that is read already, as `report` writes it, with all its rows."""

    def session(_: Run) -> Session:
        raise AssertionError("what is written is read already")

    asked = ReportRequest(Logdir("", (run,), (), ()), None, None, session, form, _LOOK, 0)
    return whole(report.writers[form](content, asked))


def kind_of(path: str, export: Export) -> Kind:
    """What makes the content of a new file, by the end of its name. Sees, before any work, that it may be written.

    Raises:
        ProfileError: the name says no format, or there is no table; it is there already, or can't be written there.
    """
    end, ends = os.path.splitext(path)[1].lower(), ", ".join(export.kinds)
    if end in OF_TABLES and end not in export.kinds:
        raise ProfileError("usage", f"There is no table here: end the name in {ends}.", "")
    if end not in export.kinds:
        raise ProfileError("usage", f"The name must end in one of {ends}, which chooses the format.", "")
    if os.path.lexists(path):
        raise ProfileError("output", f"{printable(path)} exists: give another name.", "")
    folder = os.path.dirname(path)
    if folder and folder == os.path.dirname(export.path):
        os.makedirs(folder, mode=0o700, exist_ok=True)
    check_output(path, export.logdir or Logdir("", () if export.run is None else (export.run,), (), ()))
    return export.kinds[end]


def write(path: str, kind: Kind, is_private: bool = False) -> str:
    """Makes and writes a file, which may take a while; says how much that is.

    Raises:
        ProfileError: it can't be written.
    """
    produce, how_much = kind()
    stream_file(path, produce, is_private=is_private)
    return how_much or counted(os.path.getsize(path), "byte")
