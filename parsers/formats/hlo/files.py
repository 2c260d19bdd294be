"""Finds compiled HLO modules in files of their own by name, and reads them safely even where they are damaged.

XProf keeps a run's programs beside its profile as ``jit_step(123).hlo_proto.pb``. XLA writes them where
``--xla_dump_to`` says, several stages per module: ``module_0001.jit_step.cl_9.after_optimizations.hlo.pb`` has the
buffer assignment, ``…after_codegen.hlo.pb`` and the others have none; without ``--xla_dump_hlo_as_proto`` it writes
texts, which `parsers.formats.hlo.texts` puts together. What is inside may be an `HloProto`, an
`HloModuleProto` (without a buffer assignment), gzipped or not.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import re
import stat
from collections.abc import Iterator

from google.protobuf.message import DecodeError

from tpuprof.parsers.base.budget import Budget, inflated_room
from tpuprof.parsers.base.errors import EXIT_NOT_FOUND, ProfileError, unreadable
from tpuprof.parsers.base.folders import listed, regular_file
from tpuprof.parsers.base.record import dataclass
from tpuprof.parsers.base.regex import pattern
from tpuprof.parsers.base.text import natural_key, printable
from tpuprof.parsers.files.file_kinds import recognised
from tpuprof.parsers.files.inflate import GZIP_MAGIC, Inflation, content, lines_of
from tpuprof.parsers.formats.hlo.modules import HloModule
from tpuprof.parsers.formats.hlo.parse import read_module_text
from tpuprof.parsers.formats.hlo.texts import read_texts
from tpuprof.parsers.formats.proto import hlo_pb2
from tpuprof.parsers.formats.xspace.core.api import split_fields

LARGEST_BYTES = 2**31 - 1
"""No protobuf message may be larger than this."""

CODEGEN = pattern(r"(.+)\.after_codegen\.(hlo\.pb|txt)(?:\.gz)?", re.DOTALL)
"""The files of a dump's last stage, which alone has the tiles."""

_TEXT = pattern(r".+\.(?:hlo|txt)(?:\.gz)?", re.DOTALL)
_BEGINS, _LOOKED_AT = b"HloModule ", 1 << 12
_NO_MODULE = "NO_MODULE.hlo_proto.pb"
"""The name of the empty file by which XProf remembers that a profile holds no compiled HLO."""

_MOST_ENTRIES = 200_000  # of a folder
_CHUNK = 4 << 20
_GZIP_FLOOR = 2 << 20  # protobuf makes some 200 bytes of each byte of the smallest messages

_HLO_NAME = pattern(r"(.+?)\.(hlo_proto|hlo_module|hlo)\.pb(?:\.gz)?", re.DOTALL)
_WITH_ID = pattern(r"(.*)\((\d{1,20})\)", re.DOTALL)
_DUMPED = pattern(
    r"((?:\d+\.)?module_\d+)\.(.+?)(?:\.cl_\d+|\.sm_\d+)?\.(\d{4}\..*|[^.]*(?:before|after)_.*|[^.]*)", re.DOTALL
)
_TEXT_NAME = pattern(r".+\.(txt|hlo|mlir|dot|html)", re.DOTALL)
_LAST_STAGE = pattern(
    r"(.+?)(?:-buffer-assignment(?:-values)?|-live-range|-memory-usage-report|(?<=after_optimizations))\.txt", re.DOTALL
)
_TEXTS = ("-buffer-assignment.txt", "-buffer-assignment-values.txt", "-live-range.txt", ".txt")
_USAGE = "-memory-usage-report.txt"
_LARGEST_TEXT, _LONGEST_CODE = 1 << 30, 64 << 20
_LONGEST_LINE = 4 << 20  # bytes of a text's line that are looked at; longer ones are those of large constants
_OPCODE = pattern(rb"[a-z][a-z0-9-]*")

_DUMP_HINT = "make the dump with --xla_dump_to=FOLDER --xla_dump_hlo_as_proto"
_AGAIN_HINT = "copy or write the file again"


@dataclass(frozen=True, slots=True)
class HloFile:
    """One module in a file.

    Attributes:
        path: the path to open.
        name: the module's name, from the file's name: ``jit_step``.
        program_id: None where the file's name has none.
        size_bytes: size on disk, which is the compressed size of a gzipped file.
        stage: the compiler's stage, ``after_optimizations``; empty where the name does not say.
    """

    path: str
    name: str
    program_id: int | None
    size_bytes: int
    stage: str


