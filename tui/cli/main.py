"""The command line: the screen by default, reports without one, and what is installed.

Nothing heavy is imported until a command needs it: neither Textual nor gRPC by a headless command, and not even numpy
for `--help` and `--version`.
"""

from __future__ import annotations

import argparse
import gc
import os
import re
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, NoReturn, TypeVar

from tpuprof.parsers.base.errors import (
    EXIT_INTERRUPTED,
    EXIT_OK,
    EXIT_UNREADABLE,
    EXIT_USAGE,
    Cancelled,
    ProfileError,
)
from tpuprof.tui.app.options import AppOptions
from tpuprof.tui.cli.common import (
    DEMO,
    PROGRAM,
    add_debug,
    add_look,
    add_mouse,
    add_width,
    decoding_shown,
    existing,
    not_negative,
    note,
    output_file,
    report_look,
    why_no_screen,
)

if TYPE_CHECKING:  # imported by the commands that need them
    from tpuprof.parsers.files.logdir import Logdir, Run
    from tpuprof.parsers.session.session import Session
    from tpuprof.tui.report.output import Produce

Result = TypeVar("Result")
OP_PAGES = ("ops", "op-profile", "framework-ops", "roofline")
MEMORY_PAGES = ("memory", "memory-profile")
PAGES = ("runs", "hosts", "overview", "input", "inference", "timeline", *OP_PAGES, *MEMORY_PAGES)
FORMATS = ("text", "json", "csv", "md")
TIMELINE_FORMATS = (*FORMATS, "perfetto")

_MILLISECONDS = re.compile(r"(?:[0-9]{1,9}(?:\.[0-9]{0,40})?|\.[0-9]{1,40})")
_COMMANDS = ("report", "oom", "diff", "memory", "capture", "doctor")
_MEMORY_TAB = 4
SPACES = ("hbm", "vmem", "smem", "cmem", "sflag", "sparsecore", "host")
"""Memory spaces, `parsers.memory.model.SPACE_NAMES` in lower case."""

_EPILOG = f"""commands:
  {PROGRAM} demo                  look around in the bundled demo profile; reports take it too
  {PROGRAM} oom LOG               find out-of-memory errors in a log (- for standard input): why, and what to do
  {PROGRAM} capture HOST:PORT     ask a running program for a profile, and open it
  {PROGRAM} memory PATH           open the memory tab: of a profile, an HLO proto or an --xla_dump_to folder
  {PROGRAM} report PAGE [PATH]    print a page: {", ".join(PAGES)}
  {PROGRAM} diff A [B]            compare two runs: what changed, and what is noise
  {PROGRAM} doctor [PATH]         print what is installed, what this terminal can do, what PATH holds and lacks

A folder that is named like a command: ./report
"""


def main(argv: list[str] | None = None) -> int:
    """Runs one command.

    Args:
        argv: arguments without the program's name; those of the process when `None`.

    Returns:
        The exit code, one of `tpuprof.parsers.base.errors.EXIT_*`.
    """
    arguments = sys.argv[1:] if argv is None else argv
    try:
        return _run(arguments)
    except SystemExit as stop:  # argparse after --help and --version
        return stop.code if isinstance(stop.code, int) else EXIT_OK
    except BrokenPipeError:
        _drop_stdout()
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


def _run(arguments: Sequence[str]) -> int:
    # Before numpy is imported: its threads would only cost start-up time and memory here.
    for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ.setdefault(name, "1")
    words = [word for word in arguments if word != "--debug"]
    command = words[0] if words else ""
    if command == "report":
        return _report(_report_parser().parse_args(words[1:]))
    if command == "oom":
        from tpuprof.tui.cli.oom import oom_parser, run_oom  # noqa: PLC0415

        return run_oom(oom_parser(_Parser).parse_args(words[1:]))
    if command == "capture":
        from tpuprof.tui.cli.capture import capture_parser, run_capture  # noqa: PLC0415

        return run_capture(capture_parser(_Parser).parse_args(words[1:]))
    if command == "memory":
        return _memory_app(_memory_parser().parse_args(words[1:]))
    if command == "diff":
        from tpuprof.tui.cli.diff import diff_parser, run_diff  # noqa: PLC0415

        return run_diff(diff_parser(_Parser).parse_args(words[1:]))
    if command == "doctor":
        from tpuprof.tui.cli.doctor.command import doctor_parser, run_doctor  # noqa: PLC0415

        return run_doctor(doctor_parser(_Parser).parse_args(words[1:]))
    return _app(_app_parser().parse_args(words))


