"""``tpuprof-tui diff A B``: what changed from run A to run B, on the screen or as a report.

Nothing here imports Textual before the screen is to open.
"""

from __future__ import annotations

import argparse
import os
import re
from typing import TYPE_CHECKING

from tpuprof.parsers.base.errors import EXIT_OK, EXIT_REGRESSION, EXIT_UNREADABLE, EXIT_USAGE, ProfileError
from tpuprof.parsers.base.text import printable
from tpuprof.tui.cli import common
from tpuprof.tui.cli.common import PROGRAM, existing, note
from tpuprof.tui.pages import CommandPage, command_named
from tpuprof.tui.report.page import FORMATS, WITHOUT_WARNINGS
from tpuprof.tui.terminal.detect import settle_terminal

if TYPE_CHECKING:
    from tpuprof.parsers.files.logdir import Logdir, Run
    from tpuprof.parsers.session.diff.model import Diff
    from tpuprof.parsers.session.diff.regression import Regression
    from tpuprof.tui.terminal.custom import Config

_PERCENT = re.compile(r"([0-9]{1,4}(?:\.[0-9]{1,9})?) ?%?")

_EXAMPLE = f"{PROGRAM} diff before.prof after.prof"
_EPILOG = f"""A is before, B after; each is whatever `{PROGRAM} PATH` takes. Two runs of one logdir:
  {PROGRAM} diff LOGDIR --run-a 2026_11_19 --run-b 2026_11_20
Without B, A's newest run is compared with the one before it. What leaks, by two device memory profiles:
  {_EXAMPLE}

exit codes of --fail-on-regression:
  0  not slower by more than that, or by no more than noise
  6  slower: the typical step, or the mean step; or live memory grew by more than that
  4  step times, or their noise, are unknown, or the programs are different: nothing can be said
"""


def diff_parser(parser_class: type[argparse.ArgumentParser] = argparse.ArgumentParser) -> argparse.ArgumentParser:
    """The command's options."""
    what = "Compares two runs, a step and core: step time, ops, classes of ops, memory; says what is noise."
    parser = common.new_parser(parser_class, "diff", what, _EPILOG)
    parser.add_argument("before", metavar="A", help="logdir, run, file or glob: the run before")
    parser.add_argument("after", nargs="?", metavar="B", help="the run after (default: another run of A)")
    parser.add_argument("--run-a", metavar="RUN", help="name of A's run, or its beginning (default: the newest)")
    parser.add_argument("--run-b", metavar="RUN", help="name of B's run, or its beginning (default: the newest)")
    parser.add_argument("--host", metavar="HOST", help="one host of both only (default: all merged)")
    common.add_core(parser)
    workers = "read the hosts on the workers of a Dask cluster, host:port, all but the ops of steps; same paths there"
    common.add_reading(parser, workers)
    common.add_report(parser, parser, FORMATS)
    rows = "ops in the report; 0: all that changed, in json and csv all (default: 20 in md, else 0)"
    parser.add_argument("--limit", type=common.whole_number, default=0, metavar="N", help=rows)
    fail = "exit with code 6 where steps got slower by more than PERCENT and by more than noise"
    parser.add_argument("--fail-on-regression", type=_percent, metavar="PERCENT", help=fail.replace("%", "%%"))
    common.add_width(parser)
    common.add_screen(parser)
    common.add_debug(parser)
    return parser


def run_diff(args: argparse.Namespace) -> int:
    """Runs the command.

    Returns:
        The exit code: 0, or with `--fail-on-regression` 6 where steps got slower.

    Raises:
        ProfileError: a path leads to no profile (exit code 3) or to one that can't be read (4); both are the same run
            (2); with `--fail-on-regression`, nothing can be said of the steps (4), once the report is written.
    """
    page, config = command_named("diff"), common.configured(args)
    if (arrays := _arrays(args)) is not None:
        return _run_arrays(args, arrays)
    before, after = _runs(args)
    allowed = args.fail_on_regression
    wants_report = args.format is not None or args.output is not None or allowed is not None
    obstacle = common.why_no_screen()
    diff = _compared(args, config, before, after)
    if not wants_report and not obstacle:
        terminal = settle_terminal(args.color, args.ascii, args.mouse, config.custom)
        app = page.load_app()(diff, terminal)
        exit_code: int = app.show(terminal.mouse)
        return exit_code
    if not wants_report:
        note(f"{obstacle} Printing the report instead of opening the screen.")
    from tpuprof.parsers.session.diff.regression import regression  # noqa: PLC0415

    judged = None if allowed is None else regression(diff, allowed)
    _write(args, page, diff, judged)
    return EXIT_OK if judged is None else _exit_code(judged, bool(diff.different))


def _exit_code(judged: Regression, different: bool) -> int:
    """What a check answers; says why on standard error where that is not plainly a pass."""
    if judged.outcome == "unknown":
        code, action = "no_steps", "capture several steps of both"
        if different:
            code, action = "different_programs", "compare two runs of one program"
        raise ProfileError(code, judged.sentence, action, EXIT_UNREADABLE)
    if judged.sentence:
        note(judged.sentence)
    return EXIT_REGRESSION if judged.outcome == "slower" else EXIT_OK


# --- reading


def _runs(args: argparse.Namespace) -> tuple[Run, Run]:
    """The two runs.

    Raises:
        ProfileError: see `run_diff`; also an output file that may not be written.
    """
    from tpuprof.parsers.files.logdir import open_logdir  # noqa: PLC0415

    first = open_logdir(existing(args.before))
    second = first if args.after is None else open_logdir(existing(args.after))
    common.check_output(args, first, second)
    before, after = _chosen(args, first, second)
    if os.path.realpath(before.path) == os.path.realpath(after.path):
        sentence = f"A and B are the same run, {printable(before.name)}."
        names = ", ".join(printable(run.name) for run in first.runs[:4])
        raise ProfileError("same_run", sentence, f"--run-a and --run-b; there are: {names}", EXIT_USAGE)
    return before, after


