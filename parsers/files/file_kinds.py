"""What a file is by its first bytes and its name, where that is not a profile, and what would help."""

from __future__ import annotations

import codecs
import contextlib
import itertools
import os
import re
import zlib
from typing import Literal

from tpuprof.parsers.base.errors import EXIT_NOT_FOUND, EXIT_UNREADABLE, ProfileError
from tpuprof.parsers.base.folders import listed, opened
from tpuprof.parsers.base.record import dataclass, replace
from tpuprof.parsers.base.regex import pattern
from tpuprof.parsers.base.text import printable
from tpuprof.parsers.files.folder_search import BEGIN_BYTES, KINDS, is_profile, kind_of, sibling_kind

GZIP, ZIP = b"\x1f\x8b", (b"PK\x03\x04", b"PK\x05\x06")
"""How packed files begin."""

Reader = Literal["archive", "hlo", "log", "none"]
"""What reads a file: as an archive of a logdir, a compiled module, a log that may report an error, or nothing here."""


@dataclass(frozen=True, slots=True)
class NonProfile:
    """A file that is not a profile.

    Attributes:
        what: it is, with an article: ``a TensorBoard event file``.
        hint: what would help; ``{}`` stands for its path.
        reader: what reads it.
    """

    what: str
    hint: str
    reader: Reader = "none"

    def error(self, path: str) -> ProfileError:
        """The error for one who wants a profile's page of it; exit code 3, or 4 for what nothing here reads."""
        shown = printable(path)
        code = EXIT_UNREADABLE if self.reader == "none" else EXIT_NOT_FOUND
        return ProfileError(
            "not_a_profile", f"{shown} is {self.what}, not a profile.", self.hint.replace("{}", shown), code
        )


_PROFILE = "the profile of such a run is at LOGDIR/plugins/profile/RUN/HOST.xplane.pb"
_UNPACK = "{} {{}} unpacks it; open its contents then: .zip, .tar and .tar.gz archives can be opened directly"
_LOGDIR = "open its folder, where profiles in plugins/profile are found; jax.profiler.start_trace() writes some"
_AGAIN = "wait until the copy has ended, or copy it again: then {} is gone, and the whole file is there"
_ARCHIVE = NonProfile("an archive", "tpuprof-tui {} reads the profiles in it", "archive")
_HLO = NonProfile("a compiled HLO module", "tpuprof-tui {} opens its memory page", "hlo")
_HLO_TEXT = NonProfile(
    "a text of an XLA dump", "tpuprof-tui report program {}, or tpuprof-tui memory of its folder", "hlo"
)
_LOG = NonProfile("a text", "tpuprof-tui oom {} looks for out-of-memory errors in it", "log")
_EVENTS = NonProfile(KINDS["events"], _LOGDIR)
_PERFETTO = NonProfile(
    "a trace in Perfetto's binary format", f"https://ui.perfetto.dev opens it; of a TPU's capture {_PROFILE}"
)
_USAGE_PROTO = NonProfile(
    "XLA's memory usage report as a proto", "its folder opens: tpuprof-tui FOLDER, with the buffers"
)

