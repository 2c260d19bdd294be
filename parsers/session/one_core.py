"""A run of which one core, one chip, or one group of cores is all that is looked at."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from typing import TYPE_CHECKING

from tpuprof.parsers.base.errors import EXIT_NOT_FOUND, EXIT_USAGE, ProfileError
from tpuprof.parsers.base.text import examples, nearest_hint, printable
from tpuprof.parsers.files.core_names import core_label, core_named, group_named, labels_together
from tpuprof.parsers.files.logdir import Run
from tpuprof.parsers.ops.device import core_title, device_ordinal, open_host, tensor_cores
from tpuprof.parsers.pages.shared.key import Later, PageSession

if TYPE_CHECKING:
    from tpuprof.parsers.pages.shared.groups import CoreGroup

_SESSION = Later("tpuprof.parsers.session.session:Session")
_GROUPS = Later("tpuprof.parsers.pages.shared.groups:groups_of_run")


def narrowed(run: Run, core: str, host: str | None = None, session: PageSession | None = None) -> Run:
    """The run with one core, or one chip, as all that is looked at, by any of its names (`parsers.files.core_names`).

    Args:
        core: its name, or that of a group of cores, ``group 2``, which shows when the hosts are read.
        session: what reads them; None for one of its own.

    A title, ``Chip 2: TPU core 0``, is looked up in the profiles, of `host` or of all: they alone know its number.

    Raises:
        ProfileError: as `Run.of_core` and `open_host`; `unknown_core` or `unknown_group`, exit code 3, where there is
            none;
            `usage`, exit code 2, where cores of several hosts have it.
    """
    if (number := group_named(core)) is not None:
        return _of_group(run, _GROUPS(session or _SESSION(run), host), number)
    named = core_named(core)
    if named is None or not named.title or (named.host and host not in (None, named.host)):
        return run.of_core(core, host)
    having: list[str] = []
    titles: list[str] = []
    for file in run.files(named.host or host):
        with closing(open_host(file.path, file.host)) as trace:
            of_file = {title: device_ordinal(plane) for plane in tensor_cores(trace) if (title := core_title(plane))}
        titles += of_file
        having += [core_label(file.host, number) for title, number in of_file.items() if title == named.title]
    if not having:
        sentence = f"Run {printable(run.name)} has no core {named.title}."
        there_are = f"its cores are {examples(titles, 8)}" if titles else "its profile does not name the chips of cores"
        raise ProfileError("unknown_core", sentence, nearest_hint(named.title, titles, there_are), EXIT_NOT_FOUND)
    if len(having) > 1:
        sentence = f"Run {printable(run.name)} has several cores {named.title}: it is unclear which one is meant."
        raise ProfileError("usage", sentence, f"--core with one of: {examples(having, 8)}", EXIT_USAGE)
    return run.of_core(having[0])


def _of_group(run: Run, groups: Sequence[CoreGroup], number: int) -> Run:
    group = next((group for group in groups if group.number == number), None)
    if group is None:
        there_are = f"its groups are 1 to {len(groups)}" if len(groups) > 1 else "all its cores are one group"
        sentence = f"Run {printable(run.name)} has no group {number} of cores."
        raise ProfileError("unknown_group", sentence, f"{there_are}: report cores", EXIT_NOT_FOUND)
    return run if len(groups) == 1 else run.of_core(labels_together(group.core_names))
