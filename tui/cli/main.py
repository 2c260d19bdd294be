"""The command line: the screen by default, reports without one, and what is installed.

Nothing heavy is imported until a command needs it: neither Textual nor gRPC by a headless command, and not even numpy
for `--help` and `--version`.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import os
import sys
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from importlib import import_module
from typing import Any

from tpuprof.parsers.base.errors import (
    EXIT_INTERRUPTED,
    EXIT_NO_TERMINAL,
    EXIT_OK,
    EXIT_UNREADABLE,
    EXIT_USAGE,
    Cancelled,
    ProfileError,
)
from tpuprof.tui.cli import common
from tpuprof.tui.cli.common import DEMO, PROGRAM, UsageParser, existing, note, version_of

COMMANDS = {
    "report": "report",
    "oom": "oom",
    "diff": "diff",
    "capture": "capture",
    "live": "live",
    "doctor": "doctor.command",
    "config": "config",
    "completion": "shell.completion",
    "man": "shell.man",
}
"""Commands, and where in `tui.cli` each has its ``NAME_parser`` and ``run_NAME``; `memory` opens the app."""
_MEMORY_TAB = 4
_NEED_SCREEN = ("latest", "mouse")
"""What no report does; without these the overview is printed where no screen can be drawn."""


_COMMAND_HELP = f"""commands:
  {PROGRAM} PATH                  open a logdir, a profile, an archive of one, an XLA dump, or a log with an error
  {PROGRAM} demo                  look around in the bundled demo profile; reports take it too
  {PROGRAM} oom LOG               find out-of-memory errors in a log (- for standard input): why, and what to do
  {PROGRAM} capture HOST:PORT     ask a running program for a profile, and open it
  {PROGRAM} live [HOST:PORT]      show how busy the chips of a running program are; C captures a profile
  {PROGRAM} memory PATH           open the memory tab: of a profile, an HLO proto or an --xla_dump_to folder
  {PROGRAM} report PAGE [PATH]    print a page: {{pages}}
  {PROGRAM} diff A [B]            compare two runs: what changed, and what is noise; two memory.prof: what leaks
  {PROGRAM} doctor [PATH]         print what is installed, what this terminal can do, what PATH holds and lacks
  {PROGRAM} config                print a config file to begin with: theme, keys, columns, cache
  {PROGRAM} completion SHELL      print what completes commands in bash, zsh or fish; man: the manual page

