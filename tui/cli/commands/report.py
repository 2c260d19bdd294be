"""The command `report`: prints or writes one page, as its record in the registry says."""

from __future__ import annotations

import argparse
import gc
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from tpuprof.parsers.base.errors import EXIT_OK, EXIT_REGRESSION, EXIT_UNREADABLE, EXIT_USAGE, ProfileError
from tpuprof.parsers.base.record import replace
from tpuprof.parsers.base.text import PATHS, printable
from tpuprof.parsers.files.core_names import group_named
from tpuprof.parsers.files.file_kinds import may_be_hlo
from tpuprof.parsers.files.logdir import Logdir, Run, local_path, open_logdir
from tpuprof.parsers.session import live_arrays
from tpuprof.tui.cli import common, printing
from tpuprof.tui.cli.arguments.options import PROGRAM
from tpuprof.tui.pages import PAGES, Page, page_named
from tpuprof.tui.report.declared import drawn_by
from tpuprof.tui.report.output import Made, Produce
from tpuprof.tui.report.page import (
    CHECKS,
    FORMATS,
    HTML,
    OF_PEOPLE,
    PARQUET,
    WITH_KEYS,
    WITHOUT_WARNINGS,
    Content,
    Report,
    ReportRequest,
    TableOptions,
    check_choice,
    check_keys,
    chosen_of,
)
from tpuprof.tui.report.shared.bounded import LEAST_ROW, bounded, fitting, sentence

if TYPE_CHECKING:
    from tpuprof.parsers.session.session import Session

_parquet = drawn_by("tpuprof.tui.report.shared.columns:report_parquet")
_html = drawn_by("tpuprof.tui.cli.commands.share:one_page")
_required = drawn_by("tpuprof.tui.report.shared.checks:required")
_describe_text = drawn_by("tpuprof.tui.report.describe:describe_text")
_describe_json = drawn_by("tpuprof.tui.report.describe:describe_json")
"""Imported when they are called: few ask for these formats."""


def run_report(args: argparse.Namespace) -> int:
    """Prints or writes one page."""
    gc.disable()  # one page and out: nothing that it makes is cyclic, and collecting takes a tenth of a short run
    check_keys(args.keys, args.format)
    if args.describe:
        printing.check_output(args, Logdir(args.path, (), (), ()))
        return _describe(args, _page(args.page))
    most = printing.most_bytes(args)
    made, exit_code = made_report(args, most, printing.rest(args))
    is_packed = args.format == "perfetto" and (args.output or "").lower().endswith(".gz")
    printing.write_report(args, made, is_packed, most)
    return exit_code


def made_report(args: argparse.Namespace, most: int | None = None, rest: str = "") -> tuple[Made, int]:
    """What is printed or written of a page, and the exit code.

    Args:
        most: bytes that it has room for: text and Markdown have as many rows as fit, JSON no more than may.
        rest: how to get the rows that a limit leaves out.

    Raises:
        ProfileError: the options don't go together, or the page can't be made.
    """
    page, is_html = _page(args.page), args.format == HTML
    _check_html(args)
    args.format = "md" if is_html else args.format  # a page's own text comes from its Markdown
    report = _checked_report(args, page)
    args.path, config = common.existing(args.path), common.configured(args)
    logdir, modules = _opened(args.path, page)
    printing.check_output(args, logdir, inputs=modules or ())
    _note_several(args, page, logdir)
    with common.decoding_shown() as on_progress:

        def session(run: Run) -> Session:
            return common.session_of(run, args, config, on_progress)

        asked = replace(_asked(args, page, logdir, session, modules is not None), rest=rest)
        content, choice = report.read(asked), _choice(args, page)
        checks = [*report.checks(content, asked)]
        if required := asked.options.get("require"):
            pages = [*((each, each.read(asked)) for each in page.beside()), (report, content)]
            checks += _required(" ".join(required), pages, asked)
        if asked.form == "github":
            printing.append_summary(report.writers["md"](content, asked))
        if most is not None and asked.limit is None:
            made = _fitted(report, content, asked, choice, most)
        else:
            made = _made(report, content, asked, choice)
        if is_html:
            made = _html(report, content, made, asked, args.mask)
    if args.format in WITHOUT_WARNINGS:
        for warning in report.warnings(content):
            common.note(f"note: {warning}")
    states = {check.state for check in checks}
    for check in checks if {"require", "fail_on"} & {name for name, given in asked.options.items() if given} else ():
        if check.state != "ok" and asked.form not in CHECKS:
            common.note(f"{check.state}: {check.name}: {check.sentence}")
    return made, EXIT_REGRESSION if "failed" in states else EXIT_UNREADABLE if "unknown" in states else EXIT_OK


def _note_several(args: argparse.Namespace, page: Page, logdir: Logdir) -> None:
    if PATHS in args.path and args.run is None and len(logdir.runs) > 1 and page.name not in ("runs", "trend"):
        several = f"these paths lead to {len(logdir.runs):,} runs, and the page is of {printable(logdir.runs[0].path)}"
        common.note(f"note: {several}; diff and trend compare runs")


