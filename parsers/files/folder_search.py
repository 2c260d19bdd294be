"""Walks folders for profiles: bounded, in a useful order, without following a link into a circle."""

from __future__ import annotations

import contextlib
import fnmatch
import itertools
import os
from collections import defaultdict, deque
from collections.abc import Callable, Iterable
from typing import Literal

from tpuprof.parsers.base.folders import listed
from tpuprof.parsers.base.record import dataclass, field
from tpuprof.parsers.base.regex import pattern
from tpuprof.parsers.base.text import counted, natural_key

BEGIN_BYTES = 4096
"""How many of its first bytes are needed to recognise a file."""

NO_HOST_NAME = "(no host name)"

MAGIC = pattern(r"[*?\[]")
_MOST_BESIDE = 10_000


@dataclass(frozen=True, slots=True)
class SearchLimits:
    """Bounds of one search, so that ``/`` or a data folder full of checkpoints ends it soon.

    Attributes:
        max_depth: levels below the given folder that are still listed.
        max_entries: folder entries looked at altogether, nearest folders and ``plugins/profile`` first.
        max_folders: folders listed altogether, in the same order.
        pruned: names of folders that are not entered (unless given themselves).
    """

    max_depth: int = 8
    max_entries: int = 200_000
    max_folders: int = 200_000
    pruned: frozenset[str] = frozenset(
        {".git", ".hg", ".svn", "node_modules", "site-packages", "dist-packages", "__pycache__", ".Trash"}
    ) | frozenset({".tox", ".nox", ".venv", ".cache", ".mypy_cache", ".ruff_cache", ".pytest_cache"})


DEFAULT_LIMITS = SearchLimits()


def names_in(folder: str, limit: int) -> list[str]:
    """At most `limit` names in a folder, in natural order; none where it cannot be read."""
    try:
        with listed(folder) as entries:
            return sorted((entry.name for entry in itertools.islice(entries, limit)), key=natural_key)
    except OSError:
        return []


def expand_glob(
    start: str, pattern: str, new_walk: Callable[[], Walk], exists: Callable[[str], bool]
) -> tuple[list[str], list[str]]:
    """Paths that match, and lines on bounds that were hit; unlike glob.glob, ``**`` has some, and fears no loops."""
    current = [start]
    lines: list[str] = []
    for part in (part for part in pattern.split("/") if part not in ("", ".")):
        walk = new_walk()
        if part == "**":
            walk.search(current)
            current = [folder.path for folder in walk.folders]
        elif MAGIC.search(part):
            current = [os.path.join(folder, name) for folder in current for name in walk.names(folder, part)]
        else:
            current = [path for path in (os.path.join(folder, part) for folder in current) if exists(path)]
        lines += walk.bounds_hit()
    return sorted((path or "." for path in current), key=natural_key), lines


FileKind = Literal["profile", "hlo", "cache", "trace", "events", "other"]
KINDS: dict[FileKind, str] = {
    "hlo": "an HLO module saved beside a profile",
    "cache": "a file that XProf keeps for itself",
    "events": "a TensorBoard event file",
}
RIEGELI = ".xplane.riegeli"
"""End of the name of a profile that was written in records."""
PACKED = (".gz", ".json", RIEGELI)
"""Ends of the names of files that must be unpacked, or translated."""
# File names by their ends. The caches are what XProf 2.24 was seen to write into run folders, and what older ones did.
_SUFFIXES: dict[FileKind, tuple[str, ...]] = {
    "profile": (".xplane.pb", ".xplane.pb.gz", RIEGELI),
    "hlo": (".hlo_proto.pb",),
    "cache": (
        *(".op_stats_v2.pb", ".op_stats.pb", ".smart_suggestion.pb", ".dcn_collective_stats.pb"),
        *(".SSTABLE", ".cache_version.txt", ".cached_tools.json"),
    ),
    "trace": (".trace.json.gz", ".trace.json", ".perfetto_trace.json.gz"),
}


def kind_of(name: str) -> FileKind:
    """What a file is by its name; with a dot in front, so that a bare ``xplane.pb`` counts, as it does for XProf."""
    if name.startswith("._"):  # what macOS leaves beside every file on a foreign disk and in a tar
        return "other"
    if name.startswith("events.out.tfevents"):
        return "events"
    return next((kind for kind, suffixes in _SUFFIXES.items() if f".{name}".endswith(suffixes)), "other")


PPROF = (".prof", ".pprof", ".prof.gz", ".pprof.gz")
"""Ends of the names of pprof profiles; JAX's examples call that of device memory ``memory.prof``."""


def is_pprof_name(name: str) -> bool:
    """Whether a file is a pprof profile by its name."""
    return name.endswith(PPROF) and not os.path.basename(name).startswith("._")


def is_profile(name: str) -> bool:
    """Whether a file is a profile by its name."""
    return kind_of(name) == "profile"


def is_trace(name: str) -> bool:
    """Whether a file is a trace for a viewer by its name; it is read where there is no profile."""
    return kind_of(name) == "trace"


