"""Writing what a screen shows to a file: its table in the formats of a report, or the screen as a picture or text."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from tpuprof.parsers.base.errors import ProfileError
from tpuprof.parsers.base.folders import state_folder
from tpuprof.parsers.base.record import dataclass
from tpuprof.parsers.base.text import counted, printable
from tpuprof.parsers.files.logdir import Logdir, Run
from tpuprof.tui.report.choice import report_of_rows
from tpuprof.tui.report.output import check_output, stream_file, text_pieces
from tpuprof.tui.report.page import Choice, Format, Head, Report, ReportRequest, ShownPage, TextLook

if TYPE_CHECKING:
    from tpuprof.parsers.session.session import Session
    from tpuprof.tui.report.fields import Table

OF_TABLES: dict[str, Format] = {".csv": "csv", ".json": "json", ".md": "md"}
"""The endings of files with the table, and the format of each."""
OF_SCREENS = (".svg", ".html", ".txt")
"""The endings of files with the screen."""
FOLDER = "export"
_MOST_NAME = 60
_LOOK = TextLook(120, False, False)


@dataclass(frozen=True)
class Shown:
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


def content_of(
    path: str,
    shown: Shown | ShownPage | None,
    screen: Callable[[str], str],
    run: Run | None,
    report_of: Callable[[str], Report[Any]] | None = None,
) -> tuple[str, str]:
    """The content of a file, which its ending chooses; and how much it is, in words.

    Args:
        screen: draws the screen as ``svg``, ``html`` or ``txt``.
        report_of: gives the report of a page by its name; None where no whole page is shown.

    Raises:
        ProfileError: the ending is unknown, or there is no table.
    """
    end = os.path.splitext(path)[1].lower()
    if end in OF_SCREENS:
        return screen(end[1:]), "the screen"
    if end not in OF_TABLES:
        known = ", ".join((*OF_TABLES, *OF_SCREENS))
        raise ProfileError("usage", f"The name must end in one of {known}, which chooses the format.", "")
    if shown is None:
        raise ProfileError("usage", f"There is no table here: end the name in {', '.join(OF_SCREENS)}.", "")
    run = run if isinstance(shown, ShownPage) else shown.run or run
    if run is None:
        raise ProfileError("usage", "These rows belong to no run.", "")
    if isinstance(shown, ShownPage):
        assert report_of is not None, "whoever shows a page knows how it is printed"
        return page_text(report_of(shown.page), shown.content, OF_TABLES[end], run), shown.how_much
    head = Head(f"{shown.page} of {printable(run.name)}", run, [host.host for host in run.hosts])
    choice = Choice(shown.filter, shown.sort, tuple(shown.keys))
    text = report_of_rows(shown.page, head, shown, choice, OF_TABLES[end], _LOOK)
    return text, counted(len(shown.rows), "row")


def page_text(report: Report[Any], content: object, form: Format, run: Run) -> str:
    """A page that is read already, as `report` writes it, with all its rows."""

    def session(_: Run) -> Session:
        raise AssertionError("what is written is read already")

    asked = ReportRequest(Logdir("", (run,), (), ()), None, None, session, form, _LOOK, 0)
    made = report.writers[form](content, asked)
    assert not callable(made), "only traces and graphs are written by a function of their own"
    return made if isinstance(made, str) else "".join(made)


def write(path: str, text: str, run: Run | None = None, logdir: Logdir | None = None) -> None:
    """Writes a new file, never among the profiles of the run or the logdir.

    Raises:
        ProfileError: the file exists, or can't be written.
    """
    if os.path.lexists(path):
        raise ProfileError("output", f"{printable(path)} exists: give another name.", "")
    folder = os.path.dirname(path)
    if folder == os.path.join(state_folder(), FOLDER):
        os.makedirs(folder, mode=0o700, exist_ok=True)
    check_output(path, logdir or Logdir("", () if run is None else (run,), (), ()))
    stream_file(path, text_pieces((text,)))