def _fail(arguments: Sequence[str], sentence: str, hint: str, exit_code: int) -> int:
    """Says what went wrong on standard error, with the traceback where `--debug` asks for it, and without secrets."""
    from tpuprof.parsers.files.remote.urls import masked  # noqa: PLC0415

    if "--debug" in arguments:
        import traceback  # noqa: PLC0415

        sys.stderr.write(masked(traceback.format_exc(), arguments))
    note(masked(sentence, arguments))
    if hint:
        note(f"try: {hint}")
    return exit_code


def _drop_stdout() -> None:
    """Sends what is still buffered nowhere, so that the interpreter does not complain about it at its end."""
    try:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)
    except (OSError, ValueError):  # standard output has no file descriptor
        return


# --- arguments


class _Parser(argparse.ArgumentParser):
    """Raises usage errors in the form of all others."""

    def error(self, message: str) -> NoReturn:
        raise ProfileError("usage", f"{message[:1].upper()}{message[1:]}.", f"{self.prog} --help", EXIT_USAGE)


class _Version(argparse.Action):
    """Looks the version up only when it is asked for."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> NoReturn:
        from tpuprof.tui.cli.doctor.report import DISTRIBUTION, version_of  # noqa: PLC0415 - importlib.metadata is slow
        from tpuprof.tui.report.output import write_stdout  # noqa: PLC0415

        write_stdout(f"{PROGRAM} {version_of(DISTRIBUTION)}\n")
        parser.exit()


def _app_parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog=PROGRAM,
        description="Reads XProf/TensorBoard profiles of TPU programs in the terminal.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    _add_choice_of_profile(parser)
    latest = "open the newest run whenever one comes; wait for one where there is none yet"
    parser.add_argument("--latest", action="store_true", help=latest)
    _add_scheduler(parser)
    add_look(parser)
    add_mouse(parser)
    add_debug(parser)
    parser.add_argument("--version", action=_Version, nargs=0, help="print the version")
    return parser


def _memory_parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog=f"{PROGRAM} memory",
        description="Opens the memory tab. Without a terminal it prints the page.",
        allow_abbrev=False,
    )
    _add_choice_of_profile(parser, "as for profiles; or an HLO proto, or a folder written with --xla_dump_to")
    _add_device(parser)
    add_look(parser)
    add_mouse(parser)
    add_debug(parser)
    return parser


def _report_parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog=f"{PROGRAM} report",
        description="Prints a page to standard output. Times and sizes in JSON and CSV have their unit in the key.",
        allow_abbrev=False,
    )
    parser.add_argument("page", metavar="PAGE", help=", ".join(PAGES))
    _add_choice_of_profile(parser)
    _add_scheduler(parser)
    formats = "default: text; perfetto: Chrome trace JSON of the timeline, compressed where FILE ends in .gz"
    parser.add_argument("--format", choices=TIMELINE_FORMATS, default="text", help=formats)
    rows = "rows of the main table; 0: all (default: all; of the timeline's events the first 10,000)"
    parser.add_argument("--limit", type=not_negative, metavar="N", help=rows)
    parser.add_argument("--output", metavar="FILE", help="write to FILE instead of standard output")
    add_width(parser)
    add_look(parser)
    add_debug(parser)
    facts = "of the page runs: step time, device, modules of each run too; some 10 ms a run"
    parser.add_argument("--facts", action="store_true", help=facts)
    timeline = parser.add_argument_group("timeline", "Its events instead of its tracks:")
    begin = "from this instant on, milliseconds on the trace's clock"
    timeline.add_argument("--from", dest="from_ps", type=_milliseconds, metavar="MS", help=begin)
    timeline.add_argument("--to", dest="to_ps", type=_milliseconds, metavar="MS", help="up to this instant")
    timeline.add_argument("--track", metavar="NAME", help="of tracks with NAME in their section / name")
    memory = parser.add_argument_group("memory", "Which compiled module, and which memory:")
    module = "name, or name(program id) (default: the one with the largest HBM peak)"
    memory.add_argument("--module", metavar="MODULE", help=module)
    _add_device(memory)
    memory.add_argument("--space", choices=SPACES, metavar="SPACE", help=f"{', '.join(SPACES)} (default: hbm)")
    return parser


def _add_device(parser: argparse.ArgumentParser | argparse._ArgumentGroup) -> None:
    device = "the TPU that HLO files are for, such as v5e or v6e; a profile says it itself"
    parser.add_argument("--device", metavar="TPU", type=_device, help=device)


def _device(text: str) -> str:
    """A type of TPU as profiles write it, of ``v5e`` or ``TPU v5e``."""
    from tpuprof.parsers.memory.modules.capacity import generation_of  # noqa: PLC0415

    found = generation_of(text) or generation_of(f"TPU {text}")
    if found is None:
        raise argparse.ArgumentTypeError(f"no memory is known of {text!r}; one of: v2 v3 v4 v5e v5p v6e 7x")
    return found


def _add_choice_of_profile(
    parser: argparse.ArgumentParser, where: str = "logdir, any folder above it, run, file or glob (default: .)"
) -> None:
    parser.add_argument("path", nargs="?", default=".", metavar="PATH", help=where)
    parser.add_argument("--run", metavar="RUN", help="name of a run, or its beginning (default: the newest)")
    parser.add_argument("--host", metavar="HOST", help="one host only (default: all merged; of the timeline the first)")


def _add_scheduler(parser: argparse.ArgumentParser) -> None:
    workers = "read the hosts on the workers of a Dask cluster, host:port; they must see the same paths"
    parser.add_argument("--scheduler", metavar="ADDRESS", help=workers)


def _milliseconds(text: str) -> int:
    """Milliseconds as picoseconds, exactly; what is finer is cut."""
    if not _MILLISECONDS.fullmatch(text):
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of milliseconds from 0 on, such as 12.5")
    whole, _, part = text.partition(".")
    return int(whole or "0") * 10**9 + int(part[:9].ljust(9, "0"))


# --- commands


def _app(args: argparse.Namespace) -> int:
    """Opens the screen; prints the overview where no screen can be drawn."""
    if args.path in _COMMANDS:
        sentence = f"The command {args.path} stands before its options."
        raise ProfileError("usage", sentence, f"{PROGRAM} {args.path} --help", EXIT_USAGE)
    demo = args.path == DEMO
    args.path = existing(args.path)
    if args.latest:
        _wait_for_run(args)
    options = replace(_options(args), demo=demo, latest=args.latest, scheduler=args.scheduler)
    return _screen(args, options, "overview", "the overview")


def _options(args: argparse.Namespace) -> AppOptions:
    """What every command that opens the app asks of it."""
    return AppOptions(ascii=args.ascii, color=args.color, mouse=args.mouse, run=args.run, host=args.host)


def _screen(args: argparse.Namespace, options: AppOptions, page: str, called: str) -> int:
    """Opens the app; prints a page where no screen can be drawn."""
    obstacle = why_no_screen()
    if obstacle:
        note(f"{obstacle} Printing {called} instead of opening the screen.")
        defaults = vars(_report_parser().parse_args([page]))
        return _report(argparse.Namespace(**{**defaults, **vars(args)}))
    from tpuprof.tui.app.start import run_app  # noqa: PLC0415 - Textual, for the screen only

    return run_app(args.path, options=options)


def _wait_for_run(args: argparse.Namespace) -> None:
    """Waits until there is a run to open, and says so."""
    if args.run is not None:
        raise ProfileError("usage", "--latest and --run do not go together.", f"{PROGRAM} --help", EXIT_USAGE)
    from tpuprof.parsers.files.watch import wait_for_run  # noqa: PLC0415

    told: list[float] = []

    def on_wait(seconds: float) -> None:
        if not told:
            note(f"waiting for a run at {args.path}; ctrl+C ends it")
        told.append(seconds)

    wait_for_run(args.path, on_wait=on_wait)


def _memory_app(args: argparse.Namespace) -> int:
    """Opens the memory tab, of a profile or of HLO files; prints the page where no screen can be drawn."""
    from tpuprof.parsers.session.hlo import leads_to_hlo  # noqa: PLC0415

    args.path = existing(args.path)
    only_hlo = leads_to_hlo(args.path)
    options = replace(_options(args), tab=_MEMORY_TAB, only_hlo=only_hlo, device=args.device)
    return _screen(args, options, "memory", "the memory page")


def _report(args: argparse.Namespace) -> int:
    """Prints or writes one page."""
    if args.page not in PAGES:
        raise ProfileError("usage", f"There is no page {args.page}.", f"one of: {', '.join(PAGES)}", EXIT_USAGE)
    _check_timeline_options(args)
    _check_memory_options(args)
    if args.facts and args.page != "runs":
        sentence = f"--facts is for the page runs, not {args.page}."
        raise ProfileError("usage", sentence, f"{PROGRAM} report --help", EXIT_USAGE)
    gc.disable()  # one page and out: nothing that it makes is cyclic, and collecting takes a tenth of a short run
    from tpuprof.parsers.files.logdir import open_logdir  # noqa: PLC0415
    from tpuprof.tui.report.output import check_output, stream_file, stream_stdout, text_pieces  # noqa: PLC0415

    args.path = existing(args.path)
    if args.page in MEMORY_PAGES:
        from tpuprof.parsers.session.hlo import leads_to_hlo, open_hlo, without_allocators  # noqa: PLC0415

        args.only_hlo = leads_to_hlo(args.path)
        if args.only_hlo and args.page != "memory":
            raise without_allocators()
        logdir = open_hlo(args.path) if args.only_hlo else open_logdir(args.path)
    else:
        logdir = open_logdir(args.path)
    file = output_file(args)
    if file is not None:
        check_output(file, logdir)
    if args.page == "timeline":
        produce = _timeline(args, logdir)
    else:
        pages = {"runs": _runs, "overview": _overview, "input": _input, "inference": _inference}
        pages |= {"hosts": _hosts, "memory": _memory, "memory-profile": _memory_profile}
        produce = text_pieces((pages.get(args.page, _ops)(args, logdir),))
    if file is None:
        stream_stdout(produce)
    else:
        stream_file(file, produce, compressed=args.format == "perfetto" and file.lower().endswith(".gz"))
    return EXIT_OK


def _check_timeline_options(args: argparse.Namespace) -> None:
    """Sees, before any work, that the options of the timeline go with the page and with each other."""
    given = [f"--{name}" for name in ("from", "to") if getattr(args, f"{name}_ps") is not None]
    given += ["--track"] if args.track is not None else []
    hint = f"{PROGRAM} report --help"
    if args.page != "timeline":
        if args.format == "perfetto" or given:
            option = "--format perfetto" if args.format == "perfetto" else given[0]
            raise ProfileError("usage", f"{option} is for the page timeline, not {args.page}.", hint, EXIT_USAGE)
        return
    if args.from_ps is not None and args.to_ps is not None and args.from_ps >= args.to_ps:
        raise ProfileError("usage", "The interval is empty: --to must be later than --from.", hint, EXIT_USAGE)
    if args.format != "perfetto":
        return
    if args.track is not None or args.limit:
        option = "--track" if args.track is not None else "--limit"
        sentence = f"{option} does not go with --format perfetto, which is of all events of an interval."
        raise ProfileError("usage", sentence, "--from and --to", EXIT_USAGE)
    if output_file(args) is None and sys.stdout.isatty():
        sentence = "A trace for Perfetto is nothing to read on a terminal."
        raise ProfileError("usage", sentence, "--output trace.json.gz", EXIT_USAGE)


def _check_memory_options(args: argparse.Namespace) -> None:
    """Sees that the options of the memory page go with the page."""
    given = [f"--{name}" for name in ("module", "space", "device") if getattr(args, name) is not None]
    if given and args.page != "memory":
        sentence = f"{given[0]} is for the page memory, not {args.page}."
        raise ProfileError("usage", sentence, f"{PROGRAM} report --help", EXIT_USAGE)


def _runs(args: argparse.Namespace, logdir: Logdir) -> str:
    from tpuprof.tui.report.render import runs_report  # noqa: PLC0415

    if args.host is not None:
        raise ProfileError("usage", "The page runs shows all hosts of a run.", "leave --host out", EXIT_USAGE)
    runs = (logdir.runs if args.run is None else (logdir.find_run(args.run),))[: args.limit or None]
    if args.format == "csv":
        for problem in logdir.problems:
            note(f"note: {problem.sentence}")
    facts = None
    if args.facts:
        from tpuprof.parsers.session.run_facts import run_facts  # noqa: PLC0415 - numpy, which a list of runs does without

        facts = {run.path: run_facts(run) for run in runs}
    return runs_report(logdir, runs, args.format, report_look(args), facts)


def _overview(args: argparse.Namespace, logdir: Logdir) -> str:
    from tpuprof.tui.report.render import overview_report  # noqa: PLC0415

    run = logdir.find_run(args.run)
    page = _with_progress(args, run, lambda session: session.overview(args.host))
    _note_warnings(args, page.warnings)
    return overview_report(page, run, args.format, report_look(args), args.limit or 0)


def _hosts(args: argparse.Namespace, logdir: Logdir) -> str:
    from tpuprof.tui.pages.hosts.report import hosts_report  # noqa: PLC0415

    if args.host is not None:
        raise ProfileError("usage", "The page hosts compares all hosts of a run.", "leave --host out", EXIT_USAGE)
    run = logdir.find_run(args.run)
    page = _with_progress(args, run, lambda session: session.hosts())
    _note_warnings(args, page.warnings)
    return hosts_report(page, run, args.format, report_look(args), args.limit or 0)


def _input(args: argparse.Namespace, logdir: Logdir) -> str:
    from tpuprof.tui.pages.input.report import input_report  # noqa: PLC0415

    run = logdir.find_run(args.run)
    page = _with_progress(args, run, lambda session: session.input_pipeline(args.host))
    _note_warnings(args, page.warnings)
    return input_report(page, run, args.format, report_look(args), args.limit or 0)


def _inference(args: argparse.Namespace, logdir: Logdir) -> str:
    from tpuprof.tui.pages.inference.report import inference_report  # noqa: PLC0415

    run = logdir.find_run(args.run)
    page = _with_progress(args, run, lambda session: session.inference(args.host))
    _note_warnings(args, page.warnings)
    return inference_report(page, run, args.format, report_look(args), args.limit or 0)


def _timeline(args: argparse.Namespace, logdir: Logdir) -> Produce:
    from tpuprof.tui.pages.timeline.report.report import host_notes, perfetto, timeline_report  # noqa: PLC0415
    from tpuprof.tui.pages.timeline.report.rows import Asked  # noqa: PLC0415
    from tpuprof.tui.report.output import text_pieces  # noqa: PLC0415

    run = logdir.find_run(args.run)
    asked = Asked(args.from_ps, args.to_ps, args.track or "")
    timeline = _with_progress(args, run, lambda session: session.timeline(args.host, with_steps=False))
    if args.format == "perfetto":
        for sentence in (*timeline.lost, *timeline.warnings, *host_notes(timeline, run, args.host)):
            note(f"note: {sentence}")
        return perfetto(timeline, asked)
    pieces, warnings = timeline_report(timeline, run, asked, args.format, report_look(args), args.limit, args.host)
    _note_warnings(args, warnings)
    return text_pieces(pieces)


def _memory(args: argparse.Namespace, logdir: Logdir) -> str:
    from tpuprof.parsers.session.hlo import HloSession, unreadable_modules  # noqa: PLC0415
    from tpuprof.tui.pages.memory.report.report import memory_report  # noqa: PLC0415
    from tpuprof.tui.pages.memory.report.rows import asked_space, page_warnings  # noqa: PLC0415

    run = logdir.find_run(args.run)
    if args.only_hlo:
        compiled = HloSession(run, args.device).memory()
    else:
        compiled = _with_progress(args, run, lambda session: session.memory(args.host))
    page = compiled.page()
    if args.only_hlo and page.first is None:
        raise unreadable_modules(page)
    space, problem = asked_space(page, compiled, args.module, args.space)
    _note_warnings(args, (*page_warnings(page, space), *((problem,) if problem else ())))
    return memory_report(page, space, problem, run, args.format, report_look(args), args.limit or 0)


def _memory_profile(args: argparse.Namespace, logdir: Logdir) -> str:
    from tpuprof.tui.pages.memory.report.profile import memory_profile_report  # noqa: PLC0415

    run = logdir.find_run(args.run)
    page, runs = _with_progress(
        args, run, lambda session: (session.memory_profile(args.host), session.module_runs(args.host))
    )
    _note_warnings(args, (*page.warnings, *((page.why_empty,) if page.why_empty else ())))
    return memory_profile_report(page, run, args.format, report_look(args), args.limit, runs)


def _ops(args: argparse.Namespace, logdir: Logdir) -> str:
    from tpuprof.tui.pages.ops.report.render import op_report  # noqa: PLC0415

    run = logdir.find_run(args.run)
    text, warnings = _with_progress(
        args,
        run,
        lambda session: op_report(args.page, session, args.host, run, args.format, report_look(args), args.limit or 0),
    )
    _note_warnings(args, warnings)
    return text


def _note_warnings(args: argparse.Namespace, warnings: Sequence[str]) -> None:
    """Warnings of a CSV report on standard error; the other formats hold them themselves."""
    if args.format == "csv":
        for warning in warnings:
            note(f"note: {warning}")


def _with_progress(args: argparse.Namespace, run: Run, work: Callable[[Session], Result]) -> Result:
    """Does some work on a run, with progress on standard error where that is a terminal."""
    from tpuprof.parsers.session.session import Session  # noqa: PLC0415 - numpy and protobuf

    with decoding_shown() as told:
        return work(Session(run, told, scheduler=args.scheduler))
