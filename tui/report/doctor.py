"""What is installed and what this terminal can do, as lines to paste into a bug report."""

from __future__ import annotations

import importlib
import importlib.metadata
import os
import platform
import shutil
import sys
from collections.abc import Mapping, Sequence

from tpuprof.parsers.errors import ProfileError
from tpuprof.parsers.text import printable
from tpuprof.tui.terminal import detect

DISTRIBUTION = "tpuprof-tui"
PACKAGES = ("textual", "rich", "numpy", "protobuf", "grpcio")
VARIABLES = ("TERM", "COLORTERM", "COLORFGBG", "NO_COLOR", "LC_ALL", "LC_CTYPE", "LANG", "TMUX", "STY")
_SSH = ("SSH_CONNECTION", "SSH_TTY", "SSH_CLIENT")


def doctor_text(env: Mapping[str, str]) -> str:
    """The whole report."""
    sections = (("Installed", _installed()), ("Decoding core", _core()), ("Terminal", _terminal(env)))
    return "\n".join(f"{title}\n{_aligned(rows)}" for title, rows in sections)


def version_of(distribution: str) -> str:
    """The installed version of a distribution, read without importing it."""
    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return "not installed"


def _installed() -> list[tuple[str, str]]:
    rows = [(DISTRIBUTION, version_of(DISTRIBUTION))]
    rows.append(("python", f"{platform.python_version()} {platform.python_implementation()}, {sys.executable}"))
    rows += [(name, version_of(name)) for name in PACKAGES]
    system = f"{platform.system()} {platform.release()} {platform.machine()}, {os.cpu_count() or '?'} processors"
    return [*rows, ("system", system)]


def _core() -> list[tuple[str, str]]:
    """Which decoding core is in use, and whether the compiled one could be."""
    try:
        from tpuprof.parsers.xspace.core import core_name  # noqa: PLC0415 - numpy may be missing

        used: str = core_name()
    except ProfileError as error:
        used = f"none: {error.sentence}"
    except ImportError as error:
        used = f"none: {error}"
    try:
        module = importlib.import_module("tpuprof.parsers.xspace._core")
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
        ("SSH", "yes" if any(env.get(name) for name in _SSH) else "no"),
        ("size", f"{columns}x{rows}" if columns and rows else "unknown"),
        ("screen", terminal.obstacle or "can be drawn"),
        ("colours", terminal.color),
        ("characters", "UTF-8" if terminal.unicode else "ASCII"),
        ("mouse", "on" if terminal.mouse else "off"),
    ]


def _aligned(rows: Sequence[tuple[str, str]]) -> str:
    return "".join(f"  {name:<12} {printable(value)}\n" for name, value in rows)