def find_hlo_files(path: str) -> tuple[HloFile, ...]:
    """The HLO modules in a folder, one file each, or the one file that `path` names.

    Of several stages of a module it takes the one with a buffer assignment, else the one that should have it; where
    there are texts alone, those of the last stage, by the most informative one. It does not enter folders inside. It
    takes the file `path` whatever its name, unless the name says that it is a text of another stage.

    Returns:
        The files in natural order of their names; none where a folder has no such file.

    Raises:
        ProfileError: `not_found`, `unreadable` or `not_a_file`; `text_dump` where there are only text dumps.
    """
    path = os.path.expanduser(path)
    try:
        status = os.stat(path)
    except (OSError, ValueError) as error:
        raise unreadable(path, error) from error
    if stat.S_ISDIR(status.st_mode):
        return _in_folder(path)
    if not stat.S_ISREG(status.st_mode):
        raise ProfileError("not_a_file", f"{printable(path)} is neither a file nor a folder.", _DUMP_HINT)
    name = os.path.basename(path)
    if match := _LAST_STAGE.fullmatch(name):
        best = _best_text(os.path.join(os.path.dirname(path), match[1]))
        return (_named(best, os.stat(best).st_size)[0],)
    if _TEXT_NAME.fullmatch(name) or is_program_text(path):
        if (found := recognised(path)) is not None and found.reader == "log":
            raise found.error(path)
        raise _text_dump(f"{printable(name)} is a text")
    return (_named(path, status.st_size)[0],)


def read_hlo_file(file: HloFile) -> HloModule:
    """Reads a module.

    Args:
        file: one that `find_hlo_files` gave.

    Raises:
        ProfileError: `not_found`, `unreadable` or `not_a_file`, `empty_file`, `too_large`, `truncated` (a gzip stream
            that ends early), `corrupt`, or `no_buffers` for texts without the buffers.
    """
    name = printable(os.path.basename(file.path))
    if file.path.endswith(".txt"):
        return _of_texts(file, name)
    with regular_file(file.path) as descriptor:
        size = os.fstat(descriptor).st_size
        if size > LARGEST_BYTES:
            raise _too_large(name, f"has {size:,} bytes")
        # A hole at the start, as in a file that was set aside and not written: no message begins so.
        data = b"" if os.pread(descriptor, 1, 0) == b"\0" else _content(descriptor, size, name)
    if not size:
        raise ProfileError("empty_file", f"{name} is empty.", _AGAIN_HINT)
    if data.startswith(b"BufferAssignment:"):  # a text under any name
        return HloModule(read_texts(file.name, data.decode("utf-8", "replace").splitlines()))
    _take(data, Budget(size, name))
    proto = _decoded(data)
    if proto is None:
        sentence = (
            f"{name} is damaged or not an HLO module: its {len(data) or size:,} bytes do not read as an HloProto."
        )
        raise ProfileError("corrupt", sentence, f"{_AGAIN_HINT}, or {_DUMP_HINT}")
    return HloModule(proto)


def read_whole_module(file: HloFile) -> HloModule:
    """Reads a module with all its instructions and what they take, which texts of buffers do not contain.

    Raises:
        ProfileError: as `read_hlo_file`; `no_text` for texts without that of the HLO itself.
    """
    if not file.path.endswith(".txt"):
        return read_hlo_file(file)

    path = text_path(file)
    if not os.path.isfile(path):
        shown = printable(os.path.basename(path))
        sentence = (
            f"The texts of {printable(file.name)} here hold its buffers, but not how large each one is: {shown} would."
        )
        raise ProfileError("no_text", sentence, _DUMP_HINT)
    module = HloModule(read_module_text(file.name, text_lines(path)))
    if not _is_module(module.proto.hlo_module):
        sentence = f"{printable(os.path.basename(path))} is damaged or not an HLO text: it has no instruction."
        raise ProfileError("corrupt", sentence, _AGAIN_HINT)
    return module


def text_path(file: HloFile) -> str:
    """Where the text of the instructions lies of a module that is found by the text of its buffers."""
    return _stem_of(file) + ".txt"


def _stem_of(file: HloFile) -> str:
    """The path of a text without what the texts of one stage differ by."""
    match = _LAST_STAGE.fullmatch(os.path.basename(file.path))
    return os.path.join(os.path.dirname(file.path), match[1] if match else file.name)


def _in_folder(path: str) -> tuple[HloFile, ...]:
    groups: dict[str, list[HloFile]] = {}
    texts: dict[str, str] = {}
    has_text = False
    try:
        with listed(path) as entries:
            for entry in itertools.islice(entries, _MOST_ENTRIES):
                has_text = has_text or bool(re.match(r"module_\d+\..*\.txt$", entry.name))
                if (match := _LAST_STAGE.fullmatch(entry.name)) and not entry.name.startswith("._"):
                    texts[match[1]] = os.path.join(path, match[1])
                if entry.name.startswith("._") or not _HLO_NAME.fullmatch(entry.name):
                    continue
                with contextlib.suppress(OSError):  # gone, or a link to nowhere
                    if entry.is_file() and not (entry.name == _NO_MODULE and not entry.stat().st_size):
                        file, group = _named(os.path.join(path, entry.name), entry.stat().st_size)
                        groups.setdefault(group or entry.name, []).append(file)
    except OSError as error:
        raise unreadable(path, error) from error
    for stem in texts.values():
        with contextlib.suppress(OSError):
            best = _best_text(stem)
            file, group = _named(best, os.stat(best).st_size)
            groups.setdefault(group or file.name, [file])
    if not groups and has_text:
        raise _text_dump(f"{printable(path)} has HLO modules as texts of early stages only")
    chosen = [_best(stages) for stages in groups.values()]
    return tuple(sorted(chosen, key=lambda file: natural_key(os.path.basename(file.path))))