_BY_NAME = (
    ((".pftrace", ".perfetto-trace", ".perfetto_trace", ".perfetto-trace.gz"), _PERFETTO),
    ((".nsys-rep", ".qdrep"), NonProfile("a report of Nsight Systems", f"nsys opens it; of XLA's capture {_PROFILE}")),
    (("-memory-usage-report.pb",), _USAGE_PROTO),
    ((".ncu-rep",), NonProfile("a report of Nsight Compute", "ncu opens it")),
)
_BY_BEGIN: tuple[tuple[bytes, NonProfile], ...] = (
    (b"HloModule ", _HLO_TEXT),
    (b"BufferAssignment:", _HLO_TEXT),
    (b"HloLiveRange ", _HLO_TEXT),
    (b"BZh", NonProfile("a file packed with bzip2", _UNPACK.format("bzip2 -dk"))),
    (b"\xfd7zXZ\0", NonProfile("a file packed with xz", _UNPACK.format("xz -dk"))),
    (b"\x28\xb5\x2f\xfd", NonProfile("a file packed with zstd", _UNPACK.format("zstd -d"))),
    (b"7z\xbc\xaf\x27\x1c", NonProfile("a 7z archive", _UNPACK.format("7z x"))),
    (b"Rar!\x1a\x07", NonProfile("a RAR archive", _UNPACK.format("unrar x"))),
    (
        b"SQLite format 3\0",
        NonProfile("a SQLite database", f"if Nsight Systems exported it, nsys opens it; {_PROFILE}"),
    ),
    (b"\x93NUMPY", NonProfile("an array of NumPy", _PROFILE)),
    (b"\x89HDF\r\n", NonProfile("an HDF5 file", _PROFILE)),
    (b"\x89PNG\r\n", NonProfile("a picture", _PROFILE)),
    (b"%PDF-", NonProfile("a PDF", _PROFILE)),
    (b"\x7fELF", NonProfile("a program or library", _PROFILE)),
    (b"PERFILE2", NonProfile("data of Linux perf", "perf report opens it")),
)
_PAGES, _LFS = (b"<!doctype html", b"<html"), b"version https://git-lfs"
_POINTER = NonProfile("a pointer of Git LFS", "git lfs pull fetches the file")
_PAGE = NonProfile(
    "a web page", "was the page saved instead of the file that it links to? curl -L, or the raw file's address"
)
_PICKLES = (b"\x80\x02", b"\x80\x03", b"\x80\x04\x95", b"\x80\x05\x95")
_PICKLE = NonProfile(
    "a Python pickle, such as PyTorch's memory snapshots",
    "pickles may run programs and are never loaded here; https://pytorch.org/memory_viz shows snapshots",
)
_CPROFILE = NonProfile(
    "a dump of Python's cProfile", f"python -m pstats {{}} or snakeviz opens it; of a TPU's capture {_PROFILE}"
)
_PYTHON_CALLS = pattern(rb"[{\xfb][()\xa8\xa9]\x03(?:\0\0\0)?[zZuaAsiIl\xda\xfa\xf5\xe1\xc1\xf3]".decode("latin-1"))
"""How marshal writes a table by (file, line, function), as cProfile saves it."""
_COPY = pattern(r"(.+?)_?\.(?:gstmp|part|partial|crdownload|download|tmp)\Z", re.DOTALL)
_CONTROLS = frozenset({*range(32), 127} - set(b"\t\n\r\f\b\x1b"))
"""Bytes that no text has; a log may have a terminal's escapes."""

HLO_ENDINGS = (".hlo_proto.pb", ".hlo.pb", ".hlo_module.pb")
"""Ends of the names of compiled modules, before ``.gz``."""

_LAST_STAGE = pattern(r".*after_(?:optimizations|codegen).*\.txt|.+-buffer-assignment\.txt|.+\.hlo", re.DOTALL)
_MOST_NAMES = 2000
_MOSTLY = 0.9
_OF_PACKETS = frozenset({(8, 0), (10, 0)})
"""Time and sequence of a packet of Perfetto, one of which each has; a plane has neither."""

_WIRE_TYPES = (0, 1, 2, 5)
_MOST_FIELD = 2000  # numbers of a packet's fields are below


def recognised(path: str) -> NonProfile | None:
    """What a regular file on this machine is; None for what may be a profile, and for what can't be read."""
    name = os.path.basename(path)
    if kind_of(name) != "other":
        return None
    try:
        if not os.path.isfile(path):
            return None
        with open(opened(path), "rb") as file:
            return known(name, file.read(BEGIN_BYTES))
    except (OSError, ValueError):
        return None


def may_be_hlo(path: str) -> bool:
    """Whether a path on this machine may lead to compiled modules, by names and first bytes: a look, no reading."""
    found = recognised(path)
    if found is not None:
        return found.reader in ("hlo", "archive")
    names = [os.path.basename(path)]
    with contextlib.suppress(OSError, ValueError), listed(path) as entries:
        names = [entry.name for entry in itertools.islice(entries, _MOST_NAMES)]
    plain = (name.removesuffix(".gz") for name in names)
    return any(name.endswith(HLO_ENDINGS) or _LAST_STAGE.fullmatch(name) for name in plain)


def known(name: str, begin: bytes) -> NonProfile | None:
    """What a file is by its name and its first `BEGIN_BYTES`; None for what may be a profile, and for nothing known."""
    if (found := _by_name(name)) is not None:
        return found
    if begin.startswith(ZIP):
        return _ARCHIVE
    content = _first_inflated(begin)
    if content[257:262] == b"ustar":
        return _ARCHIVE
    if b"brain.Event:" in content[:64]:
        return _EVENTS
    if (found := of_another_tool(content)) is not None:  # whatever its name says
        return found
    if kind := sibling_kind(name) if kind_of(name) == "other" and not name.endswith(".hlo.pb") else "":
        return NonProfile(f"one of the {kind}", "the HOST.xplane.pb of the same run has the data for it")
    found = next((found for magic, found in _BY_BEGIN if content.startswith(magic)), None) or _by_content(content)
    inside = os.path.splitext(name)[0]
    if found is not None and "packed" in found.what and (is_profile(inside) or inside.endswith(HLO_ENDINGS)):
        of = "a profile" if is_profile(inside) else "a compiled HLO module"
        return replace(found, what=found.what.replace("a file", of))
    return found


