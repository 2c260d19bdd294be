"""Arguments of the command `diff`."""

from __future__ import annotations

from tpuprof.tui.cli.arguments import options
from tpuprof.tui.cli.arguments.options import PROGRAM, Paths, UsageParser
from tpuprof.tui.report.page import FORMATS

_EPILOG = f"""A is before, B after; each is any run that `{PROGRAM} PATH` opens. Two runs of one logdir:
  {PROGRAM} diff LOGDIR --run-a 2026_11_19 --run-b 2026_11_20
Without B, A's newest run is compared with the one before it. Several launches are one side, and then the noise is
what differs from launch to launch; capture A and B in turn:
  {PROGRAM} diff 'before/*' 'after/*' --detect 1%
  {PROGRAM} diff --before before/* --after after/*

exit codes of --fail-on-regression:
  0  not slower by more than that, or by no more than noise
  6  slower: the typical step, or the mean step
  4  step times, or their noise, are unknown, or the programs are different: no verdict
"""

_OF_VERIFY = f"""A is before the change, B after it, each as {PROGRAM} diff takes them:
  {PROGRAM} verify before/ after/ --claim collective

exit codes:
  0  kept, or kept in part: a step takes less, beyond the noise
  6  not kept: the cause costs no less than before, or it does but the step takes no less
  4  no verdict: no steps, different programs, or a promise smaller than the noise
"""


def _add_runs(parser: UsageParser) -> None:
    before = "logdir, run or file: the run before; a quoted glob is all the launches that it matches"
    parser.add_argument("before", nargs="?", metavar="A", action=Paths, help=before)
    after = "the run after, or launches (default: another run of A)"
    parser.add_argument("after", nargs="?", metavar="B", action=Paths, help=after)
    for side, letter in (("before", "A"), ("after", "B")):
        several = f"the launches of {letter}, in place of {letter}"
        parser.add_argument(f"--{side}", nargs="+", metavar="PATH", action=Paths, help=several)
    parser.add_argument("--run-a", metavar="RUN", help="name of A's run, or its beginning (default: the newest)")
    parser.add_argument("--run-b", metavar="RUN", help="name of B's run, or its beginning (default: the newest)")
    parser.add_argument("--host", metavar="HOST", help="only this host of both (default: all merged)")
    options.add_core(parser)
    options.add_reading(parser)


def verify_parser() -> UsageParser:
    """The options of the command `verify`."""
    what = "Checks whether the promise of a finding was kept: its saving per step in A, how much shorter a step is "
    what += "in B, and what took its place."
    parser = options.new_parser("verify", what, _OF_VERIFY)
    _add_runs(parser)
    claim = "a finding of A by its kind, such as collective, or of several of a kind one, slow-kernel-2; may be given "
    claim += "again (default: those that cost less in B)"
    parser.add_argument("--claim", action="append", default=[], metavar="FINDING", help=claim)
    parser.add_argument("--format", choices=("text", "json", "md"), default="text", help="default: text")
    options.add_keys(parser)
    parser.add_argument("--output", metavar="FILE", help="write to FILE instead of standard output")
    options.add_width(parser)
    options.add_look(parser)
    options.add_debug(parser)
    return parser


def diff_parser() -> UsageParser:
    """The command's options."""
    what = "Compares two runs, per step and core: step time, ops, classes of ops, memory; says what is noise."
    parser = options.new_parser("diff", what, _EPILOG)
    _add_runs(parser)
    options.add_report(parser, parser, FORMATS)
    options.add_keys(parser)
    rows = "ops in the report; 0: all that changed, in json and csv all (default: 20 in md, else 0)"
    parser.add_argument("--limit", type=options.whole_number, default=0, metavar="N", help=rows)
    detect = "the size of a change that is to be found between launches (default: --fail-on-regression, else 1%%)"
    parser.add_argument("--detect", type=options.percent, metavar="PERCENT", help=detect)
    fail = "exit with code 6 if steps got slower by more than PERCENT and by more than noise"
    parser.add_argument("--fail-on-regression", type=options.percent, metavar="PERCENT", help=fail.replace("%", "%%"))
    options.add_width(parser)
    options.add_screen(parser)
    options.add_debug(parser)
    return parser
