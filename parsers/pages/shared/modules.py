"""How the HLO modules that hosts' profiles hold are found; each program once, because they are large."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing

from tpuprof.parsers.base.errors import ProfileError, one_part
from tpuprof.parsers.base.text import printable
from tpuprof.parsers.files.places import HostFile
from tpuprof.parsers.formats.hlo.programs import HloModules
from tpuprof.parsers.formats.xspace.trace import Trace
from tpuprof.parsers.hosts.op_summary import OPS_OF_HOST
from tpuprof.parsers.pages.shared.key import PageSession

_UNKNOWN = (-1,)
"""Programs of a file that has to be opened to learn them: none that another file has."""


def modules(session: PageSession, host: str | None) -> tuple[HloModules, ...]:
    """The modules, parsed when asked for."""
    return modules_in(session, session.reduced(OPS_OF_HOST, host).files)


def modules_in(session: PageSession, files: Sequence[HostFile]) -> tuple[HloModules, ...]:
    """The modules of those of some readable hosts that have a program which no host before them has."""
    distinct: list[HloModules] = []
    seen: set[int] = set()
    for file in files:
        if distinct and seen.issuperset(session.programs.get(file.path, _UNKNOWN)):
            continue
        session.poll()
        try:
            found = _of_host(session, file)
        except ProfileError:  # it was readable a moment ago
            continue
        if not distinct or not seen.issuperset(found.names):
            session.modules[file.path] = found
            distinct.append(found)
            seen.update(found.names)
    return tuple(distinct)


def _of_host(session: PageSession, file: HostFile) -> HloModules:
    if (known := session.modules.get(file.path)) is None:
        with one_part(f"find the compiled HLO in {printable(file.path)}"), closing(Trace.open(file.path)) as trace:
            known = HloModules.of(trace)
        session.programs[file.path] = tuple(known.names)
    return known
