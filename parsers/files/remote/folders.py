"""Profiles behind a URL: the search of `parsers.files.logdir` in buckets, and wherever else fsspec leads.

Folders are listed, and nothing is downloaded until a profile is opened (`parsers.files.remote.cache`). A web server has
no folders: only the address of a file opens. Paths in here are URLs without what logs in, so that all of them may be
printed; `HostFile.path` is the whole URL, and may not.
"""

from __future__ import annotations

import contextlib
import errno
import posixpath
from collections.abc import Iterator
from urllib.parse import unquote, urlsplit

from tpuprof.parsers.base.errors import EXIT_NOT_FOUND, Problem, ProfileError
from tpuprof.parsers.base.record import replace
from tpuprof.parsers.base.text import natural_key, printable
from tpuprof.parsers.base.urls import is_http, printable_url, request_url, split, without_login
from tpuprof.parsers.files import folder_search
from tpuprof.parsers.files.places import LAYOUT_HINT, Filesystem, HostFile, empty, nearest
from tpuprof.parsers.files.remote import files as drivers
from tpuprof.parsers.files.remote.cache import distrust_if_changed
from tpuprof.parsers.files.remote.files import Facts, failures, modified_of, open_stream, size_of

MAXIMUM_FOLDERS = 300  # each one takes a round trip
MAXIMUM_ENTRIES = 50_000
_LONGEST_NAME = 1024
_FOLDERS_ABOVE = 8  # that are searched for the nearest that exists


def remote_limits(limits: folder_search.SearchLimits) -> folder_search.SearchLimits:
    """The bounds of a search where each folder takes a round trip."""
    entries, folders = min(limits.max_entries, MAXIMUM_ENTRIES), min(limits.max_folders, MAXIMUM_FOLDERS)
    return replace(limits, max_entries=entries, max_folders=folders)


def remote_filesystem(url: str) -> tuple[RemoteFilesystem, str, str]:
    """Where a URL leads to: the place, the path there without slashes at its end, and the beginning of all its paths.

    Raises:
        ProfileError: as `parsers.files.remote.files.files_of`, or `not_found` for what is not an address.
    """
    begin, path, _ = split(url)
    try:
        usable = "\0" not in url and bool(request_url(url).encode("utf-8", "surrogateescape"))
    except UnicodeEncodeError:
        usable = False
    is_whole_place = not path.strip("/") and not begin.startswith("memory") and (is_http(url) or begin.endswith("://"))
    if not usable or is_whole_place:
        missing = "file" if is_http(url) else "bucket"
        raise ProfileError("not_found", f"{printable_url(url)} names no {missing}.", LAYOUT_HINT, EXIT_NOT_FOUND)
    place = RemoteFilesystem(url)
    return place, place.asked, without_login(begin)


