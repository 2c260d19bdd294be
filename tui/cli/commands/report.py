"""The command `report`: prints or writes one page, as its record in the registry says."""

from __future__ import annotations

import argparse
import gc
import re
import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING

from tpuprof.parsers.base.errors import EXIT_OK, EXIT_USAGE, ProfileError
from tpuprof.tui.cli import common
from tpuprof.tui.cli.common import PROGRAM, UsageParser
from tpuprof.tui.pages import PAGE_NAMES, PAGES, Page, page_named
from tpuprof.tui.report.page import FORMATS, OF_SOME_PAGES, WITHOUT_WARNINGS, Asked

if TYPE_CHECKING:  # imported when a page needs them
    from tpuprof.parsers.files.logdir import Logdir, Run
    from tpuprof.parsers.session.session import Session
    from tpuprof.tui.report.output import Produce
    from tpuprof.tui.terminal.custom import Config

HELP = f"{PROGRAM} report --help"
SPACES = ("hbm", "vmem", "smem", "cmem", "sflag", "sparsecore", "host")
"""Memory spaces, `parsers.memory.model.SPACE_NAMES` in lower case."""

GROUPED_BY = ("source", "function", "stack", "device", "kind")
"""What live arrays can be grouped by, `parsers.memory.live_arrays.BY`."""

_MILLISECONDS = re.compile(r"(?:[0-9]{1,9}(?:\.[0-9]{0,40})?|\.[0-9]{1,40})")


def report_parser(parser_class: type[argparse.ArgumentParser] = UsageParser) -> argparse.ArgumentParser:
    """The arguments of the command."""
    what = "Prints a page to standard output. Times and sizes in JSON and CSV have their unit in the key."
    parser = common.new_parser(parser_class, "report", what)
    parser.add_argument("page", metavar="PAGE", help=", ".join(PAGE_NAMES))
    common.add_choice_of_profile(parser)
    common.add_reading(parser)
    formats = "default: text; perfetto: Chrome trace JSON of the timeline, compressed where FILE ends in .gz; "
    formats += "dot, hlo, proto: of the graph, for Graphviz, as HLO text, as an HloProto"
    parser.add_argument("--format", choices=(*FORMATS, *OF_SOME_PAGES), default="text", help=formats)
    rows = "rows of the main table; 0: all (default: all; of the timeline's events the first 10,000)"
    parser.add_argument("--limit", type=common.whole_number, metavar="N", help=rows)
    parser.add_argument("--output", metavar="FILE", help="write to FILE instead of standard output")
    common.add_width(parser)
    common.add_look(parser)
    common.add_debug(parser)
    describe = "print the page's keys instead: unit, meaning, when it is null (text or json)"
    parser.add_argument("--describe", action="store_true", help=describe)
    facts = "of the page runs: step time, device, modules of each run too; some 10 ms a run"
    parser.add_argument("--facts", action="store_true", help=facts)
    timeline = parser.add_argument_group("timeline", "Its events instead of its tracks:")
    begin = "from this instant on, milliseconds on the trace's clock"
    timeline.add_argument("--from", dest="from_ps", type=_milliseconds, metavar="MS", help=begin)
    timeline.add_argument("--to", dest="to_ps", type=_milliseconds, metavar="MS", help="up to this instant")
    timeline.add_argument("--track", metavar="NAME", help="of tracks with NAME in their section / name")
    graph = parser.add_argument_group("graph", "Of which op, in which module, how far around it:")
    op = "name of an HLO op or framework op (default: the one that takes most time)"
    graph.add_argument("--op", metavar="NAME", help=op)
    around = "steps over operands and users (default: 1)"
    graph.add_argument("--around", type=common.whole_number, metavar="N", help=around)
    memory = parser.add_argument_group("memory", "Which compiled module, and which memory:")
    module = "name, or name(program id) (default: the one with the largest HBM peak)"
    memory.add_argument("--module", metavar="MODULE", help=module)
    common.add_device(memory)
    by = "of the page live-arrays: what is put together (default: source)"
    memory.add_argument("--by", choices=GROUPED_BY, metavar="BY", help=f"{by}: {', '.join(GROUPED_BY)}")
    memory.add_argument("--space", choices=SPACES, metavar="SPACE", help=f"{', '.join(SPACES)} (default: hbm)")
    return parser


def _milliseconds(text: str) -> int:
    """Milliseconds as picoseconds, exactly; what is finer is cut."""
    if not _MILLISECONDS.fullmatch(text):
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of milliseconds from 0 on, such as 12.5")
    whole, _, part = text.partition(".")
    return int(whole or "0") * 10**9 + int(part[:9].ljust(9, "0"))


