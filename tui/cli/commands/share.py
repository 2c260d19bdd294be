"""``tpuprof-tui share PATH``: what a colleague needs to see of a run, as one HTML file; and a page as one."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Sequence
from dataclasses import replace

from tpuprof.parsers.base.errors import EXIT_OK, EXIT_USAGE, ProfileError
from tpuprof.parsers.base.text import printable
from tpuprof.parsers.files.logdir import Logdir, Run, open_logdir
from tpuprof.parsers.session.session import Session
from tpuprof.tui.cli import common, printing
from tpuprof.tui.cli.arguments.options import PROGRAM
from tpuprof.tui.cli.progress import decoding_shown
from tpuprof.tui.html.blocks import Masking
from tpuprof.tui.html.mask import Mask
from tpuprof.tui.html.page import Section, page_html, report_html
from tpuprof.tui.html.picture import Picture
from tpuprof.tui.pages import page_named
from tpuprof.tui.report.output import Produce
from tpuprof.tui.report.page import ReportRequest, TextLook

_SECTIONS: tuple[tuple[str, str, int], ...] = (
    ("overview", "Overview", 10),
    ("findings", "Why is it slow?", 0),
    ("ops", "Ops", 30),
    ("timeline", "Timeline", 0),
    ("memory", "Memory", 20),
)
"""Pages in it: their names, titles, and how many rows their tables have."""


def run_share(args: argparse.Namespace) -> int:
    """Writes the file.

    Raises:
        ProfileError: the path leads to no profile, or none of its pages can be made.
    """
    args.format = "md"
    if printing.output_file(args) is None and sys.stdout.isatty():
        raise ProfileError("usage", "HTML is nothing to read on a terminal.", "--output run.html", EXIT_USAGE)
    path, config = common.existing(args.path), common.configured(args)
    logdir = open_logdir(path)
    printing.check_output(args, logdir)
    core = common.core_of(logdir, args)
    with decoding_shown() as on_progress:
        opened: dict[str, Session] = {}

        def session(run: Run) -> Session:
            if run.path not in opened:
                opened[run.path] = common.session_of(run, args, config, on_progress)
            return opened[run.path]

        look = TextLook(printing.PIPE_WIDTH, False, False)
        asked = ReportRequest(logdir, args.run, args.host, session, "md", look, core=core)
        mask = _mask(asked, args.mask)
        sections = [_section(name, title, most, args.limit, asked, mask) for name, title, most in _SECTIONS]
    printing.write_report(args, page_html(mask(f"{asked.run.name}: why is it slow?"), sections, _written_by()))
    return EXIT_OK


def one_page(
    markdown: str | Iterable[str] | Produce, pictures: Sequence[Picture], asked: ReportRequest, is_masked: bool
) -> str:
    """A report as a page of its own.

    Args:
        markdown: of the report.
    """
    assert not callable(markdown), "a function makes traces alone"
    text, mask = "".join(markdown), _mask(asked, is_masked)
    title = text.partition("\n")[0].lstrip("# ").replace("\\", "")
    return page_html(mask(title), [Section("report", title, report_html(text, pictures, mask))], _written_by())


def _section(name: str, title: str, most: int, limit: int | None, asked: ReportRequest, mask: Masking) -> Section:
    """A page, or the sentence that says why it is not there."""
    page = page_named(name)
    assert page is not None
    report = page.load_report()
    asked = replace(asked, limit=most if limit is None else limit, options=dict.fromkeys(page.options))
    try:
        content = report.read(asked)
        text = report.writers["md"](content, asked)
        assert not callable(text)
        made = report_html("".join(text), report.pictures(content), mask, 2)
    except ProfileError as error:
        if name == _SECTIONS[0][0]:
            raise
        made = report_html(f"# {title}\n\n{error.sentence}", (), mask, 2)
    return Section(name, title, made)


def _mask(asked: ReportRequest, is_masked: bool) -> Masking:
    """What masks the names of hosts, runs and folders; nothing where that is not asked for."""
    return _names(asked.logdir) if is_masked else str


def _names(logdir: Logdir) -> Mask:
    hosts = [printable(host.host) for run in logdir.runs for host in run.hosts]
    runs = [printable(run.name) for run in logdir.runs]
    return Mask.of(hosts, ((name, "run" if len(runs) == 1 else f"run{number}") for number, name in enumerate(runs, 1)))


def _written_by() -> str:
    return f"Written by {PROGRAM} {common.version_of(PROGRAM)}. It runs no script and asks the network for nothing."
