"""Compiled modules without a profile: HLO files as a run of their own, which has a memory page and graphs."""

from __future__ import annotations

import contextlib
import itertools
import os
from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING, Any, NoReturn, cast

from tpuprof.parsers.base.errors import EXIT_NOT_FOUND, EXIT_UNREADABLE, ProfileError
from tpuprof.parsers.base.folders import listed
from tpuprof.parsers.base.record import replace
from tpuprof.parsers.base.text import counted, printable
from tpuprof.parsers.files.file_kinds import HLO_ENDINGS, may_be_hlo
from tpuprof.parsers.files.logdir import Logdir, Run, local_path, open_logdir
from tpuprof.parsers.files.places import inside
from tpuprof.parsers.formats.hlo.files import (
    find_hlo_files,
    is_program_text,
    module_files,
    program_files,
    read_hlo_file,
    read_whole_module,
    text_path,
)
from tpuprof.parsers.formats.hlo.programs import HloModules
from tpuprof.parsers.memory.allocators.model import MemoryProfilePage
from tpuprof.parsers.memory.model import MemoryPage
from tpuprof.parsers.memory.modules.target import device_of
from tpuprof.parsers.pages.graph.programs import GRAPHS, Programs
from tpuprof.parsers.pages.memory.compiled import CompiledModules, ModuleSource
from tpuprof.parsers.pages.memory.key import MEMORY, MEMORY_PROFILE, MODULE_RUNS
from tpuprof.parsers.pages.shared.key import Page, PageKey
from tpuprof.parsers.session.pages import ONLY_HLO

if TYPE_CHECKING:
    from tpuprof.parsers.timeline.model import Timeline
    from tpuprof.parsers.timeline.read.timeline import OnPart

_OF_TEXTS = (
    "{} of the modules are built from texts of the dump, and their heap from live ranges; --xla_dump_hlo_as_proto "
    "writes the complete modules."
)
_MOST_BESIDE, _MOST_LOOKED = 2000, 100
NO_ALLOCATORS = "Compiled modules say nothing about memory over time; a profile of a running program does."


def leads_to_hlo(path: str) -> bool:
    """Whether a path leads to HLO modules, and to no profile.

    Raises:
        ProfileError: it leads to neither; the error says what is wrong with it as a profile.
    """
    where = _inside(path)
    if os.path.isfile(where) and path.removesuffix(".gz").endswith(HLO_ENDINGS):
        return True
    if os.path.isfile(where) and "xplane" not in os.path.basename(path):  # both kinds of message begin alike
        with contextlib.suppress(ProfileError):
            return _holds_hlo(where)
    try:
        open_logdir(where)
    except ProfileError as error:
        if not os.path.exists(where):
            raise
        try:
            if _holds_hlo(where):
                return True
        except ProfileError as other:
            if other.code == "text_dump":
                raise
        dumps = _dumps_in(where, _MOST_LOOKED)
        hint = f"{error.hint}; compiled modules are *.hlo_proto.pb, or in a folder of --xla_dump_to"
        hint = f"{printable(dumps[0])} holds compiled modules: give the path of one such folder" if dumps else hint
        raise ProfileError(error.code, error.sentence, hint, error.exit_code) from None
    return False


def holds_programs(path: str) -> bool:
    """Whether a path leads to compiled programs, texts of `as_text()` too, and to no profile; False for no path."""
    if is_program_text(path):
        return True
    with contextlib.suppress(ProfileError):
        return leads_to_hlo(path)
    with contextlib.suppress(ProfileError):
        return os.path.isdir(path) and bool(program_files(path))
    return False


def pages_of_files(path: str) -> tuple[str, ...]:
    """The pages that the files at a path have: texts hold either the programs or their buffers."""
    where, has_buffers = _inside(path), False
    with contextlib.suppress(ProfileError):
        has_buffers = bool(find_hlo_files(where))
    has_program = any(
        not file.path.endswith(".txt") or is_program_text(file.path) or os.path.isfile(text_path(file))
        for file in program_files(where)
    )
    return ("program",) * has_program + ("memory",) * has_buffers


def _inside(path: str) -> str:
    """A local path without ``~``; of an archive what is in it."""
    where = local_path(path)
    return inside(where) if os.path.lexists(where) else path


def _holds_hlo(path: str) -> bool:
    """Whether a folder has files named like HLO modules, or a file of any name is one."""
    files = find_hlo_files(path)
    if os.path.isfile(path):
        try:
            read_hlo_file(files[0])
        except ProfileError as error:
            if error.code != "no_buffers":
                raise
            read_whole_module(files[0])
    return bool(files)


def files_read(path: str) -> list[str]:
    """The files that may be read for the compiled modules at a path; see `module_files`."""
    return module_files(_inside(path))


def unreadable_modules(page: MemoryPage) -> ProfileError:
    """The error where no file holds a readable module; exit code 4."""
    why = page.modules[0].problem or ""
    first = why if len(page.modules) == 1 else f"None of the {len(page.modules)} HLO modules can be read. {why}"
    return ProfileError("unreadable", first, "write or copy the files again", EXIT_UNREADABLE)