def readable(paths: list[str]) -> list[str]:
    """The profiles among some files; where there is none, the traces, each of them once.

    JAX writes a trace of a host twice, the second time without the host's name.
    """
    names = {path: os.path.basename(path) for path in paths}
    traces = [path for path in paths if is_trace(names[path])]
    profiles = [path for path in paths if is_profile(names[path])]
    return profiles or [path for path in traces if host_name(names[path])] or traces


def host_name(name: str) -> str:
    """The host that the file name of a profile or a trace stands for."""
    suffixes = (*_SUFFIXES["profile"], *reversed(_SUFFIXES["trace"]))
    return next((f".{name}"[: -len(suffix)][1:] for suffix in suffixes if f".{name}".endswith(suffix)), name)


# What lies beside the profiles in a run's folder; none of it is read, as all that it holds is computed from them.
# TensorFlow 2.2 wrote the pages of its own analysis and a trace for a viewer. From 2.3 on the profile itself lies
# beside them, and later the pages are gone.
_BESIDE: dict[str, tuple[str, ...]] = {
    "files named like device memory profiles": PPROF,
    "compiled HLO modules": (".hlo_proto.pb", ".hlo.pb"),
    "traces for a viewer": (".trace.json.gz", ".trace.json"),
    "traces of TensorFlow 2.1 or older": (".trace",),
    "pages that TensorFlow computed": (
        *(".overview_page.pb", ".input_pipeline.pb", ".tensorflow_stats.pb", ".kernel_stats.pb"),
        *(".memory_profile.json.gz", ".overview_page.json", ".input_pipeline.json", ".memory_viewer.json"),
        *(".op_profile.json", ".pod_viewer.json"),
    ),
}
OF_TENSORFLOW = ("traces of TensorFlow 2.1 or older", "pages that TensorFlow computed")
"""Of these what TensorFlow before 2.3 left in place of a profile."""


@dataclass(frozen=True, slots=True)
class SiblingFiles:
    """Files of one kind in a run's folder: what they are, in the plural, how many, and the name of one."""

    kind: str
    count: int
    example: str


def sibling_kind(name: str) -> str:
    """What a file beside profiles is by its name, in the plural; empty for what is none of them."""
    return next((kind for kind, suffixes in _BESIDE.items() if f".{name}".endswith(suffixes)), "")


def sibling_files(folder: str) -> tuple[SiblingFiles, ...]:
    """The files in a run's folder that are known by their names and are no profiles, by kind.

    () for a single file that was opened alone, and for a folder that cannot be listed. At most `_MOST_BESIDE` names are
    looked at.
    """
    by_kind: dict[str, list[str]] = {}
    for name in sorted(names_in(folder, _MOST_BESIDE)):
        if kind := sibling_kind(name):
            by_kind.setdefault(kind, []).append(name)
    return tuple(SiblingFiles(kind, len(names), names[0]) for kind, names in by_kind.items())


@dataclass(slots=True)
class Folder:
    """What one folder holds: subfolders, and file names by kind."""

    path: str
    modified: float = 0.0
    subfolders: list[tuple[str, bool]] = field(default_factory=list)  # name, whether it is a symbolic link
    files: dict[FileKind, list[str]] = field(default_factory=lambda: defaultdict(list))
    refusal: OSError | None = None  # why it may not be listed, or not to its end

    def take(self, entry: os.DirEntry[str]) -> None:
        with contextlib.suppress(OSError):  # a link that leads round in circles: no folder, so inspected as a file
            if entry.is_dir():
                self.subfolders.append((entry.name, entry.is_symlink()))
                return
        self.files[kind_of(entry.name)].append(entry.name)

    def profiles(self) -> list[str]:
        """Names of profile files; where there is none, of traces that were made from some."""
        return readable(self.files["profile"] or self.files["trace"])

    def stand_ins(self, name: str) -> list[str]:
        """Names of other files of a profile's host, the most informative one first."""
        others = [other for other in self.files["profile"] if other.endswith(RIEGELI)] + self.files["trace"]
        return [other for other in others if other != name and host_name(other) == host_name(name)]

    def pprofs(self) -> list[str]:
        return [os.path.join(self.path, name) for name in self.files["other"] if is_pprof_name(name)]

    def holds(self) -> list[str]:
        """Names of all that is in it, subfolders first and with a slash."""
        folders = [f"{name}/" for name, _ in self.subfolders]
        files = [name for names in self.files.values() for name in names]
        return sorted(folders, key=natural_key) + sorted(files, key=natural_key)

    def is_run_folder(self) -> bool:
        """Whether it lies where only runs do, whatever it holds."""
        return absolute(self.path).split("/")[-3:-1] == ["plugins", "profile"]


def absolute(path: str) -> str:
    """A path from the root on; a URL becomes one by a slash in front, so that the same rules hold for its parts."""
    return f"/{path}" if "://" in path else os.path.abspath(path)