def module_files(path: str) -> list[str]:
    """The paths of all files that may be read for the modules at a path.

    Those of a folder are all that are named like HLO modules or the texts of a dump, of any stage; those of one file of
    a dump are that and all others of its module beside it. Empty where the path leads nowhere.
    """
    folder, name = (path, "") if os.path.isdir(path) else os.path.split(path)
    dumped, text = _DUMPED.fullmatch(name), _LAST_STAGE.fullmatch(name)
    begin = f"{dumped[1]}.{dumped[2]}" if dumped else text[1] if text else name
    try:
        with listed(folder) as entries:
            names = [entry.name for entry in itertools.islice(entries, _MOST_ENTRIES)]
    except (OSError, ValueError):
        return []
    of_modules = (name for name in names if any(each.fullmatch(name) for each in (_HLO_NAME, _LAST_STAGE, _DUMPED)))
    return [os.path.join(folder, name) for name in of_modules if name.startswith(begin)]


def _named(path: str, size: int) -> tuple[HloFile, str]:
    """A file by the parts of its name, and the part that all stages of its module share; empty for one on its own."""
    base = os.path.basename(path)
    match = _HLO_NAME.fullmatch(base)
    stem = match[1] if match else re.sub(r"(?:\.pb|\.txt)?(?:\.gz)?$", "", base) or base
    with_id = _WITH_ID.fullmatch(stem)
    if with_id:
        number = int(with_id[2])
        return HloFile(path, with_id[1], number if number < 2**64 else None, size, ""), ""
    dumped = _DUMPED.fullmatch(stem) if match or base.endswith(".txt") else None
    if dumped:
        return HloFile(path, dumped[2], None, size, dumped[3]), f"{dumped[1]}.{dumped[2]}"
    return HloFile(path, stem, None, size, ""), ""


def _best(stages: list[HloFile]) -> HloFile:
    """The stage to read: the first that has a buffer assignment, in the order in which they are likely to."""
    ordered = sorted(stages, key=lambda file: (_rank(file.stage), natural_key(file.stage), file.path))
    return next((file for file in ordered if len(ordered) > 1 and _has_assignment(file.path)), ordered[0])


def _best_text(stem: str) -> str:
    """The most informative text of a stage: the buffer assignment, the memory usage report, or the HLO itself."""
    ends = (_TEXTS[0], _USAGE, ".txt")
    return next((path for path in (stem + end for end in ends) if os.path.isfile(path)), stem + ends[-1])


def _of_texts(file: HloFile, name: str) -> HloModule:
    """The module that a text describes, with the texts beside it of the same stage."""
    stem = _stem_of(file)
    ends = (_USAGE,) if file.path.endswith(_USAGE) else _TEXTS
    proto = read_texts(
        file.name, (line for end in ends if os.path.isfile(stem + end) for line in text_lines(stem + end))
    )
    if not proto.buffer_assignment.buffer_allocations:
        shown = printable(os.path.basename(stem) + _TEXTS[0])
        sentence = f"{name} does not hold the buffers of {printable(file.name)}: {shown} would, and is not there."
        raise ProfileError("no_buffers", sentence, _DUMP_HINT)
    return HloModule(proto)


def text_lines(path: str, of_program: bool = False) -> Iterator[str]:
    """The lines of a text, very long ones in pieces; raises as `read_hlo_file`.

    Args:
        of_program: the text may be a gzip, which holds no line otherwise, and lines hold the code of kernels.
    """
    most, longest = (_LARGEST_TEXT, _LONGEST_CODE) if of_program else (LARGEST_BYTES, _LONGEST_LINE)
    with regular_file(path) as descriptor:
        name, size = printable(os.path.basename(path)), os.fstat(descriptor).st_size
        if size > most:
            raise _too_large(name, f"has {size:,} bytes")
        if of_program or os.pread(descriptor, len(GZIP_MAGIC), 0) != GZIP_MAGIC:
            yield from lines_of(_pieces(descriptor, most, name), longest)


