"""Compiled programs wherever they lie, each with its fingerprint and with the flags of its compile.

They lie in a dump, in an `.hlo.pb`, in a text as ``compiled.as_text()`` prints it, or in a profile. Of a dump's stages
that after the code was made counts, ``*.after_codegen.*``: only it holds the tiles.
"""

from __future__ import annotations

import contextlib
import glob
import gzip
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from zlib import error as ZlibError

from tpuprof.parsers.base.errors import EXIT_NOT_FOUND, ProfileError
from tpuprof.parsers.base.folders import listed
from tpuprof.parsers.base.record import dataclass
from tpuprof.parsers.base.regex import pattern
from tpuprof.parsers.base.text import natural_key, printable
from tpuprof.parsers.formats.hlo.files import HloFile, find_hlo_files, named_file, read_hlo_file, text_path
from tpuprof.parsers.formats.hlo.modules import HloModule
from tpuprof.parsers.formats.hlo.parse import read_module_text
from tpuprof.parsers.pages.graph.programs import GRAPHS
from tpuprof.parsers.pages.program.fingerprint import Fingerprint, TextFingerprint, fingerprint
from tpuprof.parsers.pages.shared.key import PageSession

_CODEGEN = pattern(r"(.+)\.after_codegen\.(hlo\.pb|txt)(?:\.gz)?", re.DOTALL)
_TEXT = pattern(r".+\.(?:hlo|txt)(?:\.gz)?", re.DOTALL)
_BEGINS = b"HloModule "
_LONGEST_LINE = 64 << 20
_SETTINGS = ("flagfile", "debug_options", "tpu_comp_env.txt")
"""Files of a compile's flags, the last of which counts where several have one."""

_SETTING = pattern(r"(?:--)?([A-Za-z]\w{0,200})(?:: |=)(.{0,4096})")
_BLOCK = pattern(r"([A-Za-z]\w{0,200}) \{")
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
    """

    name: str
    origin: str
    module: HloModule
    fingerprint: Fingerprint | None
    settings: Mapping[str, str]


def program_files(path: str) -> tuple[HloFile, ...]:
    """The programs in a folder, or the one that a file holds, whatever its name; the stage with tiles of each.

    Raises:
        ProfileError: there is none.
    """
    path = os.path.expanduser(path)
    if not os.path.isdir(path):
        return (named_file(path, os.stat(path).st_size),) if os.path.isfile(path) else find_hlo_files(path)
    with listed(path) as entries:
        names = sorted((entry.name for entry in entries), key=natural_key)
    last = dict[str, str]()
    for name in names:
        if (match := _CODEGEN.fullmatch(name)) and (match[2] != "txt" or match[1] not in last):
            last[match[1]] = name
    paths = [os.path.join(path, name) for name in last.values()]
    stems = tuple(f"{stem}." for stem in last)
    with contextlib.suppress(ProfileError):
        found = (each.path for each in find_hlo_files(path))
        paths += [each for each in found if not os.path.basename(each).startswith(stems)]
    texts = (os.path.join(path, name) for name in names if _TEXT.fullmatch(name))
    paths = paths or [each for each in texts if is_program_text(each)]
    if not paths:
        sentence = f"There is no compiled program in {printable(path)}."
        raise ProfileError("not_found", sentence, "dump it with --xla_dump_to=FOLDER", EXIT_NOT_FOUND)
    return tuple(named_file(each, 0) for each in paths)


def read_program(file: HloFile) -> CompiledProgram:
    """Reads a program of a file; raises as `read_hlo_file`."""
    path = file.path
    if file.path.endswith(".txt") and not is_program_text(path):
        path = text_path(file)  # of a dump's texts, the one of the program
    origin, settings = os.path.basename(path), _settings(path)
    if not is_program_text(path):
        module = read_hlo_file(file)
        return CompiledProgram(module.name or file.name, origin, module, fingerprint(module), settings)
    reader = TextFingerprint()
    try:
        module = HloModule(read_module_text(file.name, _lines(path, reader)))
    except (EOFError, OSError, ZlibError) as error:
        raise ProfileError("truncated", f"{printable(origin)} is cut or damaged.", "copy it again") from error
    if not module.proto.hlo_module.computations:
        raise ProfileError("corrupt", f"{printable(origin)} holds no program.", "write or copy it again")
    return CompiledProgram(module.name or file.name, origin, module, reader.result(), settings)


def programs_of_session(session: PageSession) -> list[CompiledProgram]:
    """The programs that a profile holds, those that can be read."""
    found = []
    for label, (source, number) in session.page(GRAPHS).compiled.places.items():
        module = source.modules.whole(number)
        if not isinstance(module, str):
            found.append(CompiledProgram(module.name, str(label), module, fingerprint(module), {}))
    return found


def is_program_text(path: str) -> bool:
    """Whether a file holds a program as text, gzipped or not."""
    with contextlib.suppress(OSError, EOFError, ZlibError), _opened(path) as stream:
        return stream.read(len(_BEGINS)) == _BEGINS
    return False


def _opened(path: str) -> gzip.GzipFile:
    """A file inflated where it is gzipped."""
    with open(path, "rb") as stream:
        is_gzipped = stream.read(2) == b"\x1f\x8b"
    return gzip.open(path, "rb") if is_gzipped else open(path, "rb")  # type: ignore[return-value]


def _lines(path: str, reader: TextFingerprint) -> Iterator[str]:
    """The lines of a text, which the reader takes too."""
    with _opened(path) as stream:
        while line := stream.readline(_LONGEST_LINE).decode("utf-8", "replace"):
            reader.take(line)
            yield line


def _settings(path: str) -> dict[str, str]:
    """The flags of a dumped program's compile, by the files beside it."""
    match = _CODEGEN.fullmatch(os.path.basename(path))
    stem = match[1] if match else ".".join(os.path.basename(path).split(".")[:3])
    found = dict[str, str]()
    for name in _SETTINGS:
        for beside in glob.glob(f"{glob.escape(os.path.join(os.path.dirname(path), stem))}.{name}")[:1]:
            with contextlib.suppress(OSError), open(beside, encoding="utf-8", errors="replace") as lines:
                found |= dict(_settings_in(lines))
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
