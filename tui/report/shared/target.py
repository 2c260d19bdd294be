"""Which file a report may be written to: never one of the user's profiles, and none beside them."""

from __future__ import annotations

import contextlib
import itertools
import os
import stat
from collections.abc import Iterable
from itertools import pairwise

from tpuprof.parsers.base.errors import EXIT_USAGE, ProfileError
from tpuprof.parsers.base.text import printable
from tpuprof.parsers.files.folder_search import is_pprof_name, is_profile
from tpuprof.parsers.files.logdir import Logdir, local_path


def check_output(path: str, logdir: Logdir, inputs: Iterable[str | int] = ()) -> None:
    """Sees, before any work, that `path` may be written: it is nothing that is read, and lies in no folder of a run.

    Such is ``plugins/profile`` with all below it, and each folder that the report's own profiles lie in. A folder that
    happens to hold other profiles, such as the current one, takes a report as it takes any file.

    Args:
        inputs: files that are read beside the logdir's profiles, whatever they are called; paths, or open descriptors.

    Raises:
        ProfileError: it may not; exit code 2.
    """
    target, shown = os.path.realpath(path), printable(path)
    folder, name = os.path.split(target)
    of_runs = (path for run in logdir.runs for path in (run.path, *(host.path for host in run.hosts)))
    read = itertools.chain((local_path(logdir.query),), inputs, of_runs)
    if not path or os.path.isdir(target):
        sentence, hint = f"{shown or 'An empty path'} is not a file.", "name a file"
    elif not os.path.isdir(folder):
        sentence = f"The folder {printable(folder)} does not exist, so {shown} can't be written."
        hint = "create it first"
    elif is_profile(name) or (is_pprof_name(name) and os.path.exists(target)):
        sentence = f"{shown} is a profile, or is named like one; a report never overwrites it."
        hint = "give the report another name"
    elif _is_one_of(target, read):
        sentence = f"{shown} is a file that the report reads; a report never overwrites it."
        hint = "give the report another name"
    elif ("plugins", "profile") in pairwise(folder.split(os.sep)) or _holds_hosts(folder, logdir):
        sentence = f"{shown} lies in a folder of profiles; reports are not written beside them."
        hint = "write it to another folder"
    else:
        return
    raise ProfileError("output", sentence, hint, EXIT_USAGE)


def _is_one_of(target: str, paths: Iterable[str | int]) -> bool:
    """Whether a file is one of some others, whatever names or links lead to it."""
    try:
        file = os.stat(target)
    except OSError:
        return False  # there is none yet
    for path in paths if stat.S_ISREG(file.st_mode) else ():
        with contextlib.suppress(OSError, ValueError):
            if os.path.samestat(file, os.stat(path)):
                return True
    return False


def _holds_hosts(folder: str, logdir: Logdir) -> bool:
    """Whether a profile that is read lies in the folder."""
    files = {os.path.dirname(os.path.realpath(host.path)) for run in logdir.runs for host in run.hosts}
    return folder in files