def _fitted(
    report: Report[Content], content: Content, asked: ReportRequest, choice: TableOptions | None, most: int
) -> Made:
    """The page in so many bytes, or with little more."""

    def make(limit: int | None) -> Made:
        return _made(report, content, replace(asked, limit=limit), choice)

    if asked.form not in OF_PEOPLE:
        return make(most // LEAST_ROW if asked.form in WITH_KEYS else None)
    sections = report.sections(content, asked) if choice is None and report.sections is not None else ()
    lengths = (  # of chosen rows it shows when these are made
        listed.table.length(listed.source) if listed.rows is None else len(listed.rows) for listed in sections
    )
    made, is_cut = fitting(make, max(lengths, default=0), most)
    text, left_out = bounded(made, asked.form, most, asked.rest)
    if is_cut or left_out:
        common.note(f"note: {left_out or sentence('rows', most, asked.rest)}")
    return text


def _page(name: str) -> Page:
    page = page_named(name)
    assert page is not None, "its parser was made"
    return page


def _describe(args: argparse.Namespace, page: Page) -> int:
    if args.format not in ("text", "json"):
        raise ProfileError("usage", f"--describe has no format {args.format}.", "--format json", EXIT_USAGE)
    report = page.load_report()
    is_text, look = args.format == "text", printing.report_look(args)
    made = _describe_text(page.name, report, look) if is_text else _describe_json(page.name, report)
    printing.write_report(args, made, most=args.max_bytes)
    return EXIT_OK


def _checked_report(args: argparse.Namespace, page: Page) -> Report[Any]:
    """The page's report, for options that go together."""
    if args.format not in (*FORMATS, *page.formats, PARQUET):
        owners = [one.name for one in PAGES if args.format in one.formats]
        pages = f"page{'s' * (len(owners) > 1)} {', '.join(owners)}"
        sentence = f"--format {args.format} is for the {pages}, not {args.page}."
        raise ProfileError("usage", sentence, f"{PROGRAM} report {owners[0]}", EXIT_USAGE)
    options = {name: getattr(args, name) for name in page.options}
    report = page.checked_report(options, args.format, args.limit)
    check_choice(_choice(args, page), args.format)
    if args.format == "perfetto" and printing.output_file(args) is None and sys.stdout.isatty():
        sentence = "A trace for Perfetto can't be printed on a terminal."
        raise ProfileError("usage", sentence, "--output trace.json.gz", EXIT_USAGE)
    if args.format == "proto" and printing.output_file(args) is None:
        sentence = "A protocol buffer can't be printed."
        raise ProfileError("usage", sentence, "--output module.hlo_proto.pb", EXIT_USAGE)
    if args.format == PARQUET and printing.output_file(args) is None:
        raise ProfileError("usage", "A Parquet file can't be printed.", "--output table.parquet", EXIT_USAGE)
    for name in ("host", "core"):
        asked = getattr(args, name)
        is_group = name == "core" and group_named(asked or "") is not None
        if page.without_host and asked is not None and not (is_group and page.name in ("hosts", "cores")):
            raise ProfileError("usage", page.without_host, f"leave --{'group' if is_group else name} out", EXIT_USAGE)
    return report


def _choice(args: argparse.Namespace, page: Page) -> TableOptions | None:
    """The rows and columns that are asked for; all of the table where groups make it another one, or steps do."""
    by, step = (getattr(args, name, None) for name in ("by", "step"))
    is_another = by in page.groups or (step is not None and page.name in ("collectives", "ledger"))
    return chosen_of(vars(args)) or (TableOptions() if is_another and args.format in (*FORMATS, PARQUET) else None)


def _opened(path: str, page: Page) -> tuple[Logdir, list[str] | None]:
    """Where the path leads; and the files of compiled modules in a folder, where it leads to such without a profile."""
    if page.is_of_arrays:
        return live_arrays.open_arrays(path), None
    if (arrays := live_arrays.leads_to_arrays(path)) is not None:
        raise live_arrays.no_page_of_arrays(arrays, page.name)
    if page.is_of_memory:
        from tpuprof.parsers.session import hlo  # noqa: PLC0415 - numpy and protobuf

        if page.takes_texts and hlo.holds_programs(path):
            return hlo.open_hlo(path, as_text=True), hlo.files_read(path)
        if hlo.leads_to_hlo(path):
            if not page.takes_hlo:
                raise hlo.without_allocators()
            return hlo.open_hlo(path), hlo.files_read(path)
    try:
        return open_logdir(path), None
    except ProfileError:
        _refuse_modules(path, page)
        raise


def _refuse_modules(path: str, page: Page) -> None:
    """Raises where a path that leads to no profile leads to compiled modules, which do not have the page."""
    from tpuprof.parsers.session import hlo  # noqa: PLC0415 - numpy and protobuf

    if may_be_hlo(local_path(path)) and hlo.leads_to_hlo(path):
        raise hlo.no_page_of_modules(path, page.name) from None


def _asked(
    args: argparse.Namespace, page: Page, logdir: Logdir, session: Callable[[Run], Session], only_hlo: bool
) -> ReportRequest:
    core = common.core_of(logdir, args)
    look, options = printing.report_look(args), {name: getattr(args, name) for name in page.options}
    whose = (args.run, args.host, session, args.format, look)
    asked = ReportRequest(logdir, *whose, args.limit, options, only_hlo, core, args.keys)
    return asked.of_part(page.is_of_events)


def _made(report: Report[Content], content: Content, asked: ReportRequest, choice: TableOptions | None) -> Made:
    if asked.form == PARQUET:
        made: Produce = _parquet(report, content, asked, choice)
        return made
    if choice is not None:
        return report.choose(content, asked, choice)
    return report.writers[asked.form](content, asked)


def _check_html(args: argparse.Namespace) -> None:
    if args.mask and args.format != HTML:
        raise ProfileError("usage", "--mask works only with --format html.", "--format html --mask", EXIT_USAGE)
    if args.format == HTML and printing.output_file(args) is None and sys.stdout.isatty():
        raise ProfileError("usage", "HTML can't be read on a terminal.", "--output page.html", EXIT_USAGE)
