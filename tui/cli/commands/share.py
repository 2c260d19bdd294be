"""``tpuprof-tui share PATH``: what a colleague needs to see of a run, as one HTML file; and a page as one."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from typing import Any

from tpuprof.parsers.base.errors import EXIT_OK, EXIT_USAGE, ProfileError, one_part
from tpuprof.parsers.base.record import dataclass, replace
from tpuprof.parsers.base.text import printable
from tpuprof.parsers.files.logdir import Run, open_logdir
from tpuprof.parsers.session.session import Session
from tpuprof.tui.cli import common, printing
from tpuprof.tui.cli.arguments.options import PROGRAM
from tpuprof.tui.html.blocks import Masking
from tpuprof.tui.html.mask import Mask
from tpuprof.tui.html.page import Section, page_html, report_html
from tpuprof.tui.pages import page_named
from tpuprof.tui.report.markdown import escaped
from tpuprof.tui.report.output import Made, whole
from tpuprof.tui.report.page import Content, Report, ReportRequest, TableOptions, TextLook


@dataclass(frozen=True)
class _Part:
    """A page of the file.

    Attributes:
        rows: of its main table, 0 for all.
        columns: of that table alone; none for the whole page.
    """

    name: str
    title: str
    rows: int
    columns: tuple[str, ...] = ()


_OF_OPS = ("rank", "name", "self_time_percent", "self_time_ps", "occurrences", "bound_by", "roofline_efficiency")
_PARTS = (
    _Part("overview", "Overview", 10),
    _Part("findings", "Why is it slow?", 0),
    _Part("ops", "Ops", 30, (*_OF_OPS, "source", "framework_op")),
    _Part("timeline", "Timeline", 0),
    _Part("memory", "Memory", 20),
)


def run_share(args: argparse.Namespace) -> int:
    """Writes the file.

    Raises:
        ProfileError: the path leads to no profile, or none of its pages can be made.
    """
    args.format = "md"
    if printing.output_file(args) is None and sys.stdout.isatty():
        raise ProfileError("usage", "HTML can't be read on a terminal.", "--output run.html", EXIT_USAGE)
    path, config = common.existing(args.path), common.configured(args)
    logdir = open_logdir(path)
    printing.check_output(args, logdir)
    core = common.core_of(logdir, args)
    with common.decoding_shown() as on_progress:
        opened: dict[str, Session] = {}

        def session(run: Run) -> Session:
            if run.path not in opened:
                opened[run.path] = common.session_of(run, args, config, on_progress)
            return opened[run.path]

        look = TextLook(printing.PIPE_WIDTH, False, False)
        asked = ReportRequest(logdir, args.run, args.host, session, "md", look, core=core)
        mask = _mask(asked, [part.name for part in _PARTS]) if args.mask else str
        sections = [_section(part, args.limit, asked, mask) for part in _PARTS]
    printing.write_report(args, page_html(mask(f"{asked.run.name}: why is it slow?"), sections, _written_by()))
    return EXIT_OK


def one_page(report: Report[Content], content: Content, made: Made, asked: ReportRequest, is_masked: bool) -> str:
    """A report as a page of its own."""
    text, mask = whole(made), _mask(asked, (), [_json(report, content, asked)]) if is_masked else str
    title = text.partition("\n")[0].lstrip("# ").replace("\\", "")
    section = Section("report", title, report_html(text, report.pictures(content), mask))
    return page_html(mask(title), [section], _written_by())


def _section(part: _Part, limit: int | None, asked: ReportRequest, mask: Masking) -> Section:
    """A page, or the sentence that says why it is not there."""
    report, asked = _asked(part.name, replace(asked, limit=part.rows if limit is None else limit))
    try:
        with one_part(f"make the page {part.title}"):
            content = report.read(asked)
            made = _markdown(report, content, asked, part.columns)
            html = report_html(made, report.pictures(content), mask, 2)
    except ProfileError as error:
        if part is _PARTS[0]:
            raise
        html = report_html(f"# {part.title}\n\n{escaped(error.sentence)}", (), mask, 2)
    return Section(part.name, part.title, html)


def _asked(name: str, asked: ReportRequest) -> tuple[Report[Any], ReportRequest]:
    """A page's report, asked for with none of its options."""
    page = page_named(name)
    assert page is not None
    return page.load_report(), replace(asked, options=dict.fromkeys(page.options))


def _markdown(report: Report[Content], content: Content, asked: ReportRequest, columns: tuple[str, ...]) -> str:
    if columns:
        return report.choose(content, asked, TableOptions(columns=columns))
    return whole(report.writers["md"](content, asked))


def _document(name: str, asked: ReportRequest) -> object:
    """A page's JSON with all its rows; None where the run lacks the page."""
    report, asked = _asked(name, asked)
    try:
        with one_part(f"read the names of the page {name}"):
            return _json(report, report.read(asked), asked)
    except ProfileError:
        return None


def _json(report: Report[Content], content: Content, asked: ReportRequest) -> object:
    return json.loads(whole(report.writers["json"](content, replace(asked, form="json", limit=0))))


def _mask(asked: ReportRequest, pages: Sequence[str], documents: Sequence[object] = ()) -> Mask:
    """What masks names, by the pages that are to be shown and those of ops, which sentences of any page name.

    Args:
        documents: pages that are read already.
    """
    pages = tuple(dict.fromkeys((*pages, *(() if asked.only_hlo else ("ops", "sources")))))
    logdir = asked.logdir
    hosts = [printable(host.host) for run in logdir.runs for host in run.hosts]
    runs = [printable(run.name) for run in logdir.runs]
    named = [(name, "run" if len(runs) == 1 else f"run{number}") for number, name in enumerate(runs, 1)]
    return Mask(
        hosts, [*named, (printable(logdir.query), "PATH")], [*documents, *(_document(name, asked) for name in pages)]
    )


def _written_by() -> str:
    return f"Written by {PROGRAM} {common.version_of(PROGRAM)}. It has no scripts and does not use the network."
