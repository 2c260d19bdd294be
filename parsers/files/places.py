"""What the search for profiles asks of the place where files lie: here, of this machine's folders.

Sentences are for printing; names and paths are as they are there.
"""

from __future__ import annotations

import errno
import os
import stat

from tpuprof.parsers.base.errors import EXIT_NOT_FOUND, Problem, ProfileError
from tpuprof.parsers.base.folders import opened
from tpuprof.parsers.base.record import dataclass, field
from tpuprof.parsers.base.text import examples, printable
from tpuprof.parsers.files import folder_search
from tpuprof.parsers.files.core_names import core_label
from tpuprof.parsers.files.file_kinds import recognised

LAYOUT_HINT = "a profile lies at LOGDIR/plugins/profile/RUN/HOST.xplane.pb; any part of that path will do"
FIRST_BYTES = (b"\x0a", b"\x12", b"\x1a", b"\x22", b"\x1f", b"\x83", b"{", b"[")
"""How a profile begins: with a field 1 to 4 of XSpace, as gzip, as Riegeli, or as a trace in JSON."""
GONE = frozenset({errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.ENAMETOOLONG})
"""What the system says of a path that leads nowhere."""


@dataclass(frozen=True, slots=True)
class TimePart:
    """A part of a host's capture, such as a step: only the events that start in it are looked at.

    Attributes:
        words: what it is, ``step 104``.
        spans: where it begins and ends on the host's clock, in order, for all that is no core; ends are outside.
        cuts_events: whether it is an interval, which may begin and end within events.
        cores: the same of each core that has times of its own, by its number; what other cores did is left out. Empty
            where all cores have those of the host.
    """

    words: str
    spans: tuple[tuple[int, int], ...]
    cores: tuple[tuple[int, tuple[tuple[int, int], ...]], ...] = ()
    cuts_events: bool = False

    def of_core(self, number: int) -> tuple[tuple[int, int], ...]:
        """Where it begins and ends for a core; nothing for one that is left out."""
        return dict(self.cores).get(number, ()) if self.cores else self.spans


@dataclass(frozen=True, slots=True)
class HostFile:
    """One profile file, which is there, not empty, and may be read.

    Attributes:
        host: file name without ``.xplane.pb``, ``.xplane.pb.gz``, ``.xplane.riegeli`` or ``.trace.json.gz``;
            `NO_HOST_NAME` where that is all of it.
        path: as to be opened; relative when the query was.
        size_bytes, modified: on disk, so compressed for a packed file; seconds since 1970.
        packed: whether it must be unpacked first, by its name; a reader goes by the first bytes.
        identity, linked: device and inode, (0, 0) where there are none; and whether it is a symbolic link.
        core: the core, cores or chip that is all that is looked at, ``2``, ``0,2`` or ``chip1``; empty for the whole
            host.
        part: the part of the capture that is all that is looked at; None for all of it.
    """

    host: str
    path: str
    size_bytes: int
    modified: float
    packed: bool
    identity: tuple[int, int] = field(default=(0, 0), compare=False, repr=False)
    linked: bool = field(default=False, compare=False, repr=False)
    core: str = ""
    part: TimePart | None = None

    @property
    def label(self) -> str:
        """What figures made of it are called after: the host, or ``host:2`` for one core of it."""
        return core_label(self.host, self.core) if self.core and "," not in self.core else self.host

    @property
    def only_shown(self) -> tuple[str, ...]:
        """What to say of figures of one core, and of those of a part of the capture: a sentence each."""
        whose = "host threads and compiled modules are those of the whole host"
        of_core = f"only {core_label(self.host, self.core)} {'are' if ',' in self.core else 'is'} shown; {whose}"
        of_part = "" if self.part is None else f"only the events that start in {self.part.words} are counted"
        if self.part is not None and self.part.cuts_events:
            of_part += ", as a whole: report timeline --from --to --track 'XLA Ops' cuts them at its ends"
        return tuple(filter(None, (of_core if self.core else "", of_part)))