A folder that is named like a command: ./report
"""


def main(argv: list[str] | None = None) -> int:
    """Runs one command, by the arguments of the process where none are given.

    Returns:
        The exit code, one of `tpuprof.parsers.base.errors.EXIT_*`.
    """
    arguments = sys.argv[1:] if argv is None else argv
    _open_closed_streams()
    try:
        return _run(arguments)
    except SystemExit as stop:  # argparse after --help and --version
        return stop.code if isinstance(stop.code, int) else EXIT_OK
    except BrokenPipeError:
        # What is still buffered goes nowhere, so that the interpreter does not complain about it at its end.
        with contextlib.suppress(OSError, ValueError):  # standard output may have no file descriptor
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, sys.stdout.fileno())
            os.close(nowhere)
        return EXIT_OK
    except (KeyboardInterrupt, Cancelled):
        return EXIT_INTERRUPTED
    except ProfileError as error:
        return _fail(arguments, error.sentence, error.hint, error.exit_code)
    except MemoryError:
        return _fail(arguments, "There is not enough memory for this.", "try one host: --host", EXIT_UNREADABLE)
    except OSError as error:
        reason = f"{error.filename}: {error.strerror}" if error.filename else str(error)
        return _fail(arguments, f"The system refused: {reason}.", f"{PROGRAM} --debug ...", EXIT_UNREADABLE)


def _open_closed_streams() -> None:
    """Puts something in the place of standard streams that were closed, so that no file gets their descriptors.

    What goes to standard error is lost then; what goes to standard output fails, as nobody would get it.
    """
    for descriptor, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is None:
            opened = os.open(os.devnull, os.O_WRONLY if name == "stderr" else os.O_RDONLY)
            if opened != descriptor:
                os.dup2(opened, descriptor)
                os.close(opened)
            raw: Any = io.FileIO(descriptor, "r" if name == "stdin" else "w", closefd=False)  # keeps nothing for later
            stream = io.BufferedReader(raw) if name == "stdin" else raw
            setattr(sys, name, io.TextIOWrapper(stream, "utf-8", write_through=True))


def _run(arguments: Sequence[str]) -> int:
    # Before numpy is imported: its threads would only cost start-up time and memory here.
    for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ.setdefault(name, "1")
    words = [word for word in arguments if word != "--debug"]
    command = words[0] if words else ""
    if command == "memory":
        return _memory_app(memory_parser().parse_args(words[1:]))
    if command not in COMMANDS:
        return _app(app_parser().parse_args(words))
    module = import_module(f"tpuprof.tui.cli.commands.{COMMANDS[command]}")
    parser: argparse.ArgumentParser = getattr(module, f"{command}_parser")(UsageParser)
    exit_code: int = getattr(module, f"run_{command}")(parser.parse_args(words[1:]))
    return exit_code


def _fail(arguments: Sequence[str], sentence: str, hint: str, exit_code: int) -> int:
    """Says what went wrong on standard error, with the traceback where `--debug` asks for it, and without secrets."""
    from tpuprof.parsers.base.urls import masked  # noqa: PLC0415

    if "--debug" in arguments:
        import traceback  # noqa: PLC0415

        sys.stderr.write(masked(traceback.format_exc(), arguments))
    note(masked(sentence, arguments))
    if hint:
        note(masked(f"try: {hint}", arguments))
    return exit_code


# --- arguments


class _AppParser(UsageParser):
    """Names the pages when help is asked for, not before: the registry takes a while to load."""

    def format_help(self) -> str:
        """The help, with the commands at its end."""
        from tpuprof.tui.pages import PAGE_NAMES  # noqa: PLC0415 - for the help alone

        self.epilog = _COMMAND_HELP.format(pages=", ".join(PAGE_NAMES))
        return super().format_help()


def app_parser() -> argparse.ArgumentParser:
    """The arguments of the screen's command, which has no word of its own."""
    form, what = (
        argparse.RawDescriptionHelpFormatter,
        "Reads XProf/TensorBoard profiles of TPU programs in the terminal.",
    )
    parser = _AppParser(PROGRAM, description=what, formatter_class=form, allow_abbrev=False)
    common.add_choice_of_profile(parser)
    latest = "open the newest run whenever one comes; wait for one where there is none yet; needs a terminal"
    parser.add_argument("--latest", action="store_true", help=latest)
    common.add_reading(parser)
    common.add_screen(parser)
    common.add_debug(parser)
    parser.add_argument("--version", action="store_true", help="print the version")
    parser.add_argument("--json", action="store_true", help="with --version: as JSON, with what it runs on")
    return parser


def memory_parser() -> argparse.ArgumentParser:
    """The arguments of the command `memory`."""
    parser = common.new_parser(UsageParser, "memory", "Opens the memory tab. Without a terminal it prints the page.")
    where = "as for profiles; or an HLO proto, or a folder written with --xla_dump_to"
    common.add_choice_of_profile(parser, where)
    common.add_device(parser)
    common.add_screen(parser)
    common.add_debug(parser)
    return parser


# --- commands


def _version(as_json: bool) -> int:
    """Prints the version; as JSON with what a bug report needs to know beside it."""
    from tpuprof.tui.report.output import write_stdout  # noqa: PLC0415

    if not as_json:
        write_stdout(f"{PROGRAM} {version_of(PROGRAM)}\n")
        return EXIT_OK
    import json  # noqa: PLC0415
    import platform  # noqa: PLC0415

    from tpuprof.parsers.formats.xspace.core.api import core_name  # noqa: PLC0415 - numpy
    from tpuprof.tui.cli.commands.doctor.machine import PACKAGES  # noqa: PLC0415

    told = {
        "schema": "tpuprof.version/1",
        "version": version_of(PROGRAM),
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}",
        "decoding_core": core_name(),
        "packages": {name: version_of(name) for name in PACKAGES},
    }
    write_stdout(json.dumps(told, indent=1) + "\n")
    return EXIT_OK