def _chosen(args: argparse.Namespace, first: Logdir, second: Logdir) -> tuple[Run, Run]:
    """The runs by name; of one logdir without names the newest and the one before it."""
    if args.after is not None or (args.run_a is not None and args.run_b is not None):
        return first.find_run(args.run_a), second.find_run(args.run_b)
    if args.run_a is not None:
        return first.find_run(args.run_a), first.find_run()
    after = first.find_run(args.run_b)
    rest = first.runs[first.runs.index(after) + 1 :]
    if not rest:
        sentence = f"{printable(args.before)} holds no run older than {printable(after.name)} to compare it with."
        raise ProfileError("one_run", sentence, f"{PROGRAM} diff BEFORE AFTER", EXIT_USAGE)
    return rest[0], after


def _compared(args: argparse.Namespace, config: Config, before: Run, after: Run) -> Diff:
    from tpuprof.parsers.session.diff.compare import compare  # noqa: PLC0415 - numpy and protobuf
    from tpuprof.parsers.session.session import Session  # noqa: PLC0415

    cache = common.host_cache(args, config)
    if args.core is not None:
        before, after = (run.of_core(args.core, args.host) for run in (before, after))
    with common.decoding_shown() as on_progress:
        sessions = [Session(run, on_progress, scheduler=args.scheduler, cache=cache) for run in (before, after)]
        return compare(sessions[0], sessions[1], args.host, on_progress)


# --- device memory profiles


def _arrays(args: argparse.Namespace) -> tuple[str, str] | None:
    """Two device memory profiles where A, or A and B, lead to such; None where neither does.

    Raises:
        ProfileError: only one of them does, or A has but one, or options are for runs; exit code 2.
    """
    from tpuprof.parsers.session.live_arrays import arrays_beside, leads_to_arrays  # noqa: PLC0415

    given = [existing(path) for path in (args.before, args.after) if path is not None]
    found = [leads_to_arrays(path) for path in given]
    if not any(found):
        return None
    of_runs = [name for name in ("run_a", "run_b", "host") if getattr(args, name) is not None]
    if of_runs:
        option = of_runs[0].replace("_", "-")
        raise ProfileError("usage", f"--{option} is for runs, not for device memory profiles.", _EXAMPLE, EXIT_USAGE)
    if len(found) == 1:
        folder = [*arrays_beside(given[0])[:2]] if os.path.isdir(given[0]) else []
        if len(folder) < 2:
            sentence = f"{printable(given[0])} is one device memory profile; there is none to compare it with."
            raise ProfileError("one_run", sentence, _EXAMPLE, EXIT_USAGE)
        found = [*folder[::-1]]
    if None in found:
        other = printable(given[found.index(None)])
        sentence = f"A device memory profile is compared with another one, and {other} is none."
        raise ProfileError("usage", sentence, _EXAMPLE, EXIT_USAGE)
    before, after = (path for path in found if path is not None)
    if os.path.realpath(before) == os.path.realpath(after):
        sentence = f"A and B are the same file, {printable(before)}."
        raise ProfileError("same_run", sentence, _EXAMPLE, EXIT_USAGE)
    return before, after


def _run_arrays(args: argparse.Namespace, paths: tuple[str, str]) -> int:
    """Compares device memory profiles: what holds more memory in the second; see `run_diff`."""
    from tpuprof.parsers.memory.live_arrays import read_live_arrays  # noqa: PLC0415
    from tpuprof.parsers.session.diff.live_arrays import LiveArraysDiff, growth  # noqa: PLC0415
    from tpuprof.parsers.session.live_arrays import open_arrays  # noqa: PLC0415

    common.check_output(args, *map(open_arrays, paths))
    diff = LiveArraysDiff(*map(read_live_arrays, paths))
    allowed = args.fail_on_regression
    wants_report = args.format is not None or args.output is not None or allowed is not None
    obstacle = common.why_no_screen()
    if not wants_report and not obstacle:
        return common.open_arrays_screen(args, diff)
    if not wants_report:
        note(f"{obstacle} Printing the report instead of opening the screen.")
    judged = None if allowed is None else growth(diff, allowed)
    report = command_named("live-arrays").load_report()
    writer = report.writers[args.format or "text"]
    common.write_report(args, writer(report.read(diff, judged), common.report_look(args), args.limit))
    if judged is None or not judged.is_beyond:
        return EXIT_OK
    note(judged.sentence)
    return EXIT_REGRESSION


# --- showing and writing


def _write(args: argparse.Namespace, page: CommandPage, diff: Diff, judged: Regression | None) -> None:
    """Prints or writes the report; its warnings go to standard error where the format has no place for them."""
    form, report = args.format or "text", page.load_report()
    if form in WITHOUT_WARNINGS:
        for sentence in diff.warnings:
            note(f"note: {sentence}")
    common.write_report(args, report.writers[form](report.read(diff, judged), common.report_look(args), args.limit))


def _percent(text: str) -> float:
    """A fraction, of ``5%`` or ``5``."""
    percentage = _PERCENT.fullmatch(text)
    if percentage is None:
        raise argparse.ArgumentTypeError(f"{text!r} is not a percentage from 0 on, such as 5%")
    return float(percentage[1]) / 100