class Filesystem:
    """Where files lie: the folders of this machine; `parsers.files.remote.folders` has the places that URLs lead to.

    Paths are absolute, relative, or URLs; their parts stand between slashes.
    """

    def walk(self, limits: folder_search.SearchLimits) -> folder_search.Walk:
        return folder_search.Walk(limits)

    def exists(self, path: str) -> bool:
        """Whether something is there, be it a link that leads nowhere.

        Raises:
            ProfileError: `unreadable`, for what may not be looked up, or a mount that lost its server.
        """
        try:
            os.lstat(path)
        except OSError as error:
            if error.errno not in GONE:
                raise unreadable(path, error) from error
            return False
        return True

    def is_folder(self, path: str) -> bool:
        return os.path.isdir(path)

    def name(self, path: str) -> str:
        """The last part of a path, as people read it."""
        return os.path.basename(os.path.abspath(path))

    def inspect(self, path: str) -> HostFile | Problem:
        """A file that can be used, or why it can't; never waits on what is no regular file."""
        shown = printable(path)
        name = os.path.basename(path)
        linked = os.path.islink(path)
        try:
            status = os.stat(path)
            if not stat.S_ISREG(status.st_mode):
                tests = ((stat.S_ISFIFO, "a pipe"), (stat.S_ISSOCK, "a socket"), (stat.S_ISDIR, "a folder"))
                what = next((text for test, text in tests if test(status.st_mode)), "a device")
                hint = "save its output to a file first"
                return Problem("not_a_file", shown, f"{shown} is {what}, not a regular file.", hint)
            if status.st_size == 0:
                return empty(shown)
            os.close(opened(path))
        except OSError as error:
            if linked and error.errno in GONE:
                sentence = f"{shown} is a link to a file that is not there."
                return Problem("dangling_link", shown, sentence, "copy the file that it points to as well")
            return Problem("unreadable", shown, f"{shown} cannot be read: {reason(error)}.", "check its permissions")
        host = folder_search.host_name(name) or folder_search.NO_HOST_NAME
        identity, packed = (status.st_dev, status.st_ino), name.endswith(folder_search.PACKED)
        return HostFile(host, path, status.st_size, status.st_mtime, packed, identity, linked)

    def modified(self, path: str) -> float:
        """Seconds since 1970; 0 where that is unknown."""
        try:
            return os.lstat(path).st_mtime
        except OSError:
            return 0.0

    def begin(self, path: str) -> bytes | None:
        """A file's first bytes, which identify its format; None where it can't be read: opening it says why."""
        try:
            with open(opened(path), "rb") as file:
                return file.read(folder_search.BEGIN_BYTES)
        except OSError:
            return None

    def missing(self, path: str) -> ProfileError:
        """For a path that does not exist: the nearest folder that does, and what in it looks like what was meant."""
        parent, missing = os.path.split(path)
        while parent and not os.path.isdir(parent) and parent != os.path.dirname(parent):
            parent, missing = os.path.split(parent)
        return nearest(path, parent, missing, folder_search.names_in(parent, 2000))


def is_archive(where: str) -> bool:
    """Whether a path leads to an archive; a folder, or what is a profile by its name, is not searched."""
    if folder_search.kind_of(os.path.basename(where)) != "other" or not os.path.isfile(where):
        return False

    found = recognised(where)
    return found is not None and found.reader == "archive"


def inside(where: str) -> str:
    """What is in an archive on this machine, unpacked into the cache folder; any other path as it is."""
    if is_archive(where):
        from tpuprof.parsers.files.archives import unpacked  # noqa: PLC0415 - for archives alone

        where = unpacked(where).folder
        while os.path.isdir(where) and len(below := os.listdir(where)) == 1:  # the folder that was archived
            where = os.path.join(where, below[0])
    return where


def nearest(path: str, parent: str, missing: str, names: list[str]) -> ProfileError:
    """For a path that does not exist: `parent` above it does, and holds `names`, but nothing named `missing`."""
    import difflib  # noqa: PLC0415 - for an error alone

    close = difflib.get_close_matches(missing, names, 1)
    hint = f"did you mean {printable(os.path.join(parent, close[0]))}?" if close else LAYOUT_HINT
    holds = f"which holds {examples(names)}" if names else "which is empty or may not be listed"
    sentence = f"the nearest folder that does is {printable(parent or '.')}, {holds}"
    return ProfileError("not_found", f"{printable(path)} does not exist; {sentence}.", hint, EXIT_NOT_FOUND)


def empty(shown: str) -> Problem:
    """For a file without a byte."""
    sentence = f"{shown} holds 0 bytes: the profiler wrote nothing, as it does past protobuf's limit of 2 GB."
    hint = "capture fewer seconds or steps; if the capture is still being written, wait for its end"
    return Problem("empty_file", shown, sentence, hint)


def unreadable(path: str, error: OSError) -> ProfileError:
    """For a folder that the search began at, and may not list."""
    sentence = f"{printable(path)} cannot be read: {reason(error)}."
    return ProfileError("unreadable", sentence, "check its permissions and those of the folders above it")


def reason(error: OSError) -> str:
    """What the system says, fit to print."""
    return printable((error.strerror or str(error)).lower())
