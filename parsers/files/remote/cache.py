"""Copies of remote profiles: fetched once, kept while there is room, each for as long as the original stays as it is.

A download goes into ``<name>.part`` in the cache folder (`parsers.files.remote.store`), locked by who writes it; other
threads and processes that want the same wait for it. It gets its final name when it is whole and the original has not
changed meanwhile. What a lost connection, a cancelled or a killed process left is continued.

fsspec opens the streams, but its ``filecache`` keeps no copies here: it takes what a lost connection left for the whole
file and a changed web page for the same, fetches once a thread, and knows no bound, no continuing and no cancelling.
"""

from __future__ import annotations

import contextlib
import errno
import os
import time
from collections.abc import Callable
from functools import partial

from tpuprof.parsers.base.cache import is_unwritable
from tpuprof.parsers.base.errors import Cancelled, ProfileError
from tpuprof.parsers.base.folders import write_at
from tpuprof.parsers.base.record import dataclass
from tpuprof.parsers.base.text import printable
from tpuprof.parsers.base.urls import printable_url
from tpuprof.parsers.files.places import reason
from tpuprof.parsers.files.remote import files as drivers
from tpuprof.parsers.files.remote.files import Facts, RemoteFiles, size_of, version_of
from tpuprof.parsers.files.remote.store import Store, url_key, version_key

OnBytes = Callable[[int, int | None], None]
"""Called with the bytes that are here, and with all that there are, or None where the server does not say."""

FRESH_SECONDS = 60  # a copy compared this short ago is taken as it is: one page opens the same file several times
OFFLINE_SECONDS = 12 * 3600  # a copy compared this short ago stands in when the server can't be reached
ATTEMPTS = 5  # in a row that bring no byte
SLOW_SECONDS, SLOW_BYTES = 60.0, 60_000  # a server that sends less in such a time may drip for days: it is given up
_WITHOUT_SIZE = 2 << 30  # bytes of a file whose server does not report its size: it may never end
_QUESTIONS = 2
_CHANGES = 3
_POLL_SECONDS = 0.1
_FIRST_PAUSE_SECONDS = 0.2
_LONGEST_PAUSE_SECONDS = 4.0
_SMALLEST_CHUNK = 1 << 18
_LARGEST_CHUNK = 1 << 24
_NO_ROOM = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})


def open_remote(
    url: str, on_bytes: OnBytes = lambda _done, _total: None, is_cancelled: Callable[[], bool] = lambda: False
) -> int:
    """A descriptor of a local copy of `url`, to be closed by the caller; while it is open the copy stays.

    Args:
        url: with a scheme that fsspec knows.
        on_bytes: called on this thread while the file is fetched; not at all when the copy is there.
        is_cancelled: polled between chunks. What is here by then is kept, and continued next time.

    Raises:
        ProfileError: `driver_missing`, `unsupported_scheme`, `not_found`, `not_a_file`, `no_permission`, `connection`,
            `too_slow`, `changing` (the file is being written),
            `wrong_size` (more comes than was announced), `disk_full` or
            `cache` (the folder can't be written).
        Cancelled: `is_cancelled` said so.
    """
    return _Fetch(url, on_bytes, is_cancelled).open()


def distrust_if_changed(url: str, facts: Facts) -> None:
    """Has a copy compared again before its next use, when a listing shows that the original is another by now."""
    with contextlib.suppress(OSError, ProfileError):
        store = Store()
        key = url_key(url)
        for copy in store.copies(key):
            if copy.name != f"{key}-{version_key(size_of(facts), version_of(facts))}":
                store.distrust(copy.name)


@dataclass(frozen=True, slots=True)
class _Original:
    """The file as its server describes it, and what distinguishes it from other versions."""

    files: RemoteFiles
    size: int | None
    version: str
    key: str


class _Changed(Exception):
    """The original became another while it was fetched."""


