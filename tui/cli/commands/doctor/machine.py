"""What is installed here, what the terminal can do, and what the program keeps of its own."""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import platform
import shutil
import sys
import tempfile
from collections.abc import Mapping, Sequence

from tpuprof.parsers.base.errors import EXIT_OK, ProfileError
from tpuprof.parsers.base.folders import cache_folder, content_below, state_folder
from tpuprof.parsers.base.text import counted
from tpuprof.parsers.files.archives import BOUND_BYTES
from tpuprof.parsers.files.remote.cache import BOUND_VARIABLE, cache_bound
from tpuprof.parsers.hosts.cache import BOUND
from tpuprof.parsers.hosts.plan import JOBS_VARIABLE, WORKERS_VARIABLE, available_cores
from tpuprof.tui.cli.arguments.options import PROGRAM
from tpuprof.tui.cli.commands.doctor.parts import DoctorLine, DoctorSection
from tpuprof.tui.cli.common import on_terminal, version_of, with_own_pip
from tpuprof.tui.draw.format import size
from tpuprof.tui.terminal.clipboard import YANK_FILE
from tpuprof.tui.terminal.detect import CACHE_VARIABLE, THEME_VARIABLE, Config, detect

PACKAGES = ("textual", "rich", "numpy", "protobuf", "grpcio", "brotli")  # what every installation has
EXTRAS = {
    "remote": (("fsspec", "aiohttp"), "profiles on web servers and in buckets"),
    "gcs": (("gcsfs",), "buckets of Google Cloud (gs://)"),
    "frames": (("pandas", "polars", "pyarrow"), "data frames of the Python API"),
    "parquet": (("pyarrow",), "Parquet files (--format parquet)"),
    "mcp": (("mcp",), "a server for agents (tpuprof-tui mcp)"),
}
"""Names of extras: the packages that each brings, and what it is for."""

_OTHERS = {"s3fs": (("s3fs",), "buckets of Amazon (s3://)"), "adlfs": (("adlfs",), "buckets of Azure (abfs://)")}
"""Drivers of fsspec that no extra brings."""

_VARIABLES = ("TERM", "COLORTERM", "COLORFGBG", "NO_COLOR", "LC_ALL", "LC_CTYPE", "LANG", "TMUX", "STY")
_SESSIONS = ("TMUX", "STY")  # what these say beyond being set is nobody's business
_OWN_VARIABLES = (THEME_VARIABLE, CACHE_VARIABLE, BOUND_VARIABLE, JOBS_VARIABLE, WORKERS_VARIABLE)
_MISSING = "not installed"
_LEAST_SIZE = (60, 15)
_MOST_FILES = 10_000


def program(env: Mapping[str, str], problem: ProfileError | None) -> DoctorSection:
    """Python, the system, its processors, the decoding core, the packages and this program's variables.

    Args:
        problem: what is wrong with one of the variables.
    """
    python = f"{platform.python_version()} {platform.python_implementation()}, {sys.executable}"
    system, all_cores, cores = platform.uname(), os.cpu_count(), available_cores()
    usable = f"{cores:,}" if cores == all_cores else f"{cores:,} of {all_cores or '?'} may be used"
    versions = _versions(PACKAGES)
    missing = [name for name, version in versions.items() if version is None]
    rows = [
        DoctorLine("python", python),
        DoctorLine("system", f"{system.system} {system.release} {system.machine}"),
        DoctorLine("processors", usable),
        core()[0],
        DoctorLine("packages", " ".join(f"{name}=={version}" for name, version in versions.items() if version)),
    ]
    if missing:
        rows.append(DoctorLine("not installed", ", ".join(missing), True))
    own = {name: env[name] for name in _OWN_VARIABLES if name in env}
    if own:
        rows.append(DoctorLine("variables", ", ".join(f"{name}={value!r}" for name, value in own.items())))
    if problem is not None:
        rows += [DoctorLine("problem", problem.sentence, True), DoctorLine("try", problem.hint)]
    return DoctorSection("program", "Program", rows, exit_code=EXIT_OK if problem is None else problem.exit_code)


def _versions(packages: Sequence[str]) -> dict[str, str | None]:
    """The versions of packages, None for one that is not installed."""
    versions = {name: version_of(name) for name in packages}
    return {name: None if version == _MISSING else version for name, version in versions.items()}


def version_json() -> str:
    """The version as one JSON object, with what it runs on: the short form of what a doctor says."""
    told = {
        "schema": "tpuprof.version/1",
        "version": version_of(PROGRAM),
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}",
        "decoding_core": core()[1],
        "packages": {name: version_of(name) for name in PACKAGES},
    }
    return json.dumps(told, indent=1) + "\n"


def core() -> tuple[DoctorLine, str | None]:
    """What decodes, and why not the compiled core; and its name, None where nothing can."""
    used = reason = None
    try:
        from tpuprof.parsers.formats.xspace.core.api import core_name  # noqa: PLC0415 - numpy may be missing

        used = core_name()
        importlib.import_module("tpuprof.parsers.formats.xspace.core._core")
    except ImportError as error:
        reason = str(error)
    if used == "c":
        return DoctorLine("decoding core", "compiled"), used
    if used is None:
        return DoctorLine("decoding core", f"none: {reason}", True), used
    why = reason or "the compiled one is older than this program"
    return DoctorLine("decoding core", f"Python, some 50 times slower than the compiled one: {why}", True), used


