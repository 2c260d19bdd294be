"""How the compiled modules of a run are found."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING

from tpuprof.parsers.base.errors import behind_wall
from tpuprof.parsers.hosts.reduction import left_out
from tpuprof.parsers.memory.model import Capacity
from tpuprof.parsers.pages.memory.compiled import CompiledModules, ModuleSource, files_in_run, reported_capacity
from tpuprof.parsers.pages.memory.key import MEMORY_PROFILE
from tpuprof.parsers.pages.shared.host_files import each_host, nothing_to_read, opened
from tpuprof.parsers.pages.shared.key import PageSession

if TYPE_CHECKING:
    from tpuprof.parsers.files.places import HostFile
    from tpuprof.parsers.hosts.progress import Meter


def memory_of_run(session: PageSession, host: str | None) -> CompiledModules:
    """The compiled modules of one host, or of all hosts each once, and of HLO files in the run's folder.

    It decodes only metadata; `CompiledModules.page` makes the memory page.
    """
    files = session.run.files(host)

    def source(file: HostFile, meter: Meter) -> ModuleSource:
        return _module_source(session, file, meter)

    def capacity() -> Capacity | None:
        page = behind_wall("read the allocators", lambda: session.page(MEMORY_PROFILE, host), [])
        return None if page is None else reported_capacity(page.allocators)

    sources, failures = each_host(files, session.meter(files, decodes=False), source)
    failed: list[str] = []
    beside = behind_wall("find HLO files", lambda: files_in_run(session.run.path), failed)
    sources += [beside] if beside is not None else []
    if not sources:
        raise failures[0] if failures else nothing_to_read(session.run)
    notes = *left_out(failures), *failed, *session.problems, *session.only_shown
    return CompiledModules(sources, capacity, session.poll, notes)


def _module_source(session: PageSession, file: HostFile, meter: Meter) -> ModuleSource:
    known = session.sources.get(file.path)
    if known is None:
        with closing(opened(file, meter)) as trace:
            known = session.sources[file.path] = ModuleSource.of(trace, file.label)
    return known
