"""Arguments of the command `report`."""

from __future__ import annotations

import argparse
import math
from collections.abc import Mapping

from tpuprof.parsers.base.regex import pattern
from tpuprof.tui.cli.arguments import options
from tpuprof.tui.cli.arguments.options import UsageParser
from tpuprof.tui.pages import PAGE_NAMES, PAGES
from tpuprof.tui.report.page import FORMATS, HTML, OF_SOME_PAGES

SPACES = ("hbm", "vmem", "smem", "cmem", "sflag", "sparsecore", "host")
"""Memory spaces, `parsers.memory.model.SPACE_NAMES` in lower case."""


_OTHER_GROUPS: Mapping[str, tuple[str, ...]] = {page.name: page.other_groups for page in PAGES}

_AMOUNT = pattern(r"[0-9]{1,30}(?:\.[0-9]{1,30})?(?:[eE]\+?[0-9]{1,3})?")


def _add_of_pages(parser: UsageParser) -> None:
    flops = "page model: the model's FLOPs in a step, over all cores, such as 6 x parameters x "
    flops += "tokens, or 4.2e15 (default: the compiler's count without recomputed ops)"
    parser.add_argument("--model-flops", type=_amount, metavar="N", help=flops)
    tokens = "page model: tokens, or samples, in a step, to show tokens a second"
    parser.add_argument("--tokens", type=_amount, metavar="N", help=tokens)
    dump = "page kernels: read the schedules that the compiler dumped into this folder "
    dump += "(LIBTPU_INIT_ARGS=--xla_jf_dump_to=DIR …), instead of the profile's own"
    parser.add_argument("--dump", metavar="DIR", help=dump)
    words = "page inference: the host annotation whose spans are the requests"
    parser.add_argument("--requests", metavar="NAME", help=words)


def _add_part(parser: UsageParser) -> None:
    group = parser.add_argument_group("part of the capture", "Pages that can be shown for a part of it:")
    step = f"only this step, by its name, or a range of steps, such as 104-108: pages {_taking('step')}"
    group.add_argument("--step", metavar="STEP", help=step)
    options.add_interval(group, f"pages {_taking('from_ps')}")


def _taking(option: str) -> str:
    return ", ".join(page.name for page in PAGES if option in page.options)


def _add_by(parser: UsageParser) -> None:
    groups = [f"{page.name}: {', '.join(page.groups)}" for page in PAGES if page.groups]
    by = (
        f"page ledger: a row for each {', '.join(_OTHER_GROUPS['ledger'])} (scope: of framework ops, such as a layer); "
    )
    by += f"page live-arrays: group by {', '.join(_OTHER_GROUPS['live-arrays'])} (default: source)"
    by += f"; page model: the table that CSV, --filter, --sort and --columns use: {', '.join(_OTHER_GROUPS['model'])}"
    by += "; page kernels: blocks compares the block sizes of a kernel, over all runs of a logdir"
    by += f"; pages whose table gets a row per group: {'; '.join(groups)}"
    parser.add_argument("--by", metavar="BY", help=by)


def report_parser() -> UsageParser:
    """The arguments of the command."""
    what = "Prints a page to standard output. Times and sizes in JSON and CSV have their unit in the key."
    parser = options.new_parser("report", what)
    parser.add_argument("page", metavar="PAGE", help=", ".join(PAGE_NAMES))
    return _with_options(parser)


def trend_parser() -> UsageParser:
    """The arguments of the command `trend`, which are those of `report trend`."""
    what = "Prints all runs of a logdir as a series, and where it changed beyond the noise, like report trend PATH."
    parser = options.new_parser("trend", what)
    parser.set_defaults(page="trend")
    return _with_options(parser)


def share_parser() -> UsageParser:
    """The arguments of the command `share`."""
    what = "Writes one HTML file to send to others: overview, findings, ops, timeline and memory of a run. It has no "
    what += "scripts and does not use the network."
    parser = options.new_parser("share", what)
    options.add_choice_of_profile(parser)
    options.add_reading(parser)
    parser.add_argument("--output", metavar="FILE", help="write to FILE instead of standard output")
    options.add_mask(parser)
    rows = "rows of each table, 0: all (default: 10 to 30)"
    parser.add_argument("--limit", type=options.whole_number, metavar="N", help=rows)
    options.add_debug(parser)
    return parser


