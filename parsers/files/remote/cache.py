"""Copies of remote profiles: kept while there is room, each for as long as the original stays as it is.

A file is fetched whole or not at all. A download goes into a temporary file of the cache folder, and gets its final
name when it is whole and the original has not changed meanwhile. Threads and processes that want the same file at the
same time each fetch it, and the last copy stays.

Copies lie in ``$XDG_CACHE_HOME/tpuprof-tui/remote`` by the rules of all caches (`parsers.base.cache`). A copy's name is
made of hashes: one of the address, without what logs in, and one of the original's size and version. Its modification
time says when it was last compared with the original.

fsspec opens the streams, but its ``filecache`` and ``simplecache`` keep no copies here. Both take a changed web page
for the same, know no bound on the bytes of all copies, and download without progress and without cancelling.
``simplecache`` also takes what a lost connection left for the whole file.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import re
import time
from collections.abc import Callable
from functools import partial

from tpuprof.parsers.base.cache import CacheFolder, Entry, is_unwritable
from tpuprof.parsers.base.errors import EXIT_USAGE, ProfileError
from tpuprof.parsers.base.folders import write_at
from tpuprof.parsers.base.record import dataclass
from tpuprof.parsers.base.text import printable
from tpuprof.parsers.base.urls import printable_url, split, without_login
from tpuprof.parsers.files.places import reason
from tpuprof.parsers.files.remote import files as drivers
from tpuprof.parsers.files.remote.files import Facts, RemoteFiles, size_of, version_of

OnBytes = Callable[[int, int | None], None]
"""Called with the bytes that are here, and with all that there are, or None where the server does not say."""

FRESH_SECONDS = 60  # a copy compared this short ago is taken as it is: one page opens the same file several times
OFFLINE_SECONDS = 12 * 3600  # a copy compared this short ago stands in when the server can't be reached
SLOW_SECONDS, SLOW_BYTES = 60.0, 60_000  # a server that sends less in such a time may drip for days: it is given up
_WITHOUT_SIZE = 2 << 30  # bytes of a file whose server does not report its size: it may never end
_PAUSE_SECONDS = 0.4  # before a server that can't be reached is asked once more
_SMALLEST_CHUNK = 1 << 18
_LARGEST_CHUNK = 1 << 24
_NO_ROOM = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})


def open_remote(url: str, on_bytes: OnBytes = lambda _done, _total: None) -> int:
    """A descriptor of a local copy of `url`, to be closed by the caller; while it is open the copy stays.

    Args:
        url: with a scheme that fsspec knows.
        on_bytes: called on this thread while the file is fetched, while its server is silent too; not at all when the
            copy is there. What it raises, such as `Cancelled`, ends the work.

    Raises:
        ProfileError: `driver_missing`, `unsupported_scheme`, `not_found`, `not_a_file`, `no_permission`, `connection`,
            `too_slow`, `changing` (the original changed while it was fetched), `wrong_size` (more comes than was
            announced), `disk_full` or `cache` (the folder can't be written).
    """
    return _Fetch(url, on_bytes).open()


def distrust_if_changed(url: str, facts: Facts) -> None:
    """Has a copy compared again before its next use, when a listing shows that the original is another by now."""
    with contextlib.suppress(OSError, ProfileError):
        store, key = Store(), url_key(url)
        for copy in store.copies(key):
            if copy.name != f"{key}-{version_key(size_of(facts), version_of(facts))}":
                os.utime(store.place(copy.name), (time.time(), 0), follow_symlinks=False)


@dataclass(frozen=True, slots=True)
class _Original:
    """The file as its server describes it, and what distinguishes it from other versions."""

    files: RemoteFiles
    size: int | None
    version: str
    key: str


class _Fetch:
    """One wish for one file."""

    def __init__(self, url: str, on_bytes: OnBytes) -> None:
        self.url, self._shown, self._key = url, printable_url(url), url_key(url)
        self.store = Store()
        self._on_bytes = on_bytes

    def open(self) -> int:
        if (known := self._compared(FRESH_SECONDS)) is not None:
            return known
        try:
            original = self._ask(drivers.files_of(self.url))
        except ProfileError as error:
            known = self._compared(OFFLINE_SECONDS) if error.code == "connection" else None
            if known is None:
                raise
            return known
        try:
            return self._current(original)
        except OSError as error:
            raise self._disk_trouble(error, original.size) from error

    def _compared(self, seconds: float) -> int | None:
        """A copy that was like its original this short ago."""
        with contextlib.suppress(OSError):
            ages = [(abs(time.time() - copy.modified), copy.name) for copy in self.store.copies(self._key)]
            age, name = min(ages, default=(seconds, ""))
            if age < seconds:
                return self.store.use(name)
        return None

    def _ask(self, files: RemoteFiles, is_second_try: bool = False) -> _Original:
        """Asks the server about the file, and once more where it can't be reached."""
        try:
            facts = drivers.facts_of(files, self.url)
        except drivers.failures() as error:
            problem = drivers.trouble(self.url, error)
            if problem.code != "connection" or is_second_try:
                raise problem from error
            time.sleep(_PAUSE_SECONDS)
            return self._ask(files, is_second_try=True)
        if facts.get("type") == "directory":
            raise ProfileError("not_a_file", f"{self._shown} is a folder.", "name a profile file")
        size, version = size_of(facts), version_of(facts)
        return _Original(files, size, version, version_key(size, version))

    def _current(self, original: _Original) -> int:
        """The copy of this version, fetched where it is not there yet."""
        name = f"{self._key}-{original.key}"
        if original.version:  # without one the copy may be of an older file of the same size
            known = self.store.use(name, original.size, compared=True)
            if known is not None:
                return known
        temporary, descriptor = self.store.begin(name, original.size or 0)
        try:
            self._download(original, descriptor)
            if temporary:
                self.store.keep(temporary, descriptor, name)
        except BaseException:
            os.close(descriptor)
            if temporary:
                with contextlib.suppress(OSError):
                    os.unlink(temporary)
            raise
        return descriptor

    def _download(self, original: _Original, descriptor: int) -> None:
        """Fetches all bytes into an empty file, and checks that the original is still what it was."""
        try:
            done = self._copied(original, descriptor)
        except drivers.failures() as error:
            if isinstance(error, OSError) and error.errno in _NO_ROOM:
                raise
            raise drivers.trouble(self.url, error) from error
        if original.size is not None and done < original.size:
            sentence = f"{self._shown} ends after {done:,} of the {original.size:,} bytes that were announced."
            hint = "try again; if this happens again, the server or a proxy is broken"
            raise ProfileError("connection", sentence, hint)
        if self._ask(original.files).key != original.key:
            sentence = f"{self._shown} changes faster than it can be fetched."
            raise ProfileError("changing", sentence, "it is being written; try again when the capture has ended")

    def _copied(self, original: _Original, descriptor: int) -> int:
        """Copies until nothing more comes; returns how many bytes came."""
        limit = min(self.store.bound, _WITHOUT_SIZE) if original.size is None else original.size
        with contextlib.closing(drivers.open_stream(original.files, self.url)) as stream:
            chunk, done = _SMALLEST_CHUNK, 0
            since, had = time.monotonic(), 0
            while True:
                began = time.monotonic()
                if began - since > SLOW_SECONDS:
                    if done - had < SLOW_BYTES:
                        raise self._too_slow()
                    since, had = began, done
                read = partial(stream.read, min(chunk, limit + 1 - done))
                data = drivers.answered(self.url, read, partial(self._on_bytes, done, original.size))
                if not data:
                    return done
                if done + len(data) > limit:
                    raise self._too_much(original.size, limit)
                write_at(descriptor, done, data)
                done += len(data)
                self._on_bytes(done, original.size)
                took = time.monotonic() - began
                if took < 0.2 and len(data) == chunk:  # large enough for the line, small enough to be cancelled
                    chunk = min(2 * chunk, _LARGEST_CHUNK)
                elif took > 1:
                    chunk = max(chunk // 2, _SMALLEST_CHUNK)

    def _too_slow(self) -> ProfileError:
        sentence = f"{self._shown} arrives too slowly: fewer than {SLOW_BYTES:,} bytes in {SLOW_SECONDS:g} s."
        return ProfileError("too_slow", sentence, "check the connection, or copy the file here yourself")

    def _too_much(self, size: int | None, limit: int) -> ProfileError:
        if size is None:
            sentence = f"{self._shown} is larger than {limit:,} bytes, and its server does not say by how much."
            return ProfileError("wrong_size", sentence, "copy the file here yourself")
        sentence = f"{self._shown} was announced with {size:,} bytes, but more arrived; the rest was cut off."
        return ProfileError("wrong_size", sentence, "try again; if this happens again, the server or a proxy is broken")

    def _disk_trouble(self, error: OSError, size: int | None) -> ProfileError:
        folder = printable(self.store.folder)
        if error.errno in _NO_ROOM:
            what = f"the {size:,} bytes of {self._shown}" if size else self._shown
            hint = "free some, or set XDG_CACHE_HOME to a folder on a larger disk"
            return ProfileError("disk_full", f"There is no room in {folder} for {what}.", hint)
        sentence = f"{self._shown} can't be kept in {folder}: {reason(error)}."
        return ProfileError("cache", sentence, "set XDG_CACHE_HOME to a folder that you may write")


# --- the copies: what they are called, and how many bytes of them are kept

BOUND_VARIABLE = "TPUPROF_CACHE_BYTES"
DEFAULT_BOUND = 20_000_000_000
_COPY_NAME = re.compile(r"[0-9a-f]{32}-[0-9a-f]{16}")


def cache_bound() -> int:
    """Bytes that all copies may take together.

    Raises:
        ProfileError: ``TPUPROF_CACHE_BYTES`` is not a number; exit code 2.
    """
    text = os.environ.get(BOUND_VARIABLE, "").strip()
    if not text:
        return DEFAULT_BOUND
    if not re.fullmatch(r"[0-9][0-9_]{0,30}", text):
        sentence = f"{BOUND_VARIABLE} is {printable(text[:40])}, which is not a number of bytes."
        raise ProfileError("usage", sentence, f"{BOUND_VARIABLE}={DEFAULT_BOUND} is the default", EXIT_USAGE)
    return int(text.replace("_", ""))


def url_key(url: str) -> str:
    """Hash of an address, without password; anything else may distinguish one file from another, the user too."""
    begin, path, query = split(url)
    login, at, _ = begin.partition("://")[2].rpartition("@")
    user = login.partition(":")[0] + at
    return _hash(f"{user}{without_login(begin)}{path}?{query}")[:32]


def version_key(size: int | None, version: str) -> str:
    """Hash of what distinguishes one version of a file from another."""
    return _hash(f"{size} {version}")[:16]


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()


class Store(CacheFolder):
    """The copies, by the rules of all caches."""

    def __init__(self) -> None:
        super().__init__("remote", cache_bound())

    def copies(self, key: str = "") -> list[Entry]:
        """Whole copies, of one address or of all."""
        return [copy for copy in self.entries() if copy.name.startswith(key) and _COPY_NAME.fullmatch(copy.name)]

    def use(self, name: str, size: int | None = None, compared: bool = False) -> int | None:
        """Opens a copy and locks it against removal; None where it is not there, not of that size, or no file of ours.

        Args:
            compared: it was like its original just now.
        """
        with contextlib.suppress(OSError):
            descriptor = self.open(name)
            if size is None or os.fstat(descriptor).st_size == size:
                if compared:
                    _note_compared(descriptor)
                return descriptor
            os.close(descriptor)
            self.remove(name)  # it is damaged
        return None

    def begin(self, name: str, size: int) -> tuple[str, int]:
        """A new file for a copy of `size` bytes: the path that `keep` wants, and a descriptor.

        The path is empty where nothing is kept, as the copy is larger than the cache or that can't be written.

        Raises:
            OSError: ENOSPC where the disk has too little room.
        """
        try:
            if self.make_room(size):
                return self.new_file(name)
        except OSError as error:
            if not is_unwritable(error):
                raise
        return "", self.nameless()

    def keep(self, download: str, descriptor: int, name: str) -> None:
        """Gives a whole download its name, and removes older versions of it."""
        os.fsync(descriptor)
        self.finish(download, name)
        _note_compared(descriptor)
        for older in self.copies(name.partition("-")[0]):
            if older.name != name:
                self.remove(older.name)
        self.make_room()


def _note_compared(descriptor: int) -> None:
    with contextlib.suppress(OSError):
        os.utime(descriptor)
