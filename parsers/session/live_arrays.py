"""Device memory profiles as what a path leads to, alone or beside a profile."""

from __future__ import annotations

import itertools
import os

from tpuprof.parsers.base.errors import EXIT_NOT_FOUND, ProfileError
from tpuprof.parsers.base.folders import listed
from tpuprof.parsers.base.text import PATHS, counted, printable
from tpuprof.parsers.files.folder_search import is_pprof_name, is_profile, names_in
from tpuprof.parsers.files.logdir import Logdir, Run, local_path
from tpuprof.parsers.files.places import inside

_MOST_NAMES = 10_000

HINT = "jax.profiler.save_device_memory_profile('memory.prof') writes one; name the file, or the folder that it is in"


def leads_to_arrays(path: str) -> str | None:
    """The device memory profile that a path leads to, and to no other profile; None where it leads elsewhere.

    That is a file of any name, or a folder without subfolders and profiles of another kind: the newest file there; of
    an archive what is in it.
    """
    where = inside(local_path(path))
    path = where if where != local_path(path) else path
    if not os.path.isdir(where):
        return None if is_profile(os.path.basename(where)) or not _is_pprof(path) else path
    try:
        with listed(where) as entries:
            there = [(entry.name, entry.is_dir()) for entry in itertools.islice(entries, _MOST_NAMES)]
    except OSError:
        return None
    others = any(is_profile(name) or is_folder for name, is_folder in there)
    return None if others else next(iter(_pprofs_in(where)), None)


def _is_pprof(path: str) -> bool:
    from tpuprof.parsers.formats.pprof.files import is_pprof  # noqa: PLC0415 - numpy, for what is no profile by name

    return is_pprof(path)


def _pprofs_in(folder: str) -> list[str]:
    """Device memory profiles in a folder, the newest first; it costs nothing to speak of where no name is like one."""
    names = [name for name in names_in(folder, _MOST_NAMES) if is_pprof_name(name)]
    paths = [path for path in (os.path.join(folder, name) for name in names) if _is_pprof(path)]
    return sorted(paths, key=lambda path: -os.path.getmtime(path))


def sibling_arrays(run_path: str) -> list[str]:
    """Device memory profiles in a run's folder and in its logdir, the newest of each first.

    Args:
        run_path: the run's folder, or its one file.
    """
    folder = os.path.abspath(run_path) if os.path.isdir(run_path) else os.path.dirname(os.path.abspath(run_path))
    above = folder.split(os.sep)[-3:-1] == ["plugins", "profile"]
    logdir = os.path.join(folder, *[os.pardir] * 3)
    return [os.path.normpath(path) for each in (folder, *([logdir] if above else [])) for path in _pprofs_in(each)]


def _led_to(path: str) -> list[str]:
    where = local_path(path)
    if not os.path.isdir(where) and not is_profile(os.path.basename(where)):
        return [path]
    if found := sibling_arrays(where):
        return found
    place = "in" if os.path.isdir(where) else "beside"
    sentence = f"There is no device memory profile (*.prof) {place} {printable(path)}."
    raise ProfileError("not_found", sentence, HINT, EXIT_NOT_FOUND)


def open_arrays(path: str) -> Logdir:
    """What a path leads to, as a run without hosts: a device memory profile, or the newest one there.

    Raises:
        ProfileError: `not_found`, exit code 3, where there is none.
    """
    found = [file for each in path.split(PATHS) for file in _led_to(each)]
    run = Run(os.path.basename(found[0].rstrip("/")), found[0], (), ())
    left_out = f"; left out {counted(len(found) - 1, 'other')}" if len(found) > 1 else ""
    return Logdir(path, (run,), (f"device memory profile {printable(found[0])}{left_out}",), ())


def no_page_of_arrays(path: str, page: str) -> ProfileError:
    """For a page that a device memory profile does not have."""
    sentence = f"{printable(path)} is a device memory profile: it has the page live-arrays, not {page}."
    return ProfileError("only_arrays", sentence, f"tpuprof-tui report live-arrays {printable(path)}", EXIT_NOT_FOUND)