def _add_format(parser: UsageParser) -> None:
    formats = f"{', '.join(FORMATS)} (default: text); html: one file with pictures, no scripts, no network; "
    formats += "perfetto: Chrome trace JSON "
    formats += "of the timeline, compressed where FILE ends in .gz; "
    formats += "hlo, proto: of the graph, as HLO text, as an HloProto; "
    formats += "parquet: the main table, to a FILE (pip install 'tpuprof-tui[sql]')"
    parser.add_argument(
        "--format", choices=(*FORMATS, HTML, *OF_SOME_PAGES), default="text", metavar="FORMAT", help=formats
    )
    options.add_mask(parser, "with --format html: ")


def _with_options(parser: UsageParser) -> UsageParser:
    options.add_choice_of_profile(parser)
    options.add_reading(parser)
    _add_format(parser)
    rows = "rows of the main table; 0: all (default: as many as fit 20 KB where a pipe is written to, else all; of the "
    rows += "timeline's events the first 40 or 10,000)"
    parser.add_argument("--limit", type=options.whole_number, metavar="N", help=rows)
    choice = parser.add_argument_group("rows", "Rows and columns of a page with a table:")
    kept = "only rows that match, in the language of / in the app, with columns by their keys: self_time_ps>1ms, "
    kept += "roofline_efficiency<60%%, bound_by=hbm, category:fusion, source=null"
    choice.add_argument("--filter", metavar="TEXT", help=kept)
    sort = "by a column, numbers from the largest, texts from A; KEY:asc or KEY:desc sets the direction"
    choice.add_argument("--sort", metavar="KEY", help=sort)
    choice.add_argument("--columns", metavar="KEYS", help="these columns: keys separated by commas (see --describe)")
    options.add_keys(choice)
    parser.add_argument("--output", metavar="FILE", help="write to FILE instead of standard output")
    options.add_width(parser)
    options.add_look(parser)
    options.add_debug(parser)
    describe = "print what the page's keys mean instead: those of JSON and CSV (text or json)"
    parser.add_argument("--describe", action="store_true", help=describe)
    facts = "page runs: also step time, device and modules of each run; takes some 10 ms a run"
    parser.add_argument("--facts", action="store_true", help=facts)
    fail = "page trend: exit with code 6 if the newest run's steps are slower than those of the runs before it "
    fail += "by more than PERCENT and by more than noise, with 4 if that is unknown"
    parser.add_argument("--fail-on-regression", type=options.percent, metavar="PERCENT", help=fail)
    _add_of_pages(parser)
    _add_part(parser)
    _add_by(parser)
    timeline = parser.add_argument_group("timeline", "Its events instead of its tracks, as with --step, --from, --to:")
    options.add_track(timeline)
    graph = parser.add_argument_group("op, graph", "Which op, in which module, and how far around it:")
    op = "name of an HLO op, a kernel or a framework op (default: the one with the most time)"
    graph.add_argument("--op", metavar="NAME", help=op)
    around = "steps over operands and users (default: 1)"
    graph.add_argument("--around", type=options.whole_number, metavar="N", help=around)
    memory = parser.add_argument_group("memory", "Which compiled module, and which memory:")
    module = "name, or name(program id) (default: the one with the largest HBM peak)"
    memory.add_argument("--module", metavar="MODULE", help=module)
    options.add_device(memory)
    memory.add_argument("--space", choices=SPACES, metavar="SPACE", help=f"{', '.join(SPACES)} (default: hbm)")
    memory.add_argument("--fit", action="store_true", help=options.FIT_HELP)
    return parser


def _amount(text: str) -> float:
    if not _AMOUNT.fullmatch(text) or not 0 < float(text) < math.inf:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number above 0, such as 4.2e15")
    return float(text)