class RemoteFilesystem(Filesystem):
    """Where a URL leads; lives for one search, and remembers what it has listed."""

    def __init__(self, url: str) -> None:
        self._begin, path, self._query = split(url)
        self._shown_begin = without_login(self._begin)
        self.asked = self._shown_begin + path.rstrip("/")
        self._is_http = is_http(url)
        self._files = drivers.files_of(url)
        self._facts: dict[str, Facts] = {}

    def url(self, path: str) -> str:
        """The whole address of a path: with the login that was given, and with the query for what was asked for."""
        return self._begin + path[len(self._shown_begin) :] + (self._query if path == self.asked else "")

    def walk(self, limits: folder_search.SearchLimits) -> folder_search.Walk:
        return _RemoteWalk(limits, self)

    def exists(self, path: str) -> bool:
        """See `Filesystem.exists`.

        Raises:
            ProfileError: `no_permission` or `connection`.
        """
        try:
            self._known(path)
        except failures() as error:
            if drivers.is_missing(error) or (drivers.status_of(error) == 400 and folder_search.MAGIC.search(path)):
                return False
            raise drivers.trouble(self.url(path), error) from error
        return True

    def is_folder(self, path: str) -> bool:
        try:
            return self._known(path).get("type") == "directory"
        except failures():
            return False

    def name(self, path: str) -> str:
        name = path.rstrip("/").rpartition("/")[2]
        return unquote(name, errors="surrogateescape") if self._is_http else name

    def inspect(self, path: str) -> HostFile | Problem:
        name = self.name(path)
        text = printable(path)
        try:
            facts = self._known(path)
        except failures() as error:
            wrong = drivers.trouble(self.url(path), error)
            return Problem("unreadable", text, wrong.sentence, wrong.hint)
        if facts.get("type") == "directory":
            return Problem("not_a_file", text, f"{text} is a folder, not a file.", "open the folder")
        size = size_of(facts)
        if size == 0:
            return empty(text)
        distrust_if_changed(self.url(path), facts)
        host = folder_search.host_name(name) or folder_search.NO_HOST_NAME
        return HostFile(host, self.url(path), size or 0, modified_of(facts), name.endswith(folder_search.PACKED))

    def modified(self, path: str) -> float:
        return modified_of(self._facts.get(path, {}))

    def begin(self, path: str) -> bytes | None:
        try:
            with contextlib.closing(open_stream(self._files, self.url(path))) as stream:
                return drivers.answered(path, lambda: stream.read(folder_search.BEGIN_BYTES))
        except failures():
            return None

    def missing(self, path: str) -> ProfileError:
        """See `Filesystem.missing`; of the folders above the next few are searched."""
        parent, _, name = path.rpartition("/")
        for _ in range(_FOLDERS_ABOVE):
            names: list[str] = []
            if len(parent) >= len(self._shown_begin):
                with contextlib.suppress(OSError):
                    names = [name for name, _ in self.listed(parent)]
            if names:
                return nearest(path, parent, name, sorted(names[:2000], key=natural_key))
            parent, _, name = parent.rpartition("/")
        hint = "check the address"
        if self._is_http:
            hint += "; of a web server only single files are opened"
        return ProfileError("not_found", f"{printable(path)} does not exist.", hint, EXIT_NOT_FOUND)

    def listed(self, path: str) -> Iterator[tuple[str, Facts]]:
        """Names in a folder and what is known of them, none on the web; names that no file can have are left out.

        Raises:
            OSError: the folder can't be listed, with the reason.
        """
        try:
            entries = [] if self._is_http else self._list(path)
        except failures() as error:
            raise OSError(errno.EIO, drivers.why(error)) from error
        for name, facts in entries:
            if name not in ("", ".", "..") and "\0" not in name and len(name) <= _LONGEST_NAME:
                self._facts[posixpath.join(path, name)] = facts
                yield name, facts

    @property
    def redirects(self) -> tuple[Problem, ...]:
        """A sentence for each file that another server gives in the place of the one that was asked."""
        places = [(path, str(facts.get("url") or path)) for path, facts in self._facts.items() if self._is_http]
        others = [(path, server) for path, url in places if (server := _server(url)) != _server(self._shown_begin)]
        return tuple(
            Problem("redirected", printable(path), f"{printable(path)} comes from another server, {printable(server)}.")
            for path, server in others
        )

    def _known(self, path: str) -> Facts:
        """What is known of a path, asked for once.

        Raises:
            one of `failures()`.
        """
        if path not in self._facts:
            self._facts[path] = drivers.facts_of(self._files, self.url(path))
        return self._facts[path]

    def _list(self, path: str) -> list[tuple[str, Facts]]:
        entries = drivers.answered(path, lambda: self._files.ls(self.url(path), detail=True))
        named = [(str(facts.get("name", "")).strip("/"), facts) for facts in entries]
        folder = path.partition("://")[2].strip("/")  # a bucket's folder may hold a thing that stands for itself
        return [(name.rpartition("/")[2], facts) for name, facts in named if name != folder]


def _server(url: str) -> str:
    """The machine of a web address, without the port that is meant anyway."""
    return urlsplit(url).netloc.lower().removesuffix(":80").removesuffix(":443")


class _RemoteWalk(folder_search.Walk):
    """A search through the folders of a remote place."""

    def __init__(self, limits: folder_search.SearchLimits, place: RemoteFilesystem) -> None:
        super().__init__(limits)
        self._place = place
        self._listed: set[str] = set()

    def begins_at(self, path: str) -> bool:
        return False

    def was_listed(self, folder: folder_search.Folder) -> bool:
        is_known = folder.path in self._listed
        self._listed.add(folder.path)
        return is_known

    def fill(self, folder: folder_search.Folder) -> None:
        for name, facts in self._place.listed(folder.path):
            if not self.may_take():
                break
            if facts.get("type") == "directory":
                folder.subfolders.append((name, False))
            else:
                folder.files[folder_search.kind_of(name)].append(name)
                folder.modified = max(folder.modified, modified_of(facts))

    def list_names(self, path: str, limit: int) -> list[str]:
        try:
            names = [name for _, (name, _) in zip(range(limit), self._place.listed(path), strict=False)]
        except OSError:
            return []
        return sorted(names, key=natural_key)
