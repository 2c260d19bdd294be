"""Arguments of the commands `diff` and `verify`."""

from __future__ import annotations

from collections.abc import Sequence

from tpuprof.tui.cli.arguments import options, values
from tpuprof.tui.cli.arguments.help import WHICH_RUN
from tpuprof.tui.cli.arguments.options import PROGRAM, Paths, UsageParser, add
from tpuprof.tui.report.page import CHECKS, FORMATS

_CALLS = (
    "diff ~/logs",
    "diff ~/logs --before 2026_11_19 --after 2026_11_20",
    "diff before/ after/ --fail-on-regression 5% --md",
    "diff 'before/*' 'after/*' --detect 1%",
)
_MORE = f"Exit codes, and what noise is: {PROGRAM} man compare"


def baseline_parser(words: Sequence[str] = ()) -> UsageParser:
    """The options of the command `baseline`, of which the first word is what it does."""
    calls = ("baseline set main ~/logs --run 2026_11_19", "diff --baseline main ~/logs", "baseline list ~/logs")
    what = "Keeps a run under a name, for diff and verify to compare others of its logdir with."
    parser = options.new_parser("baseline", what, calls, f"Where names are kept: {PROGRAM} man ci")
    parser.add_argument("action", choices=("set", "remove", "list"), metavar="ACTION", help="set, remove or list")
    if not words or words[0] != "list":
        parser.add_argument("name", metavar="NAME", help="such as main")
    run = "logdir, run, file: the run, or one of the logdir (default: .)"
    parser.add_argument("path", nargs="?", default=options.HERE, metavar="RUN", help=run)
    add(parser.part(WHICH_RUN), "--run")
    return options.add_common(parser, look=False)


def _add_runs(parser: UsageParser) -> None:
    before = "the run before: logdir, run, file or glob of launches"
    parser.add_argument("before", nargs="?", metavar="A", action=Paths, help=before)
    after = "the run after, or launches (default: another run of A)"
    parser.add_argument("after", nargs="?", metavar="B", action=Paths, help=after)
    part = parser.part("runs")
    for side, letter in (("before", "A"), ("after", "B")):
        named = f"a run of {letter}, by its name, or paths of launches"
        part.add_argument(f"--{side}", dest=f"of_{side}", nargs="+", metavar="RUN", action=Paths, help=named)
    kept = "the run of baseline set NAME as A; the path is B"
    part.add_argument("--baseline", metavar="NAME", help=kept)
    add(parser.part(WHICH_RUN), "--host", "--core", "--group")


def verify_parser() -> UsageParser:
    """The options of the command `verify`."""
    what = "Checks whether the promise of a finding was kept: its saving per step in A, how much shorter a step is "
    what += "in B, and what took its place."
    calls = ("verify before/ after/", "verify before/ after/ --claim collective --json")
    parser = options.new_parser("verify", what, calls, _MORE)
    _add_runs(parser)
    expect = "of the program of B: 'no f32[8192,*]', 'custom-call splash*', 'while = 1'; may be given again"
    parser.part("programs").add_argument("--expect", action="append", default=[], metavar="TEXT", help=expect)
    claim = "a finding of A: collective, slow-kernel-2; may be given again "
    claim += "(default: those that cost less in B)"
    parser.part("promises").add_argument("--claim", action="append", default=[], metavar="FINDING", help=claim)
    add(options.add_output(parser, ("text", "json", "md", *CHECKS)), "--keys")
    return options.add_common(parser, reads=True, width=True)


def diff_parser() -> UsageParser:
    """The command's options."""
    what = "Compares two runs, per step and core: step time, ops, classes of ops, memory; says what is noise."
    parser = options.new_parser("diff", what, _CALLS, _MORE)
    _add_runs(parser)
    program = "only the compiled programs, of dumps too"
    parser.part("runs").add_argument("--program", action="store_true", help=program)
    add(parser.part(WHICH_RUN), "--device", help="v5e: of programs")
    noise = parser.part("noise")
    detect = "a change to be found between launches (default: 1%)"
    noise.add_argument("--detect", type=values.percent, metavar="PERCENT", help=detect)
    add(noise, "--fail-on-regression")
    output = options.add_output(parser, (*FORMATS, *CHECKS), screen=True)
    rows = parser.part("rows of the table of ops, which csv has")
    add(rows, "--filter", "--sort", "--columns")
    add(rows, "--limit", help=f"ops; {options.ALL_ROWS}")
    add(output, "--keys")
    options.add_common(parser, reads=True, width=True)
    return options.add_screen(parser)
