"""``tpuprof-tui doctor [PATH]``: what is installed, what the terminal can do, what a logdir holds and lacks."""

from __future__ import annotations

import argparse
import contextlib
import importlib
import os
import platform
import re
import shutil
import sys
import textwrap
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from tpuprof.parsers.base.errors import EXIT_OK, ProfileError
from tpuprof.parsers.base.folders import cache_folder, state_folder
from tpuprof.parsers.base.text import counted, printable
from tpuprof.parsers.base.urls import shown
from tpuprof.parsers.files.folder_search import files_beside
from tpuprof.parsers.files.logdir import Run, local_path, open_logdir
from tpuprof.parsers.files.recognise import may_be_hlo
from tpuprof.parsers.session.live_arrays import leads_to_arrays
from tpuprof.tui.app.config import read_config
from tpuprof.tui.cli.common import PROGRAM, add_debug, new_parser, on_terminal, version_of
from tpuprof.tui.draw.buffers.sizes import binary_size
from tpuprof.tui.draw.format import duration, size, utc
from tpuprof.tui.report.output import write_stdout
from tpuprof.tui.terminal.clipboard import yank_file
from tpuprof.tui.terminal.detect import detect

if TYPE_CHECKING:
    from tpuprof.parsers.session.run_facts import RunFacts

PACKAGES = ("textual", "rich", "numpy", "protobuf", "grpcio", "brotli")
EXTRAS = ("fsspec", "aiohttp", "gcsfs", "distributed", "backports.zstd", "cramjam")
"""Packages without which only URLs, or hosts spread over a cluster, can't be read."""

VARIABLES = ("TERM", "COLORTERM", "COLORFGBG", "NO_COLOR", "LC_ALL", "LC_CTYPE", "LANG", "TMUX", "STY")
_MOST_FILES = 10_000

MOST_RUNS = 10
"""Runs that are described; the others are counted."""

MOST_PROBLEMS = 5
WIDTH = 110

_MARKING = "jax.profiler.StepTraceAnnotation around each step marks them"
_TRACING = {
    "annotations": "on (annotations and the runtime's own; level 1 or more), Python tracer off",
    "python": "on, with Python calls",
}

Row = tuple[str, str]


def doctor_parser(parser_class: type[argparse.ArgumentParser] = argparse.ArgumentParser) -> argparse.ArgumentParser:
    """The command's options."""
    what = "Prints what is installed, what this terminal can do, and what the profiles at PATH hold and lack."
    parser = new_parser(parser_class, "doctor", what)
    parser.epilog = "The text is for pasting: it shows no secrets, no machine's address, and the home folder as ~."
    parser.add_argument("path", metavar="PATH", nargs="?", help="a logdir, a run or a profile")
    parser.add_argument("--md", action="store_true", help="as a fenced block of Markdown, for an issue")
    add_debug(parser)
    return parser


def run_doctor(args: argparse.Namespace) -> int:
    """Runs the command.

    Returns:
        0; 2 where something is wrong with the config file, 3 or 4 where PATH leads to no profile; after the report.
    """
    text, exit_code = doctor_report(os.environ, args.path, args.md)
    write_stdout(text)
    return exit_code


def doctor_report(env: Mapping[str, str], path: str | None = None, markdown: bool = False) -> tuple[str, int]:
    """What is installed, what the terminal can do, and what a path leads to and lacks.

    Fit to be pasted where others read it: no value of a variable that may be a secret, no address, and
    the home folder as ``~``.

    Args:
        path: a logdir, or anything that `open_logdir` takes; None leaves that part out.
        markdown: in a fenced block.

    Returns:
        The text, and the exit code: that of the error where the path leads to no profile or the file is wrong, else 0.
    """
    folders = [("cache", cache_folder()), ("state", state_folder())]
    sections = [
        ("Installed", _aligned(_installed())),
        ("Decoding core", _aligned(_core())),
        ("Terminal", _aligned(_terminal(env))),
        ("Folders", _aligned([(name, f"{folder}, {_folder_size(folder)}") for name, folder in folders])),
    ]
    settings, exit_code = _settings(env)
    sections.append(("Config file", _laid_out(settings, 2, lambda line: without_home(line, env))))
    if path is not None:
        content, code = logdir_section(path, lambda line: without_home(line, env))
        exit_code = code or exit_code
        sections.append((f"Logdir {shown(path)}", content))
    text = without_home("\n".join(f"{title}\n{content}" for title, content in sections), env)
    return (fenced(text) if markdown else text), exit_code


