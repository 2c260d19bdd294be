"""What is installed, what this terminal can do, what a logdir holds: lines to paste into a bug report."""

from __future__ import annotations

import contextlib
import importlib
import importlib.metadata
import os
import platform
import re
import shutil
import sys
from collections.abc import Mapping, Sequence

from tpuprof.parsers.base.errors import EXIT_OK, ProfileError
from tpuprof.parsers.base.folders import cache_folder, state_folder
from tpuprof.parsers.base.text import counted, printable
from tpuprof.parsers.files.remote.urls import shown
from tpuprof.tui.draw.format import size
from tpuprof.tui.terminal.clipboard import yank_file
from tpuprof.tui.terminal.detect import detect

DISTRIBUTION = "tpuprof-tui"
PACKAGES = ("textual", "rich", "numpy", "protobuf", "grpcio")
EXTRAS = ("fsspec", "aiohttp", "gcsfs", "distributed")
"""Packages without which only URLs, or hosts spread over a cluster, can't be read."""

VARIABLES = ("TERM", "COLORTERM", "COLORFGBG", "NO_COLOR", "LC_ALL", "LC_CTYPE", "LANG", "TMUX", "STY")
_MOST_FILES = 10_000


def doctor_report(env: Mapping[str, str], path: str | None = None, markdown: bool = False) -> tuple[str, int]:
    """What is installed, what the terminal can do, and what a path leads to and lacks.

    Fit to be pasted where others read it: no value of a variable that may be a secret, no address, and
    the home folder as ``~``.

    Args:
        env: such as `os.environ`.
        path: a logdir, or anything that `open_logdir` takes; None leaves that part out.
        markdown: in a fenced block.

    Returns:
        The text, and the exit code: that of the error where the path leads to no profile, else 0.
    """
    sections = [
        ("Installed", _aligned(_installed())),
        ("Decoding core", _aligned(_core())),
        ("Terminal", _aligned(_terminal(env))),
        ("Folders", _aligned(_folders())),
    ]
    exit_code = EXIT_OK
    if path is not None:
        from tpuprof.tui.cli.doctor.logdir import logdir_section  # noqa: PLC0415 - only with a path

        content, exit_code = logdir_section(path, lambda line: without_home(line, env))
        sections.append((f"Logdir {shown(path)}", content))
    text = without_home("\n".join(f"{title}\n{content}" for title, content in sections), env)
    return (fenced(text) if markdown else text), exit_code


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


def version_of(distribution: str) -> str:
    """The installed version of a distribution, read without importing it."""
    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return "not installed"


def _installed() -> list[tuple[str, str]]:
    rows = [(DISTRIBUTION, version_of(DISTRIBUTION))]
    rows.append(("python", f"{platform.python_version()} {platform.python_implementation()}, {sys.executable}"))
    rows += [(name, version_of(name)) for name in (*PACKAGES, *EXTRAS)]
    system = f"{platform.system()} {platform.release()} {platform.machine()}, {os.cpu_count() or '?'} processors"
    return [*rows, ("system", system)]


def _core() -> list[tuple[str, str]]:
    """Which decoding core is in use, and whether the compiled one could be."""
    try:
        from tpuprof.parsers.formats.xspace.core.api import core_name  # noqa: PLC0415 - numpy may be missing

        used: str = core_name()
    except ProfileError as error:
        used = f"none: {error.sentence}"
    except ImportError as error:
        used = f"none: {error}"
    try:
        module = importlib.import_module("tpuprof.parsers.formats.xspace.core._core")
        compiled = f"importable, {module.__file__}"
    except ImportError as error:
        compiled = f"not importable: {error}"
    return [("in use", used), ("compiled", compiled)]


def _terminal(env: Mapping[str, str]) -> list[tuple[str, str]]:
    is_tty = sys.stdin.isatty() and sys.stdout.isatty()
    terminal = detect(env, is_tty=is_tty)
    columns, rows = shutil.get_terminal_size((0, 0))
    # What the variables of a session say beyond being set is nobody's business: this text is for pasting.
    told = [
        (name, "set" if env.get(name) and name in ("TMUX", "STY") else repr(env[name]) if name in env else "unset")
        for name in VARIABLES
    ]
    return [
        *told,
        ("SSH", "yes" if terminal.remote else "no"),
        ("size", f"{columns}x{rows}" if columns and rows else "unknown"),
        ("screen", terminal.obstacle or "can be drawn"),
        ("colours", terminal.color),
        ("characters", "UTF-8" if terminal.unicode else "ASCII"),
        ("mouse", "on" if terminal.mouse else "off"),
        ("inside", terminal.multiplexer or "no multiplexer"),
        ("clipboard", _clipboard(env)),
    ]


def _clipboard(env: Mapping[str, str]) -> str:
    """Where a copied name goes."""
    tmux = "tmux's buffer, " if env.get("TMUX") else ""
    return f"{tmux}the terminal (OSC 52), {yank_file()}"


def _folders() -> list[tuple[str, str]]:
    """What this program keeps where, and how much of it there is."""
    rows = [("cache", cache_folder()), ("state", state_folder())]
    return [(name, f"{folder}, {_folder_size(folder)}") for name, folder in rows]


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


def _aligned(rows: Sequence[tuple[str, str]]) -> str:
    return "".join(f"  {name:<12} {printable(value)}\n" for name, value in rows)