def run_report(args: argparse.Namespace) -> int:
    """Prints or writes one page."""
    gc.disable()  # one page and out: nothing that it makes is cyclic, and collecting takes a tenth of a short run
    page = page_named(args.page)
    if page is None:
        raise ProfileError("usage", f"There is no page {args.page}.", f"one of: {', '.join(PAGE_NAMES)}", EXIT_USAGE)
    if args.describe:
        return _describe(args, page)
    _check_options(args, page)
    args.path, config = common.existing(args.path), common.configured(args)
    logdir, only_hlo = _opened(args.path, page)
    common.check_output(args, logdir)
    is_packed = args.format == "perfetto" and (args.output or "").lower().endswith(".gz")
    common.write_report(args, _printed(args, config, page, logdir, only_hlo), is_packed)
    return EXIT_OK


def _describe(args: argparse.Namespace, page: Page) -> int:
    """Prints what the page's keys mean."""
    from tpuprof.tui.report.describe import describe_json, describe_text  # noqa: PLC0415

    if args.format not in ("text", "json"):
        raise ProfileError("usage", f"--describe has no format {args.format}.", "--format json", EXIT_USAGE)
    report = page.load_report()
    if args.format == "text":
        common.write_report(args, describe_text(page.name, report, common.report_look(args)))
    else:
        common.write_report(args, describe_json(page.name, report))
    return EXIT_OK


def _check_options(args: argparse.Namespace, page: Page) -> None:
    """Sees, before any work, that the options go with the page."""
    if args.format not in (*FORMATS, *page.formats):
        its_page = next(one.name for one in PAGES if args.format in one.formats)
        sentence = f"--format {args.format} is for the page {its_page}, not {args.page}."
        raise ProfileError("usage", sentence, HELP, EXIT_USAGE)
    for owner in PAGES:
        for name, option in owner.options.items():
            if name not in page.options and getattr(args, name) not in (None, False):
                sentence = f"{option} is for the page {owner.name}, not {args.page}."
                raise ProfileError("usage", sentence, HELP, EXIT_USAGE)
    options = {name: getattr(args, name) for name in page.options}
    page.load_report().check(options, args.format, args.limit)
    if args.format == "perfetto" and common.output_file(args) is None and sys.stdout.isatty():
        sentence = "A trace for Perfetto is nothing to read on a terminal."
        raise ProfileError("usage", sentence, "--output trace.json.gz", EXIT_USAGE)
    if args.format == "proto" and common.output_file(args) is None:
        sentence = "A protocol buffer is nothing to print."
        raise ProfileError("usage", sentence, "--output module.hlo_proto.pb", EXIT_USAGE)
    for name in ("host", "core"):
        if page.without_host and getattr(args, name) is not None:
            raise ProfileError("usage", page.without_host, f"leave --{name} out", EXIT_USAGE)


def _opened(path: str, page: Page) -> tuple[Logdir, bool]:
    """Where the path leads, and whether that is to compiled modules without a profile."""
    from tpuprof.parsers.session import live_arrays  # noqa: PLC0415

    if page.is_of_arrays:
        return live_arrays.open_arrays(path), False
    if (arrays := live_arrays.leads_to_arrays(path)) is not None:
        raise live_arrays.no_page_of_arrays(arrays, page.name)
    if page.is_of_memory:
        from tpuprof.parsers.session.hlo import leads_to_hlo, open_hlo, without_allocators  # noqa: PLC0415

        if leads_to_hlo(path):
            if not page.takes_hlo:
                raise without_allocators()
            return open_hlo(path), True
    from tpuprof.parsers.files.logdir import local_path, open_logdir  # noqa: PLC0415

    try:
        return open_logdir(path), False
    except ProfileError:
        from tpuprof.parsers.files.recognise import may_be_hlo  # noqa: PLC0415

        if may_be_hlo(local_path(path)):
            from tpuprof.parsers.session.hlo import leads_to_hlo, no_page_of_modules  # noqa: PLC0415

            if leads_to_hlo(path):
                raise no_page_of_modules(path, page.name) from None
        raise


def _printed(
    args: argparse.Namespace, config: Config, page: Page, logdir: Logdir, only_hlo: bool
) -> str | Iterable[str] | Produce:
    """Reads the page and hands it to the writer of the format."""
    report = page.load_report()
    with common.decoding_shown() as on_progress:

        def session(run: Run) -> Session:
            from tpuprof.parsers.session.session import Session  # noqa: PLC0415 - numpy and protobuf

            return Session(run, on_progress, scheduler=args.scheduler, cache=common.host_cache(args, config))

        look, options = common.report_look(args), {name: getattr(args, name) for name in page.options}
        asked = Asked(logdir, args.run, args.host, session, args.format, look, args.limit, options, only_hlo, args.core)
        content = report.read(asked)
        made = report.writers[args.format](content, asked)
    if args.format in WITHOUT_WARNINGS:
        for warning in report.warnings(content):
            common.note(f"note: {warning}")
    return made