def identity(path: str) -> tuple[int, int] | None:
    """Device and inode of what a path leads to, None where it leads nowhere."""
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_dev, status.st_ino


def folders_above(path: str) -> set[tuple[int, int]]:
    """Identities of all folders that hold a path: a link to one of them would lead round in circles."""
    above = set()
    folder = os.path.realpath(path)
    while folder != os.path.dirname(folder):
        folder = os.path.dirname(folder)
        above.add(identity(folder) or (0, 0))
    return above


class Walk:
    """A bounded search that lists every folder once, whatever links lead to it."""

    def __init__(self, limits: SearchLimits) -> None:
        self.limits = limits
        self.folders: list[Folder] = []
        self.denied: list[tuple[str, OSError]] = []
        self._pruned = 0
        self._too_deep = 0
        self._unlisted = 0
        self._full = False
        self._entries = 0
        self._seen: set[tuple[int, int]] = set()
        self._above: set[tuple[int, int]] = set()

    def search(self, starts: Iterable[str]) -> None:
        """Lists the folders and what is below them, nearest first, symbolic links last: real paths name the runs."""
        near: deque[tuple[str, int]] = deque()
        linked: deque[tuple[str, int]] = deque()
        for start in starts:
            (linked if self.begins_at(start) else near).append((start, 0))
        while (near or linked) and not self._full:
            if len(self.folders) >= self.limits.max_folders:
                self._unlisted = len(near) + len(linked)
                break
            path, depth = (near or linked).popleft()
            folder = self.list_folder(path)
            if folder is None:
                continue
            self.folders.append(folder)
            for name, is_link in sorted(folder.subfolders, key=lambda pair: natural_key(pair[0])):
                below = os.path.join(path, name)
                is_pruned = name in self.limits.pruned or below in ("/proc", "/sys", "/dev")
                is_too_deep = not is_pruned and depth >= self.limits.max_depth
                self._pruned += is_pruned
                self._too_deep += is_too_deep
                if is_pruned or is_too_deep:
                    continue
                if is_link:
                    if identity(below) not in self._above:  # a link up would lead to all that was not asked for
                        linked.append((below, depth + 1))
                elif name in ("plugins", "profile") or os.path.basename(path) == "profile":
                    near.appendleft((below, depth + 1))
                else:
                    near.append((below, depth + 1))

    def begins_at(self, path: str) -> bool:
        """Takes note of what is above a start; whether that is a link."""
        self._above |= folders_above(path)
        return os.path.islink(path)

    def list_folder(self, path: str) -> Folder | None:
        """What a folder holds, as far as it may be listed (see `denied`); None when it was listed before."""
        folder = Folder(path)
        try:
            if self.was_listed(folder):
                return None
            self.fill(folder)
        except OSError as error:
            self.denied.append((path, error))
            folder.refusal = error
        return folder

    def was_listed(self, folder: Folder) -> bool:
        """Whether it was listed before, by whatever path; notes when it was modified. Raises OSError."""
        status = os.stat(folder.path or ".")
        folder.modified, key = status.st_mtime, (status.st_dev, status.st_ino)
        if key in self._seen:
            return True
        if status.st_ino:  # 0 where a file system has no such numbers; the other bounds end loops there
            self._seen.add(key)
        return False

    def fill(self, folder: Folder) -> None:
        """Lists a folder; raises OSError where that is refused."""
        with listed(folder.path) as entries:
            for entry in entries:
                if not self.may_take():
                    break
                folder.take(entry)

    def may_take(self) -> bool:
        """Counts an entry; False where the search has seen enough."""
        self._full = self._entries >= self.limits.max_entries
        self._entries += not self._full
        return not self._full

    def names(self, path: str, pattern: str) -> list[str]:
        """Names in a folder that match one part of a glob; those with a leading dot only when the pattern has one."""
        names = self.list_names(path, self.limits.max_entries - self._entries)
        self._entries += len(names)
        self._full = self._entries >= self.limits.max_entries
        hidden = pattern.startswith(".")
        return [name for name in names if (hidden or name[0] != ".") and fnmatch.fnmatchcase(name, pattern)]

    def list_names(self, path: str, limit: int) -> list[str]:
        """At most `limit` names in a folder, in natural order; none where it cannot be read."""
        return names_in(path, limit)

    def bounds_hit(self) -> list[str]:
        """A line for each bound that kept the search from going everywhere."""
        lines = []
        if self._full:
            entries = counted(self.limits.max_entries, "folder entry", "folder entries")
            lines.append(f"stopped after {entries}, there may be more: open a deeper folder to search the rest")
        if self._unlisted:
            listed = counted(self.limits.max_folders, "folder")
            lines.append(f"stopped after {listed}, {self._unlisted:,} were left: open a deeper one to search the rest")
        if self._too_deep:
            lines.append(f"not searched: {counted(self._too_deep, 'folder')} below level {self.limits.max_depth}")
        if self._pruned:
            lines.append(f"not searched: {counted(self._pruned, 'folder')} such as .git, node_modules, site-packages")
        return lines