def without_allocators() -> ProfileError:
    """The error that says why compiled modules have no memory profile; exit code 3."""
    return ProfileError("only_hlo", NO_ALLOCATORS, ONLY_HLO[1], EXIT_NOT_FOUND)


def no_page_of_modules(path: str, page: str) -> ProfileError:
    """For a page that compiled modules do not have."""
    sentence = f"{printable(path)} holds compiled XLA modules, not a profile: they have the pages memory, graph and "
    sentence += f"program, not {page}."
    return ProfileError("only_hlo", sentence, f"tpuprof-tui report memory {printable(path)}", EXIT_NOT_FOUND)


def open_hlo(path: str, as_text: bool = False) -> Logdir:
    """Opens an HLO file, or a folder of them, as one run without hosts; with `as_text` all that `holds_programs` knows.

    Raises:
        ProfileError: there is no HLO module; exit code 3.
    """
    where = os.path.abspath(_inside(path))
    files = program_files(where) if as_text else find_hlo_files(where)
    if not files:
        hint = "a file *.hlo_proto.pb, or a folder written with --xla_dump_to=FOLDER --xla_dump_hlo_as_proto"
        raise ProfileError("not_found", f"There is no HLO module in {printable(path)}.", hint, EXIT_NOT_FOUND)
    run = Run(os.path.basename(where) or where, where, (), ())
    return Logdir(path, (run,), (f"{counted(len(files), 'HLO module')} in {printable(path)}",), ())


def _dumps_in(folder: str, most: int = _MOST_BESIDE) -> list[str]:
    """The folders among the first entries of a folder that may hold compiled modules."""
    names = list[str]()
    with contextlib.suppress(ProfileError, OSError), listed(folder) as entries:
        names = [entry.name for entry in itertools.islice(entries, most) if entry.is_dir()]
    return sorted(filter(may_be_hlo, (os.path.join(folder, name) for name in names)))


def open_hlo_beside(path: str, as_text: bool = False) -> Logdir:
    """The same with runs besides for the other files, or folders, of the same folder that hold compiled programs."""
    logdir = open_hlo(path, as_text)
    where, others = logdir.runs[0].path, list[str]()
    folder = os.path.dirname(where)
    with contextlib.suppress(ProfileError, OSError):
        of_files = program_files(folder) if os.path.isfile(where) and where == os.path.abspath(path) else ()
        others = [file.path for file in of_files] if os.path.isfile(where) else _dumps_in(folder)
    runs = (Run(os.path.basename(other), other, (), ()) for other in others if other != where)
    return replace(logdir, runs=(*logdir.runs, *runs))


class HloSession:
    """Serves HLO files as `parsers.session.session.Session` serves a profile; only memory and graphs are in them.

    Args:
        run: what `open_hlo` found.
        device_type: the TPU that the modules are for, such as ``TPU v5e``; it determines the capacity, which the files
            do not hold. If left out, the one that a compiler's dump names.
        poll: called between programs; raises to end the work.
    """

    def __init__(self, run: Run, device_type: str | None = None, poll: Callable[[], None] = lambda: None) -> None:
        self.run, self.poll = run, poll
        self.device_type = device_type
        self._made: dict[PageKey[Any], Callable[[], object]] = {
            MEMORY: lambda: self._compiled,
            GRAPHS: lambda: Programs(CompiledModules(self._compiled.sources), None),
            MEMORY_PROFILE: lambda: MemoryProfilePage((), (), NO_ALLOCATORS),
            MODULE_RUNS: lambda: (),
        }

    def page(self, key: PageKey[Page], host: str | None = None) -> Page:
        """The modules, graphs without times, a page of memory over time that says why it is empty; no other page.

        Raises:
            ProfileError: the page is of a profile.
        """
        made = cast("dict[PageKey[Any], Callable[[], Page]]", self._made).get(key)
        if made is None:
            raise ProfileError("only_hlo", *ONLY_HLO)
        return made()

    @cached_property
    def _compiled(self) -> CompiledModules:
        files = find_hlo_files(self.run.path)
        modules = HloModules.from_files(files)
        devices = {device_of(file.path) for file in files} if self.device_type is None else {self.device_type}
        device = devices.pop() if len(devices) == 1 else None
        source = ModuleSource(self.run.name, modules, device_type=device)
        texts = sum(file.path.endswith(".txt") for file in modules.files.values())
        return CompiledModules([source], notes=(_OF_TEXTS.format(texts),) if texts else ())

    def timeline(self, host: str | None = None, *, on_part: OnPart | None = None) -> NoReturn:
        """None: files hold no events.

        Raises:
            ProfileError: always.
        """
        raise ProfileError("only_hlo", *ONLY_HLO)

    def flows(self, timeline: Timeline) -> NoReturn:
        raise ProfileError("only_hlo", *ONLY_HLO)
