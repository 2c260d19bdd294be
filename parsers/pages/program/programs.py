"""Compiled programs wherever they lie, each with its fingerprint and with the flags of its compile.

They lie in a dump, in an `.hlo.pb`, in a text as ``compiled.as_text()`` prints it, or in a profile. Of a dump's stages
that after the code was made counts, ``*.after_codegen.*``: only it holds the tiles.
"""

from __future__ import annotations

import contextlib
import glob
import os
from collections.abc import Iterator, Mapping, Sequence

from tpuprof.parsers.base.errors import ProfileError
from tpuprof.parsers.base.record import dataclass, field, replace
from tpuprof.parsers.base.regex import pattern
from tpuprof.parsers.base.text import printable
from tpuprof.parsers.formats.hlo.files import (
    CODEGEN,
    HloFile,
    find_hlo_files,
    is_program_text,
    program_files,
    read_hlo_file,
    text_lines,
    text_path,
)
from tpuprof.parsers.formats.hlo.modules import HloModule
from tpuprof.parsers.formats.hlo.parse import read_module_text
from tpuprof.parsers.memory.modules.target import device_of, stem_of
from tpuprof.parsers.pages.graph.programs import GRAPHS, no_modules
from tpuprof.parsers.pages.program.fingerprint import Fingerprint, TextFingerprint, fingerprint
from tpuprof.parsers.pages.shared.key import PageSession

_SETTINGS = ("flagfile", "debug_options", "tpu_comp_env.txt")
"""Files of a compile's flags, the last of which counts where several have one."""

_SETTING = pattern(r"(?:--)?([A-Za-z]\w{0,200})(?:: |=)(.{0,4096})")
_BLOCK = pattern(r"([A-Za-z]\w{0,200}) \{")
_WITH_BUFFERS = (".after_optimizations.hlo.pb", ".after_optimizations-buffer-assignment.txt")
_CHANGELIST = pattern(r"\.cl_(\d{1,20})\.")
_OF_DUMPS = ("xla_dump_", "xla_jf_dump_", "xla_hlo_profile")


@dataclass(frozen=True, slots=True)
class CompiledProgram:
    """One compiled program.

    Attributes:
        name: of its module, ``jit_step``.
        origin: the file that it comes from, or the module's label in a profile.
        module: the program.
        fingerprint: None where its text is cut.
        settings: flags of its compile by name; empty where nothing beside the program has them.
        device: the type of the chip that it is for; None where nothing says it.
        versions: of the compiler and what called it, by name, as far as they are recorded.
        path: of its file; empty for one of a profile.
    """

    name: str
    origin: str
    module: HloModule
    fingerprint: Fingerprint | None
    settings: Mapping[str, str]
    device: str | None = None
    versions: Mapping[str, str] = field(default_factory=dict)
    path: str = ""

    def of_text(self) -> CompiledProgram:
        """The same with the fingerprint of the text that a dump has beside its proto, where it has one."""
        match, reader = CODEGEN.fullmatch(self.path), TextFingerprint()
        with contextlib.suppress(ProfileError):
            for _ in _lines(f"{match[1]}.after_codegen.txt", reader) if match is not None else ():
                pass
        return replace(self, fingerprint=reader.result() or self.fingerprint)

    def assigned(self) -> HloModule | None:
        """The same program with its buffers, which a dump has in another file; None where they are not known."""
        if self.module.proto.buffer_assignment.buffer_allocations:
            return self.module
        stem = stem_of(self.path)
        for ending in _WITH_BUFFERS if stem != self.path else ():
            with contextlib.suppress(ProfileError):
                return read_hlo_file(find_hlo_files(f"{stem}{ending}")[0])
        return None


def read_program(file: HloFile) -> CompiledProgram:
    """Reads a program of a file; raises as `read_hlo_file`."""
    path = file.path
    if file.path.endswith(".txt") and not is_program_text(path):
        path = text_path(file)  # of a dump's texts, the one of the program
    origin, settings, device = os.path.basename(path), _settings(path), device_of(file.path)
    built = _CHANGELIST.search(origin)
    beside = (settings, device, {"changelist of libtpu": built[1]} if built else {}, path)
    if not is_program_text(path):
        module = read_hlo_file(file)
        return CompiledProgram(module.name or file.name, origin, module, fingerprint(module), *beside)
    reader = TextFingerprint()
    module = HloModule(read_module_text(file.name, _lines(path, reader)))
    if not module.proto.hlo_module.computations:
        raise ProfileError("corrupt", f"{printable(origin)} holds no program.", "write or copy it again")
    return CompiledProgram(module.name or file.name, origin, module, reader.result(), *beside)


def programs_at(path: str) -> list[CompiledProgram]:
    """The programs of a file, or of a folder; raises as `program_files` and `read_program`."""
    return [read_program(file) for file in program_files(path)]


def programs_of_session(session: PageSession) -> list[CompiledProgram]:
    """The programs that a profile holds, those that can be read.

    Raises:
        ProfileError: it holds none; the error says why.
    """
    found, compiled = [], session.page(GRAPHS).compiled
    if not compiled.places:
        raise no_modules(compiled, "how long its programs take at least is")
    for label, (source, number) in compiled.places.items():
        module = source.modules.whole(number)
        if not isinstance(module, str):
            device = source.device_type or compiled.device_type
            found.append(CompiledProgram(module.name, str(label), module, fingerprint(module), {}, device))
    return found


def _lines(path: str, reader: TextFingerprint) -> Iterator[str]:
    """The lines of a text, which the reader takes too."""
    for line in text_lines(path, of_program=True):
        reader.take(line)
        yield line


def _settings(path: str) -> dict[str, str]:
    """The flags of a dumped program's compile, by the files beside it."""
    match = CODEGEN.fullmatch(os.path.basename(path))
    stem = match[1] if match else ".".join(os.path.basename(path).split(".")[:3])
    found = dict[str, str]()
    for name in _SETTINGS:
        for beside in glob.glob(f"{glob.escape(os.path.join(os.path.dirname(path), stem))}.{name}")[:1]:
            with contextlib.suppress(ProfileError):
                found |= dict(_settings_in(text_lines(beside)))
    return {key: value for key, value in found.items() if not key.startswith(_OF_DUMPS)}


def _settings_in(lines: Iterator[str] | Sequence[str]) -> Iterator[tuple[str, str]]:
    """Flags by name, those of a block by ``block.name``."""
    blocks: list[str] = []
    for line in map(str.strip, lines):
        if match := _BLOCK.fullmatch(line):
            blocks.append(match[1])
        elif line == "}":
            del blocks[-1:]
        elif match := _SETTING.fullmatch(line):
            yield ".".join((*blocks, match[1])), match[2].strip('"')
