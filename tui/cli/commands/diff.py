"""``tpuprof-tui diff A B``: what changed from A to B; ``verify A B``: whether a finding's promise was kept there.

And ``baseline``: runs that others of their logdir are compared with, by name, as ``--baseline NAME`` has it. Baselines
are kept in the user's cache folder, a file a logdir, and nothing is written beside a run. A baseline says where its run
is. It holds no figures, which would be those of an older version of this program.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import json
import os
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeVar, cast

from tpuprof.parsers.base import errors
from tpuprof.parsers.base.cache import CacheFolder
from tpuprof.parsers.base.record import replace
from tpuprof.parsers.base.text import nearest_hint, printable
from tpuprof.parsers.base.urls import printable_url
from tpuprof.parsers.files.core_names import group_named
from tpuprof.parsers.files.logdir import Logdir, Run, is_remote, open_logdir
from tpuprof.parsers.formats.xspace.trace import Trace
from tpuprof.parsers.pages.overview.model import OVERVIEW
from tpuprof.parsers.pages.shared.key import Later
from tpuprof.parsers.session.diff.beside import DETECT
from tpuprof.parsers.session.diff.compare import compare_launches
from tpuprof.parsers.session.diff.model import Diff
from tpuprof.parsers.session.diff.promises import Verified, verify
from tpuprof.parsers.session.diff.regression import Regression, regression
from tpuprof.parsers.session.diff.sides import compared_runs, refuse_arrays
from tpuprof.parsers.session.one_core import narrowed
from tpuprof.parsers.session.session import Session
from tpuprof.parsers.session.software import software
from tpuprof.tui.cli import common, printing
from tpuprof.tui.cli.arguments.options import HERE, PROGRAM
from tpuprof.tui.cli.common import existing, note, session_of
from tpuprof.tui.pages import command_named
from tpuprof.tui.report.output import write_stdout
from tpuprof.tui.report.page import WITHOUT_WARNINGS, ReportRequest, check_choice, check_keys, chosen_of
from tpuprof.tui.terminal.detect import Config

if TYPE_CHECKING:
    from tpuprof.parsers.pages.program.changes import ComparedPrograms
    from tpuprof.parsers.pages.program.programs import CompiledProgram

Made = TypeVar("Made")
_EXIT_CODES = {"kept": errors.EXIT_OK, "partly": errors.EXIT_OK, "unknown": errors.EXIT_UNREADABLE}
"""Of `verify`."""

_COMPARE = Later("tpuprof.parsers.pages.program.changes:compare_programs")
_HOLDS_PROGRAMS = Later("tpuprof.parsers.session.hlo:holds_programs")
_PROGRAMS_AT = Later("tpuprof.parsers.pages.program.programs:programs_at")
_PROGRAMS_OF = Later("tpuprof.parsers.pages.program.programs:programs_of_session")
"""What programs alone need is imported for them."""


def run_diff(args: argparse.Namespace) -> int:
    """Runs the command.

    Returns:
        The exit code: 0, or with `--fail-on-regression` 6 where steps got slower; of programs what the verdict has.

    Raises:
        ProfileError: a path leads to no profile (exit code 3) or to one that can't be read (4); both are the same run
            (2); with `--fail-on-regression`, nothing can be said of the steps (4), once the report is written.
    """
    check_keys(args.keys, args.format)
    check_choice(chosen_of(vars(args)), args.format or "text")
    made = _compared_or_programs(args)
    if not isinstance(made, tuple):
        printing.write_report(args, _written("diff-program", args, (made,), args.limit or 0))
        return made.exit_code
    diff, after = made
    if not common.wants_report(args) and common.opens_screen("the report"):
        return common.show(args, "diff", diff)
    judged = None if args.fail_on_regression is None else regression(diff, args.fail_on_regression)
    printing.write_report(args, _made(args, diff, after, judged), most=printing.most_bytes(args))
    return errors.EXIT_OK if judged is None else _exit_code(judged, bool(diff.different))


def made_diff(args: argparse.Namespace) -> str:
    """What is printed of the comparison; see `run_diff`."""
    made = _compared_or_programs(args)
    if not isinstance(made, tuple):
        return _written("diff-program", args, (made,), args.limit or 0)
    return _made(args, *made, None)


def _exit_code(judged: Regression, different: bool) -> int:
    """What a check answers; says why on standard error where that is not plainly a pass."""
    if judged.outcome == "unknown":
        code, action = "no_steps", "capture several steps of both"
        if different:
            code, action = "different_programs", "compare two runs of one program"
        raise errors.ProfileError(code, judged.sentence, action, errors.EXIT_UNREADABLE)
    if judged.sentence:
        note(judged.sentence)
    return errors.EXIT_REGRESSION if judged.outcome == "slower" else errors.EXIT_OK


# --- programs


def _compared_or_programs(args: argparse.Namespace) -> tuple[Diff, Session] | ComparedPrograms:
    """The runs of both sides; programs alone where that is asked for, and where the paths hold nothing else."""
    _take_sides(args)
    paths = (args.before, args.after)
    if args.program:
        return _compared_programs(args)
    try:
        return _compared(args, common.configured(args))
    except errors.ProfileError:
        if not all(isinstance(path, str) and _HOLDS_PROGRAMS(path) for path in paths):
            raise
        return _compared_programs(args)


def _compared_programs(args: argparse.Namespace) -> ComparedPrograms:
    """The programs of both sides; raises as `run_diff`."""
    before: list[CompiledProgram]
    _take_sides(args)
    expected = getattr(args, "expect", ())
    if expected and args.after is None:
        path = existing(args.before or HERE)
        paths, before, after = (path, path), [], _programs(args, path, args.of_before)
    elif args.before is None or args.after is None:
        hint = f"{PROGRAM} diff A B --program"
        raise errors.ProfileError("usage", "Programs are compared of two paths.", hint, errors.EXIT_USAGE)
    else:
        paths = existing(args.before), existing(args.after)
        before, after = _programs(args, paths[0], args.of_before), _programs(args, paths[1], args.of_after)
    return cast("ComparedPrograms", _COMPARE(paths, before, after, expected, getattr(args, "device", None)))


def _programs(args: argparse.Namespace, path: str, run: str | None) -> list[CompiledProgram]:
    """The compiled programs at a path; of a profile those of a run."""
    if _HOLDS_PROGRAMS(path):
        return cast("list[CompiledProgram]", _PROGRAMS_AT(path))
    with common.decoding_shown() as on_progress:
        session = session_of(open_logdir(path).find_run(run), args, common.configured(args), on_progress)
        found = cast("list[CompiledProgram]", _PROGRAMS_OF(session))
    with contextlib.closing(Trace.open(session.run.hosts[0].path)) as trace:
        said = software(trace.planes)
    versions, flags = ({one.name: one.value for one in said if one.kind == kind} for kind in ("version", "flag"))
    return [replace(program, versions=versions, settings=flags) for program in found]


# --- reading


def _runs(args: argparse.Namespace) -> tuple[list[Run], list[Run]]:
    """The runs of both sides.

    Raises:
        ProfileError: see `run_diff`; also an output file that may not be written.
    """
    if args.baseline is not None:
        _take_baseline(args)
    _take_sides(args)
    if args.before is None:
        raise errors.ProfileError(
            "usage", "There is nothing to compare.", f"{PROGRAM} diff BEFORE AFTER", errors.EXIT_USAGE
        )
    given = [path for path in (args.before, args.after) if path is not None]
    paths = [existing(path) for path in given]
    refuse_arrays(paths)
    logdirs = [open_logdir(path) for path in paths]
    printing.check_output(args, *logdirs)
    return compared_runs(given, logdirs, (args.of_before, args.of_after))


def _take_sides(args: argparse.Namespace) -> None:
    """What ``--before`` and ``--after`` name stands for A and B where no path is given."""
    if args.before is None and args.baseline is None:
        args.before, args.after, args.of_before, args.of_after = args.of_before, args.of_after, None, None


def _compared(args: argparse.Namespace, config: Config) -> tuple[Diff, Session]:
    """The comparison, and the session of B."""
    return _over_both(args, config, lambda diff, sides: (diff, sides[1]))


def _over_both(args: argparse.Namespace, config: Config, work: Callable[[Diff, tuple[Session, Session]], Made]) -> Made:
    """What is made of the comparison, and of the sessions that stand for both sides; raises as `run_diff`."""
    before, after = _runs(args)
    group, sizes = group_named(args.core or ""), (getattr(args, of, None) for of in ("detect", "fail_on_regression"))
    if args.core is not None and group is None:
        before, after = ([narrowed(run, args.core, args.host) for run in side] for side in (before, after))
    with common.decoding_shown() as on_progress:
        one, other = ([session_of(run, args, config, on_progress) for run in side] for side in (before, after))
        return work(*compare_launches((one, other), args.host, next(filter(None, sizes), DETECT), group))


# --- writing


def _made(args: argparse.Namespace, diff: Diff, after: Session, judged: Regression | None) -> str:
    """The report, or the ops that a call chooses; standard error has the warnings where the format has none."""
    if (args.format or "text") in WITHOUT_WARNINGS:
        for sentence in diff.warnings:
            note(f"note: {sentence}")
    if (choice := chosen_of(vars(args))) is None:
        return _written("diff", args, (diff, judged), args.limit or 0)
    logdir, look = Logdir(after.run.path, (after.run,), (), ()), printing.report_look(args)
    asked = ReportRequest(logdir, None, args.host, lambda _: after, args.format or "text", look, args.limit)
    asked = replace(asked, rest=printing.rest(args))
    report = command_named("diff").load_report()
    assert report.choose is not None, "it has a table of ops"
    return report.choose(report.read(diff, judged), asked, choice)


def _written(command: str, args: argparse.Namespace, read: Sequence[object], limit: int = 0) -> str:
    """The report of a command on two runs, of what its page reads."""
    form, report = args.format or "text", command_named(command).load_report()
    if form not in report.writers:
        sentence = f"--format {form} does not work with programs."
        raise errors.ProfileError("usage", sentence, "--format text, json or md", errors.EXIT_USAGE)
    content, look = report.read(*read), printing.report_look(args)
    if form == "github":
        printing.append_summary(report.writers["md"](content, look, limit))
    return report.writers[form](content, look, limit)


# --- promises


def run_verify(args: argparse.Namespace) -> int:
    """Runs the command.

    Returns:
        The exit code: 0 for a promise that was kept, at least in part, 6 for one that was not, 4 where that is unknown;
        0 where all expectations are kept, else 6.

    Raises:
        ProfileError: as of `diff`; and `unknown_finding`, exit code 3.
    """
    check_keys(args.keys, args.format)
    if args.expect:
        compared = _compared_programs(args)
        printing.write_report(args, _written("diff-program", args, (compared,)), most=printing.most_bytes(args))
        return errors.EXIT_OK if all(each.is_kept for each in compared.expectations) else errors.EXIT_REGRESSION
    made = _verified(args)
    printing.write_report(args, _written("verify", args, (made,)), most=printing.most_bytes(args))
    return _EXIT_CODES.get(made.outcome, errors.EXIT_REGRESSION)


def made_verify(args: argparse.Namespace) -> str:
    """What is printed of the promises; see `run_verify`."""
    if args.expect:
        return _written("diff-program", args, (_compared_programs(args),))
    return _written("verify", args, (_verified(args),))


def _verified(args: argparse.Namespace) -> Verified:
    def verified(diff: Diff, middle: tuple[Session, Session]) -> Verified:
        before, after = (session.page(OVERVIEW, args.host) for session in middle)
        return verify(diff, before, after, args.claim)

    return _over_both(args, common.configured(args), verified)


# --- baselines


def run_baseline(args: argparse.Namespace) -> int:
    """Runs the command, and prints the baselines of the logdir: their names, and where their runs lie.

    Raises:
        ProfileError: the path leads to no run, or there is no such baseline (exit code 3).
    """
    run = open_logdir(existing(args.path)).find_run(args.run)
    kept = _baselines(run)
    if args.action == "set":
        kept[args.name] = run.path if is_remote(run.path) else os.path.abspath(run.path)
    elif args.action == "remove":
        _baseline_of(run, args.name)
        del kept[args.name]
    if args.action != "list":
        _folder().put(_entry(run), [json.dumps(kept).encode()])
    write_stdout("".join(f"{printable(name)}  {printable_url(path)}\n" for name, path in sorted(kept.items())))
    return errors.EXIT_OK


def _take_baseline(args: argparse.Namespace) -> None:
    """Puts the run of ``--baseline`` in the place of A, and the path that was given in that of B.

    Raises:
        ProfileError: there is no such baseline (exit code 3); A is given as well (2).
    """
    if args.after is not None or args.of_before is not None:
        sentence = "--baseline stands for A: one path at most is B."
        raise errors.ProfileError("usage", sentence, "leave A and --before out", errors.EXIT_USAGE)
    args.after = existing(args.before or HERE)
    args.before = _baseline_of(open_logdir(args.after).find_run(args.of_after), args.baseline)


def _baseline_of(run: Run, name: str) -> str:
    kept = _baselines(run)
    if name not in kept:
        sentence = f"The logdir of {printable(run.name)} has no baseline {printable(name)}."
        hint = nearest_hint(name, [*kept], f"{PROGRAM} baseline set NAME RUN")
        raise errors.ProfileError("unknown_baseline", sentence, hint, errors.EXIT_NOT_FOUND)
    return kept[name]


def _baselines(run: Run) -> dict[str, str]:
    """Where the baselines of a run's logdir lie, by name; none where the file is damaged."""
    with contextlib.suppress(OSError, ValueError, AttributeError), open(_folder().open(_entry(run)), "rb") as file:
        return {name: str(path) for name, path in json.load(file).items()}
    return {}


def _folder() -> CacheFolder:
    return CacheFolder("baselines", 0)


def _entry(run: Run) -> str:
    """The name of a logdir's file, by the folder that its runs lie in."""
    folder = os.path.dirname(run.hosts[0].path if run.hosts else run.path)
    above = os.path.dirname(folder if is_remote(folder) else os.path.realpath(folder))
    return hashlib.sha256(os.fsencode(above)).hexdigest()[:32]