def _rank(stage: str) -> int:
    ends = ("after_optimizations", "after_buffer_assignment", "after_codegen", "before_buffer_assignment")
    number = next((number for number, end in enumerate(ends) if stage.endswith(end)), len(ends))
    return number + 1 if stage.endswith("before_optimizations") else number


def _has_assignment(path: str) -> bool:
    """Whether an uncompressed HloProto has a field 3, from the headers of its fields alone."""
    try:
        with regular_file(path) as descriptor:
            fields = split_fields(os.pread(descriptor, 16, 0))
            is_message = len(fields.number) > 0 and (fields.number[0], fields.wire[0]) == (1, 2)
            return is_message and os.pread(descriptor, 1, int(fields.end[0])) == b"\x1a"
    except (ProfileError, OverflowError):
        return False


def _content(descriptor: int, size: int, name: str) -> bytes:
    """The content of a file, inflated where it begins like gzip."""
    return b"".join(_pieces(descriptor, min(LARGEST_BYTES, inflated_room(size, _GZIP_FLOOR)), name))


def _pieces(descriptor: int, limit: int, name: str) -> Iterator[bytes]:
    """The same piece by piece, at most so many bytes."""
    given = 0
    try:
        for piece in content(descriptor, limit, _CHUNK):
            given += len(piece)
            yield piece
    except Inflation as stopped:
        if stopped.stop == "too_large":
            raise _too_large(name, f"inflates to more than {limit:,} bytes") from stopped
        if stopped.stop == "cut":
            sentence = f"{name} is cut: its gzip stream ends early, after {given:,} bytes of the module."
            raise ProfileError("truncated", sentence, _AGAIN_HINT) from stopped
        sentence = f"{name} is damaged: its gzip stream breaks after {given:,} bytes of the module."
        raise ProfileError("corrupt", sentence, _AGAIN_HINT) from stopped


_MESSAGE = 350  # bytes that protobuf takes for the smallest instruction
_LARGE, _DEEP = 1 << 12, 5  # a message of fewer bytes has few others in it; instructions lie so deep at most


def _take(data: bytes, budget: Budget) -> None:
    """Takes what the messages in some bytes would take, before they are decoded.

    Raises:
        ProfileError: `too_large`.
    """
    level = [(0, len(data))]
    for _ in range(_DEEP):
        below = []
        for first, last in level:
            fields = split_fields(data[first:last])
            are_messages = (fields.wire == 2) & (fields.end <= last - first)
            budget.takes(int(are_messages.sum()), _MESSAGE)
            are_large = are_messages & (fields.end - fields.begin >= _LARGE)
            spans = zip(fields.begin[are_large].tolist(), fields.end[are_large].tolist(), strict=True)
            below += [(first + begin, first + end) for begin, end in spans]
        level = below


def _decoded(data: bytes) -> hlo_pb2.HloProto | None:
    """The module in either of the two messages; None where it reads as neither."""
    of_module = hlo_pb2.HloModuleProto.FromString
    for decode in (hlo_pb2.HloProto.FromString, lambda given: hlo_pb2.HloProto(hlo_module=of_module(given))):
        with contextlib.suppress(DecodeError):
            if _is_module((proto := decode(data)).hlo_module):
                return proto
    return None


def _is_module(module: hlo_pb2.HloModuleProto) -> bool:
    """Whether it has an instruction with an opcode, which bytes of another message never yield."""
    return any(
        _OPCODE.fullmatch(instruction.opcode) for part in module.computations for instruction in part.instructions
    )


def _too_large(name: str, how: str) -> ProfileError:
    sentence = f"{name} is too large for an HLO module: it {how}, and a protobuf message ends at 2 GiB."
    return ProfileError("too_large", sentence, _AGAIN_HINT)


def _text_dump(what: str) -> ProfileError:
    return ProfileError("text_dump", f"{what}, and such texts do not hold the buffer assignment.", _DUMP_HINT)


def program_files(path: str) -> tuple[HloFile, ...]:
    """The programs in a folder, or the one that a file holds, whatever its name; the stage with tiles of each.

    Raises:
        ProfileError: there is none.
    """
    path = os.path.expanduser(path)
    if not os.path.isdir(path):
        return (_named(path, os.stat(path).st_size)[0],) if os.path.isfile(path) else find_hlo_files(path)
    with listed(path) as entries:
        names = sorted((entry.name for entry in entries), key=natural_key)
    last = dict[str, str]()
    for name in names:
        if (match := CODEGEN.fullmatch(name)) and (match[2] != "txt" or match[1] not in last):
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
    return tuple(_named(each, 0)[0] for each in paths)


def is_program_text(path: str) -> bool:
    """Whether a file holds a program as text, gzipped or not."""
    with contextlib.suppress(ProfileError, Inflation), regular_file(path) as descriptor:
        return next(content(descriptor, _CHUNK, _LOOKED_AT), b"").startswith(_BEGINS)
    return False