def extras() -> DoctorSection:
    """What may be installed beside it, and what it is for."""
    rows = []
    for name, (packages, what) in {**EXTRAS, **_OTHERS}.items():
        versions = _versions(packages)
        if None not in versions.values():
            there = ", ".join(f"{package} {version}" for package, version in versions.items())
            rows.append(DoctorLine(name, f"{there}: {what}"))
        elif name in EXTRAS:
            command = with_own_pip(f"pip install '{PROGRAM}[{name}]'")
            rows.append(DoctorLine(name, f"not installed: {what}; {command}"))
    return DoctorSection("extras", "Extras", rows)


def terminal(env: Mapping[str, str]) -> DoctorSection:
    """What can be drawn, and where a copied name goes."""
    is_terminal = on_terminal()
    found = detect(env, is_tty=is_terminal)
    columns, lines = shutil.get_terminal_size((0, 0)) if is_terminal else (0, 0)
    is_small = bool(columns and lines) and (columns < _LEAST_SIZE[0] or lines < _LEAST_SIZE[1])
    least = f", too small: the screen needs {_LEAST_SIZE[0]}x{_LEAST_SIZE[1]}" if is_small else ""
    seen = f"{columns}x{lines}{least}" if columns and lines else "size unknown"
    given = {name: env[name] for name in _VARIABLES if name in env}
    shown = {name: "set" if value and name in _SESSIONS else repr(value) for name, value in given.items()}
    yanked = os.path.join(state_folder(), YANK_FILE)
    clipboard = [*(["tmux's buffer"] if env.get("TMUX") else []), "the terminal (OSC 52)", yanked]
    place = found.multiplexer or "no multiplexer"
    why_off = "SSH" if found.remote else "GNU screen, where Esc waits for the next key with it"
    rows = [
        DoctorLine(
            "screen",
            f"{found.obstacle} Reports are printed instead." if found.obstacle else f"can be drawn, {seen}",
            is_small or (is_terminal and bool(found.obstacle)),
        ),
        DoctorLine("colours", f"{_COLOURS[found.color]}, {_GROUNDS[found.light]}"),
        DoctorLine("characters", "UTF-8" if found.unicode else f"ASCII: {_why_ascii(env)}"),
        DoctorLine("mouse", "on" if found.mouse else f"off, since this is {why_off}; --mouse turns it on"),
        DoctorLine("inside", f"{place}, over SSH" if found.remote else place),
        DoctorLine("clipboard", ", ".join(clipboard)),
        DoctorLine("variables", ", ".join(f"{name}={value}" for name, value in shown.items()) or "none is set"),
    ]
    return DoctorSection("terminal", "Terminal", rows)


_GROUNDS = {True: "on a light background", False: "on a dark background", None: "on the terminal's background"}
_COLOURS = {"truecolor": "16 million", "256": "256", "16": "16", "mono": "none: only bold and reverse"}


def _why_ascii(env: Mapping[str, str]) -> str:
    locale = env.get("LC_ALL") or env.get("LC_CTYPE") or env.get("LANG")
    if env.get("TERM") == "linux":
        return "the Linux console has few characters"
    return f"the locale {locale!r} is not UTF-8; try LANG=C.UTF-8" if locale else "no locale is set; try LANG=C.UTF-8"


# --- what it keeps


def folders(config: Config) -> DoctorSection:
    """What is kept of profiles and of what was copied: where, how much, how much at most, and whether it can be."""
    folder = cache_folder()
    trouble, free = _trouble(folder)
    kept, copies, unpacked = (
        content_below(os.path.join(folder, name), _MOST_FILES) for name in ("hosts", "remote", "archives")
    )
    bound = (BOUND if config.cache_bytes is None else config.cache_bytes) if config.cache else 0
    limit = f"at most {size(bound)}" if bound else f"off, by {CACHE_VARIABLE}"
    exit_code = EXIT_OK
    try:
        copies_row = DoctorLine("remote copies", f"{_words(*copies)}; at most {size(cache_bound())}")
    except ProfileError as error:
        copies_row, exit_code = DoctorLine("remote copies", error.sentence, True), error.exit_code
    state = f"can't be written: {trouble}" if trouble else "can be written"
    room = "" if free is None else f", {size(free)} free"
    rows = [
        DoctorLine("folder", f"{folder}, {state}{room}", bool(trouble)),
        DoctorLine("summaries", f"{_words(*kept)}; {limit}"),
        copies_row,
        DoctorLine("archives", f"{_words(*unpacked)}; at most {size(BOUND_BYTES)}"),
        DoctorLine("state", f"{state_folder()}, {_words(*content_below(state_folder(), _MOST_FILES))}"),
    ]
    return DoctorSection("cache", "Cache", rows, exit_code=exit_code)


def _trouble(folder: str) -> tuple[str, int | None]:
    """Why nothing can be written there, empty where something can; and the bytes that are free.

    A folder that is not there yet is made in the nearest one that is.
    """
    if not os.path.isabs(folder):
        return "there is no home folder", None
    while not os.path.lexists(folder):
        folder = os.path.dirname(folder)
    free = None
    with contextlib.suppress(OSError):
        free = shutil.disk_usage(folder).free
    try:
        with tempfile.TemporaryFile(dir=folder) as file:
            file.write(b"tpuprof")
    except OSError as error:
        return (error.strerror or str(error)).lower(), free
    return "", free


def _words(total: int, count: int) -> str:
    if count > _MOST_FILES:
        return f"more than {size(total)} in {_MOST_FILES:,} files"
    return f"{size(total)} in {counted(count, 'file')}" if count else "nothing"