def _settings(env: Mapping[str, str]) -> tuple[list[Row], int]:
    """The user's file and what it sets, or what is wrong with it and the exit code of that."""
    try:
        config = read_config(env)
    except ProfileError as error:
        return [("problem", error.sentence), ("try", error.hint)], error.exit_code
    if not config.is_there:
        return [("file", f"{config.path or 'no home folder'}, not there")], EXIT_OK
    return [("file", config.path), *(config.told or [("sets", "nothing")])], EXIT_OK


def without_home(text: str, env: Mapping[str, str]) -> str:
    """The text with ``~`` for the home folder, whose name is often that of its owner."""
    home = env.get("HOME", "").rstrip("/")
    folders = {home, os.path.realpath(home)} if home else set()
    for folder in sorted((folder for folder in folders if folder.count("/") > 0 and folder != "/"), reverse=True):
        text = re.sub(re.escape(printable(folder)) + r"(?![\w.-])", "~", text)
    return text


def fenced(text: str) -> str:
    """The text as a block of Markdown, behind a fence that is longer than any within."""
    longest = max((len(run) for run in re.findall("`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}text\n{text}{fence}\n"


def _installed() -> list[Row]:
    python = f"{platform.python_version()} {platform.python_implementation()}, {sys.executable}"
    system = f"{platform.system()} {platform.release()} {platform.machine()}, {os.cpu_count() or '?'} processors"
    packages = [(name, version_of(name)) for name in (*PACKAGES, *EXTRAS)]
    return [(PROGRAM, version_of(PROGRAM)), ("python", python), *packages, ("system", system)]


def _core() -> list[Row]:
    """Which decoding core is in use, and whether the compiled one could be."""
    try:
        from tpuprof.parsers.formats.xspace.core.api import core_name  # noqa: PLC0415 - numpy may be missing

        used: str = core_name()
    except (ProfileError, ImportError) as error:
        used = f"none: {error}"
    try:
        module = importlib.import_module("tpuprof.parsers.formats.xspace.core._core")
        compiled = f"importable, {module.__file__}"
    except ImportError as error:
        compiled = f"not importable: {error}"
    return [("in use", used), ("compiled", compiled)]


def _terminal(env: Mapping[str, str]) -> list[Row]:
    terminal = detect(env, is_tty=on_terminal())
    columns, rows = shutil.get_terminal_size((0, 0))
    tmux = "tmux's buffer, " if env.get("TMUX") else ""
    # What the variables of a session say beyond being set is nobody's business: this text is for pasting.
    return [
        *(
            (name, "set" if env.get(name) and name in ("TMUX", "STY") else repr(env[name]) if name in env else "unset")
            for name in VARIABLES
        ),
        ("SSH", "yes" if terminal.remote else "no"),
        ("size", f"{columns}x{rows}" if columns and rows else "unknown"),
        ("screen", terminal.obstacle or "can be drawn"),
        ("colours", terminal.color),
        ("characters", "UTF-8" if terminal.unicode else "ASCII"),
        ("mouse", "on" if terminal.mouse else "off"),
        ("inside", terminal.multiplexer or "no multiplexer"),
        ("clipboard", f"{tmux}the terminal (OSC 52), {yank_file()}"),
    ]


def _folder_size(folder: str) -> str:
    """How much is in a folder, as far as `_MOST_FILES` files tell."""
    total = count = 0
    for parent, _, names in os.walk(folder):
        for name in names:
            with contextlib.suppress(OSError):
                total += os.lstat(os.path.join(parent, name)).st_size
            count += 1
            if count >= _MOST_FILES:
                return f"more than {size(total)} in {count:,} files"
    if not count:
        return "empty" if os.path.isdir(folder) else "not there"
    return f"{size(total)} in {counted(count, 'file')}"


def _aligned(rows: Sequence[Row]) -> str:
    return "".join(f"  {name:<12} {printable(value)}\n" for name, value in rows)


# --- the logdir


def logdir_section(path: str, shorten: Callable[[str], str] = lambda line: line) -> tuple[str, int]:
    """What a path leads to, as lines, and the exit code of the error where that is no profile.

    Args:
        shorten: goes over each text before it is wrapped.
    """
    try:
        if (arrays := leads_to_arrays(path)) is not None:
            return _laid_out(_arrays(arrays), 2, shorten), EXIT_OK
        logdir = open_logdir(path)
    except ProfileError as error:
        if (modules := _modules(path)) is not None:
            return _laid_out(modules, 2, shorten), EXIT_OK
        rows = [("nothing", error.sentence), *([("try", error.hint)] if error.hint else [])]
        return _laid_out(rows, 2, shorten), error.exit_code
    total = sum(run.size_bytes for run in logdir.runs)
    files = sum(len(run.hosts) for run in logdir.runs)
    unreadable = sum(not run.hosts for run in logdir.runs)
    none = f"; {counted(unreadable, 'run')} without anything readable" if unreadable else ""
    rows = [("holds", f"{counted(len(logdir.runs), 'run')}, {counted(files, 'profile')}, {size(total)}{none}")]
    rows += [("searched", line) for line in logdir.searched]
    rows += [("problem", problem.sentence) for problem in logdir.problems]
    lines = _laid_out(rows, 2, shorten)
    for run in logdir.runs[:MOST_RUNS]:
        lines += f"\n  {printable(run.name)}\n" + _laid_out(_described(run), 4, shorten)
    if len(logdir.runs) > MOST_RUNS:
        lines += f"\n  and {counted(len(logdir.runs) - MOST_RUNS, 'older run')}\n"
    return lines, EXIT_OK


def _arrays(path: str) -> list[Row]:
    """What a device memory profile holds.

    Raises:
        ProfileError: it can't be read, or is a pprof profile of something else.
    """
    from tpuprof.parsers.memory.live_arrays import read_live_arrays  # noqa: PLC0415 - numpy may be missing

    page = read_live_arrays(path)
    buffers, executables = page.buffers, page.executables
    rows = [
        ("holds", f"a device memory profile, {printable(page.name)}: what was alive when it was written"),
        ("buffers", f"{buffers.count:,} of arrays, {binary_size(buffers.size_bytes)}"),
        ("executables", f"{executables.count:,}, {binary_size(executables.size_bytes)}"),
    ]
    rows += [("device", f"{one.device}: {binary_size(one.total.size_bytes)}") for one in page.devices[:MOST_RUNS]]
    if len(page.devices) > MOST_RUNS:
        rows.append(("device", f"and {len(page.devices) - MOST_RUNS:,} more"))
    return [*rows, *(("problem", text) for text in page.warnings), ("try", f"{PROGRAM} {printable(path)}")]


def _modules(path: str) -> list[Row] | None:
    """What a dump of XLA, or a file of it, holds; None where the path leads to something else."""
    if not may_be_hlo(local_path(path)):
        return None
    try:
        from tpuprof.parsers.memory.model import space_name  # noqa: PLC0415 - numpy may be missing
        from tpuprof.parsers.session.hlo import HloSession, leads_to_hlo, open_hlo  # noqa: PLC0415

        if not leads_to_hlo(path):
            return None
        logdir = open_hlo(path)
    except (ImportError, ProfileError):
        return None
    page = HloSession(logdir.find_run()).memory().page()
    readable = sum(module.problem is None for module in page.modules)
    rows = [("holds", f"an XLA dump: {counted(len(page.modules), 'compiled module')}, {readable:,} with its buffers")]
    for module in page.modules[:MOST_RUNS]:
        peaks = ", ".join(f"{space_name(space)} {binary_size(peak)}" for space, peak in module.peaks.items())
        rows.append(("module", f"{module.module}: {module.problem or f'peak {peaks}'}"))
    if len(page.modules) > MOST_RUNS:
        rows.append(("modules", f"and {len(page.modules) - MOST_RUNS:,} more"))
    rows += [("note", text) for text in page.warnings]
    return [*rows, ("lacks", "times of anything: a dump is no profile"), ("try", f"{PROGRAM} {printable(path)}")]


def _described(run: Run) -> list[Row]:
    """What a run holds, what it lacks, and what is wrong with it."""
    hosts = counted(len(run.hosts), "host") if run.hosts else "none that can be read"
    rows = [("hosts", f"{hosts}, {size(run.size_bytes)}"), ("written", utc(run.modified) or "unknown")]
    try:
        from tpuprof.parsers.session.run_facts import run_facts  # noqa: PLC0415 - numpy may be missing

        facts = run_facts(run)
    except (ImportError, ProfileError) as error:  # the very thing that a doctor is called for
        return [*rows, ("content", f"not looked at: {error}")]
    if run.hosts and facts.host is not None:
        rows += _content(facts, len(run.hosts))
    elif run.hosts:
        rows.append(("content", f"unknown: {facts.unknown['device_type']}"))
    for files in files_beside(run.path):
        rows.append(("beside", f"{files.kind}: {files.count:,}, such as {files.example}"))
    rows += [("lacks", line) for line in (lacking(facts) if facts.host is not None else ())]
    problems = [*run.problems, *facts.problems]
    rows += [("problem", problem.sentence) for problem in problems[:MOST_PROBLEMS]]
    if len(problems) > MOST_PROBLEMS:
        rows.append(("problem", f"and {len(problems) - MOST_PROBLEMS:,} more"))
    return rows


def _content(facts: RunFacts, hosts: int) -> list[Row]:
    kind = facts.device_type or "unknown type"
    cores = counted(facts.core_count or 0, "GPU" if "GPU" in kind else "core")
    device = f"{kind}, {cores} on {'the first of the hosts' if hosts > 1 else 'the host'}"
    rows = [("device", "none" if facts.core_count == 0 else device)]
    if facts.step_time_ps is not None:
        what = "marked" if facts.step_source == "steps" else "from the periods of a module"
        steps = counted(facts.step_count or 0, "step")
        rows.append(("steps", f"{duration(facts.step_time_ps, True)}, median of {steps}, {what}"))
    if facts.modules:
        more = (facts.module_count or 0) - len(facts.modules)
        rows.append(("modules", ", ".join(facts.modules) + (f" and {more:,} more" if more else "")))
    if facts.duration_ps is not None:
        rows.append(("profiled", duration(facts.duration_ps, True)))
    if facts.has_hlo:
        rows.append(("HLO", "compiled modules are in the profile"))
    if facts.host_tracing in _TRACING:
        rows.append(("host tracer", _TRACING[facts.host_tracing]))
    if facts.simulated:
        rows.append(("times", "SIMULATED, as the profile says of itself"))
    return rows


def lacking(facts: RunFacts) -> list[str]:
    """What a profile does not hold, what that costs, and how to have it the next time."""
    lines = []
    if facts.core_count == 0:
        lines.append(
            "device events: no op, step or utilization can be told; did the program run on a device meanwhile?"
        )
    elif facts.step_time_ps is None:
        lines.append(f"steps ({facts.unknown.get('step_time_ps', 'unknown')}): {_MARKING}")
    elif facts.step_source == "modules":
        lines.append(f"step markers: step time is inferred; {_MARKING}")
    if facts.has_hlo is False:
        lines.append("compiled HLO: no memory page, and no sources of ops; --xla_dump_to saves the modules themselves")
    if facts.host_tracing == "off":
        lines.append("host events: what a step waits for on the host stays unknown; host_tracer_level was 0")
    if facts.duration_ps is None:
        lines.append("start and stop of the capture: older profilers record none")
    return lines


def _laid_out(rows: Sequence[Row], indent: int, shorten: Callable[[str], str]) -> str:
    """A row a line, wrapped behind its name."""
    lead = indent + 13
    text = ""
    for name, value in rows:
        pieces = textwrap.wrap(shorten(printable(value)), WIDTH - lead, break_on_hyphens=False)
        text += f"{' ' * indent}{name:<12} " + f"\n{' ' * lead}".join(pieces) + "\n"
    return text