def _app(args: argparse.Namespace) -> int:
    """Opens the screen; prints the overview where no screen can be drawn."""
    if args.version:
        return _version(args.json)
    if args.json:
        sentence = "--json goes with --version; a page as JSON is a report."
        raise ProfileError("usage", sentence, f"{PROGRAM} report overview PATH --format json", EXIT_USAGE)
    from tpuprof.parsers.session.live_arrays import leads_to_arrays  # noqa: PLC0415 - looks for profiles by name

    if args.path in (*COMMANDS, "memory"):
        sentence = f"The command {args.path} stands before its options."
        raise ProfileError("usage", sentence, f"{PROGRAM} {args.path} --help", EXIT_USAGE)
    demo = args.path == DEMO
    args.path = existing(args.path)
    if not args.latest and (arrays := leads_to_arrays(args.path)) is not None:
        return _arrays_app(args, arrays)
    if args.latest and args.run is not None:
        raise ProfileError("usage", "--latest and --run do not go together.", f"{PROGRAM} --help", EXIT_USAGE)
    for option in (name for name in _NEED_SCREEN if getattr(args, name) and common.why_no_screen()):
        sentence = f"--{option} needs a screen. {common.why_no_screen()}"
        raise ProfileError("no_terminal", sentence, f"{PROGRAM} report overview PATH", EXIT_NO_TERMINAL)
    if args.latest:
        from tpuprof.parsers.files.watch import wait_for_run  # noqa: PLC0415

        say_so = cache(lambda: note(f"waiting for a run at {args.path}; ctrl+C ends it"))  # once
        wait_for_run(args.path, on_wait=lambda _: say_so())
    if not args.latest and (ended := _no_profile(args)) is not None:
        return ended
    return _screen(args, "overview", "the overview", demo=demo, latest=args.latest, scheduler=args.scheduler)


def _no_profile(args: argparse.Namespace) -> int | None:
    """Opens a path that by a first look leads to compiled modules, or to a log; None for any other."""
    from tpuprof.parsers.files.logdir import local_path  # noqa: PLC0415
    from tpuprof.parsers.files.recognise import may_be_hlo, recognised  # noqa: PLC0415

    where = local_path(args.path)
    found = recognised(where)
    if found is not None and found.reader == "log":
        from tpuprof.tui.cli.commands.oom import oom_parser, run_oom  # noqa: PLC0415

        look = {name: getattr(args, name) for name in ("ascii", "color", "mouse", "theme")}
        return run_oom(argparse.Namespace(**{**vars(oom_parser().parse_args(["--", where])), **look}))
    if found is not None and found.reader == "none":
        raise found.error(where)
    if may_be_hlo(where):
        from tpuprof.parsers.session.hlo import leads_to_hlo  # noqa: PLC0415 - numpy and protobuf

        if leads_to_hlo(args.path):
            return _screen(args, "memory", "the memory page", tab=_MEMORY_TAB, only_hlo=True)
    return None


def _screen(args: argparse.Namespace, page: str, called: str, **asked: Any) -> int:  # noqa: ANN401 - of `AppOptions`
    """Opens the app; prints a page where no screen can be drawn."""
    obstacle = common.why_no_screen()
    if obstacle:
        note(f"{obstacle} Printing {called} instead of opening the screen.")
        from tpuprof.tui.cli.commands.report import report_parser, run_report  # noqa: PLC0415

        defaults = vars(report_parser().parse_args([page]))
        return run_report(argparse.Namespace(**{**defaults, **vars(args)}))
    options = replace(common.app_options(args), run=args.run, host=args.host, core=args.core, **asked)
    from tpuprof.tui.app.start import run_app  # noqa: PLC0415 - Textual, for the screen only

    return run_app(args.path, options=options)


def _memory_app(args: argparse.Namespace) -> int:
    """Opens the memory tab, of a profile or of HLO files; prints the page where no screen can be drawn."""
    from tpuprof.parsers.session.hlo import leads_to_hlo  # noqa: PLC0415
    from tpuprof.parsers.session.live_arrays import leads_to_arrays  # noqa: PLC0415

    args.path = existing(args.path)
    if (arrays := leads_to_arrays(args.path)) is not None:
        return _arrays_app(args, arrays)
    only_hlo = leads_to_hlo(args.path)
    return _screen(args, "memory", "the memory page", tab=_MEMORY_TAB, only_hlo=only_hlo, device=args.device)


def _arrays_app(args: argparse.Namespace, path: str) -> int:
    """Opens a device memory profile; prints its page where no screen can be drawn."""
    obstacle = common.why_no_screen()
    if obstacle:
        note(f"{obstacle} Printing the live arrays instead of opening the screen.")
        from tpuprof.tui.cli.commands.report import report_parser, run_report  # noqa: PLC0415

        look = ["--color", args.color, *(["--ascii"] if args.ascii else [])]
        return run_report(report_parser().parse_args(["live-arrays", path, *look]))
    from tpuprof.parsers.memory.live_arrays import read_live_arrays  # noqa: PLC0415

    return common.open_arrays_screen(args, read_live_arrays(path))