class _Fetch:
    """One wish for one file."""

    def __init__(self, url: str, on_bytes: OnBytes, is_cancelled: Callable[[], bool]) -> None:
        self.url, self._shown, self._key = url, printable_url(url), url_key(url)
        self.store = Store()
        self._on_bytes = on_bytes
        self._is_cancelled = is_cancelled

    def open(self) -> int:
        self._poll()
        if (known := self._compared(FRESH_SECONDS)) is not None:
            return known
        try:
            original = self._ask(drivers.files_of(self.url))
        except ProfileError as error:
            known = self._compared(OFFLINE_SECONDS) if error.code == "connection" else None
            if known is None:
                raise
            return known
        for _ in range(_CHANGES):
            try:
                return self._current(original)
            except _Changed:
                original = self._ask(original.files)
            except OSError as error:
                raise self._disk_trouble(error, original.size) from error
        sentence = f"{self._shown} changes faster than it can be fetched."
        raise ProfileError("changing", sentence, "it is being written; try again when the capture has ended")

    def _compared(self, seconds: float) -> int | None:
        """A copy that was like its original this short ago."""
        with contextlib.suppress(OSError):
            ages = [(time.time() - copy.modified, copy.name) for copy in self.store.copies(self._key)]
            fresh = [(abs(age), name) for age, name in ages if abs(age) < seconds]
            if fresh:
                return self.store.use(min(fresh)[1])
        return None

    def _ask(self, files: RemoteFiles) -> _Original:
        attempt = 0
        while True:
            self._poll()
            try:
                facts = drivers.facts_of(files, self.url)
                break
            except drivers.failures() as error:
                attempt += 1
                problem = drivers.trouble(self.url, error)
                if problem.code != "connection" or attempt == _QUESTIONS:
                    raise problem from error
                self._pause(attempt)
        if facts.get("type") == "directory":
            raise ProfileError("not_a_file", f"{self._shown} is a folder.", "name a profile file")
        size, version = size_of(facts), version_of(facts)
        return _Original(files, size, version, version_key(size, version))

    def _current(self, original: _Original) -> int:
        """The copy of this version, fetched where it is not there yet."""
        name = f"{self._key}-{original.key}"
        if (known := self._known(name, original)) is not None:
            return known
        try:
            if self.store.make_room(original.size or 0, name):
                return self._kept(original, name)
        except OSError as error:
            if not is_unwritable(error):
                raise
        return self._for_now(original)

    def _for_now(self, original: _Original) -> int:
        """A copy that is not kept: it is larger than the cache, or that can't be written."""
        descriptor = self.store.nameless()
        try:
            self._download(original, descriptor, resumes=False)
        except BaseException:
            os.close(descriptor)
            raise
        return descriptor

    def _kept(self, original: _Original, name: str) -> int:
        with self.store.begun(name, self._poll) as (partial, descriptor):
            if (known := self._known(name, original)) is not None:  # another process may have been quicker
                return known
            self._download(original, descriptor, resumes=bool(original.version) and original.size is not None)
            copy = self.store.keep(partial, descriptor, name)
        for older in self.store.copies(self._key):
            if older.name != name:
                self.store.remove(older.name)
        self.store.make_room()
        return copy

    def _known(self, name: str, original: _Original) -> int | None:
        """The copy; without a version in its name it may be of an older file of the same size."""
        return self.store.use(name, original.size, compared=True) if original.version else None

    def _download(self, original: _Original, descriptor: int, resumes: bool) -> None:
        """Fetches all bytes into a file: after those that it holds where `resumes`, and on after a lost connection."""
        done = os.fstat(descriptor).st_size if resumes else 0
        done = done if done <= (original.size or 0) else 0
        os.ftruncate(descriptor, done)
        attempt, furthest = 0, done
        while True:
            problem = self._stream(original, descriptor, done)
            done = os.fstat(descriptor).st_size
            if problem is None:
                break
            attempt = 0 if done > furthest else attempt + 1
            furthest = max(furthest, done)
            if attempt >= ATTEMPTS:
                raise problem
            if original.size is None:  # nothing would distinguish a whole file from one that was put together wrongly
                done = 0
                os.ftruncate(descriptor, 0)
            self._pause(attempt)
        if self._ask(original.files).key != original.key:
            os.ftruncate(descriptor, 0)
            raise _Changed

    def _stream(self, original: _Original, descriptor: int, offset: int) -> ProfileError | None:
        """Copies from `offset` to the end; returns why it ended before, where trying again may help."""
        try:
            done = self._copied(original, descriptor, offset)
        except drivers.failures() as error:
            if isinstance(error, OSError) and error.errno in _NO_ROOM:
                os.ftruncate(descriptor, 0)
                raise
            if drivers.status_of(error) == 416:  # no such range: it is shorter by now
                os.ftruncate(descriptor, 0)
            problem = drivers.trouble(self.url, error)
            if problem.code != "connection":
                raise problem from error
            return problem
        if original.size is None or done == original.size:
            return None
        sentence = f"{self._shown} ends after {done:,} of the {original.size:,} bytes that were announced."
        return ProfileError("connection", sentence, "try again; if this happens again, the server or a proxy is broken")

    def _copied(self, original: _Original, descriptor: int, offset: int) -> int:
        """Copies from `offset` until nothing more comes; returns the length of the file then."""
        if offset == original.size:
            return offset
        limit = min(self.store.bound, _WITHOUT_SIZE) if original.size is None else original.size
        stream, done = drivers.open_stream(original.files, self.url, offset)
        with contextlib.closing(stream):
            if done != offset:
                os.ftruncate(descriptor, 0)
            chunk, since, had = _SMALLEST_CHUNK, time.monotonic(), done
            while True:
                self._poll()
                began = time.monotonic()
                if began - since > SLOW_SECONDS:
                    if done - had < SLOW_BYTES:
                        raise self._too_slow()
                    since, had = began, done
                data = drivers.answered(self.url, partial(stream.read, min(chunk, limit + 1 - done)))
                if not data:
                    return done
                if done + len(data) > limit:
                    os.ftruncate(descriptor, 0)
                    raise self._too_much(original.size, limit)
                write_at(descriptor, done, data)
                done += len(data)
                self._on_bytes(done, original.size)
                took = time.monotonic() - began
                if took < 0.2 and len(data) == chunk:  # large enough for the line, small enough to be cancelled
                    chunk = min(2 * chunk, _LARGEST_CHUNK)
                elif took > 1:
                    chunk = max(chunk // 2, _SMALLEST_CHUNK)

    def _poll(self) -> None:
        if self._is_cancelled():
            raise Cancelled

    def _pause(self, attempt: int) -> None:
        end = time.monotonic() + min(_FIRST_PAUSE_SECONDS * 2**attempt, _LONGEST_PAUSE_SECONDS)
        while time.monotonic() < end:
            self._poll()
            time.sleep(_POLL_SECONDS)

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