def _by_name(name: str) -> NonProfile | None:
    found = next((found for ends, found in _BY_NAME if name.endswith(ends)), None)
    if found is None and (whole := copied_name(name)) is not None:
        return NonProfile(f"a copy of {printable(whole)} that is not finished, or broke off", _AGAIN)
    return found


def of_another_tool(content: bytes) -> NonProfile | None:
    """What another tool wrote, by its first bytes, whatever its name says that it is."""
    if content.startswith(_LFS):
        return _POINTER
    if content.lstrip()[:20].lower().startswith(_PAGES):
        return _PAGE
    if _begins_like_perfetto(content):
        return _PERFETTO
    return _CPROFILE if _PYTHON_CALLS.match(content[:8].decode("latin-1")) else None


def copied_name(name: str) -> str | None:
    """What a file will be called once it is whole, where its name says that it is still being copied; else None."""
    match = _COPY.fullmatch(name)
    if match is None or not (kind_of(match[1]) != "other" or name.endswith((".gstmp", ".crdownload"))):
        return None
    return match[1]


def _by_content(content: bytes) -> NonProfile | None:
    if content.startswith(_PICKLES):
        return _PICKLE
    text = content.lstrip(b"\xef\xbb\xbf \t\r\n")
    if text.startswith((b"{", b"[")) and _is_text(content):  # a trace in JSON, or whatever its reader says that it is
        return None
    if _begins_like_hlo(content):
        return _HLO
    if not text or text.startswith((b"{", b"[")):
        return None
    return _LOG if _is_text(content) else None


def _is_text(content: bytes) -> bool:
    """Whether bytes are a text's: of no other characters than it has, in UTF-8 or UTF-16, or nearly all in ASCII."""
    if content.startswith((b"\xff\xfe", b"\xfe\xff")):  # as PowerShell writes logs
        return True
    if _CONTROLS.intersection(content):
        return False
    try:
        codecs.getincrementaldecoder("utf-8")().decode(content)  # the last character may be cut
    except UnicodeDecodeError:
        return sum(byte < 128 for byte in content) > _MOSTLY * len(content)
    return True


def _first_inflated(begin: bytes) -> bytes:
    """The first bytes of what a file holds, inflated where they begin like gzip."""
    if not begin.startswith(GZIP):
        return begin
    with contextlib.suppress(zlib.error):
        return zlib.decompressobj(wbits=31).decompress(begin, BEGIN_BYTES)
    return b""


def _varint(data: bytes, at: int) -> tuple[int, int]:
    """A number and where it ends; (0, -1) where there is none."""
    value = 0
    for shift in range(10):
        if at + shift >= len(data):
            break
        value |= (data[at + shift] & 127) << (7 * shift)
        if data[at + shift] < 128:
            return value, at + shift + 1
    return 0, -1


def _first_inside(begin: bytes) -> int:
    """Where the content of field 1 of the first message begins, if the message begins with a text or a message."""
    size, at = _varint(begin, 1) if begin.startswith(b"\x0a") else (0, -1)
    if at < 0 or size <= 2 or begin[at : at + 1] != b"\x0a":
        return -1
    return _varint(begin, at + 1)[1]


def _begins_like_hlo(begin: bytes) -> bool:
    """Whether it begins like an HloProto or an HloSnapshot: with a message that begins with a name or a message.

    An XPlane, with which an XSpace begins, never does: its first field is a number.
    """
    at = _first_inside(begin)
    return 0 < at < len(begin) and begin[at] not in _CONTROLS


def _begins_like_perfetto(begin: bytes) -> bool:
    """Whether the first messages in field 1 are no planes, but have fields that only a packet of Perfetto may have.

    The first packet may be longer than what is looked at where it holds the kernel's events: the processor leads them.
    """
    if (first := _first_inside(begin)) > 0 and begin[first : first + 1] == b"\x08":
        return True
    at, strange = 0, False
    while at < len(begin) and begin[at] == 0x0A:
        size, at = _varint(begin, at + 1)
        if at < 0:
            break
        end = at + size
        while at < min(end, len(begin) - 10):
            tag, at = _varint(begin, at)
            field = (tag >> 3, tag & 7)
            if at < 0 or not 0 < field[0] < _MOST_FIELD or field[1] not in _WIRE_TYPES:
                return False
            strange |= field in _OF_PACKETS
            value, behind = _varint(begin, at)
            at = {0: behind, 1: at + 8, 2: behind + value, 5: at + 4}[field[1]]
            if at > end or behind < 0:
                return False
        at = end
    return strange
