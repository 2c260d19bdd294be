"""Opens the app, at a run or at its memory; prints the page where no screen can be drawn."""

from __future__ import annotations

import argparse
from functools import cache
from typing import Any

from tpuprof.parsers.base.errors import EXIT_NO_TERMINAL, EXIT_USAGE, ProfileError
from tpuprof.parsers.base.record import replace
from tpuprof.parsers.files.file_kinds import may_be_hlo, recognised
from tpuprof.parsers.files.logdir import local_path
from tpuprof.parsers.files.watch import wait_for_run
from tpuprof.parsers.session.live_arrays import leads_to_arrays
from tpuprof.tui.app import start
from tpuprof.tui.cli import common
from tpuprof.tui.cli.arguments.options import DEMO, PROGRAM
from tpuprof.tui.cli.common import existing, note
from tpuprof.tui.cli.table import COMMANDS, WITHOUT_WORD

_MEMORY_TAB = 4
_NEED_SCREEN = ("latest", "mouse")
"""What no report does; without these the overview is printed where no screen can be drawn."""


def run_app(args: argparse.Namespace) -> int:
    """Opens the screen; prints the overview where no screen can be drawn."""
    if args.json:
        sentence = "--json works with --version; for a page as JSON use report."
        raise ProfileError("usage", sentence, f"{PROGRAM} report overview PATH --format json", EXIT_USAGE)
    if args.path in COMMANDS and args.path != WITHOUT_WORD:
        sentence = f"The command {args.path} comes before its options."
        raise ProfileError("usage", sentence, f"{PROGRAM} {args.path} --help", EXIT_USAGE)
    demo = args.path == DEMO
    args.path = existing(args.path)
    if not args.latest and (arrays := leads_to_arrays(args.path)) is not None:
        return _show_arrays(args, arrays)
    if args.latest and args.run is not None:
        raise ProfileError("usage", "--latest and --run do not work together.", f"{PROGRAM} --help", EXIT_USAGE)
    for option in (name for name in _NEED_SCREEN if getattr(args, name) and common.why_no_screen()):
        sentence = f"--{option} needs a screen. {common.why_no_screen()}"
        raise ProfileError("no_terminal", sentence, f"{PROGRAM} report overview PATH", EXIT_NO_TERMINAL)
    if args.latest:
        say_so = cache(lambda: note(f"waiting for a run at {args.path}; ctrl+C ends it"))  # once
        wait_for_run(args.path, say_so)
    if not args.latest and (ended := _no_profile(args)) is not None:
        return ended
    how = {"demo": demo, "latest": args.latest, "jobs": args.jobs}
    return _screen(args, "overview", "the overview", **how)


def run_memory(args: argparse.Namespace) -> int:
    """Opens the memory tab, of a profile or of HLO files; prints the page where no screen can be drawn."""
    args.path = existing(args.path)
    if (arrays := leads_to_arrays(args.path)) is not None:
        return _show_arrays(args, arrays)
    if args.fit:
        return _report(args, "memory")
    only_hlo = _leads_to_hlo(args.path)
    return _screen(args, "memory", "the memory page", tab=_MEMORY_TAB, only_hlo=only_hlo, device=args.device)


def _no_profile(args: argparse.Namespace) -> int | None:
    """Opens a path that by a first look leads to compiled programs, or to a log; None for any other."""
    where = local_path(args.path)
    found = recognised(where)
    if found is not None and found.reader == "log":
        oom, look = COMMANDS["oom"], {name: getattr(args, name) for name in ("ascii", "color", "mouse", "theme")}
        return oom.run(argparse.Namespace(**{**vars(oom.parsed(["--", where])), **look}))
    if found is not None and found.reader == "none":
        raise found.error(where)
    if may_be_hlo(where) and (pages := _pages_of_hlo(args.path)):
        how = {"tab": _MEMORY_TAB, "only_hlo": True, "shows_program": "program" in pages, "device": args.device}
        return _screen(args, pages[-1], f"the {pages[-1]} page", **how)
    return None


def _pages_of_hlo(path: str) -> tuple[str, ...]:
    """The pages that compiled programs have; none for a profile."""
    from tpuprof.parsers.session.hlo import holds_programs, pages_of_files  # noqa: PLC0415 - numpy and protobuf

    return pages_of_files(path) if holds_programs(path) or _leads_to_hlo(path) else ()


def _leads_to_hlo(path: str) -> bool:
    from tpuprof.parsers.session.hlo import leads_to_hlo  # noqa: PLC0415 - numpy and protobuf

    return leads_to_hlo(path)


def _screen(args: argparse.Namespace, page: str, called: str, **asked: Any) -> int:  # noqa: ANN401 - of `AppOptions`
    """Opens the app; prints a page where no screen can be drawn."""
    if not common.opens_screen(called):
        return _report(args, page)
    options = replace(common.app_options(args), run=args.run, host=args.host, core=args.core, **asked)
    return start.run_app(args.path, options=options)


def _report(args: argparse.Namespace, page: str) -> int:
    report = COMMANDS["report"]
    return report.run(argparse.Namespace(**{**vars(report.parsed([page])), **vars(args)}))


def _show_arrays(args: argparse.Namespace, path: str) -> int:
    """Opens a device memory profile; prints its page where no screen can be drawn."""
    if not common.opens_screen("the live arrays"):
        report, look = COMMANDS["report"], ["--color", args.color, *(["--ascii"] if args.ascii else [])]
        return report.run(report.parsed(["live-arrays", path, *look]))
    from tpuprof.parsers.memory.live_arrays import read_live_arrays  # noqa: PLC0415 - numpy

    return common.show(args, "live-arrays", read_live_arrays(path))
